//! One aligned line a record, for `--oneline`: number, time, stream, service, direction, message, and what the message is about.
//!
//! On a terminal lines are cut to its width, so that columns stay under each other; into a pipe they are whole.

use std::io::Write;

use super::clock::format_time;
use super::paint::Paint;
use super::tree::{Annotations, TimeForm};
use crate::captured::{Captured, escape};
use crate::facts::{InfoSource, write_info};
use crate::proto::Side;
use crate::record::{Body, Record, event_word};

/// How lines are written.
#[derive(Clone, Debug, Default)]
pub struct OneLineOptions {
    /// Colours and marks.
    pub paint: Paint,
    /// Secrets hidden.
    pub redact: bool,
    /// Which time a line has.
    pub time: TimeForm,
    /// Characters of a line; `None` for whole lines.
    pub width: Option<usize>,
}

/// Characters of the columns before the message, in a line of words for the direction and in a narrow one.
const STREAM: usize = 8;
const SERVICE: usize = 10;
/// Lines narrower than this have milliseconds, and letters instead of words for the direction.
const WORDS_FROM: usize = 110;

/// Writes records as lines.
#[derive(Clone, Default)]
pub struct OneLineWriter {
    options: OneLineOptions,
    /// The text being put together: the columns before the message, and what is behind them.
    head: String,
    rest: String,
}

impl OneLineWriter {
    /// Writes lines as `options` say.
    pub fn new(options: OneLineOptions) -> OneLineWriter {
        OneLineWriter { options, ..OneLineWriter::default() }
    }

    /// Appends a record's line; `annotations` are what earlier records add to it.
    pub fn record(&mut self, record: &Record<'_>, annotations: Annotations<'_>, out: &mut Vec<u8>) {
        self.write_head(record, annotations);
        let message = self.write_rest(record, annotations);
        let message_width = self.message_width();
        let taken = self.head.chars().count() + 1;
        let left = self.options.width.map_or(usize::MAX, |width| width.saturating_sub(taken));
        let name = cut(&message, if left == usize::MAX { left } else { message_width.min(left) });
        let padding = message_width.saturating_sub(name.chars().count());
        let info_width = left.saturating_sub(message_width + 1);
        let info = cut(&self.rest, info_width);
        let Paint { dim, name: colour, .. } = &self.options.paint;
        let _ = write!(out, "{}{}{} {}{name}{}", dim.on, self.head, dim.off, colour.on, colour.off);
        if !info.is_empty() {
            let _ = write!(out, "{:padding$} {info}", "");
        }
        out.push(b'\n');
    }

    /// The characters of the message's column.
    fn message_width(&self) -> usize {
        match self.options.width {
            None => 40,
            Some(width) => (width / 4).clamp(16, 36),
        }
    }

    fn write_head(&mut self, record: &Record<'_>, annotations: Annotations<'_>) {
        use std::fmt::Write;
        let narrow = self.options.width.is_some_and(|width| width < WORDS_FROM);
        let head = &mut self.head;
        head.clear();
        let _ = write!(head, "{:>6} ", record.number);
        match self.options.time {
            TimeForm::Absolute => {
                let from = head.len();
                format_time(record.at.time, head);
                // The time of day: what is between `T` and `Z`.
                let clock =
                    head.get(from..).and_then(|time| Some(time.split_once('T')?.1.trim_end_matches('Z').to_string()));
                head.truncate(from);
                // A narrow line has milliseconds.
                let digits = if narrow { "00:00:00.000".len() } else { usize::MAX };
                head.extend(clock.unwrap_or_default().chars().take(digits));
            }
            TimeForm::Relative => seconds(annotations.since_first, head),
            TimeForm::Delta => seconds(annotations.since_previous, head),
        }
        let stream = format!("{}:{}", record.transport.word(), record.stream);
        let _ = write!(head, " {stream:STREAM$} {:SERVICE$} ", escape(record.service));
        let arrow = self.options.paint.marks.arrow;
        if narrow {
            head.push_str(if record.from == Side::Client { "c>s" } else { "s>c" });
        } else {
            let _ = write!(head, "{}{arrow}{}", record.from.word(), record.from.other().word());
        }
    }

    /// Puts what a record is about into `rest`, and returns its name.
    fn write_rest(&mut self, record: &Record<'_>, annotations: Annotations<'_>) -> String {
        self.rest.clear();
        match &record.body {
            Body::Message { message, tables, tree } => {
                let def = tables.message_named(message.name.raw()).and_then(|id| tables.message(id));
                let layout = def.and_then(|def| def.layout);
                let source = InfoSource { tables, tree, bytes: message.bytes, layout, redact: self.options.redact };
                let mut text = String::new();
                write_info(source, &|node| annotations.name_of(node).map(|(name, _)| name), &mut text);
                self.rest.push_str(&escape(text.trim()));
                message.name.escaped().to_string()
            }
            Body::Event(event) => {
                self.rest.push_str(&Captured::new(&event.text).escaped().to_string());
                event_word(&record.body).to_string()
            }
            Body::StreamEnd { text, .. } => {
                self.rest.push_str(&escape(text));
                event_word(&record.body).to_string()
            }
        }
    }
}

/// Nanoseconds as seconds with six decimals, in at least twelve characters.
fn seconds(nanos: i64, out: &mut String) {
    use std::fmt::Write;
    let micros = nanos.unsigned_abs() / 1000;
    let sign = if nanos < 0 { "-" } else { "" };
    let text = format!("{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let _ = write!(out, "{text:>12}");
}

/// At most `width` characters of a text; a cut one ends in `~`.
fn cut(text: &str, width: usize) -> String {
    if width == usize::MAX || text.chars().count() <= width {
        return text.to_string();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        short.push('~');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_six_decimals() {
        let mut out = String::new();
        [0, 1_500_000_000, -2_000].iter().for_each(|nanos| seconds(*nanos, &mut out));
        assert_eq!(out, "    0.000000    1.500000   -0.000002");
    }

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!((cut("abc", 3), cut("abcd", 3), cut("abcd", 0)), ("abc".into(), "ab~".into(), String::new()));
    }
}
