//! Runs the examples that stand beside messages and structures in the tables: the bytes must give
//! exactly the fields.

use crate::print::json::{JsonOptions, JsonWriter};
use crate::proto::{MessageOrEvent, protocol_named, read_alone};
use crate::record::MessageView;
use crate::session::{Message, Side};
use crate::table::{
    Evaluator, Example, ExampleOf, LayoutId, MessageDef, MessageId, Outcome, Sender, Service,
    ServiceFrame, TableError, Tables, WholeMessage, parse_hex,
};
use crate::tree::{Severity, Sym, Tree};

/// Examples that may fail before the others are not run: finding the line of each takes long where
/// a file has tens of thousands.
pub const MAX_FAILED: usize = 1000;

/// Runs all examples of the tables, or as many until a thousand failed; the errors name the places
/// of those that fail.
pub fn run_examples(tables: &Tables) -> (usize, Vec<TableError>) {
    let mut reader = ExampleReader::default();
    let mut failed = Vec::new();
    for example in tables.examples() {
        if let Err(why) = run(tables, example, &mut reader) {
            failed.push(error_at(tables, example, why));
            if failed.len() == MAX_FAILED {
                break;
            }
        }
    }
    (tables.examples().len(), failed)
}

/// The error at an example's place. The first line of `why` is what is wrong, the others go into
/// detail.
fn error_at(tables: &Tables, example: &Example, why: String) -> TableError {
    let (why, more) = why.split_once('\n').unwrap_or((&why, ""));
    let error = match tables.sources().get(example.file as usize) {
        Some(source) => TableError::at(&source.name, &source.text, example.at, why),
        None => TableError::at("", "", 0, why),
    };
    TableError { more: more.lines().map(str::to_string).collect(), ..error }
}

fn run(tables: &Tables, example: &Example, reader: &mut ExampleReader) -> Result<(), String> {
    let expected: serde_json::Value = serde_json::from_str(tables.example_json(example))
        .map_err(|e| format!("the example's fields are no JSON: {e}"))?;
    reader.read(tables, example, &mut |tree, bytes| compare(tables, tree, bytes, &expected))
}

/// What the tree and the bytes of an example are handed to.
pub type TakeTree<'a> = dyn FnMut(&Tree, &[u8]) -> Result<(), String> + 'a;

/// Reads an example, and hands its tree and its bytes to `take`.
///
/// # Errors
/// Why the bytes do not give what they are an example of, and what `take` says.
pub fn read_example(
    tables: &Tables,
    example: &Example,
    take: &mut TakeTree<'_>,
) -> Result<(), String> {
    ExampleReader::default().read(tables, example, take)
}

/// What reading examples needs each time.
#[derive(Default)]
struct ExampleReader {
    evaluator: Evaluator,
    tree: Tree,
}

impl ExampleReader {
    fn read(
        &mut self,
        tables: &Tables,
        example: &Example,
        take: &mut TakeTree<'_>,
    ) -> Result<(), String> {
        let ExampleReader { evaluator, tree } = self;
        let bytes = checked_bytes(tables, example)?;
        set_states(tables, example, evaluator);
        match example.of {
            ExampleOf::Message(id) => {
                if let Some(def) = tables.message(id)
                    && let Some(service) = tables.service(def.service)
                    && service.positional
                {
                    return positional(tables, def, service, bytes, take);
                }
                read_message(tables, id, evaluator, tree, &bytes)?;
            }
            ExampleOf::Layout(id) => read_layout(tables, id, evaluator, tree, &bytes)?,
        }
        take(tree, &bytes)
    }
}

fn checked_bytes(tables: &Tables, example: &Example) -> Result<Vec<u8>, String> {
    let bytes = tables.example_bytes(example);
    if example.text {
        return Ok(bytes.into_bytes());
    }
    let wrong = "the example's bytes are no hex (two digits a byte, blanks between bytes)";
    parse_hex(&bytes).ok_or_else(|| wrong.to_string())
}

/// What earlier messages have set, as the example says.
fn set_states(tables: &Tables, example: &Example, evaluator: &mut Evaluator) {
    evaluator.states = tables.first_states();
    for (place, value) in &example.states {
        if let Some(state) = evaluator.states.get_mut(*place as usize) {
            *state = *value;
        }
    }
}

