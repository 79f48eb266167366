//! `moulsniff tables`: the message tables themselves.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::vectors::vectors;
use crate::captured::file_name;
use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::load::{tables as load, tables_of};
use crate::cli::options::{CompletionWords, GeneralArgs, TableArgs};
use crate::digits::counted;
use crate::examples::{MAX_FAILED, run_examples};
use crate::output_file::{Access, Inputs};
use crate::print::json::one_line;
use crate::print::lua_script;
use crate::proto::{LazyTables, protocol_named};
use crate::reference::{self, Item};
use crate::remark;
use crate::table::WithLine;

/// The message tables.
#[derive(Subcommand, Debug)]
pub enum TablesCommand {
    /// List protocols, services, messages and types
    List {
        /// List only what contains this word
        #[arg(value_parser = CompletionWords::SERVICES, hide_possible_values = true)]
        word: Option<String>,
        /// Print JSON, one object a line
        #[arg(long)]
        json: bool,
        /// The tables.
        #[command(flatten)]
        read: TableReadArgs,
    },
    /// Show the declaration of a message, structure or enum
    Show {
        /// Show the declaration with this name
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        name: Option<String>,
        /// Show all declarations
        #[arg(long)]
        all: bool,
        /// Print JSON, one object a line: fields with their explanations, examples, what answers a
        /// message and what uses a type
        #[arg(long)]
        json: bool,
        /// The tables.
        #[command(flatten)]
        read: TableReadArgs,
    },
    /// Write a reference of all messages and types as HTML pages
    Html {
        /// Write the pages into this folder, beginning with index.html; it is created if
        /// necessary, and pages of the same name are replaced
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
        /// The tables.
        #[command(flatten)]
        read: TableReadArgs,
    },
    /// Print the examples as test vectors: service, direction, message, bytes in hex, fields
    Vectors {
        /// Print JSON, one object a line
        #[arg(long)]
        json: bool,
        /// The tables.
        #[command(flatten)]
        read: TableReadArgs,
    },
    /// Print a Lua script with which Wireshark shows exported messages (`export messages`)
    Lua(TableReadArgs),
    /// Print a table that declares a new protocol, with every line explained, as a starting point
    New {
        /// The protocol's name: lower-case letters and digits
        name: String,
        /// Declare a protocol over this transport
        #[arg(long, value_name = "TRANSPORT", default_value = "tcp")]
        transport: TransportWord,
    },
    /// Check table files and run their examples
    Check {
        /// Check these table files, or folders with files that end in .table; all of them are
        /// added to the embedded tables
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

impl TablesCommand {
    /// The tables that are read, by a command that reads any.
    pub(super) fn read_mut(&mut self) -> Option<&mut TableReadArgs> {
        match self {
            TablesCommand::List { read, .. }
            | TablesCommand::Show { read, .. }
            | TablesCommand::Vectors { read, .. }
            | TablesCommand::Html { read, .. } => Some(read),
            TablesCommand::Lua(read) => Some(read),
            TablesCommand::New { .. } | TablesCommand::Check { .. } => None,
        }
    }
}

/// The tables that are read.
#[derive(Args, Debug)]
pub struct TableReadArgs {
    /// What every command has.
    #[command(flatten)]
    pub general: GeneralArgs,
    /// Further tables.
    #[command(flatten)]
    pub tables: TableArgs,
}

/// What a protocol runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TransportWord {
    /// A stream of bytes.
    Tcp,
    /// Datagrams.
    Udp,
}

pub(super) fn run(command: &TablesCommand) -> Result<Status, CliError> {
    let mut out = String::new();
    let mut failed = 0;
    let status = match command {
        TablesCommand::List { word, json, read } => {
            list(&tables_of(&read.tables)?, word.as_deref(), *json, &mut out)
        }
        TablesCommand::Show { name, json, read, .. } => {
            show(&tables_of(&read.tables)?, name.as_deref(), *json, &mut out)?
        }
        TablesCommand::Vectors { json, read } => {
            vectors(&tables_of(&read.tables)?, *json, &mut out)?;
            Status::Good
        }
        TablesCommand::Html { output, read } => {
            html(output, read)?;
            Status::Good
        }
        TablesCommand::Lua(read) => {
            out = lua_script(tables_of(&read.tables)?.iter().map(LazyTables::get));
            Status::Good
        }
        TablesCommand::New { name, transport } => skeleton(name, *transport, &mut out)?,
        TablesCommand::Check { files } => {
            failed = check(files, &mut out)?;
            Status::Good
        }
    };
    std::io::stdout().write_all(out.as_bytes()).map_err(CliError::writing)?;
    match failed {
        0 => Ok(status),
        1 => Err(CliError::Typed("an example failed".into())),
        _ => Err(CliError::Typed(format!("{failed} examples failed"))),
    }
}

/// A table to begin a protocol with.
fn skeleton(name: &str, transport: TransportWord, out: &mut String) -> Result<Status, CliError> {
    let letters = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if !letters || !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.len() > 64 {
        let text = format!(
            "`{name}` is no name for a protocol: those have lower-case letters and digits, such \
             as `chat2`"
        );
        return Err(CliError::Typed(text));
    }
    if protocol_named(name).is_some() {
        return Err(CliError::Typed(format!(
            "`{name}` is built in: a table of it begins with `protocol {name}` alone"
        )));
    }
    let transport = match transport {
        TransportWord::Tcp => "tcp",
        TransportWord::Udp => "udp",
    };
    out.push_str(
        &include_str!("skeleton.table").replace("NAME", name).replace("TRANSPORT", transport),
    );
    Ok(Status::Good)
}

/// One line for each message and each other declaration: as text, or as a JSON object.
fn list(all: &[LazyTables], word: Option<&str>, json: bool, out: &mut String) -> Status {
    let mut line = |text: String, object: serde_json::Value| {
        if word.is_none_or(|word| text.contains(word)) {
            out.push_str(&if json { one_line(&object) } else { text });
            out.push('\n');
        }
    };
    for lazy in all {
        let tables = lazy.get();
        let protocol = tables.protocol();
        let messages = reference::messages(tables);
        for (id, service) in tables.services().iter().enumerate() {
            for (_, def) in messages.iter().filter(|(_, def)| def.service.0 as usize == id) {
                let from = reference::sender(def.direction);
                let (name, service, number) = (tables.name(def.name), &service.name, def.number);
                let shown = number.map_or("-".into(), |n| n.to_string());
                let unknown = def.layout.is_none();
                let remark = if unknown { "  (layout unknown)" } else { "" };
                let mut object = serde_json::json!({
                    "protocol": protocol, "service": service, "from": from, "message": name, "layout_known": !unknown,
                });
                if let (Some(number), Some(object)) = (number, object.as_object_mut()) {
                    object.insert("type".into(), number.into());
                }
                line(format!("{protocol}.{service}.{from}\t{shown}\t{name}{remark}"), object);
            }
        }
        let mut listed = HashSet::new();
        for d in tables.declarations().iter().filter(|d| d.kind != "message" && d.kind != "service")
        {
            if !listed.insert((&d.kind, &d.name)) {
                continue;
            }
            let object =
                serde_json::json!({ "protocol": protocol, "kind": d.kind, "name": d.name });
            line(format!("{protocol}\t{}\t{}", d.kind, d.name), object);
        }
    }
    Status::Good
}

/// The declarations that have a name, or all of them: as text, or as JSON, one object a line.
fn show(
    all: &[LazyTables],
    name: Option<&str>,
    json: bool,
    out: &mut String,
) -> Result<Status, CliError> {
    let mut found = false;
    for lazy in all {
        let items = reference::items(lazy.get());
        for item in items.iter().filter(|item| name.is_none_or(|name| name == item.name)) {
            found = true;
            if json {
                out.push_str(&one_line(&reference::item_json(item)));
                out.push('\n');
            } else {
                out.push_str(&declaration(item));
            }
        }
    }
    if found {
        return Ok(Status::Good);
    }
    let name = name.unwrap_or("");
    let names = all.iter().flat_map(|l| l.get().declarations().iter().map(|d| &*d.name));
    let near = crate::suggest::offer(name, names);
    Err(CliError::Typed(format!("the tables have nothing named `{name}`{near}")))
}

/// A declaration as it stands in its file, below a line that says where.
fn declaration(item: &Item<'_>) -> String {
    let (file, line) = item.place();
    let mut out = format!("// {} {}, {file}:{line}\n", item.tables.protocol(), item.kind);
    for doc in item.listed.doc.lines() {
        out.push_str(&format!("/// {doc}\n"));
    }
    out.push_str(item.text());
    out.push('\n');
    out
}

/// Writes the reference into a folder.
fn html(folder: &Path, read: &TableReadArgs) -> Result<(), CliError> {
    let inputs = read.tables.files.iter().chain(&read.general.config_file);
    let inputs = Inputs::of(inputs.map(PathBuf::as_path));
    let all = tables_of(&read.tables)?;
    let items: Vec<Vec<Item<'_>>> = all.iter().map(|lazy| reference::items(lazy.get())).collect();
    let made = files::create_folder(folder)?;
    let pages = reference::pages(&items);
    for page in &pages {
        let path = folder.join(&page.path);
        let fail = |error| CliError::File(file_name(&path), error);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(fail)?;
        }
        let mut file = files::create(&path, Access::Usual, &inputs)?;
        file.write_all(page.text.as_bytes()).and_then(|()| file.commit_unsynced()).map_err(fail)?;
    }
    made.keep();
    if !read.general.quiet {
        let index = folder.join("index.html");
        let pages = counted(pages.len(), "file");
        remark::say(format_args!("{pages}, beginning with {}", file_name(&index)));
    }
    Ok(())
}

