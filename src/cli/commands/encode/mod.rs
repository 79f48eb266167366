//! `moulsniff encode`: messages from JSON to bytes.

mod traffic;

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::capture::MadeEnd;
use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::load::{settings, tables_of};
use crate::cli::options::{CompletionWords, GeneralArgs, KeyArgs, number_within};
use crate::digits::append_hex;
use crate::output_file::{Access, Inputs, OutputFile};
use crate::proto::{EncodedMessage, LazyTables, MessageEncoder, NamedService};
use crate::remark;
use crate::table::Json;
use traffic::Traffic;

/// The most bytes of one message's JSON.
const MAX_JSON: usize = 64 << 20;

/// Messages from JSON to bytes.
#[derive(Args, Debug)]
pub struct EncodeArgs {
    /// Encode as PROTOCOL.SERVICE.DIRECTION, such as moul.auth.client, where the JSON does not say
    /// it; then messages as JSON (beginning with `{`) or files of them, one after the other.
    /// Without any, they are read from standard input
    #[arg(value_name = "NAME|JSON|FILE")]
    #[arg(value_parser = CompletionWords::SENDERS, hide_possible_values = true)]
    pub words: Vec<String>,
    /// Write the bytes as they are into this file, not as hex onto standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write a capture of connections and datagrams between the ends that the records name, at
    /// their times. Connections are encrypted as their handshakes say: with the given keys, or
    /// else with one that is made and written beside, into FILE.keys
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub capture: Option<PathBuf>,
    /// Send at most so many bytes of a stream in one frame
    #[arg(long, value_name = "N", default_value_t = 1460, requires = "capture")]
    #[arg(value_parser = |text: &str| number_within(text, 1..=65_000))]
    pub segment: u16,
    /// End connections with a reset, not with FIN
    #[arg(long, requires = "capture")]
    pub reset: bool,
    /// Demand every field, also one that has a default
    #[arg(long)]
    pub exact: bool,
    /// What every command has.
    #[command(flatten)]
    pub general: GeneralArgs,
    /// Keys and tables.
    #[command(flatten)]
    pub keys: KeyArgs,
}

pub(super) fn run(args: &EncodeArgs) -> Result<Status, CliError> {
    let all = tables_of(&args.keys.tables)?;
    let settings = settings(&args.keys.protocols, args.capture.is_none())?;
    let mut words = args.words.as_slice();
    let mut of = None;
    if let Some((first, rest)) = words.split_first()
        && !is_json(first)
        && !Path::new(first).exists()
        && first != "-"
    {
        of = Some(NamedService::find(&all, first)?);
        words = rest;
    }
    let inputs = Inputs::of(words.iter().filter(|word| !is_json(word)).map(Path::new));
    let encoder = MessageEncoder::new(&all, &settings, args.exact);
    let to = match (&args.capture, &args.output) {
        (Some(path), _) => {
            let traffic = Traffic::new(&all, settings, path, inputs, args.segment.into())?;
            Target::Capture(Box::new(traffic))
        }
        (None, Some(path)) => {
            Target::File(files::create(path, Access::Usual, &inputs)?, files::name(path))
        }
        (None, None) => Target::Hex(BufWriter::new(io::stdout().lock())),
    };
    let mut job = Job { all: &all, of, encoder, to, failed: 0, text: Vec::new() };
    if words.is_empty() {
        each_value(&mut io::stdin().lock(), "standard input", &mut job)?;
    }
    for word in words {
        if is_json(word) {
            job.take("", word)?;
            continue;
        }
        let path = Path::new(word);
        let name = files::name(path);
        if word == "-" {
            each_value(&mut io::stdin().lock(), &name, &mut job)?;
        } else {
            let file = File::open(path).map_err(|error| CliError::File(name.clone(), error))?;
            each_value(&mut BufReader::new(file), &name, &mut job)?;
        }
    }
    let failed = job.failed;
    match job.to {
        Target::Hex(mut out) => out.flush().map_err(CliError::writing)?,
        Target::File(file, name) => file.commit().map_err(|error| CliError::File(name, error))?,
        Target::Capture(traffic) => {
            traffic.finish(if args.reset { MadeEnd::Reset } else { MadeEnd::Fin })?;
        }
    }
    let only_typed = words.iter().all(|word| is_json(word)) && !words.is_empty();
    Ok(match (failed, only_typed) {
        (0, _) => Status::Good,
        (_, true) => Status::Typed,
        _ => Status::Unreadable,
    })
}

