//! Files that were named on the command line: message tables, and what protocols take.

use crate::captured::file_name;
use crate::remark;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::args::ReadArgs;
use super::error::CliError;
use crate::proto::{AllSettings, LazyTables, PROTOCOLS, protocol_named};
use crate::table::{MAX_TABLE_BYTES, TableError, TableSource, Tables};

/// The tables of all protocols, with those that were given on top.
pub(super) fn tables(files: &[PathBuf]) -> Result<Vec<LazyTables>, CliError> {
    let mut further: Vec<(String, TableSource)> = Vec::new();
    for path in files {
        let name = file_name(path);
        let text = table_text(path).map_err(|e| CliError::File(name.clone(), e))?;
        let foreign = PROTOCOLS.iter().find_map(|p| p.foreign_tables(&name, &text));
        let source = foreign.unwrap_or(Ok(TableSource { name, text }))?;
        let protocol = Tables::protocol_of(&source)?;
        if protocol_named(&protocol).is_none() {
            let known: Vec<&str> = PROTOCOLS.iter().map(|p| p.name()).collect();
            let message = format!("there is no protocol `{protocol}`; there are {}", known.join(", "));
            let at = source.text.find(&format!("protocol {protocol}")).map_or(0, |at| at + "protocol ".len());
            return Err(TableError::at(&source.name, &source.text, at, message).into());
        }
        further.push((protocol, source));
    }
    let mut all = Vec::new();
    for protocol in PROTOCOLS {
        let own = further.iter().filter(|f| f.0 == protocol.name()).map(|f| f.1.clone()).collect();
        all.push(LazyTables::new(*protocol, own)?);
    }
    Ok(all)
}

/// What was given to each protocol. With `no_capture`, what only a capture could open is a mistake.
pub(super) fn settings(args: &ReadArgs, no_capture: bool) -> Result<AllSettings, CliError> {
    let given = args.protocols.read(no_capture)?;
    let mut warn = |text: String| {
        remark::say(format_args!("moulsniff: {text}"));
    };
    Ok(AllSettings::new(&given, &mut warn)?)
}

/// A table file's text. Stops reading behind the size that a table file may have, so that `/dev/zero` has an end too.
fn table_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TABLE_BYTES as u64 + 1).read_to_string(&mut text)?;
    if text.len() > MAX_TABLE_BYTES {
        return Err(io::Error::other("no table file: it has more than 16 MiB"));
    }
    Ok(text)
}
