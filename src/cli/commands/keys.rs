//! `moulsniff keys`: what key files hold, and keys within captures. It calls the protocols for
//! everything about keys themselves.

use crate::captured::{escape, file_name};
use crate::digits::counted;
use crate::remark;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::capture::{self, Capture, CaptureItem, Source};
use crate::cli::capture_order::is_capture;
use crate::cli::error::{CliError, Status};
use crate::cli::options::{GeneralArgs, KeyArgs, LimitArgs, ProtocolArgs, ReadArgs};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::summary::refuse_interrupted;
use crate::cli::{config, files};
use crate::output_file::{Access, Inputs};
use crate::pipeline::{Output, StreamOver};
use crate::print::json::one_line;
use crate::proto::{FactValue, PROTOCOLS, Protocol, Secrets, SecretsEntry, SecretsReport};
use crate::record::{Body, Record};
use crate::run::{self, CaptureRun};
use crate::session::{Ends, EventKind, Secret};

/// No key file is longer, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Key files.
#[derive(Subcommand, Debug)]
pub enum KeysCommand {
    /// Show what key files contain, without secrets, and which connections of captures they open
    Check {
        /// Key files, and captures: of each key file it is told which of their connections it
        /// opens, and why not the others. Captures alone: the keys in them
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print JSON, one object a file
        #[arg(long)]
        json: bool,
        /// What is used at most.
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// Write keys into a capture, so that it can be read without --keys
    Inject(InjectArgs),
    /// Take keys out of a capture
    Strip(StripArgs),
}

/// A capture that keys are written into.
#[derive(Args, Debug)]
pub struct InjectArgs {
    /// The capture
    pub input: PathBuf,
    /// Write the capture here, as pcapng; an existing file is replaced
    #[arg(short, value_name = "OUT")]
    pub output: PathBuf,
    /// Write the shard's private keys, too, not only the session keys
    #[arg(long)]
    pub private: bool,
    /// What every command has.
    #[command(flatten)]
    pub general: GeneralArgs,
    /// Keys and tables.
    #[command(flatten)]
    pub keys: KeyArgs,
    /// What is used at most.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// A capture that keys are taken out of.
#[derive(Args, Debug)]
pub struct StripArgs {
    /// The capture
    pub input: PathBuf,
    /// Write the capture here, as pcapng; an existing file is replaced
    #[arg(short, value_name = "OUT")]
    pub output: PathBuf,
    /// What every command has.
    #[command(flatten)]
    pub general: GeneralArgs,
}

pub(super) fn run(command: &KeysCommand) -> Result<Status, CliError> {
    match command {
        KeysCommand::Check { files, json, limits } => check(files, *json, limits),
        KeysCommand::Inject(args) => inject(args),
        KeysCommand::Strip(args) => strip(args),
    }
}

/// The protocols that have secrets.
pub(super) fn with_secrets() -> impl Iterator<Item = (&'static dyn Protocol, &'static dyn Secrets)>
{
    PROTOCOLS.iter().filter_map(|protocol| Some((*protocol, protocol.secrets()?)))
}

fn check(paths: &[PathBuf], json: bool, limits: &LimitArgs) -> Result<Status, CliError> {
    files::refuse_standard_output(&Inputs::of(paths.iter().map(PathBuf::as_path)))?;
    let (captures, keys): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.iter().cloned().partition(|path| is_capture(path));
    let mut check = KeyCheck { json, wrong: Vec::new() };
    if captures.is_empty() || keys.is_empty() {
        paths.iter().try_for_each(|path| check.path(path))?;
    } else {
        for path in &keys {
            check.path(path)?;
            for capture in &captures {
                check.connections(path, capture, limits)?;
            }
        }
    }
    if check.wrong.is_empty() { Ok(Status::Good) } else { Err(CliError::several(check.wrong)) }
}

/// Prints what key files hold. A file that is wrong does not end it.
struct KeyCheck {
    json: bool,
    /// What is wrong, with the names of the files.
    wrong: Vec<String>,
}

impl KeyCheck {
    /// Checks a file, or the key files in a folder.
    ///
    /// # Errors
    /// Standard output takes no more.
    fn path(&mut self, path: &Path) -> Result<(), CliError> {
        let files = match files::within(path, "a key file", None) {
            Ok(files) => files,
            Err(error) => {
                self.wrong.push(error.to_string());
                return Ok(());
            }
        };
        let mut any = false;
        for file in files {
            let mut found = Vec::new();
            let read = reports(&file, &mut found);
            found.into_iter().try_for_each(|report| self.print(&file, report))?;
            match read {
                // A folder may hold anything.
                Err(CheckError::AnotherKind(_)) if path.is_dir() => continue,
                Err(CheckError::AnotherKind(text)) => self.wrong.push(text),
                Err(CheckError::Other(error)) => self.wrong.push(error.to_string()),
                Ok(()) => {}
            }
            any = true;
        }
        if !any {
            self.wrong.push(format!(
                "{}: none of the files in this folder is a key file",
                file_name(path)
            ));
        }
        Ok(())
    }

