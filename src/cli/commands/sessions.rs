//! `moulsniff sessions`: the clients in captures, what each did, and which of its requests were
//! answered.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use crate::cli::conclusions;
use crate::cli::error::{CliError, Status};
use crate::cli::options::{CaptureArgs, CountArgs, LiveArgs, ReadArgs, number};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::session_pass::no_session;
use crate::cli::summary::concluded;
use crate::cli::terminal::{coloured, marks, width};
use crate::facts::{Account, ClientSession, Conclusion, Conclusions};
use crate::pipeline::{Diagnosis, Filtered, Output, StreamOver};
use crate::print::sessions::{
    SESSION_COLUMNS, SESSION_INDENT, SessionRow, session_csv, session_json, session_rows,
    session_text,
};
use crate::print::{Paint, append_marked};
use crate::proto::LazyTables;
use crate::record::Record;
use crate::run::CaptureRun;

/// Text that is held back until it is known what is wrong, which comes before it.
const MAX_HELD: usize = 1 << 20;
/// Sessions beyond this many are printed as rows, unless somebody wants one or their stories.
const BLOCKS: usize = 3;
/// Rows that are held back.
const MAX_ROWS: usize = 1 << 16;

/// Sessions.
#[derive(Args, Debug)]
#[command(override_usage = "moulsniff sessions [OPTIONS] [N] CAPTURE...")]
#[command(mut_arg("captures", |arg| arg.long_help(None::<&str>).help(
    "Read these captures as one, in the order of their first frames; a folder is all captures in it, `-` is standard input. A number before or behind them, where no file has this name, is the session to print"
)))]
pub struct SessionsArgs {
    /// Print only this session
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    pub session: Option<u64>,
    /// List what each client did, step by step
    #[arg(long)]
    pub story: bool,
    /// Print JSON, one object a session
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print comma-separated values for spreadsheets, one line a session
    #[arg(long)]
    pub csv: bool,
    /// The session (where only one is wanted), the captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Captures that still grow.
    #[command(flatten)]
    pub live: LiveArgs,
    /// How many records are read.
    #[command(flatten)]
    pub count: CountArgs,
}

pub(super) fn run(args: &SessionsArgs) -> Result<Status, CliError> {
    let (only, captures) = args.resolved();
    let read = ReadArgs { captures, ..args.read.clone() };
    let Plan { reading, mut setup, limit, ending, .. } = Plan::new(PlanArgs {
        live: Some(&args.live),
        count: args.count.count,
        ..PlanArgs::new(&read)
    })?;
    setup.names = true;
    let terminal = io::stdout().is_terminal();
    let form = args.form();
    let mut out = Vec::new();
    if matches!(form, SessionsForm::Csv) {
        out.extend_from_slice(format!("{SESSION_COLUMNS}\n").as_bytes());
    }
    let printing = Printing {
        form,
        story: args.story,
        only,
        at_once: reading.input.ends_by_signal(),
        paint: Paint::new(coloured(read.general.color, terminal), marks(terminal)),
        width: terminal.then(width),
        tables: Arc::clone(&setup.tables),
        count: 0,
        rows: Vec::new(),
        begun: false,
        out,
        error: None,
    };
    let collector =
        SessionsOutput { printing, diagnosis: Diagnosis::with_sessions(&Account::default()) };
    let mut filtered = Filtered::new(collector, None, limit);
    let run = CaptureRun::new(&reading, setup)?.diagnosing(None);
    let mut outcome = run.into_output(&mut filtered);
    let SessionsOutput { mut printing, mut diagnosis } = filtered.into_inner();
    diagnosis.finish(|conclusions, session| printing.sessions(&[session], conclusions));
    outcome.diagnosis = Some(diagnosis);
    let mut found = concluded(&mut outcome);
    if only.is_some() {
        found.retain(|one| one.session == only);
    }
    printing.finish(&conclusions::at_head(&found, &read));
    if let Some(error) = printing.error.take() {
        return Err(CliError::writing(error));
    }
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let count = printing.count;
    if let Some(only) = only.filter(|only| !(1..=count).contains(only)) {
        return Err(no_session(only, count));
    }
    let status = ending.status(&outcome, None)?;
    ending.say_counts(&outcome);
    if !matches!(form, SessionsForm::Text) {
        ending.say_conclusions(&mut outcome);
    }
    Ok(status)
}

