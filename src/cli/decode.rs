//! `moulsniff decode`: bytes from a log or a debugger.

use std::io::{IsTerminal, Read, Write};
use std::net::SocketAddr;

use super::args::{DecodeArgs, ReadArgs};
use super::error::{CliError, Status};
use super::given::example_protocol;
use super::load::{settings, tables as load};
use super::plan::{coloured, marks};
use crate::capture::Moment;
use crate::captured::Captured;
use crate::digits::append_hex;
use crate::out::json::{JsonOptions, JsonWriter};
use crate::out::tree::{Annotations, TreeOptions, TreeWriter};
use crate::out::{Paint, json};
use crate::proto::{
    Context, Decoded, Emit, Ends, Event, EventKind, LazyTables, Message, Options, Share, Side, Start, hear_alone,
    protocol_named,
};
use crate::table::{Evaluator, Outcome, ServiceId, Tables, parse_hex};
use crate::tree::{Kind, Sym, Tree, TypeRef, mark};

pub(super) fn run(decode: &DecodeArgs, args: &ReadArgs) -> Result<Status, CliError> {
    let all = load(&args.tables)?;
    let mut out = Vec::new();
    match &decode.type_ {
        Some(ty) => {
            let words: Vec<&str> = decode.name.iter().chain(&decode.hex).map(String::as_str).collect();
            let bytes = bytes(&words)?;
            value(all, ty, decode.bit, &bytes, args, &mut out)?;
        }
        None => {
            let Some(name) = &decode.name else {
                let protocol = example_protocol();
                let text = format!("decode what? A name such as {protocol}.SERVICE.client, or --type TYPE");
                return Err(CliError::Typed(text));
            };
            let words: Vec<&str> = decode.hex.iter().map(String::as_str).collect();
            messages(&all, name, &bytes(&words)?, args, &mut out)?;
        }
    }
    std::io::stdout().write_all(&out).map_err(CliError::writing)?;
    Ok(Status::Good)
}

fn bytes(words: &[&str]) -> Result<Vec<u8>, CliError> {
    if words.is_empty() {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().take(64 << 20).read_to_end(&mut bytes);
        return read.map(|_| bytes).map_err(|e| CliError::File("standard input".into(), e));
    }
    let text = words.concat();
    parse_hex(&text).ok_or_else(|| {
        let odd = text.chars().find(|c| !c.is_ascii_hexdigit() && !c.is_whitespace() && *c != ':');
        CliError::Typed(match odd {
            Some(c) => format!("`{c}` is no hex digit; bytes are written as two digits each, such as 1a00 or 1a:00"),
            None => "half a byte is left over: bytes are written as two hex digits each".into(),
        })
    })
}

/// Messages of a service and direction, one after the other.
fn messages(all: &[LazyTables], name: &str, bytes: &[u8], args: &ReadArgs, out: &mut Vec<u8>) -> Result<(), CliError> {
    let (lazy, service, side) = find(all, name)?;
    let tables = lazy.get();
    if tables.service(service).is_some_and(|s| s.positional || s.header.is_empty()) {
        let name = tables.declared().and(tables.service(service)).map(|service| service.name.as_str());
        return framed(lazy, name, side, bytes, args, out);
    }
    let mut evaluator = ready(tables, args)?;
    let mut tree = Tree::new();
    let mut printer = DecodePrinter::new(args);
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        match evaluator.message(tables, service, side.index(), rest, &mut tree) {
            Outcome::Message(id, length) => {
                let def = tables.message(id);
                let message = Message {
                    name: Captured::new(def.map_or("", |d| tables.name(d.name))),
                    number: def.and_then(|d| d.number),
                    service: "",
                    from: side,
                    offset: at as u64,
                    bytes: rest.get(..length).unwrap_or(rest),
                    reply: None,
                };
                printer.message(&message, tables, &tree, out);
                at += length.max(1);
            }
            other => {
                let text = why(tables, other, rest.len());
                return Err(CliError::Unreadable(format!("at byte {at}: {text}")));
            }
        }
    }
    Ok(())
}

