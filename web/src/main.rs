//! Makes `moulsniff.html`: the program, compiled for WASI, and the page around it, in one file.
//!
//!     cargo run --manifest-path web/Cargo.toml -- moulsniff.html [PROFILE]
//!
//! Needs `rustup target add wasm32-wasip1`. PROFILE is one of the program's Cargo.toml; default
//! `release`. It knows how the page is put together, and nothing of what it does.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest, Sha256};
use std::io::Write;

const TARGET: &str = "wasm32-wasip1";
/// Bytes of the program's stack, as many as the main thread has elsewhere.
const STACK: u32 = 8 << 20;
/// Bytes of memory that the program may take: a browser refuses more at times.
const MOST_MEMORY: u32 = 768 << 20;
/// What a visitor sees with one click.
const SAMPLE: [&str; 2] = ["captures/moul/evening.pcapng", "keys/evening.keys"];

fn main() -> ExitCode {
    match make_page() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn make_page() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let page = args.next().ok_or("expected the name of the page, such as moulsniff.html")?;
    let profile = args.next().unwrap_or("release".into());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no folder above")?;
    let text = |path: &str| {
        fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
    };
    let bytes = |path: &str| fs::read(root.join(path)).map_err(|error| format!("{path}: {error}"));

    // A frame has the policy of the page that made it, so this one allows the report's script too.
    let report = text("src/print/report/mod.rs")?;
    let names = report.split('"').filter(|word| word.ends_with(".js"));
    let files = names.map(|name| text(&format!("src/print/report/{name}")));
    let report_script = files.collect::<Result<Vec<_>, _>>()?.join("\n");
    let report_style = text("src/print/report/style.css")?;
    let [script, style] = [text("web/page.js")?, text("web/page.css")?];
    let policy = format!(
        "default-src 'none'; script-src 'wasm-unsafe-eval' {} {}; style-src {} {}; worker-src \
         blob:; frame-src blob:; base-uri 'none'; form-action 'none'; require-trusted-types-for \
         'script'; trusted-types moulsniff",
        hash(&script),
        hash(&report_script),
        hash(&style),
        hash(&report_style),
    );
    let worker = [text("web/wasi.js")?, text("web/worker.js")?].join("\n");
    let program = fs::read(compile(root, &profile)?)?;
    let [capture, keys] = SAMPLE;
    let parts = [
        ("policy", policy),
        ("report-style", report_style),
        ("style", style),
        ("program", block(&program)?),
        ("sample-capture", block(&bytes(capture)?)?),
        ("sample-keys", block(&bytes(keys)?)?),
        ("worker", worker),
        ("script", script),
    ];
    // Each part is looked for behind the one before, so that no text of a part is taken for a mark.
    let frame = text("web/page.html")?;
    let mut rest = frame.as_str();
    let mut out = String::new();
    for (name, part) in parts {
        let mark = format!("{{{{{name}}}}}");
        let (before, after) = rest.split_once(&mark).ok_or(format!("no {mark} in page.html"))?;
        out.push_str(before);
        out.push_str(&part);
        rest = after;
    }
    out.push_str(rest);
    fs::write(&page, out).map_err(|error| format!("{page}: {error}"))?;
    Ok(())
}

/// Compiles the program and returns its path.
fn compile(root: &Path, profile: &str) -> Result<PathBuf, Box<dyn Error>> {
    let cargo = env::var("CARGO").unwrap_or("cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .args(["rustc", "--locked", "--bin", "moulsniff", "--target", TARGET])
        .args(["--profile", profile, "--", "-C", "strip=symbols"])
        .args(["-C", &format!("link-arg=-zstack-size={STACK}")])
        .args(["-C", &format!("link-arg=--max-memory={MOST_MEMORY}")])
        .status()?;
    if !status.success() {
        return Err(format!("the program does not compile for {TARGET}").into());
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target.join(TARGET).join(folder).join("moulsniff.wasm"))
}

/// Bytes as a block of the page: deflated, in base64.
fn block(bytes: &[u8]) -> Result<String, Box<dyn Error>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(STANDARD.encode(encoder.finish()?))
}

/// A source of a Content-Security-Policy: the hash of a script or style.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}
