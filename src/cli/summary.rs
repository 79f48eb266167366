//! How a command that read captures ends: its summary on standard error, and its exit status.

use std::path::Path;

use super::error::{CliError, Status};
use crate::captured::file_name;
use crate::digits::counted;
use crate::facts::{Conclusion, Weight};
use crate::filter::Filter;
use crate::pipeline;
use crate::remark;
use crate::run::RunOutcome;
use crate::tree::ProblemCounts;

/// Conclusions that the summary names.
const IN_SUMMARY: usize = 3;

/// How a command ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    /// No summary.
    pub(super) quiet: bool,
    /// What was not understood is an exit status.
    pub(super) strict: bool,
    /// No record was asked for (`-c 0`), so that none says nothing about the captures.
    pub(super) nothing_asked: bool,
}

impl Summary {
    /// Says the summary and returns the exit status. An error comes alone, without a summary.
    pub(super) fn close(
        self,
        outcome: &mut RunOutcome,
        filter: Option<&Filter>,
    ) -> Result<Status, CliError> {
        let status = self.status(outcome, filter)?;
        self.say_summary(outcome);
        Ok(status)
    }

    /// Says on standard error what the run met, and what is worst of it, unless that is not wanted.
    pub(super) fn say_summary(self, outcome: &mut RunOutcome) {
        self.say_counts(outcome);
        self.say_conclusions(outcome);
    }

    /// Says only the counts.
    pub(super) fn say_counts(self, outcome: &RunOutcome) {
        if !self.quiet {
            remark::say(format_args!("{}", summary_line(&outcome.pipeline.summary())));
        }
    }

    /// The same as [`say_summary`](Summary::say_summary) for one of several runs, which `name`
    /// names.
    pub(super) fn say_summary_of(self, name: &str, outcome: &mut RunOutcome) {
        if !self.quiet {
            remark::say(format_args!("{name}: {}", summary_line(&outcome.pipeline.summary())));
            self.say_conclusions(outcome);
        }
    }

    /// Says what is worst, unless that is not wanted.
    pub(super) fn say_conclusions(self, outcome: &mut RunOutcome) {
        // Of captures that were hardly begun, this would be a guess.
        if self.quiet || self.nothing_asked || outcome.interrupted {
            return;
        }
        say_heaviest(&concluded(outcome));
    }

    /// The exit status of a run that could be read. A name in `filter` that was doubtful, and never
    /// met, was a mistake.
    pub(super) fn status(
        self,
        outcome: &RunOutcome,
        filter: Option<&Filter>,
    ) -> Result<Status, CliError> {
        let summary = outcome.pipeline.summary();
        if outcome.interrupted {
            return Ok(Status::Interrupted);
        }
        refuse_mistake(filter)?;
        let bytes = summary.bytes;
        let incomplete = bytes.undecoded > 0 || bytes.lost > 0 || bytes.closed > 0;
        let nothing = summary.streams == 0 && !self.nothing_asked;
        let incomplete = incomplete || summary.flow.cut > 0 || summary.left_out > 0 || nothing;
        Ok(if self.strict && incomplete { Status::Strict } else { Status::Good })
    }
}

/// Refuses, before the file at `target` is replaced, what the run was read for in vain: captures of
/// which nothing could be read, or not all because of a signal, or a filter that was a mistake.
///
/// # Errors
/// What is wrong with them.
pub(super) fn before_commit(
    outcome: &mut RunOutcome,
    filter: Option<&Filter>,
    target: &Path,
) -> Result<(), CliError> {
    if let Some(error) = outcome.take_error_of_nothing_read() {
        return Err(error.into());
    }
    // A device or a pipe has what came until then.
    refuse_interrupted(outcome, || format!("no complete {} was written", file_name(target)))?;
    // In the rest of a damaged capture the name may have been met.
    if outcome.error.is_some() { Ok(()) } else { refuse_mistake(filter) }
}

/// Ends a run that a signal ended before its captures were read to their end. `written` says what
/// there is of its output.
///
/// # Errors
/// The run was ended so.
pub(super) fn refuse_interrupted(
    outcome: &mut RunOutcome,
    written: impl FnOnce() -> String,
) -> Result<(), CliError> {
    if !outcome.interrupted {
        return Ok(());
    }
    let before = outcome.error.take().map(|error| format!("; {error}")).unwrap_or_default();
    Err(CliError::Interrupted(format!("{}{before}", written())))
}

/// Refuses a filter with a doubtful name that no record had: the name was a mistake. To be asked
/// before a file is replaced.
///
/// # Errors
/// The first such name.
pub(super) fn refuse_mistake(filter: Option<&Filter>) -> Result<(), CliError> {
    match filter.map(Filter::verdict) {
        Some(Err(doubt)) => Err(CliError::Typed(format!("filter: {doubt}"))),
        _ => Ok(()),
    }
}

/// The problems of the messages. That all are decoded is only said where all was read.
fn problems(summary: &pipeline::Summary) -> String {
    let none = summary.problems == ProblemCounts::default();
    if none && (summary.messages == 0 || !summary.bytes.is_whole()) {
        return String::new();
    }
    format!(", {}", summary.problems)
}

fn summary_line(summary: &pipeline::Summary) -> String {
    let b = summary.bytes;
    let mut text = format!(
        "{}, {} recognised, {}{}; {}: {} explained, {} opaque",
        counted(summary.flow.frames, "frame"),
        counted(summary.streams, "stream"),
        counted(summary.messages, "message"),
        problems(summary),
        counted(b.payload, "payload byte"),
        b.explained,
        b.opaque
    );
    for (word, n) in
        [("undecoded", b.undecoded), ("not opened by any key", b.closed), ("lost", b.lost)]
    {
        if n > 0 {
            text.push_str(&format!(", {n} {word}"));
        }
    }
    if let Some(why) = summary.left_out_why {
        text.push_str(&format!(
            "; {} left out: of the first one {why}",
            counted(summary.left_out, "exported message")
        ));
    }
    if summary.flow.wrong_sums > 0 {
        text.push_str(&format!("; {}", counted(summary.flow.wrong_sums, "wrong checksum")));
    }
    if summary.flow.fragments_dropped > 0 {
        text.push_str(&format!(
            "; {} of which IP fragments are missing",
            counted(summary.flow.fragments_dropped, "datagram")
        ));
    }
    if summary.flow.wrong_times > 0 {
        text.push_str(&format!(
            "; {} of a damaged clock, not in the years 0 to 9999",
            counted(summary.flow.wrong_times, "frame")
        ));
    }
    text
}

/// What a run concluded, the heaviest first.
pub(super) fn concluded(outcome: &mut RunOutcome) -> Vec<Conclusion> {
    match &mut outcome.diagnosis {
        Some(diagnosis) => diagnosis.conclude(&outcome.pipeline, outcome.files.clone()),
        None => Vec::new(),
    }
}

/// Says the heaviest conclusions on standard error.
fn say_heaviest(conclusions: &[Conclusion]) {
    let heavy = conclusions.iter().filter(|one| one.weight < Weight::Hint);
    for one in heavy.clone().take(IN_SUMMARY) {
        remark::say(format_args!("  {}: {}", one.weight.word(), one.text));
    }
    let more = heavy.count().saturating_sub(IN_SUMMARY);
    if more > 0 {
        remark::say(format_args!("  and {more} more: moulsniff diagnose"));
    }
}
