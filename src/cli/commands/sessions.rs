//! `moulsniff sessions`: the clients in captures, what each did, and which of its requests were
//! answered.

use std::io::{self, Write};

use clap::Args;

use crate::cli::error::{CliError, Status};
use crate::cli::options::{CaptureArgs, CountArgs, LiveArgs, ReadArgs, number};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::session_pass::no_session;
use crate::facts::{ClientSession, Sessions};
use crate::pipeline::{Filtered, Output, StreamOver};
use crate::print::sessions::{SESSION_COLUMNS, session_csv, session_json, session_text};
use crate::record::Record;
use crate::run::CaptureRun;

/// Sessions that end with the capture are written as soon as they have this many bytes.
const PRINTED_AT_ONCE: usize = 1 << 16;

/// Sessions.
#[derive(Args, Debug)]
#[command(override_usage = "moulsniff sessions [OPTIONS] [N] CAPTURE...")]
#[command(mut_arg("captures", |arg| arg.help(
    "Read these captures as one, in the order given; `-` is standard input. A number before them, where no file has this name, is the session to print"
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
    let printing = Printing {
        form: args.form(),
        story: args.story,
        only,
        count: 0,
        out: Vec::new(),
        error: None,
    };
    let mut collector = SessionsOutput { printing, sessions: Sessions::default() };
    if matches!(collector.printing.form, SessionsForm::Csv) {
        collector.printing.out.extend_from_slice(format!("{SESSION_COLUMNS}\n").as_bytes());
    }
    let mut filtered = Filtered::new(collector, None, limit);
    let mut outcome = CaptureRun::new(&reading, setup)?.into_output(&mut filtered);
    let mut collector = filtered.into_inner();
    let SessionsOutput { printing, sessions, .. } = &mut collector;
    for session in sessions.finish() {
        printing.sessions(&[session]);
        if printing.out.len() >= PRINTED_AT_ONCE {
            printing.flush();
        }
    }
    printing.flush();
    if let Some(error) = collector.printing.error.take() {
        return Err(CliError::writing(error));
    }
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let count = collector.printing.count;
    if let Some(only) = only.filter(|only| !(1..=count).contains(only)) {
        return Err(no_session(only, count));
    }
    ending.close(&outcome, None)
}

impl SessionsArgs {
    /// The session that is asked for, and what is read. A number before the captures is a session,
    /// unless there is a file of that name.
    fn resolved(&self) -> (Option<u64>, CaptureArgs) {
        let mut captures = self.read.captures.clone();
        let first = captures.words().next().filter(|path| captures.len() > 1 && !path.exists());
        let number = first.and_then(|path| path.to_str()?.parse().ok());
        if number.is_some() {
            captures.take_first_word();
        }
        (self.session.or(number), captures)
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
    sessions: Sessions,
    printing: Printing,
}

impl Output for SessionsOutput {
    fn record(&mut self, record: &Record<'_>) {
        self.sessions.record(record);
        let over = self.sessions.take_finished();
        if !over.is_empty() {
            self.printing.sessions(&over);
            self.printing.flush();
        }
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        self.sessions.stream_over(
            (over.key.transport, over.key.number),
            over.counts,
            &over.learned,
        );
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
    /// How many sessions there are so far.
    count: u64,
    out: Vec<u8>,
    error: Option<io::Error>,
}

impl Printing {
    fn sessions(&mut self, sessions: &[ClientSession]) {
        self.count = sessions.iter().map(|session| session.number).fold(self.count, u64::max);
        for session in
            sessions.iter().filter(|session| self.only.is_none_or(|only| session.number == only))
        {
            match self.form {
                SessionsForm::Json => {
                    session_json(session, self.story, &mut self.out);
                    self.out.push(b'\n');
                }
                SessionsForm::Csv => session_csv(session, &mut self.out),
                SessionsForm::Text => {
                    let mut text = String::new();
                    session_text(session, self.story, &mut text);
                    self.out.extend_from_slice(text.as_bytes());
                }
            }
        }
    }

    fn flush(&mut self) {
        if let Err(error) = io::stdout().write_all(&self.out).and_then(|()| io::stdout().flush()) {
            self.error.get_or_insert(error);
        }
        self.out.clear();
    }
}
