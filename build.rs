//! Compiles the message tables of the program's own protocols, so that a start only has to read
//! what was compiled.
//!
//! For each folder of `src/proto/` this takes the table files in the order in which the folder's
//! `mod.rs` names them, compiles them with the same code that compiles the tables of `--tables`,
//! and packs the result (see `src/table/packed/`). A test holds every packed program against its
//! tables' text.

// The stages are built here without what uses the rest of them.
#![allow(dead_code, unused_imports)]

#[path = "src/captured.rs"]
mod captured;
#[path = "src/digits.rs"]
mod digits;
#[path = "src/leb128.rs"]
mod leb128;
#[path = "src/maps.rs"]
mod maps;
#[path = "src/suggest.rs"]
mod suggest;
#[path = "src/table/packer.rs"]
mod table;
#[path = "src/tree/mod.rs"]
mod tree;

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use table::{TableSource, WithLine};

fn main() -> ExitCode {
    match pack_all() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.to_string().lines().for_each(|line| println!("cargo::error={line}"));
            ExitCode::FAILURE
        }
    }
}

fn pack_all() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/proto");
    println!("cargo::rerun-if-changed=src/table");
    println!("cargo::rerun-if-changed=src/tree");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut list = String::from("[\n");
    for folder in folders(Path::new("src/proto"))? {
        let sources = sources(&folder)?;
        let packed = table::pack(&sources).map_err(|error| WithLine(&error).to_string())?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        fs::write(out.join(format!("{name}.packed")), packed)?;
        writeln!(
            list,
            "    ({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \
             \"/{name}.packed\")).as_slice()),"
        )?;
    }
    list.push(']');
    fs::write(out.join("packed_tables.rs"), list)?;
    Ok(())
}

/// The folders of protocols, by name.
fn folders(within: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut folders: Vec<PathBuf> = fs::read_dir(within)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    folders.retain(|path| path.join("mod.rs").is_file());
    folders.sort();
    Ok(folders)
}

/// The table files of a folder, as its `mod.rs` names them.
fn sources(folder: &Path) -> Result<Vec<TableSource>, Box<dyn Error>> {
    let code = fs::read_to_string(folder.join("mod.rs"))?;
    let names =
        code.split('"').filter(|word| word.ends_with(".table") && !word.contains(['/', ' ']));
    let protocol = folder.file_name().unwrap_or_default().to_string_lossy();
    let source = |name: &str| {
        let text = fs::read_to_string(folder.join(name))?;
        Ok(TableSource { name: format!("{protocol}/{name}"), text: text.into() })
    };
    names.map(source).collect()
}