    /// Says which connections of a capture a key file opens.
    ///
    /// # Errors
    /// Standard output takes no more, or the capture cannot be read.
    fn connections(
        &mut self,
        key: &Path,
        capture: &Path,
        limits: &LimitArgs,
    ) -> Result<(), CliError> {
        let mut opened = 0;
        let mut tried = false;
        let mut text = String::new();
        let mut all = Vec::new();
        for (_, secrets) in with_secrets() {
            let read = ReadArgs {
                captures: capture.to_path_buf().into(),
                keys: KeyArgs {
                    protocols: ProtocolArgs::of_file(secrets.option(), key),
                    ..KeyArgs::default()
                },
                limits: limits.clone(),
                general: GeneralArgs { quiet: true, ..GeneralArgs::default() },
                ..ReadArgs::default()
            };
            // What is wrong with the key file was told already.
            let Ok(Plan { reading, setup, .. }) = Plan::new(PlanArgs::new(&read)) else { continue };
            tried = true;
            let mut connections = Connections::default();
            let mut outcome = CaptureRun::new(&reading, setup)?.into_output(&mut connections);
            self.wrong.extend(outcome.error.take().map(|error| error.to_string()));
            opened += connections.opened();
            connections.append(&mut text, &mut all);
        }
        if !tried {
            return Ok(());
        }
        let name = file_name(key);
        let of = files::name(capture);
        if opened == 0 {
            self.wrong.push(format!("{name}: opens no connection of {of}"));
        }
        let text = if self.json {
            let object = serde_json::json!({ "file": name, "capture": of, "connections": all });
            format!("{}\n", one_line(&object))
        } else {
            format!("{of}: {name} opens {opened} of {}\n{text}", counted(all.len(), "connection"))
        };
        std::io::stdout().write_all(text.as_bytes()).map_err(CliError::writing)
    }

    fn print(&mut self, file: &Path, report: SecretsReport) -> Result<(), CliError> {
        self.wrong.extend(
            report.problem.as_deref().map(|problem| format!("{}: {problem}", files::name(file))),
        );
        let text = if self.json {
            format!("{}\n", one_line(&report_json(file, &report)))
        } else {
            report.text
        };
        std::io::stdout().write_all(text.as_bytes()).map_err(CliError::writing)
    }
}

/// The connections of a capture, and whether a key opens them.
#[derive(Default)]
struct Connections {
    open: BTreeMap<(&'static str, u32), Verdict>,
    ended: Vec<CheckedConnection>,
}

/// What is known of a connection's key.
#[derive(Clone, Default)]
enum Verdict {
    /// It needed none.
    #[default]
    Clear,
    /// A key of the file opens it.
    Opened,
    /// None does, and why.
    Closed(String),
}

/// A connection that ended.
struct CheckedConnection {
    transport: &'static str,
    stream: u32,
    service: String,
    ends: Ends,
    verdict: Verdict,
}

impl Connections {
    fn opened(&self) -> usize {
        self.ended.iter().filter(|one| matches!(one.verdict, Verdict::Opened)).count()
    }