fn compare(
    tables: &Tables,
    tree: &Tree,
    bytes: &[u8],
    expected: &serde_json::Value,
) -> Result<(), String> {
    let mut out = Vec::new();
    JsonWriter::new(JsonOptions::default()).fields(MessageView { tables, tree, bytes }, &mut out);
    let got: serde_json::Value =
        serde_json::from_slice(&out).map_err(|e| format!("the output is no JSON: {e}"))?;
    match difference("", expected, &got) {
        Some(text) => {
            let mut lines = Vec::new();
            differences("", Some(expected), Some(&got), &mut lines);
            // One line of difference is what the text says already.
            Err(if lines.len() > 2 { format!("{text}\n{}", lines.join("\n")) } else { text })
        }
        None if tree.problems().iter().any(|p| p.severity == Severity::Error) => {
            Err(format!("the example gives its fields, but an error{}", errors(tables, tree)))
        }
        None => Ok(()),
    }
}

/// The bytes of an example of a message that describes itself, as they are on the wire: the example
/// leaves out the length that stands before it.
pub fn with_length(service: &Service, bytes: Vec<u8>) -> Vec<u8> {
    match service.header.as_slice() {
        [] => bytes,
        _ => [&(bytes.len() as u32).to_be_bytes()[..], &bytes].concat(),
    }
}

/// An example whose message the protocol's own code reads.
fn positional(
    tables: &Tables,
    def: &MessageDef,
    service: &Service,
    bytes: Vec<u8>,
    then: &mut TakeTree<'_>,
) -> Result<(), String> {
    let protocol = protocol_named(tables.protocol()).ok_or("there is no such protocol")?;
    let name = tables.name(def.name);
    let bytes = with_length(service, bytes);
    let side = if def.direction == Sender::Server { Side::Server } else { Side::Client };
    let mut result = Err("the example's bytes do not give a message".to_string());
    let mut take = |message: &Message<'_>, tree: &Tree| {
        result = if message.name.raw() == name && message.bytes.len() == bytes.len() {
            then(tree, message.bytes)
        } else {
            Err(format!("the example's bytes give the message {}", message.name.escaped()))
        };
    };
    let transport = protocol.transport_of(Some(service));
    read_alone(protocol, tables, (transport, side), Some(name), &bytes, &mut |said| {
        if let MessageOrEvent::Message(message, tree) = said {
            take(message, tree);
        }
    });
    result
}

/// Reads the bytes as a message; where its service has no header, they begin with its first field.
fn read_message(
    tables: &Tables,
    id: MessageId,
    evaluator: &mut Evaluator,
    tree: &mut Tree,
    bytes: &[u8],
) -> Result<(), String> {
    let def = tables.message(id).ok_or("no such message")?;
    let service = tables.service(def.service).ok_or("no such service")?;
    let chosen = service.framing.begins.is_some() || service.framing.frame != ServiceFrame::Layout;
    let bare = service.header.is_empty() && !chosen;
    if let (true, Some(layout)) = (bare, def.layout) {
        return read_layout(tables, layout, evaluator, tree, bytes);
    }
    let sender = usize::from(def.direction == Sender::Server);
    let n = bytes.len();
    let outcome = match &service.framing.frame {
        ServiceFrame::Layout => evaluator.message(tables, def.service, sender, bytes, tree),
        frame => {
            let behind = match frame {
                ServiceFrame::Ends(end) if bytes.ends_with(end) => end.len(),
                _ => 0,
            };
            evaluator.framed(tables, def.service, sender, WholeMessage { bytes, behind }, tree)
        }
    };
    match outcome {
        Outcome::Message(found, end) if found == id && end == n => Ok(()),
        Outcome::Message(found, end) if found == id => {
            Err(format!("the example's bytes are {n}, the message ends after {end}"))
        }
        Outcome::Need(more) => {
            Err(format!("the example's bytes are {n}, the message needs {more}"))
        }
        Outcome::Message(other, _)
        | Outcome::NoLayout(other, _)
        | Outcome::Malformed(other)
        | Outcome::TooLong(other, ..)
            if other != id =>
        {
            let name = tables.message(other).map_or("", |def| tables.name(def.name));
            Err(format!("the example's bytes give another message: `{name}`"))
        }
        Outcome::Unknown(number, _) => {
            Err(format!("the example's bytes begin with the number {number}, which no message has"))
        }
        _ => Err(format!("the example's bytes cannot be this message{}", errors(tables, tree))),
    }
}