/// An evaluator for a protocol's tables, made ready with what was given.
fn ready(tables: &Tables, args: &ReadArgs) -> Result<Evaluator, CliError> {
    let mut evaluator = Evaluator::default();
    let settings = settings(args, true)?;
    if let Some(protocol) = protocol_named(tables.protocol()) {
        protocol.prepare(&mut evaluator, settings.named(protocol.name()));
    }
    Ok(evaluator)
}

/// Bytes that only the protocol's own session can frame, of a service where it is named: they go through a session of it, as one datagram or a stream's beginning.
fn framed(
    lazy: &LazyTables,
    service: Option<&str>,
    side: Side,
    bytes: &[u8],
    args: &ReadArgs,
    out: &mut Vec<u8>,
) -> Result<(), CliError> {
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let ends = Ends { client: nowhere, server: nowhere };
    let start = Start { ends, transport: lazy.protocol().transport(), whole: true, service };
    let settings = settings(args, true)?;
    let mut session = lazy.protocol().session(&start, lazy.get());
    let mut printer = DecodePrinter::new(args);
    let mut emit = Printed { printer: &mut printer, out, count: 0, refused: None };
    let mut context = Context {
        tables: lazy.get(),
        evaluator: &mut Evaluator::default(),
        tree: &mut Tree::new(),
        outline: None,
        settings: settings.of(lazy),
        sequences: [None; 2],
        options: &Options { max_message: 64 << 20, ..Options::default() },
        emit: &mut emit,
    };
    hear_alone(session.as_mut(), start.transport, side, bytes, Moment::default(), &mut context);
    match (emit.refused, emit.count) {
        (Some(text), _) => Err(CliError::Unreadable(text)),
        (None, 0) => Err(CliError::Unreadable(format!("these {} bytes are no whole message", bytes.len()))),
        (None, _) => Ok(()),
    }
}

/// Prints messages; the first event about bytes that were not understood is kept.
struct Printed<'a> {
    printer: &'a mut DecodePrinter,
    out: &'a mut Vec<u8>,
    count: u64,
    refused: Option<String>,
}

impl Emit for Printed<'_> {
    fn message(&mut self, _: Moment, message: &Message<'_>, tables: &Tables, decoded: Decoded<'_>) -> u64 {
        self.count += 1;
        if let Decoded::Tree(tree) = decoded {
            self.printer.message(message, tables, tree, self.out);
        }
        self.count
    }

    fn event(&mut self, _: Moment, event: Event) {
        if event.kind == EventKind::Undecoded && self.refused.is_none() {
            self.refused = Some(format!("at byte {}: {}", event.offset.unwrap_or(0), event.text));
        }
    }

    fn account(&mut self, _: Side, _: Share, _: u64) {}
}

fn why(tables: &Tables, outcome: Outcome, left: usize) -> String {
    let name = |id| tables.message(id).map_or("", |m| tables.name(m.name)).to_string();
    match outcome {
        Outcome::Need(n) => format!("the message needs {n} bytes at least, {left} are left"),
        Outcome::Unknown(n, _) => format!("no message of this service and direction has the number {n}"),
        Outcome::NoLayout(id, _) => format!("the layout of {} is not known", name(id)),
        Outcome::Malformed(id) | Outcome::Message(id, _) => {
            format!("these bytes cannot be the {} their number says", name(id))
        }
    }
}

