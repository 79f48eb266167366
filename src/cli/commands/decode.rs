//! `moulsniff decode`: bytes from a log or a debugger.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use clap::Args;

use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::load::{settings, tables_of};
use crate::cli::options::{CompletionWords, GeneralArgs, KeyArgs, example_protocol, number};
use crate::cli::terminal::{coloured, marks};
use crate::digits::append_hex;
use crate::print::json::{JsonOptions, JsonWriter};
use crate::print::tree::{TreeOptions, TreeWriter};
use crate::print::{Paint, json};
use crate::proto::{LazyTables, NamedService, decode_named, protocol_named};
use crate::record::{MessageView, Names};
use crate::session::Message;
use crate::table::{Evaluator, TableError, Tables, parse_hex};
use crate::tree::{Kind, Sym, Tree, TypeRef, mark};

/// The most bytes that are read from standard input: as many as the largest message may have by
/// default.
const MAX_BYTES: u64 = 16 << 20;

/// How many bytes of text are kept before they are written.
const TEXT_AT_ONCE: usize = 64 << 10;

/// Bytes from a log or a debugger.
#[derive(Args, Debug)]
pub struct DecodeArgs {
    /// Decode as PROTOCOL.SERVICE.DIRECTION, such as moul.auth.client (not with --type); without a
    /// direction the client's, without a service the protocol's first one, such as secondlife
    #[arg(value_parser = CompletionWords::SENDERS, hide_possible_values = true)]
    pub name: Option<String>,
    /// Decode these bytes in hex; blanks and colons are ignored. Without any, bytes are read from
    /// standard input as they are
    pub hex: Vec<String>,
    /// Decode as a type of the tables, such as plUoid or 'packint(1)'
    #[arg(long = "type", value_name = "TYPE")]
    pub type_: Option<String>,
    /// Begin at this bit (with --type)
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::<usize>, requires = "type_")]
    pub bit: usize,
    /// Print JSON, one object a message
    #[arg(long)]
    pub json: bool,
    /// Print every field with its name, type and place in the bytes (with --json)
    #[arg(long, requires = "json")]
    pub spans: bool,
    /// Hide passwords, login hashes, tokens and session keys in the output
    #[arg(long)]
    pub redact: bool,
    /// What every command has.
    #[command(flatten)]
    pub general: GeneralArgs,
    /// Keys and tables.
    #[command(flatten)]
    pub keys: KeyArgs,
}

pub(super) fn run(args: &DecodeArgs) -> Result<Status, CliError> {
    let all = tables_of(&args.keys.tables)?;
    match &args.type_ {
        Some(ty) => {
            let words: Vec<&str> = args.name.iter().chain(&args.hex).map(String::as_str).collect();
            let bytes = bytes(&words)?;
            let mut out = Vec::new();
            value(all, ty, args.bit, &bytes, args, &mut out)?;
            io::stdout().write_all(&out).map_err(CliError::writing)?;
        }
        None => {
            let Some(name) = &args.name else { return Err(without_name()) };
            let words: Vec<&str> = args.hex.iter().map(String::as_str).collect();
            messages(&all, name, &bytes(&words)?, args)?;
        }
    }
    Ok(Status::Good)
}

fn bytes(words: &[&str]) -> Result<Vec<u8>, CliError> {
    if words.is_empty() {
        return files::read(Path::new("-"), "bytes to decode", MAX_BYTES);
    }
    let text = words.concat();
    parse_hex(&text).ok_or_else(|| {
        let mut characters = text.chars();
        let odd = characters.position(|c| !c.is_ascii_hexdigit() && !c.is_whitespace() && c != ':');
        CliError::Typed(match odd {
            // What was typed may be a key: nothing of it is quoted.
            Some(at) => {
                let number = at + 1;
                format!(
                    "character {number} is no hex digit; bytes are written as two digits each, such as 1a00 or 1a:00"
                )
            }
            None => "half a byte is left over: bytes are written as two hex digits each".into(),
        })
    })
}

/// Messages of a service and direction, one after the other. Those before bytes that cannot be read
/// are printed, too.
fn messages(
    all: &[LazyTables],
    name: &str,
    bytes: &[u8],
    args: &DecodeArgs,
) -> Result<(), CliError> {
    let settings = settings(&args.keys.protocols, true)?;
    let service = NamedService::find(all, name)
        .map_err(|error| if is_hex(name) { without_name() } else { error.into() })?;
    let mut printer = DecodePrinter::new(args);
    let mut text = Vec::new();
    let mut to = io::stdout().lock();
    let mut written = Ok(());
    let mut print = |message: &Message<'_>, tables: &Tables, tree: &Tree| {
        if written.is_ok() {
            printer.message(message, tables, tree, &mut text);
            if text.len() >= TEXT_AT_ONCE {
                written = to.write_all(&text);
                text.clear();
            }
        }
    };
    let decoded = decode_named(service, bytes, &settings, &mut print);
    written.and_then(|()| to.write_all(&text)).map_err(CliError::writing)?;
    Ok(decoded?)
}

/// The error where a name is missing. It quotes nothing, since what was typed in its place may be a
/// key.
fn without_name() -> CliError {
    let protocol = example_protocol();
    CliError::Typed(format!(
        "decode what? A name such as {protocol}.SERVICE.client before the bytes, or --type TYPE"
    ))
}

fn is_hex(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_hexdigit() || c == ':')
}

