//! One aligned line a record, for `--oneline`: number, time, stream, service, direction, message,
//! and what the message is about.
//!
//! On a terminal lines are cut to its width, so that columns stay under each other; into a pipe
//! they are whole.

use std::io::Write;

use super::Zone;
use super::clock::Clock;
use super::paint::Paint;
use super::width::{cut, width};
use super::{PrintedTime, TimeForm};
use crate::captured::{Captured, escape};
use crate::facts::{InfoSource, definition, write_info};
use crate::record::{Body, MessageView, Record, event_word};
use crate::session::Side;

/// How lines are written.
#[derive(Clone, Debug, Default)]
pub struct OneLineOptions {
    /// Colours and marks.
    pub paint: Paint,
    /// Whether secrets are replaced by their length.
    pub redact: bool,
    /// Which time a line has.
    pub time: TimeForm,
    /// The zone of times of day.
    pub zone: Zone,
    /// Columns of a line; `None` for whole lines.
    pub width: Option<usize>,
}

/// How the columns of a line are laid out.
#[derive(Clone, Copy, Debug)]
struct LineLayout {
    /// Characters of the record's number.
    number: usize,
    /// Decimals of the second.
    decimals: usize,
    /// Characters of the stream.
    stream: usize,
    /// Characters of the service; `None` where there is no room for it: the message's name usually
    /// shows it.
    service: Option<usize>,
    /// Words for the direction, not letters.
    words: bool,
    /// Characters of the message's name.
    message: usize,
}

impl LineLayout {
    /// For lines that are whole, and for terminals with this room at least.
    const WIDE: (usize, LineLayout) = (
        160,
        LineLayout {
            number: 6,
            decimals: 9,
            stream: 8,
            service: Some(10),
            words: true,
            message: 40,
        },
    );
    const MEDIUM: (usize, LineLayout) = (
        100,
        LineLayout {
            number: 6,
            decimals: 6,
            stream: 7,
            service: Some(10),
            words: false,
            message: 30,
        },
    );
    const NARROW: LineLayout =
        LineLayout { number: 5, decimals: 3, stream: 6, service: None, words: false, message: 22 };

    fn of(width: Option<usize>) -> LineLayout {
        let width = width.unwrap_or(usize::MAX);
        let roomy =
            [LineLayout::WIDE, LineLayout::MEDIUM].into_iter().find(|(from, _)| width >= *from);
        roomy.map_or(LineLayout::NARROW, |(_, layout)| layout)
    }
}

/// Writes records as lines.
#[derive(Clone, Default)]
pub struct OneLineWriter {
    options: OneLineOptions,
    clock: Clock,
    /// The text being put together: the columns before the message, and what is behind them.
    head: String,
    rest: String,
}

impl OneLineWriter {
    /// Writes lines as `options` say.
    pub fn new(options: OneLineOptions) -> OneLineWriter {
        let clock = Clock::in_zone(options.zone.clone());
        OneLineWriter { options, clock, ..OneLineWriter::default() }
    }

    /// The zone of its times.
    pub fn zone(&self) -> Zone {
        self.options.zone.clone()
    }

    /// Appends a record's line.
    pub fn record(&mut self, record: &Record<'_>, time: PrintedTime, out: &mut Vec<u8>) {
        let layout = LineLayout::of(self.options.width);
        self.write_head(record, time, &layout);
        let (message, carried) = self.write_rest(record);
        let taken = width(&self.head) + 1;
        let left = self.options.width.map_or(usize::MAX, |width| width.saturating_sub(taken));
        // A line that is not cut has whole names, too.
        let most = if left == usize::MAX { left } else { layout.message.min(left) };
        let name = match carried {
            None => cut(&message, most),
            Some(carried) => cut_both(&message, &carried, most),
        };
        let padding = layout.message.saturating_sub(width(&name));
        let info = cut(&self.rest, left.saturating_sub(layout.message + 1));
        let Paint { dim, name: colour, .. } = &self.options.paint;
        let _ = write!(out, "{}{}{} {}{name}{}", dim.on, self.head, dim.off, colour.on, colour.off);
        if !info.is_empty() {
            let _ = write!(out, "{:padding$} {info}", "");
        }
        out.push(b'\n');
    }

    fn write_head(&mut self, record: &Record<'_>, time: PrintedTime, layout: &LineLayout) {
        use std::fmt::Write;
        let head = &mut self.head;
        head.clear();
        let _ = write!(head, "{:>width$} ", record.number, width = layout.number);
        match self.options.time {
            TimeForm::Absolute => {
                head.push_str(&self.clock.clock_text(record.at.time, layout.decimals))
            }
            TimeForm::Relative => seconds(time.since_first, head),
            TimeForm::Delta => seconds(time.since_previous, head),
        }
        let stream = format!("{}:{}", record.transport.word(), record.stream);
        let _ = write!(head, " {stream:width$} ", width = layout.stream);
        if let Some(width) = layout.service {
            let _ = write!(head, "{:width$} ", escape(record.service));
        }
        if layout.words {
            let _ = write!(
                head,
                "{}{}{}",
                record.from.word(),
                self.options.paint.marks.arrow,
                record.from.other().word()
            );
        } else {
            head.push_str(if record.from == Side::Client { "c>s" } else { "s>c" });
        }
    }

    /// Puts what a record is about into `rest`, and returns its name and what it carries.
    fn write_rest(&mut self, record: &Record<'_>) -> (String, Option<String>) {
        self.rest.clear();
        let mut carried = None;
        let name = match &record.body {
            Body::Message { message, tables, tree } => {
                let def = definition(message.name, tables, tree);
                let source = InfoSource::new(
                    message,
                    def,
                    MessageView { tables, tree, bytes: message.bytes },
                    self.options.redact,
                );
                let mut text = String::new();
                write_info(source, record.names, &mut text);
                self.rest.push_str(&escape(text.trim()));
                carried = source.carried().map(|carried| escape(&carried).to_string());
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
        };
        (name, carried)
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

/// A name and what the message carries in at most `most` columns: what it carries tells more, so
/// the name is cut first.
fn cut_both(name: &str, carried: &str, most: usize) -> String {
    const LEAST: usize = 6;
    let left = most.saturating_sub(width(carried) + 1).max(LEAST);
    cut(&format!("{} {carried}", cut(name, left)), most)
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
    fn what_a_message_carries_stays_before_its_name() {
        let both = |width| cut_both("PropagateBuffer", "plNotifyMsg", width);
        assert_eq!(both(usize::MAX), "PropagateBuffer plNotifyMsg");
        assert_eq!(
            (both(22).as_str(), both(14).as_str()),
            ("Propagate~ plNotifyMsg", "Propa~ plNoti~")
        );
    }
}