    /// Appends a line for each connection, and an object for each.
    fn append(&self, text: &mut String, all: &mut Vec<Value>) {
        for one in &self.ended {
            let CheckedConnection { transport, stream, service, ends, verdict } = one;
            let Ends { client, server } = ends;
            let (state, why) = match verdict {
                Verdict::Clear => ("clear", String::new()),
                Verdict::Opened => ("opened", String::new()),
                Verdict::Closed(why) => ("closed", why.clone()),
            };
            let said = if why.is_empty() { String::new() } else { format!(": {}", escape(&why)) };
            text.push_str(&format!(
                "  {state:<6}  {transport} {stream}  {}  {client} to {server}{said}\n",
                escape(service)
            ));
            let mut object = serde_json::json!({
                "transport": transport, "stream": stream, "service": service,
                "client": client.to_string(), "server": server.to_string(), "state": state,
            });
            if let (false, Some(object)) = (why.is_empty(), object.as_object_mut()) {
                object.insert("why".into(), why.into());
            }
            all.push(object);
        }
    }
}

impl Output for Connections {
    fn record(&mut self, record: &Record<'_>) {
        let Body::Event(event) = &record.body else { return };
        let verdict = match &event.kind {
            EventKind::Key { .. } => Verdict::Opened,
            EventKind::NoKey | EventKind::WrongKey => Verdict::Closed(event.text.clone()),
            _ => return,
        };
        self.open.insert((record.transport.word(), record.stream), verdict);
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        let transport = over.key.transport.word();
        let stream = over.key.number;
        let verdict = self.open.remove(&(transport, stream)).unwrap_or_default();
        let service = over.service.to_string();
        let ends = over.ends;
        self.ended.push(CheckedConnection { transport, stream, service, ends, verdict });
    }
}

/// A report as one JSON object. Like the report itself it holds nothing secret.
fn report_json(file: &Path, report: &SecretsReport) -> Value {
    let entry = |entry: &SecretsEntry| {
        let facts = entry.facts.iter().map(|fact| (fact.name.to_string(), fact_json(&fact.value)));
        Value::Object(
            std::iter::once(("kind".to_string(), entry.kind.into())).chain(facts).collect(),
        )
    };
    let entries: Vec<Value> = report.entries.iter().map(entry).collect();
    let mut members = vec![
        ("file".to_string(), file_name(file).into()),
        ("format".to_string(), report.format.as_str().into()),
        ("entries".to_string(), entries.into()),
    ];
    if !report.notes.is_empty() {
        members.push(("notes".to_string(), report.notes.clone().into()));
    }
    members
        .extend(report.problem.as_deref().map(|problem| ("problem".to_string(), problem.into())));
    Value::Object(members.into_iter().collect())
}

fn fact_json(value: &FactValue) -> Value {
    match value {
        FactValue::Text(text) => text.as_str().into(),
        FactValue::Number(number) => (*number).into(),
        FactValue::Flag(flag) => (*flag).into(),
    }
}

/// Why a file was not reported on.
enum CheckError {
    /// It is not a key file at all.
    AnotherKind(String),
    /// It cannot be read, or is damaged.
    Other(CliError),
}

impl From<CliError> for CheckError {
    fn from(error: CliError) -> Self {
        CheckError::Other(error)
    }
}

/// Adds the reports on a file: one of a key file; of a capture, one for each block of keys in it,
/// up to where it is damaged.
fn reports(path: &Path, found: &mut Vec<SecretsReport>) -> Result<(), CheckError> {
    if is_capture(path) {
        return reports_on_capture(path, found);
    }
    let bytes = files::read(path, "a key file", MAX_BYTES)?;
    found.push(report(&file_name(path), &bytes, None)?);
    Ok(())
}

/// The report of the protocol that can read some bytes; with `block_type`, of the one whose secrets
/// blocks have this type.
fn report(name: &str, bytes: &[u8], block_type: Option<u32>) -> Result<SecretsReport, CheckError> {
    let mut refused = CheckError::AnotherKind(format!("{name}: no protocol has such keys"));
    for (_, secrets) in
        with_secrets().filter(|(_, s)| block_type.is_none_or(|wanted| s.block_type() == wanted))
    {
        match secrets.report(name, bytes) {
            Ok(report) => return Ok(report),
            Err(refusal) if refusal.another_kind => refused = CheckError::AnotherKind(refusal.text),
            Err(refusal) => return Err(CliError::Unreadable(refusal.text).into()),
        }
    }
    Err(refused)
}

fn reports_on_capture(path: &Path, found: &mut Vec<SecretsReport>) -> Result<(), CheckError> {
    files::refuse_standard_output(&Inputs::of([path]))?;
    let name = file_name(path);
    let mut capture = Capture::open(path).map_err(CliError::from)?;
    while let Some(item) = capture.next_item().map_err(CliError::from)? {
        let CaptureItem::Secrets(block) = item else { continue };
        if with_secrets().any(|(_, secrets)| secrets.block_type() == block.kind) {
            found.push(report(
                &format!("{name}: keys in the capture"),
                block.data,
                Some(block.kind),
            )?);
        }
    }
    if found.is_empty() {
        return Err(CheckError::AnotherKind(format!("{name}: a capture without keys in it")));
    }
    Ok(())
}

/// The secrets of the connections that a capture holds, as a run over it proves them, with the
/// protocols' names.
#[derive(Default)]
struct Proved(Vec<(&'static str, Secret)>);

impl Output for Proved {
    fn record(&mut self, record: &Record<'_>) {
        if let Body::Event(event) = &record.body
            && let EventKind::Key { secret, .. } = &event.kind
            // Exported messages say which key it was, and nothing of it.
            && !secret.text().is_empty()
        {
            self.0.push((record.protocol, secret.clone()));
        }
    }
}

fn inject(args: &InjectArgs) -> Result<Status, CliError> {
    let InjectArgs { input, output, private, keys, limits, general } = args;
    readable_twice(input)?;
    let read = ReadArgs {
        captures: input.clone().into(),
        keys: keys.clone(),
        limits: limits.clone(),
        general: general.clone(),
        ..ReadArgs::default()
    };
    let plan = PlanArgs::new(&read);
    let inputs = plan.inputs();
    // Before the capture is read, which may take long.
    files::create(output, Access::Owner, &inputs)?;
    let Plan { reading, setup, .. } = Plan::new(plan)?;
    let mut proved = Proved::default();
    let mut outcome = CaptureRun::new(&reading, setup)?.into_output(&mut proved);
    if let Some(error) = outcome.take_error_of_nothing_read() {
        return Err(error.into());
    }
    refuse_interrupted(&mut outcome, || format!("no {} was written", file_name(output)))?;
    let Proved(proved) = proved;
    let mut blocks = Vec::new();
    for (protocol, secrets) in with_secrets() {
        let own: Vec<Secret> =
            proved.iter().filter(|p| p.0 == protocol.name()).map(|p| p.1.clone()).collect();
        let long_term = private.then(|| outcome.pipeline.settings().named(protocol.name()));
        let block = secrets.block(&own, long_term);
        if block.long_term > 0 || !own.is_empty() {
            blocks.push((secrets.block_type(), block));
        }
    }
    let name = file_name(output);
    let [(block_type, block)] = blocks.as_slice() else {
        let why = match blocks.len() {
            0 if keys.protocols.is_empty() => "no key was given with --keys",
            0 => "these keys open none of its sessions",
            _ => "a capture takes the keys of one protocol only",
        };
        let damage = outcome.error.take().map(|error| error.to_string());
        let why = format!("{}: {why}; nothing was written", file_name(input));
        return Err(CliError::several(damage.into_iter().chain([why]).collect()));
    };
    let mut file = files::create(output, Access::Owner, &inputs)?;
    let target = capture::RewriteTarget::new(&name, &mut file);
    let done = capture::inject(Source::path(input), target, *block_type, &block.bytes)?;
    file.commit().map_err(|e| CliError::File(name.clone(), e))?;
    let warning = private.then(|| {
        format!(
            "WARNING: {name} now holds {} long-term PRIVATE KEYS. Anyone who has this file can \
             read every session with these servers, past and future. Do not pass it on to anyone \
             who may not; `moulsniff keys strip` takes the keys out.",
            block.long_term
        )
    });
    if let Some(damage) = done.damage {
        return Err(CliError::Capture(damage).with_remarks(warning.into_iter().collect()));
    }
    if let Some(warning) = warning {
        remark::say(format_args!("{warning}"));
    }
    if !general.quiet {
        remark::say(format_args!("{name}: the keys of {}", counted(proved.len(), "session")));
    }
    Ok(Status::Good)
}

fn strip(args: &StripArgs) -> Result<Status, CliError> {
    let StripArgs { input, output, general } = args;
    run::exit_on_signal();
    let name = file_name(output);
    let config_file = config::file(general);
    let inputs = Inputs::of([input].into_iter().chain(&config_file).map(PathBuf::as_path));
    let mut file = files::create(output, Access::Usual, &inputs)?;
    let source = if input.as_os_str() == "-" {
        Source::reader(files::name(input), Box::new(std::io::stdin()))
    } else {
        Source::path(input)
    };
    let mut done = capture::strip(source, capture::RewriteTarget::new(&name, &mut file))?;
    if let Some(damage) = done.damage.take_if(|damage| damage.is_of_reading()) {
        return Err(damage.into());
    }
    file.commit().map_err(|e| CliError::File(name.clone(), e))?;
    if let Some(damage) = done.damage {
        return Err(damage.into());
    }
    if !general.quiet {
        remark::say(format_args!("{name}: {} of keys taken out", counted(done.removed, "block")));
    }
    Ok(Status::Good)
}

/// A capture whose keys are found is read once more to be copied, which standard input cannot be.
fn readable_twice(input: &Path) -> Result<(), CliError> {
    if input.as_os_str() != "-" {
        return Ok(());
    }
    let why = "the capture is read twice, so it has to be a file, not standard input";
    Err(CliError::Typed(why.into()))
}