impl SessionsArgs {
    /// The session that is asked for, and what is read. A number before the captures or behind them
    /// is a session, unless there is a file of that name.
    fn resolved(&self) -> (Option<u64>, CaptureArgs) {
        let mut captures = self.read.captures.clone();
        let several = captures.len() > 1;
        let number = |path: &PathBuf| -> Option<u64> {
            if several && !path.exists() { path.to_str()?.parse().ok() } else { None }
        };
        let ends = captures.words().next().into_iter().chain(captures.words().last());
        let typed = ends.cloned().find_map(|path| Some((number(&path)?, path)));
        if let Some((_, word)) = &typed {
            captures.take_word(word);
        }
        (self.session.or(typed.map(|(number, _)| number)), captures)
    }

    fn form(&self) -> SessionsForm {
        match (self.json, self.csv) {
            (true, _) => SessionsForm::Json,
            (false, true) => SessionsForm::Csv,
            (false, false) => SessionsForm::Text,
        }
    }
}

/// How sessions are printed.
#[derive(Clone, Copy)]
pub(super) enum SessionsForm {
    /// Blocks of text.
    Text,
    /// One JSON object a line.
    Json,
    /// One line of comma-separated values each.
    Csv,
}

/// Hands records to the collector, and prints the sessions that are over.
struct SessionsOutput {
    diagnosis: Diagnosis,
    printing: Printing,
}

impl Output for SessionsOutput {
    fn record(&mut self, record: &Record<'_>) {
        let over = self.diagnosis.record(record);
        if !over.is_empty() {
            self.printing.sessions(&over, self.diagnosis.conclusions());
        }
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        self.diagnosis.stream_over(over);
    }

    fn wants_more(&mut self, _may_block: bool) -> bool {
        self.printing.error.is_none()
    }
}

struct Printing {
    form: SessionsForm,
    story: bool,
    /// The only session that is printed, by its number.
    only: Option<u64>,
    /// Somebody waits for what comes, so that nothing is held back.
    at_once: bool,
    paint: Paint,
    width: Option<usize>,
    tables: Arc<[LazyTables]>,
    /// How many sessions there are so far.
    count: u64,
    /// The sessions as rows.
    rows: Vec<SessionRow>,
    /// Whether something was written.
    begun: bool,
    out: Vec<u8>,
    error: Option<io::Error>,
}

impl Printing {
    fn sessions(&mut self, sessions: &[ClientSession], conclusions: &Conclusions) {
        self.count = sessions.iter().map(|session| session.number).fold(self.count, u64::max);
        let tables = Arc::clone(&self.tables);
        let tables = |protocol: &str| LazyTables::of(&tables, protocol).map(LazyTables::get);
        let only = self.only;
        let wanted = |session: &&ClientSession| only.is_none_or(|only| session.number == only);
        for session in sessions.iter().filter(wanted) {
            let about = conclusions.of_session(session, &tables);
            match self.form {
                SessionsForm::Json => {
                    session_json(session, &about, self.story, &mut self.out);
                    self.out.push(b'\n');
                }
                SessionsForm::Csv => session_csv(session, &about, &mut self.out),
                SessionsForm::Text => self.text(session, &about),
            }
            let held = matches!(self.form, SessionsForm::Text) && !self.at_once;
            if !held || self.out.len() > MAX_HELD {
                self.flush();
            }
        }
    }

    /// A session as a block, or as a row if there are many.
    fn text(&mut self, session: &ClientSession, about: &[Conclusion]) {
        let may_be_rows = self.only.is_none() && !self.story && !self.at_once;
        if may_be_rows {
            self.rows.push(SessionRow::new(session, about));
        }
        if self.rows.len() <= BLOCKS && !self.begun {
            let mut text = String::new();
            session_text(session, self.story, &mut text);
            self.append(&text);
        } else {
            self.out.clear();
        }
        if self.rows.len() >= MAX_ROWS {
            self.print_rows();
            self.flush();
        }
    }

    fn append(&mut self, marked: &str) {
        let mut text = String::new();
        append_marked(marked, &self.paint, self.width, SESSION_INDENT, &mut text);
        self.out.extend_from_slice(text.as_bytes());
    }

    fn print_rows(&mut self) {
        let mut text = String::new();
        session_rows(&self.rows, &mut text);
        self.rows.clear();
        self.append(&text);
    }

    /// Prints what was held back, behind `head`.
    fn finish(&mut self, head: &str) {
        if self.rows.len() > BLOCKS || self.begun && !self.rows.is_empty() {
            self.print_rows();
        }
        if matches!(self.form, SessionsForm::Text) {
            let place = if self.begun { self.out.len() } else { 0 };
            self.out.splice(place..place, head.bytes());
        }
        self.flush();
    }

    fn flush(&mut self) {
        self.begun |= !self.out.is_empty();
        if let Err(error) = io::stdout().write_all(&self.out).and_then(|()| io::stdout().flush()) {
            self.error.get_or_insert(error);
        }
        self.out.clear();
    }
}
