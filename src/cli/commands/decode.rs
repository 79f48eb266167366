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
use crate::dump::read_dump;
use crate::print::json::{JsonOptions, JsonWriter};
use crate::print::tree::{TreeOptions, TreeWriter};
use crate::print::{Paint, json};
use crate::proto::{
    AllSettings, LazyTables, NamedService, TakeMessage, TextPiece, decode_named, near_types,
    protocol_named,
};
use crate::record::{MessageView, Names};
use crate::remark;
use crate::session::Message;
use crate::table::{Evaluator, TableError, Tables};
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
    /// direction the client's, without a service the protocol's first one, such as secondlife. A
    /// service or a message alone is enough where only one protocol has it
    #[arg(value_parser = CompletionWords::SENDERS, hide_possible_values = true)]
    pub name: Option<String>,
    /// Decode these bytes: hex, base64, an array or a string of a programming language, or a hex
    /// dump. `-` is standard input, `@FILE` a file, either as text or as bytes. Without any, bytes
    /// are read from standard input
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
            let bytes = match GivenBytes::read(&words)? {
                GivenBytes::Unnamed(bytes) => vec![bytes],
                given => given.into_pieces(args)?,
            };
            let mut out = Vec::new();
            value(all, ty, args.bit, &bytes.concat(), args, &mut out)?;
            io::stdout().write_all(&out).map_err(CliError::writing)?;
        }
        None => {
            let Some(name) = &args.name else { return Err(without_name()) };
            let words: Vec<&str> = args.hex.iter().map(String::as_str).collect();
            messages(&all, name, GivenBytes::read(&words)?, args)?;
        }
    }
    Ok(Status::Good)
}

/// What was given to be decoded.
enum GivenBytes {
    /// What was typed.
    Typed(String),
    /// The content of a file or of standard input.
    Input(Vec<u8>),
    /// The content of standard input, where nothing was typed: what is no dump is taken as it is.
    Unnamed(Vec<u8>),
}

impl GivenBytes {
    fn read(words: &[&str]) -> Result<GivenBytes, CliError> {
        let path = match words {
            [] => Some("-"),
            [word] => word.strip_prefix('@').or(Some(*word).filter(|word| *word == "-")),
            _ => None,
        };
        let Some(path) = path else { return Ok(GivenBytes::Typed(words.join(" "))) };
        let bytes = files::read(Path::new(path), "bytes to decode", MAX_BYTES)?;
        Ok(if words.is_empty() { GivenBytes::Unnamed(bytes) } else { GivenBytes::Input(bytes) })
    }

    /// The text, if it is one.
    fn text(&self) -> Option<&str> {
        match self {
            GivenBytes::Typed(text) => Some(text),
            GivenBytes::Input(bytes) | GivenBytes::Unnamed(bytes) => {
                let text = std::str::from_utf8(bytes).ok()?;
                let is_text = |c: char| !c.is_control() || c.is_ascii_whitespace();
                text.chars().all(is_text).then_some(text)
            }
        }
    }

    /// The bytes, in the pieces that a text has.
    fn into_pieces(self, args: &DecodeArgs) -> Result<Vec<Vec<u8>>, CliError> {
        let dump = match self.text().map(read_dump) {
            Some(Ok(dump)) => dump,
            Some(Err(error)) if !matches!(self, GivenBytes::Unnamed(_)) => {
                return Err(CliError::Typed(error.to_string()));
            }
            _ => {
                return Ok(match self {
                    GivenBytes::Input(bytes) | GivenBytes::Unnamed(bytes) => vec![bytes],
                    GivenBytes::Typed(_) => Vec::new(),
                });
            }
        };
        if let Some(remark) = dump.form.remark().filter(|_| !args.general.quiet) {
            remark::say(format_args!("{remark}"));
        }
        Ok(dump.pieces)
    }
}

