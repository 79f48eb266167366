//! `moulsniff export chat`: one line for each chat message, with speaker and recipient.

use clap::Args;
use std::io::{self, Write};

use crate::cli::error::{CliError, Status};
use crate::cli::options::{CountArgs, FilterArgs, LiveArgs, ReadArgs};
use crate::cli::plan::{Plan, PlanArgs};
use crate::facts::Chat;
use crate::pipeline::{Filtered, Output};
use crate::print::chat::{chat_json, chat_text};
use crate::print::json::one_line;
use crate::record::Record;
use crate::run::{Beside, CaptureRun};

/// Bytes that are collected before they are written, as long as more input is at hand.
const BUFFER: usize = 64 << 10;

/// Chat.
#[derive(Args, Debug)]
pub struct ExportChatArgs {
    /// Also print the copies that servers relay to other clients
    #[arg(long)]
    pub copies: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// The captures.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Captures that still grow.
    #[command(flatten)]
    pub live: LiveArgs,
    /// Which messages are looked at.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// How many.
    #[command(flatten)]
    pub count: CountArgs,
}

pub(super) fn run(args: &ExportChatArgs) -> Result<Status, CliError> {
    let Plan { reading, mut setup, filter, redact, limit, ending, .. } = Plan::new(PlanArgs {
        live: Some(&args.live),
        filter: Some(&args.filter),
        count: args.count.count,
        ..PlanArgs::new(&args.read)
    })?;
    setup.names = true;
    let run = CaptureRun::new(&reading, setup)?;
    let printer = ChatPrinter {
        chat: Chat::default(),
        redact,
        json: args.json,
        copies: args.copies,
        left: limit,
        text: String::new(),
        to: run.stdout(),
        error: None,
    };
    let mut filtered = Filtered::new(printer, filter.clone(), u64::MAX);
    let mut outcome = run.into_output(&mut filtered);
    let mut printer = filtered.into_inner();
    printer.flush();
    if let Some(error) = printer.error.take() {
        return Err(CliError::writing(error));
    }
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    ending.close(&mut outcome, filter.as_deref())
}

/// Prints utterances as they come.
struct ChatPrinter {
    chat: Chat,
    redact: bool,
    json: bool,
    /// What is passed on is printed, too.
    copies: bool,
    /// How many lines may still be printed.
    left: u64,
    text: String,
    to: Beside<io::Stdout>,
    error: Option<io::Error>,
}

impl ChatPrinter {
    fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        if let Err(error) = self.to.write_all(self.text.as_bytes()).and_then(|()| self.to.flush()) {
            self.error.get_or_insert(error);
        }
        self.text.clear();
    }
}

impl Output for ChatPrinter {
    fn record(&mut self, record: &Record<'_>) {
        let lines = self.chat.record(record, self.redact);
        for line in lines.iter().filter(|line| self.copies || line.relays.is_none()) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            if self.json {
                self.text.push_str(&one_line(&chat_json(line)));
                self.text.push('\n');
            } else {
                chat_text(line, &mut self.text);
            }
        }
    }

    fn wants_more(&mut self, may_block: bool) -> bool {
        if may_block || self.text.len() >= BUFFER {
            self.flush();
        }
        self.error.is_none() && self.left > 0
    }
}
