//! `moulsniff report`: one HTML page that shows a capture to readers who have neither the keys nor
//! this program.

use crate::captured::file_name;
use crate::digits::counted;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::options::{CountArgs, FilterArgs, ReadArgs, number};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::summary::{before_commit, concluded};
use crate::facts::{
    Account, Blame, ClientSession, Conclusion, Conclusions, Graph, InfoSource, LastReplies, Share,
    definition, refused, write_info,
};
use crate::output_file::{Access, OutputFile};
use crate::pipeline::{Diagnosis, Filtered, Output, StreamOver};
use crate::print::json::{JsonOptions, JsonWriter};
use crate::print::report::{
    About, MAX_SESSIONS, ReportOptions, ReportSession, ReportStep, ReportWriter, RowFacts,
    SessionRow,
};
use crate::print::sessions::{session_state, step_text};
use crate::print::tree::time_of;
use crate::proto::LazyTables;
use crate::record::{Body, MessageView, Record};
use crate::remark;
use crate::run::CaptureRun;
use crate::session::EventKind;

/// A page of so many megabytes takes a browser a while.
const LARGE: u64 = 32;
/// Sessions of which the page tells the stories, and the steps of one.
const STORIES: usize = 1000;
const STEPS: usize = 400;

type Page = ReportWriter<BufWriter<OutputFile>>;

/// A page to look at.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Write the page to this file; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Put at most N records into the page; later ones are only counted
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = number::<u64>)]
    pub max_messages: u64,
    /// The captures.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Which records are in the page.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// How many.
    #[command(flatten)]
    pub count: CountArgs,
}

pub(super) fn run(args: &ReportArgs) -> Result<Status, CliError> {
    let Plan { reading, mut setup, filter, limit, redact, ending, .. } = Plan::new(PlanArgs {
        filter: Some(&args.filter),
        count: args.count.count,
        output: Some(&args.output),
        ..PlanArgs::new(&args.read)
    })?;
    setup.names = true;
    let captures = args.read.captures.paths();
    let name = |path: &PathBuf| {
        path.file_name().map_or("capture".into(), |name| name.to_string_lossy().into_owned())
    };
    let mut limits = Vec::new();
    if let Some(number) = args.filter.session {
        limits.push(format!("Only session {number}."));
    }
    if let (Some(filter), Some(used)) =
        (args.filter.filter.first(), filter.as_ref().map(|filter| filter.used()))
    {
        limits.push(format!(
            "Only the records that this filter keeps: {}",
            written_out(filter, used)
        ));
    }
    if let Some(count) = args.count.count {
        limits.push(format!("At most the first {}.", counted(count, "record")));
    }
    if redact {
        limits.push("Secrets are hidden: what tables mark as one is not in this file.".into());
    }
    if setup.pseudonyms.is_some() {
        limits.push(
            "Names, numbers and addresses of persons are pseudonyms; what they wrote is filler."
                .into(),
        );
    }
    let options = ReportOptions {
        captures: captures.map(name).collect(),
        limits,
        max_rows: args.max_messages,
        redact,
    };
    let fail = |e| CliError::File(file_name(&args.output), e);
    let file = files::create(&args.output, Access::Owner, &reading.inputs)?;
    // Everything that waits for the end of the page.
    let account = Account::default();
    let page = ReportWriter::new(BufWriter::new(file), options, &account).map_err(fail)?;
    let collector = ReportOutput {
        page,
        graph: Graph::new(&account),
        json: JsonWriter::new(JsonOptions { spans: false, redact }),
        value: Vec::new(),
        diagnosis: Diagnosis::with_sessions(&account),
        over: SessionRows {
            only: args.filter.session,
            rows: Vec::new(),
            left_out: 0,
            share: account.share(),
            tables: Arc::clone(&setup.tables),
        },
        folders: Folders::of(&args.read),
        info: String::new(),
        last_replies: LastReplies::default(),
        keys: BTreeSet::new(),
        redact,
        error: None,
    };
    let mut filtered = Filtered::new(collector, filter.clone(), limit);
    let run = CaptureRun::new(&reading, setup)?.diagnosing(None);
    let mut outcome = run.into_output(&mut filtered);
    let mut collector = filtered.into_inner();
    let summary = outcome.pipeline.summary();
    let mut diagnosis = std::mem::take(&mut collector.diagnosis);
    diagnosis.finish(|conclusions, session| collector.over.add(&session, conclusions));
    outcome.diagnosis = Some(diagnosis);
    let mut conclusions = concluded(&mut outcome);
    if args.filter.session.is_some() {
        conclusions.retain(|one| one.session == args.filter.session);
    }
    conclusions.iter_mut().for_each(|one| collector.folders.hide_in(one));
    let sessions = std::mem::take(&mut collector.over.rows);
    let sessions_left_out = collector.over.left_out;
    let keys = std::mem::take(&mut collector.keys).into_iter().collect();
    let graph = std::mem::take(&mut collector.graph);
    let about = About {
        frames: summary.flow.frames,
        bytes: summary.bytes,
        keys,
        sessions,
        sessions_left_out,
        conclusions,
        graph,
    };
    if let Some(error) = collector.error.take() {
        return Err(fail(error));
    }
    before_commit(&mut outcome, filter.as_deref(), &args.output)?;
    let file = collector.page.finish(about).map_err(fail)?;
    file.into_inner().map_err(|e| fail(e.into_error()))?.commit().map_err(fail)?;
    let megabytes = std::fs::metadata(&args.output).map_or(0, |file| file.len() >> 20);
    if megabytes >= LARGE && !args.read.general.quiet {
        remark::say(format_args!("{}: {megabytes} MB", file_name(&args.output)));
    }
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    ending.close(&mut outcome, filter.as_deref())
}