/// Messages of a service and direction, one after the other. Those before bytes that cannot be read
/// are printed, too.
fn messages(
    all: &[LazyTables],
    name: &str,
    given: GivenBytes,
    args: &DecodeArgs,
) -> Result<(), CliError> {
    let settings = settings(&args.keys.protocols, true)?;
    let named = NamedService::find(all, name)
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
    let decoded = match pieces_of_format(&named, &given) {
        Some(pieces) => decode_pieces(&pieces, &settings, &mut print),
        None => {
            let pieces = joined(named, given.into_pieces(args)?, &settings);
            let (named, decided) = named.decide_side(&pieces, &settings)?;
            if decided && !args.general.quiet {
                remark::say(format_args!("read as {}", named.name()));
            }
            let pieces: Vec<_> = pieces.into_iter().map(|bytes| (named, bytes)).collect();
            decode_pieces(&pieces, &settings, &mut print)
        }
    };
    written.and_then(|()| to.write_all(&text)).map_err(CliError::writing)?;
    decoded
}

/// Decodes pieces one by one. What is wrong with the first that cannot be read is said at the end.
fn decode_pieces(
    pieces: &[(NamedService<'_>, Vec<u8>)],
    settings: &AllSettings,
    print: TakeMessage<'_>,
) -> Result<(), CliError> {
    let mut failed = None;
    for (at, (named, bytes)) in pieces.iter().enumerate() {
        if let Err(error) = decode_named(*named, bytes, settings, &mut *print) {
            let error = CliError::from(error);
            failed.get_or_insert(match error {
                CliError::Unreadable(text) if pieces.len() > 1 => {
                    CliError::Unreadable(format!("piece {}: {text}", at + 1))
                }
                error => error,
            });
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The pieces of a text in the format of the protocol's own logs, each with the side that sent it.
/// `None` for anything else.
fn pieces_of_format<'a>(
    named: &NamedService<'a>,
    given: &GivenBytes,
) -> Option<Vec<(NamedService<'a>, Vec<u8>)>> {
    let format = named.protocol().text_format()?;
    let text = given.text()?;
    if !format.recognise(text.as_bytes()) {
        return None;
    }
    let mut pieces: Vec<TextPiece> = Vec::new();
    // Further pieces of a side go on where the one before ended.
    let mut take = |piece: TextPiece| match pieces.last_mut() {
        Some(last) if last.from == piece.from && piece.lost == 0 && !piece.begins => {
            last.bytes.extend_from_slice(&piece.bytes)
        }
        _ => pieces.push(piece),
    };
    let mut reader = format.reader("");
    text.lines().for_each(|line| reader.line(line.as_bytes(), &mut take));
    reader.end(&mut take);
    Some(pieces.into_iter().map(|piece| (named.from_side(piece.from), piece.bytes)).collect())
}

/// The pieces, or one of all of them where messages go on from one to the next.
fn joined(named: NamedService<'_>, pieces: Vec<Vec<u8>>, settings: &AllSettings) -> Vec<Vec<u8>> {
    if pieces.len() < 2 {
        return pieces;
    }
    let reads = |pieces: &[Vec<u8>]| {
        let (named, _) = named.decide_side(pieces, settings).unwrap_or((named, false));
        pieces.iter().all(|bytes| decode_named(named, bytes, settings, &mut |_, _, _| {}).is_ok())
    };
    let whole = vec![pieces.concat()];
    if !reads(&pieces) && reads(&whole) { whole } else { pieces }
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
    let mut failed: Option<TableError> = None;
    for lazy in &all {
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
            // An error that offers a name tells more than one that does not.
            Err(error) if failed.is_none() || error.message.contains("did you mean") => {
                failed = Some(error);
            }
            Err(_) => {}
        }
    }
    // The compiler of tables calls the end of any text the end of the file.
    let said = |error: TableError| error.message.replace("the end of the file", "the end");
    let why = match failed.map(said) {
        Some(why) if why.contains("did you mean") || !why.contains("there is no type") => why,
        Some(why) => why + &near_types(&all, ty),
        None => format!("there is no type `{ty}`"),
    };
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