/// `moul.auth.client` and its like.
fn find<'a>(all: &'a [LazyTables], name: &str) -> Result<(&'a LazyTables, ServiceId, Side), CliError> {
    let mut parts = name.split('.');
    let protocol = parts.next().unwrap_or("");
    let Some(lazy) = LazyTables::of(all, protocol) else {
        let near = crate::suggest::suggestion(protocol, all.iter().map(|l| l.protocol().name()));
        return Err(CliError::Typed(format!("there is no protocol `{protocol}`{near}")));
    };
    let tables = lazy.get();
    let service = parts.next().unwrap_or_else(|| tables.services().first().map_or("", |s| s.name.as_str()));
    let Some(id) = tables.service_named(service) else {
        let near = crate::suggest::suggestion(service, tables.services().iter().map(|s| s.name.as_str()));
        return Err(CliError::Typed(format!("{protocol} has no service `{service}`{near}")));
    };
    let side = match parts.next() {
        None | Some("client") => Side::Client,
        Some("server") => Side::Server,
        Some(other) => return Err(CliError::Typed(format!("a direction is `client` or `server`, not `{other}`"))),
    };
    Ok((lazy, id, side))
}

/// One value of any type.
fn value(
    all: Vec<LazyTables>,
    ty: &str,
    bit: usize,
    bytes: &[u8],
    args: &ReadArgs,
    out: &mut Vec<u8>,
) -> Result<(), CliError> {
    let mut failed = None;
    for lazy in all {
        let further = lazy.further().to_vec();
        let found = crate::proto::load_tables(lazy.protocol(), &further).and_then(|t| t.with_type(&root(ty)));
        match found {
            Ok((tables, type_ref)) => {
                return print_value(&tables, AskedValue { name: ty, ty: type_ref, bit }, bytes, args, out);
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let why = failed.map_or_else(|| format!("there is no type `{ty}`"), |error| error.message);
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
    args: &ReadArgs,
    out: &mut Vec<u8>,
) -> Result<(), CliError> {
    let AskedValue { name: text, ty, bit } = typed;
    let mut evaluator = ready(tables, args)?;
    let mut tree = Tree::new();
    let name = tables.sym("value").unwrap_or(Sym::ELEMENT);
    let end = evaluator.value(tables, ty, name, bytes, bit, &mut tree);
    let mut printer = DecodePrinter::new(args);
    let rest = tree.nodes().iter().position(|n| n.kind == Kind::Undecoded && n.start as usize >= end);
    let padding = bytes.len() * 8 - end.min(bytes.len() * 8) < 8 && last_bits_zero(bytes, end);
    // Where a type could not be read at all, the tree is a structure that holds only the undecoded rest.
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
                    rest.into_iter().for_each(|node| node.marks |= mark::SPAN);
                    printer.json.value(tables, &tree, bytes, 0, out);
                }
            }
            out.extend_from_slice(b",\"bit_length\":");
            json::number(out, end.saturating_sub(bit));
            if let Some(hex) = hex.filter(|_| !padding) {
                out.extend_from_slice(b",\"undecoded\":\"");
                append_hex(out, &hex);
                out.push(b'"');
            }
            printer.json.problems(tables, &tree, bytes, out);
            out.extend_from_slice(b"}\n");
        }
        Some(writer) => writer.body(tables, &tree, bytes, Annotations::default(), out),
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
    fn new(args: &ReadArgs) -> Self {
        let paint = {
            let terminal = std::io::stdout().is_terminal();
            Paint::new(coloured(args.color, terminal), marks(terminal))
        };
        let style = TreeOptions { paint, redact: args.redact, bytes: args.bytes, ..TreeOptions::default() };
        DecodePrinter {
            json: JsonWriter::new(JsonOptions { spans: args.spans, redact: args.redact }),
            tree: (!args.json).then(|| TreeWriter::new(style)),
        }
    }

    fn message(&mut self, message: &Message<'_>, tables: &Tables, tree: &Tree, out: &mut Vec<u8>) {
        match &mut self.tree {
            None => {
                out.push(b'{');
                self.json.message_body(message, tables, tree, out);
                out.extend_from_slice(b"}\n");
            }
            Some(writer) => {
                writer.message_line(message, tables, tree, out);
                writer.body(tables, tree, message.bytes, Annotations::default(), out);
            }
        }
    }
}
