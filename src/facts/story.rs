//! The story of a stream, step by step: the first steps and the latest ones, and how many are left out between them.

use std::collections::VecDeque;

use super::TransportStream;
use crate::capture::Moment;
use crate::session::Side;

/// Steps at a stream's beginning that are kept, and the latest ones beside them.
const FIRST_STEPS: usize = 32;
const LAST_STEPS: usize = 16;
/// This many consecutive steps of the same message are listed one by one; further ones are counted with the last of them.
const TOLD_APART: usize = 3;
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
    /// What the message is about.
    pub text: String,
    /// How many repeated steps this line stands for.
    pub times: u32,
    /// If the step is a request: whether it was answered.
    pub outcome: StoryOutcome,
}

/// Whether a step was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoryOutcome {
    /// It asks for nothing, or its reply is still to come.
    None,
    /// It was answered after this many nanoseconds.
    Answered(i64),
    /// It was refused, by this name or number, after this many nanoseconds.
    Refused(String, i64),
    /// It was never answered, within this many nanoseconds.
    Unanswered(i64),
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
    /// Nothing is told.
    pub(super) off: bool,
    pub(super) lines: VecDeque<StoryLine>,
    pub(super) left_out: u64,
}

impl Story {
    /// Whether the message of a record is in the story.
    pub(super) fn has(&self, record: u64) -> bool {
        self.lines.iter().any(|line| line.record == record)
    }

    /// Sets the outcome of a step that is a request.
    pub(super) fn outcome(&mut self, request: u64, outcome: StoryOutcome) {
        // Where a connection begins with a request, the line of the connection comes first.
        if let Some(line) = self.lines.iter_mut().rfind(|line| line.record == request) {
            line.outcome = outcome;
        }
    }

    /// Adds a line to the story. Repeated steps become one line after the first few, and lines in the middle of a long story are left out.
    pub(super) fn tell(&mut self, line: StoryLine) {
        if self.off {
            return;
        }
        let alike = self.lines.iter().rev().take_while(|have| have.message == line.message).count();
        if alike >= TOLD_APART
            && let Some(last) = self.lines.back_mut()
        {
            last.times += 1;
            return;
        }
        self.lines.push_back(line);
        if self.lines.len() > FIRST_STEPS + LAST_STEPS {
            let left_out = self.lines.remove(FIRST_STEPS);
            self.left_out += left_out.map_or(0, |line| u64::from(line.times));
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