/// A filter for readers who do not have the configuration file: behind it, what the names in it
/// stand for.
fn written_out(filter: &str, used: &BTreeMap<String, String>) -> String {
    used.iter().fold(filter.to_owned(), |text, (name, stands_for)| {
        format!("{text}; {name} is {stands_for}")
    })
}

/// A session as the page shows it.
fn described(session: &ClientSession, about: &[Conclusion], told: bool) -> ReportSession {
    let latest = session.latest();
    // A player or agent tells more than an account, and is said later.
    let named = latest.iter().rev().find_map(|identity| identity.name.clone());
    let rest: Vec<String> = latest.iter().filter_map(|identity| identity.name.clone()).collect();
    let inferred = named.is_some();
    let title = named.unwrap_or_else(|| session.client.to_string());
    let detail = rest.into_iter().filter(|name| *name != title).collect::<Vec<_>>().join(", ");
    let places = session
        .places
        .iter()
        .filter_map(|place| Some((place.record, place.name.clone()?)))
        .collect();
    let streams = session.streams.iter().map(|s| s.id).collect();
    let to_server = session.to_server.percentile(50);
    let to_client = session.to_client.percentile(50);
    let requests = session.requests.clone();
    let steps = session.story.iter().take(if told { STEPS } else { 0 });
    let story: Vec<ReportStep> = steps
        .map(|line| ReportStep {
            record: line.record,
            time: line.at.time,
            text: step_text(line, session),
            is_bad: line.outcome.is_trouble(),
        })
        .collect();
    let steps_left_out = session.steps_left_out + (session.story.len() - story.len()) as u64;
    ReportSession {
        title,
        inferred,
        detail,
        streams,
        places,
        number: session.number,
        state: session_state(session, about),
        times: [session.start.time, session.end.time],
        story,
        steps_left_out,
        requests,
        to_server,
        to_client,
    }
}

/// The folders of the key files that were given. Readers of the page have no use for them.
struct Folders(Vec<String>);

impl Folders {
    fn of(read: &ReadArgs) -> Folders {
        let files = read.keys.protocols.in_force().filter_map(|(_, files)| files);
        let paths = files.flat_map(|(_, paths)| paths);
        let folders = paths.filter_map(|path| {
            let folder = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
            folder.map(|folder| format!("{}/", file_name(folder))).filter(|text| text != "/")
        });
        Folders(folders.collect())
    }

    /// Takes them out of a text about keys.
    fn hide(&self, text: &mut String) {
        for folder in &self.0 {
            *text = text.replace(folder.as_str(), "");
        }
    }