/// Where the bytes go.
enum Target<'a> {
    /// A line of hex for each message.
    Hex(BufWriter<StdoutLock<'static>>),
    /// One behind the other, into a file with this name.
    File(OutputFile, String),
    Capture(Box<Traffic<'a>>),
}

struct Job<'a> {
    all: &'a [LazyTables],
    of: Option<NamedService<'a>>,
    encoder: MessageEncoder,
    to: Target<'a>,
    /// Messages that could not be encoded.
    failed: u64,
    text: Vec<u8>,
}

impl Job<'_> {
    /// Encodes a message. `place` says where its JSON begins, for errors.
    fn take(&mut self, place: &str, json: &str) -> Result<(), CliError> {
        if json.trim().is_empty() {
            return Ok(());
        }
        let result = match Json::parse(json) {
            Err(error) => Err(error.to_string()),
            Ok(json) => match self.encoder.encode(self.all, &json, self.of) {
                Err(error) => Err(error.to_string()),
                Ok(None) => match &mut self.to {
                    Target::Capture(traffic) => traffic.event(&json)?,
                    _ => Ok(()),
                },
                Ok(Some(message)) => self.put(&json, message)?,
            },
        };
        if let Err(text) = result {
            self.wrong(place, &text);
        }
        Ok(())
    }

    /// Says what is wrong with a message, which is left out.
    fn wrong(&mut self, place: &str, text: &str) {
        self.failed += 1;
        remark::say(format_args!("moulsniff: {place}{text}"));
    }

    fn put(
        &mut self,
        json: &Json<'_>,
        message: EncodedMessage,
    ) -> Result<Result<(), String>, CliError> {
        match &mut self.to {
            Target::Hex(out) => {
                self.text.clear();
                append_hex(&mut self.text, &message.bytes);
                self.text.push(b'\n');
                out.write_all(&self.text).map_err(CliError::writing)?;
            }
            Target::File(file, name) => {
                let written = file.write_all(&message.bytes);
                written.map_err(|error| CliError::File(name.clone(), error))?;
            }
            Target::Capture(traffic) => {
                return traffic.message(json, message, self.of.map(|of| of.side()));
            }
        }
        Ok(Ok(()))
    }
}

fn is_json(word: &str) -> bool {
    word.trim_start().starts_with('{')
}

/// Hands over the JSON values of a stream, which may stand on a line each or over many lines, each
/// with the place where it begins.
fn each_value(from: &mut dyn BufRead, name: &str, job: &mut Job<'_>) -> Result<(), CliError> {
    let mut value = Vec::new();
    let mut scan = Brackets::default();
    let (mut number, mut first) = (0u64, 1u64);
    loop {
        let before = value.len();
        let mut limited = io::Read::take(&mut *from, MAX_JSON as u64 + 1);
        let read = limited
            .read_until(b'\n', &mut value)
            .map_err(|error| CliError::File(name.to_string(), error))?;
        number += 1;
        if before == 0 {
            first = number;
        }
        // A bracket at a line's beginning begins a value: what is before it was not complete.
        let line = value.get(before..).unwrap_or(&[]);
        if scan.depth > 0 && line.starts_with(b"{") {
            let next = value.split_off(before);
            hand_over(name, first, &value, job)?;
            (value, scan, first) = (next, Brackets::default(), number);
            scan.pass(&value);
        } else {
            scan.pass(line);
        }
        if value.len() > MAX_JSON {
            let text = format!("{name}: line {first}: more than {MAX_JSON} bytes");
            return Err(CliError::Unreadable(text));
        }
        if read > 0 && scan.depth > 0 {
            continue;
        }
        hand_over(name, first, &value, job)?;
        if read == 0 {
            return Ok(());
        }
        value.clear();
        scan = Brackets::default();
    }
}

fn hand_over(name: &str, line: u64, value: &[u8], job: &mut Job<'_>) -> Result<(), CliError> {
    let place = format!("{name}: line {line}: ");
    match std::str::from_utf8(value) {
        Ok(json) => job.take(&place, json),
        Err(error) => {
            job.wrong(&place, &format!("byte {}: expected UTF-8", error.valid_up_to()));
            Ok(())
        }
    }
}

/// How many brackets are open at the end of a text of JSON.
#[derive(Default)]
struct Brackets {
    depth: i64,
    in_string: bool,
    escaped: bool,
}

impl Brackets {
    fn pass(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
        }
    }
}
