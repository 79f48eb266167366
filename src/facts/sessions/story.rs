//! The story of a stream, step by step: the first steps and the latest ones, and how many are left
//! out between them.

use std::collections::VecDeque;

use super::TransportStream;
use crate::capture::Moment;
use crate::record::{Body, Record};
use crate::session::Side;

/// How many steps at a stream's beginning are kept, and how many of the latest ones.
const FIRST_STEPS: usize = 32;
const LAST_STEPS: usize = 16;
/// How many steps are kept where there is no more room.
const FEWEST_STEPS: usize = 4;
/// This many consecutive steps of the same message are listed one by one; further ones are counted
/// with the last of them.
const TOLD_APART: usize = 3;
/// How many of the latest repeated steps, which are counted with another one, may still get an
/// outcome.
const MAX_REPEATED: usize = 64;
/// Characters of what a step is about.
const MAX_STEP: usize = 160;

/// One line of a session's story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryLine {
    /// The record.
    pub record: u64,
    /// Its frame.
    pub at: Moment,
    /// The stream.
    pub stream: TransportStream,
    /// The message's name.
    pub message: String,
    /// What the message carries, where its name does not say it and it is a request or a step.
    pub carries: Option<String>,
    /// What the message is about.
    pub text: String,
    /// How many repeated steps this line stands for.
    pub times: u32,
    /// If the step is a request: whether it was answered.
    pub outcome: StoryOutcome,
}

impl StoryLine {
    /// Its memory, roughly, in bytes. Twice its place, since lists of lines are half empty at most.
    pub(super) fn held(&self) -> usize {
        2 * size_of::<StoryLine>() + self.message.len() + self.text.len()
    }
}

/// Whether a step was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoryOutcome {
    /// It is not a request, or its reply has not come yet.
    None,
    /// It was answered after this many nanoseconds.
    Answered(i64),
    /// It was refused, by this name or number, after this many nanoseconds if a request is known.
    Refused(String, Option<i64>),
    /// It was never answered, or only in part.
    Unanswered {
        /// How long it waited.
        nanos: i64,
        /// A part of its reply came.
        part: bool,
    },
}

impl StoryOutcome {
    /// Whether the step was refused, or never answered.
    pub fn is_trouble(&self) -> bool {
        matches!(self, StoryOutcome::Refused(..) | StoryOutcome::Unanswered { .. })
    }
}

/// The last message of a stream or of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastMessage {
    /// Its record.
    pub record: u64,
    /// Its frame.
    pub at: Moment,
    /// Its sender.
    pub from: Side,
    /// The stream.
    pub stream: TransportStream,
    /// Its name.
    pub message: String,
}

/// The steps of a stream.
#[derive(Default)]
pub(super) struct Story {
    /// No lines are collected.
    pub(super) off: bool,
    /// There is no room for further lines, except for a few where there are none.
    pub(super) full: bool,
    pub(super) lines: VecDeque<StoryLine>,
    pub(super) left_out: u64,
    /// The records of steps that are counted with the line before them, and their frames.
    repeated: VecDeque<(u64, Moment)>,
    /// Memory of the lines, roughly, in bytes.
    held: usize,
}

impl Story {
    /// A story without lines. If it is `off`, it stays so.
    pub(super) fn new(off: bool) -> Story {
        Story { off, ..Story::default() }
    }

    /// Its memory, roughly, in bytes.
    pub(super) fn held(&self) -> usize {
        self.held + self.repeated.capacity() * size_of::<(u64, Moment)>()
    }

    /// Whether the message of a record is in the story.
    pub(super) fn has(&self, record: u64) -> bool {
        self.lines.iter().any(|line| line.record == record) || self.is_repeated(record)
    }

    /// Whether the message of a record is counted with another line.
    fn is_repeated(&self, record: u64) -> bool {
        self.repeated.iter().any(|(repeated, _)| *repeated == record)
    }

    /// Sets the outcome of a step that is a request.
    pub(super) fn outcome(&mut self, request: u64, outcome: StoryOutcome) {
        // Where a connection begins with a request, the line of the connection comes first.
        let Some(at) = self.lines.iter().rposition(|line| line.record == request) else { return };
        let Some(line) = self.lines.get_mut(at) else { return };
        line.outcome = outcome;
        if line.outcome.is_trouble() && line.times > 1 {
            self.part(at);
        }
    }

    /// A request was refused or never answered. A repeated step that was only counted gets a line
    /// of its own.
    pub(super) fn trouble(&mut self, request: &StoryLine) {
        let Some(counted) = self.repeated.iter().position(|(record, _)| *record == request.record)
        else {
            return;
        };
        self.repeated.remove(counted);
        let with = |line: &StoryLine| {
            line.record < request.record && line.message == request.message && line.times > 1
        };
        let Some(at) = self.lines.iter().rposition(with) else { return };
        if let Some(line) = self.lines.get_mut(at) {
            line.times -= 1;
        }
        self.insert(at + 1, request.clone());
    }