    fn hide_in(&self, conclusion: &mut Conclusion) {
        if conclusion.blame == Some(Blame::Keys) {
            self.hide(&mut conclusion.text);
        }
    }
}

/// The sessions that are over.
struct SessionRows {
    /// The only one that the page has, where one was asked for.
    only: Option<u64>,
    rows: Vec<SessionRow>,
    /// How many the page does not have.
    left_out: u64,
    share: Share,
    tables: Arc<[LazyTables]>,
}

impl SessionRows {
    fn add(&mut self, session: &ClientSession, conclusions: &Conclusions) {
        if self.only.is_some_and(|number| number != session.number) {
            return;
        }
        if self.rows.len() >= MAX_SESSIONS || !self.share.has_room_for(1) {
            self.left_out += 1;
            return;
        }
        let tables = |protocol: &str| LazyTables::of(&self.tables, protocol).map(LazyTables::get);
        let about = conclusions.of_session(session, &tables);
        let row = SessionRow::from(described(session, &about, self.rows.len() < STORIES));
        self.share.hold(self.share.held() + row.held());
        self.rows.push(row);
    }
}

/// Writes each record into the page, and hands it to the collector of sessions.
struct ReportOutput {
    page: Page,
    graph: Graph,
    json: JsonWriter,
    /// The JSON of one value, for the graph.
    value: Vec<u8>,
    diagnosis: Diagnosis,
    folders: Folders,
    over: SessionRows,
    info: String,
    last_replies: LastReplies,
    keys: BTreeSet<String>,
    redact: bool,
    error: Option<io::Error>,
}

impl Output for ReportOutput {
    fn record(&mut self, record: &Record<'_>) {
        self.dropped(record);
        if self.error.is_some() {
            return;
        }
        let info = &mut self.info;
        info.clear();
        let mut refusal = None;
        let mut carried = None;
        let mut facts =
            RowFacts { last_reply: self.last_replies.record(record), ..RowFacts::default() };
        match &record.body {
            Body::Message { message, tables, tree } => {
                let json = &mut self.json;
                let value = &mut self.value;
                let view = MessageView { tables, tree, bytes: message.bytes };
                self.graph.record(record, &mut |node| {
                    let time = tree.nodes().get(node as usize).and_then(|n| time_of(tables, n));
                    if let Some(time) = time {
                        return time.into();
                    }
                    value.clear();
                    json.value(view, node, value);
                    serde_json::from_slice(value)
                        .unwrap_or_else(|_| String::from_utf8_lossy(value).into())
                });
                let def = definition(message.name, tables, tree);
                let source = InfoSource::new(message, def, view, self.redact);
                write_info(source, record.names, info);
                carried = source.carried();
                facts.expects_reply = def.is_some_and(|def| message.expects_reply(def));
                let refused = def.and_then(|def| refused(def, &view));
                refusal = refused.map(|refused| refused.reason(message.name.raw(), &view));
            }
            Body::Event(event) => {
                info.push_str(&event.text);
                match &event.kind {
                    EventKind::NoKey | EventKind::WrongKey => self.folders.hide(info),
                    EventKind::Unanswered { request, .. } => facts.unanswered = Some(*request),
                    EventKind::Key { key_file, .. } => {
                        let name = Path::new(key_file)
                            .file_name()
                            .map(|name| name.to_string_lossy().into_owned());
                        if let Some(name) = &name {
                            *info = info.replace(key_file.as_str(), name);
                        }
                        self.keys.extend(name);
                    }
                    _ => {}
                }
            }
            Body::StreamEnd { text, .. } => info.push_str(text),
        }
        let facts =
            RowFacts { info, carried: carried.as_deref(), refused: refusal.as_deref(), ..facts };
        if let Err(error) = self.page.record(record, facts) {
            self.error = Some(error);
        }
    }

    /// Sessions are those of all records.
    fn dropped(&mut self, record: &Record<'_>) {
        for session in self.diagnosis.record(record) {
            self.over.add(&session, self.diagnosis.conclusions());
        }
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        self.diagnosis.stream_over(over);
    }

    fn wants_more(&mut self, _may_block: bool) -> bool {
        self.error.is_none()
    }
}