fn read_layout(
    tables: &Tables,
    id: LayoutId,
    evaluator: &mut Evaluator,
    tree: &mut Tree,
    bytes: &[u8],
) -> Result<(), String> {
    let layout = tables.layout(id).ok_or("no such structure")?;
    let end = evaluator.value(tables, layout.ty, Sym::ELEMENT, bytes, 0, tree);
    // The last byte may have bits that no field claims. Were one of them set, the comparison would
    // find it as undecoded.
    if end.div_ceil(8) == bytes.len() {
        return Ok(());
    }
    Err(format!(
        "the example's bytes are {}, the structure ends after {}{}",
        bytes.len(),
        end / 8,
        errors(tables, tree)
    ))
}

fn errors(tables: &Tables, tree: &Tree) -> String {
    tree.problems()
        .iter()
        .map(|p| {
            let path = crate::print::problem_path(tree, tables, p.node);
            format!("; {path}: {}", crate::print::problem_text(p, tables, tree))
        })
        .collect()
}

/// The first place where two JSON values differ. Numbers are compared as they read, not as they are
/// written.
fn difference(path: &str, expected: &serde_json::Value, got: &serde_json::Value) -> Option<String> {
    use serde_json::Value;
    match (expected, got) {
        (Value::Object(e), Value::Object(g)) => {
            for (key, value) in e {
                match g.get(key) {
                    Some(found) => {
                        if let Some(text) = difference(&format!("{path}.{key}"), value, found) {
                            return Some(text);
                        }
                    }
                    None => {
                        return Some(format!(
                            "expected {path}.{key} = {value}, it is absent; there is {}",
                            short(got)
                        ));
                    }
                }
            }
            let more = g.iter().find(|(key, _)| !e.contains_key(*key));
            more.map(|(key, value)| format!("{path}.{key} = {} is not expected", short(value)))
        }
        (Value::Array(e), Value::Array(g)) => {
            if e.len() != g.len() {
                return Some(format!("{path}: expected {} elements, got {}", e.len(), g.len()));
            }
            e.iter()
                .zip(g)
                .enumerate()
                .find_map(|(i, (e, g))| difference(&format!("{path}[{i}]"), e, g))
        }
        (Value::Number(e), Value::Number(g)) if e.as_f64() == g.as_f64() => None,
        _ if expected == got => None,
        _ => Some(format!("{path}: expected {}, got {}", short(expected), short(got))),
    }
}

/// How many differences of an example are shown.
const MAX_LINES: usize = 20;

/// All differences, a line of `-` for what was expected and one of `+` for what came.
fn differences(
    path: &str,
    expected: Option<&serde_json::Value>,
    got: Option<&serde_json::Value>,
    lines: &mut Vec<String>,
) {
    use serde_json::Value;
    if lines.len() >= MAX_LINES {
        return;
    }
    match (expected, got) {
        (Some(Value::Object(e)), Some(Value::Object(g))) => {
            for key in e.keys().chain(g.keys().filter(|key| !e.contains_key(*key))) {
                differences(&format!("{path}.{key}"), e.get(key), g.get(key), lines);
            }
        }
        (Some(Value::Array(e)), Some(Value::Array(g))) => {
            for at in 0..e.len().max(g.len()) {
                differences(&format!("{path}[{at}]"), e.get(at), g.get(at), lines);
            }
        }
        (Some(e), Some(g)) if difference(path, e, g).is_none() => {}
        _ => {
            lines.extend(expected.map(|value| format!("- {path}: {}", short(value))));
            lines.extend(got.map(|value| format!("+ {path}: {}", short(value))));
        }
    }
}

fn short(value: &serde_json::Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(200) {
        Some((i, _)) => format!("{}…", text.get(..i).unwrap_or("")),
        None => text,
    }
}