/// Checks table files; returns how many of their examples failed.
fn check(files: &[PathBuf], out: &mut String) -> Result<usize, CliError> {
    let mut failures = 0;
    let mut count = 0;
    let all = load(files)?;
    for (place, lazy) in all.iter().enumerate() {
        let tables = lazy.get();
        let embedded = lazy.protocol().sources().len();
        if tables.sources().len() == embedded {
            continue;
        }
        let (_, failed) = run_examples(tables);
        let own: Vec<&str> =
            tables.sources().iter().skip(embedded).map(|s| s.name.as_str()).collect();
        count += tables.examples().iter().filter(|e| e.file as usize >= embedded).count();
        for error in failed.iter().filter(|e| own.contains(&e.file.as_str())) {
            failures += 1;
            out.push_str(&format!("{}\n", WithLine(error)));
        }
        for remark in tables.remarks(embedded) {
            out.push_str(&format!("{}\n", WithLine(&remark)));
        }
        for remark in all.iter().take(place).flat_map(|earlier| tables.taken_before(earlier.get()))
        {
            out.push_str(&format!("{}\n", WithLine(&remark)));
        }
    }
    let more = if failures >= MAX_FAILED { "; after these no more were run" } else { "" };
    out.push_str(&format!("{}, {failures} failed{more}\n", counted(count, "example")));
    Ok(failures)
}