    /// Splits a line of several steps into its first step and the others.
    fn part(&mut self, at: usize) {
        let Some(line) = self.lines.get_mut(at) else { return };
        let Some((record, frame)) =
            self.repeated.iter().copied().find(|(record, _)| *record > line.record)
        else {
            return;
        };
        let others = StoryLine {
            record,
            at: frame,
            text: String::new(),
            times: line.times - 1,
            outcome: StoryOutcome::None,
            ..line.clone()
        };
        line.times = 1;
        self.insert(at + 1, others);
    }

    /// Adds a line to the story. Repeated steps become one line after the first few, and lines in
    /// the middle of a long story are left out.
    pub(super) fn tell(&mut self, line: StoryLine) {
        if self.off {
            return;
        }
        let alike = self.lines.iter().rev().take_while(|have| have.message == line.message).count();
        if alike >= TOLD_APART
            && let Some(last) = self.lines.back_mut()
            && !last.outcome.is_trouble()
        {
            last.times += 1;
            if self.repeated.len() >= MAX_REPEATED {
                self.repeated.pop_front();
            }
            self.repeated.push_back((line.record, line.at));
            return;
        }
        self.insert(self.lines.len(), line);
    }

    /// Inserts a line, and leaves out one in the middle of a long story.
    fn insert(&mut self, at: usize, line: StoryLine) {
        self.held += line.held();
        self.lines.insert(at, line);
        let most = if self.full { FEWEST_STEPS } else { FIRST_STEPS + LAST_STEPS };
        if self.lines.len() > most {
            let middle = FIRST_STEPS.min(self.lines.len() - 2);
            let Some(line) = self.lines.remove(middle) else { return };
            self.held = self.held.saturating_sub(line.held());
            self.left_out += u64::from(line.times);
        }
    }
}

/// Cuts a text to [`MAX_STEP`] characters, with a mark where it was cut.
pub(super) fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_STEP) {
        text.truncate(end);
        text.push('…');
    }
}

/// A line about a record, without a text.
pub(super) fn line_of(stream: TransportStream, record: &Record<'_>) -> StoryLine {
    match &record.body {
        Body::Message { message, .. } => bare_line(stream, record, message.name.raw()),
        Body::Event(_) | Body::StreamEnd { .. } => bare_line(stream, record, ""),
    }
}

/// The same for a record with a message of a name.
pub(super) fn bare_line(stream: TransportStream, record: &Record<'_>, message: &str) -> StoryLine {
    let message = message.to_string();
    let text = String::new();
    let outcome = StoryOutcome::None;
    StoryLine {
        record: record.number,
        at: record.at,
        stream,
        message,
        carries: None,
        text,
        times: 1,
        outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Transport;

    /// A question asked in record 1, 2, 3 …
    fn question(record: u64) -> StoryLine {
        StoryLine {
            record,
            at: Moment::default(),
            stream: (Transport::Tcp, 0),
            message: "Question".into(),
            carries: None,
            text: format!("question {record}"),
            times: 1,
            outcome: StoryOutcome::None,
        }
    }

    fn told(story: &Story) -> Vec<(u64, u32, bool)> {
        story
            .lines
            .iter()
            .map(|line| (line.record, line.times, line.outcome.is_trouble()))
            .collect()
    }

    fn refused() -> StoryOutcome {
        StoryOutcome::Refused("no".into(), Some(1))
    }

    #[test]
    fn a_repeated_step_that_is_refused_gets_a_line_of_its_own() {
        let mut story = Story::new(false);
        (1..=7).for_each(|record| story.tell(question(record)));
        assert_eq!(told(&story), [(1, 1, false), (2, 1, false), (3, 5, false)]);
        story.outcome(5, refused());
        story.trouble(&StoryLine { outcome: refused(), ..question(5) });
        assert_eq!(told(&story), [(1, 1, false), (2, 1, false), (3, 4, false), (5, 1, true)]);
        story.tell(question(8));
        story.tell(question(9));
        assert_eq!(
            told(&story),
            [(1, 1, false), (2, 1, false), (3, 4, false), (5, 1, true), (8, 2, false)]
        );
    }

    #[test]
    fn without_room_few_steps_are_kept_and_the_others_are_counted() {
        let mut story = Story::new(false);
        let other = |record| StoryLine { message: format!("Question{record}"), ..question(record) };
        (1..=20).for_each(|record| story.tell(other(record)));
        let held = story.held();
        story.full = true;
        (21..=40).for_each(|record| story.tell(other(record)));
        assert_eq!((story.lines.len(), story.left_out), (20, 20));
        assert!(story.held() <= held + 20, "{held} and {}", story.held());
        assert_eq!(story.lines.back().map(|line| line.record), Some(40));
        let mut late = Story::new(false);
        late.full = true;
        (1..=20).for_each(|record| late.tell(other(record)));
        assert_eq!((late.lines.len(), late.left_out), (FEWEST_STEPS, 16));
    }

    #[test]
    fn the_outcome_of_one_step_is_not_that_of_the_steps_counted_with_it() {
        let mut story = Story::new(false);
        (1..=5).for_each(|record| story.tell(question(record)));
        story.outcome(3, refused());
        assert_eq!(told(&story), [(1, 1, false), (2, 1, false), (3, 1, true), (4, 2, false)]);
        assert!(story.has(5), "the reply to a counted step is no step of its own");
    }
}