/// An evaluator for a protocol's tables, made ready with what was given.
fn ready(tables: &Tables, args: &DecodeArgs) -> Result<Evaluator, CliError> {
    let mut evaluator = Evaluator::default();
    let settings = settings(&args.keys.protocols, true)?;
    if let Some(protocol) = protocol_named(tables.protocol()) {
        protocol.prepare(&mut evaluator, settings.named(protocol.name()));
    }
    Ok(evaluator)
}

/// One value of any type.
fn value(
    all: Vec<LazyTables>,
    ty: &str,
    bit: usize,
    bytes: &[u8],
    args: &DecodeArgs,
    out: &mut Vec<u8>,
) -> Result<(), CliError> {
    let mut failed = None;
    for lazy in all {
        let further = lazy.further().to_vec();
        let found = crate::proto::load_tables(lazy.protocol(), &further)
            .and_then(|t| t.with_type(&root(ty)));
        match found {
            Ok((tables, type_ref)) => {
                return print_value(
                    &tables,
                    AskedValue { name: ty, ty: type_ref, bit },
                    bytes,
                    args,
                    out,
                );
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    // The compiler of tables calls the end of any text the end of the file.
    let said = |error: TableError| error.message.replace("the end of the file", "the end");
    let why = failed.map_or_else(|| format!("there is no type `{ty}`"), said);
    Err(CliError::Typed(format!("--type {ty}: {why}")))
}

/// Names of root types as the contract writes them.
fn root(ty: &str) -> String {
    ty.replace('.', "_")
}

/// A type as it was asked for, and the bit that the value begins at.
struct AskedValue<'a> {
    name: &'a str,
    ty: TypeRef,
    bit: usize,
}

fn print_value(
    tables: &Tables,
    typed: AskedValue<'_>,
    bytes: &[u8],
    args: &DecodeArgs,
    out: &mut Vec<u8>,
) -> Result<(), CliError> {
    let AskedValue { name: text, ty, bit } = typed;
    let mut evaluator = ready(tables, args)?;
    let mut tree = Tree::new();
    let name = tables.sym("value").unwrap_or(Sym::ELEMENT);
    let end = evaluator.value(tables, ty, name, bytes, bit, &mut tree);
    let mut printer = DecodePrinter::new(args);
    let rest =
        tree.nodes().iter().position(|n| n.kind == Kind::Undecoded && n.start as usize >= end);
    let padding = bytes.len() * 8 - end.min(bytes.len() * 8) < 8 && last_bits_zero(bytes, end);
    // Where a type could not be read at all, the tree is a structure that holds only the undecoded
    // rest.
    let empty = tree.nodes().first().is_some_and(|n| n.kind == Kind::Struct);
    let nothing = match rest {
        Some(at) => at == 0 || at == 1 && empty,
        None => empty && tree.nodes().len() == 1 && !tree.problems().is_empty(),
    };
    match &mut printer.tree {
        None => {
            out.extend_from_slice(b"{\"type\":");
            json::string(out, text);
            out.extend_from_slice(b",\"value\":");
            let left = rest.and_then(|at| u32::try_from(at).ok());
            let hex = left.and_then(|at| tree.get(at)).map(|n| tree.content(n, bytes).into_owned());
            match left.and_then(|at| tree.get_mut(at)) {
                _ if nothing => out.extend_from_slice(b"null"),
                rest => {
                    // The undecoded bits have a key of their own, beside `value`.
                    if let Some(node) = rest {
                        node.marks |= mark::SPAN;
                    }
                    printer.json.value(MessageView { tables, tree: &tree, bytes }, 0, out);
                }
            }
            out.extend_from_slice(b",\"bit_length\":");
            json::number(out, end.saturating_sub(bit));
            if let Some(hex) = hex.filter(|_| !padding) {
                out.extend_from_slice(b",\"undecoded\":\"");
                append_hex(out, &hex);
                out.push(b'"');
            }
            printer.json.problems(MessageView { tables, tree: &tree, bytes }, out);
            out.extend_from_slice(b"}\n");
        }
        Some(writer) => {
            writer.body(MessageView { tables, tree: &tree, bytes }, Names::default(), out)
        }
    }
    Ok(())
}

/// Whether all bits from one on are zero.
fn last_bits_zero(bytes: &[u8], bit: usize) -> bool {
    bytes.get(bit / 8).is_none_or(|b| bit.is_multiple_of(8) || b >> (bit % 8) == 0)
}

struct DecodePrinter {
    json: JsonWriter,
    tree: Option<TreeWriter>,
}

impl DecodePrinter {
    fn new(args: &DecodeArgs) -> Self {
        let paint = {
            let terminal = std::io::stdout().is_terminal();
            Paint::new(coloured(args.general.color, terminal), marks(terminal))
        };
        let style = TreeOptions { paint, redact: args.redact, ..TreeOptions::default() };
        DecodePrinter {
            json: JsonWriter::new(JsonOptions { spans: args.spans, redact: args.redact }),
            tree: (!args.json).then(|| TreeWriter::new(style)),
        }
    }

    fn message(&mut self, message: &Message<'_>, tables: &Tables, tree: &Tree, out: &mut Vec<u8>) {
        match &mut self.tree {
            None => {
                out.push(b'{');
                self.json.message_body(
                    message,
                    MessageView { tables, tree, bytes: message.bytes },
                    out,
                );
                out.extend_from_slice(b"}\n");
            }
            Some(writer) => {
                let view = MessageView { tables, tree, bytes: message.bytes };
                writer.message_line(message, view, out);
                writer.body(view, Names::default(), out);
            }
        }
    }
}
