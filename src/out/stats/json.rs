//! Statistics as one JSON object. `docs/json.md` describes its keys.

use std::collections::BTreeMap;

use super::FrameSpan;
use crate::capture::Time;
use crate::facts::{ByteCounts, Latencies, ProblemKind, Problems, Replies, Stats, World};
use crate::out::clock::format_time;
use crate::out::json::{number, string, write_counts};
use crate::record::Counts;
use crate::tree::Severity;

/// Appends statistics as one JSON object and a line feed.
pub fn stats_json(stats: &Stats, span: &FrameSpan, out: &mut Vec<u8>) {
    object(out, |o| {
        o.number("frames", span.frames);
        o.number("records", stats.records());
        o.number("streams", stats.bytes().streams());
        o.member("span", |out| json_span(span, out));
        o.member("rates", |out| json_rates(stats, span, out));
        o.counts("messages", stats.messages());
        o.counts("events", stats.events());
        json_problems(stats.problems(), o);
        o.member("replies", |out| json_replies(stats.replies(), out));
        if stats.replies().forgotten() > 0 {
            o.number("requests_forgotten", stats.replies().forgotten());
        }
        o.member("refused", |out| json_refused(stats.replies(), out));
        o.member("bytes", |out| json_bytes(stats.bytes(), out));
        if !stats.world().is_empty() {
            o.member("learned", |out| json_world(stats.world(), out));
        }
    });
    out.push(b'\n');
}

/// An object that is being written.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

/// Writes an object, whose members `members` writes.
fn object(out: &mut Vec<u8>, members: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    members(&mut Object { out, first: true });
    out.push(b'}');
}

impl Object<'_> {
    fn member(&mut self, key: &str, value: impl FnOnce(&mut Vec<u8>)) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        string(self.out, key);
        self.out.push(b':');
        value(self.out);
    }

    fn number(&mut self, key: &str, n: u64) {
        self.member(key, |out| number(out, n));
    }

    fn text(&mut self, key: &str, text: &str) {
        self.member(key, |out| string(out, text));
    }

    /// A number with at most three decimals.
    fn decimal(&mut self, key: &str, n: f64) {
        let rounded = (n * 1000.0).round() / 1000.0;
        self.member(key, |out| out.extend_from_slice(rounded.to_string().as_bytes()));
    }

    /// An object of numbers.
    fn counts<K: AsRef<str>>(&mut self, key: &str, list: impl IntoIterator<Item = (K, u64)>) {
        self.member(key, |out| {
            object(out, |o| list.into_iter().for_each(|(name, n)| o.number(name.as_ref(), n)));
        });
    }

    /// What became of bytes, as members.
    fn bytes(&mut self, bytes: Counts) {
        let mut text = Vec::new();
        write_counts(bytes, &mut text);
        let inner = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}")).unwrap_or(&[]);
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(inner);
    }
}

fn json_span(span: &FrameSpan, out: &mut Vec<u8>) {
    object(out, |o| {
        let Some((first, last)) = span.times else { return };
        for (key, time) in [("first", first), ("last", last)] {
            o.text(key, &time_text(time));
        }
        o.decimal("duration_ms", span.nanos().unwrap_or(0) as f64 / 1e6);
    });
}

fn json_rates(stats: &Stats, span: &FrameSpan, out: &mut Vec<u8>) {
    let counts = [
        ("frames_per_s", span.frames),
        ("messages_per_s", stats.pace().messages()),
        ("payload_bytes_per_s", stats.bytes().all().payload),
    ];
    object(out, |o| {
        for (key, rate) in counts.into_iter().filter_map(|(key, n)| Some((key, span.rate(n)?))) {
            o.decimal(key, rate);
        }
        if let Some((seconds, messages)) = stats.pace().busiest() {
            o.member("busiest_second", |out| {
                object(out, |o| {
                    o.text("time", &time_text(Time { seconds, nanos: 0, digits: 0 }));
                    o.number("messages", messages);
                });
            });
        }
    });
}

fn json_problems(problems: &Problems, o: &mut Object<'_>) {
    let counts = problems.by_severity();
    o.counts("severities", [("error", counts.errors), ("warning", counts.warnings), ("note", counts.notes)]);
    let kinds = problems.kinds(false);
    // A text is one member, also where it came with two severities.
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    kinds.iter().for_each(|kind| *sums.entry(&kind.text).or_default() += kind.count);
    o.counts("problems", kinds.iter().filter_map(|kind| sums.remove(kind.text.as_str()).map(|n| (&kind.text, n))));
    o.member("problems_by_severity", |out| {
        object(out, |o| {
            for severity in [Severity::Error, Severity::Warning, Severity::Note] {
                let own = |kind: &&ProblemKind| kind.severity == severity;
                o.counts(severity.word(), kinds.iter().filter(own).map(|kind| (&kind.text, kind.count)));
            }
        });
    });
}

fn json_replies(replies: &Replies, out: &mut Vec<u8>) {
    object(out, |o| {
        for kind in replies.kinds() {
            let counts = &kind.counts;
            o.member(&kind.message, |out| {
                object(out, |o| {
                    o.number("count", counts.sent);
                    o.number("answered", counts.answered);
                    o.number("refused", counts.refused);
                    o.number("unanswered", counts.unanswered);
                    json_latencies("latency_ms", &counts.latency, o);
                    if let Some(record) = counts.slowest {
                        o.number("slowest", record);
                    }
                });
            });
        }
    });
}

/// Percentiles in milliseconds, where there are any.
fn json_latencies(key: &str, all: &Latencies, o: &mut Object<'_>) {
    if all.count() == 0 {
        return;
    }
    let figures = [("p50", all.percentile(50)), ("p95", all.percentile(95)), ("max", all.max())];
    o.member(key, |out| {
        object(out, |o| {
            for (key, nanos) in figures {
                o.decimal(key, nanos.unwrap_or(0) as f64 / 1e6);
            }
        });
    });
}

fn json_refused(replies: &Replies, out: &mut Vec<u8>) {
    let mut by_message: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for (message, reason, n) in replies.refusals() {
        by_message.entry(message).or_default().push((reason, n));
    }
    object(out, |o| by_message.into_iter().for_each(|(message, reasons)| o.counts(message, reasons)));
}

fn json_bytes(bytes: &ByteCounts, out: &mut Vec<u8>) {
    object(out, |o| {
        o.bytes(bytes.all());
        for (key, list) in [("by_protocol", bytes.protocols()), ("by_service", bytes.services())] {
            o.member(key, |out| {
                object(out, |o| {
                    list.iter().for_each(|(name, own)| o.member(name, |out| object(out, |o| o.bytes(*own))))
                });
            });
        }
        o.member("by_stream", |out| object(out, |o| json_streams(bytes, o)));
        if bytes.unlisted() > 0 {
            o.number("streams_not_listed", bytes.unlisted());
        }
    });
}

fn json_streams(bytes: &ByteCounts, o: &mut Object<'_>) {
    for stream in bytes.listed() {
        o.member(&format!("{}:{}", stream.transport.word(), stream.stream), |out| {
            object(out, |o| {
                o.text("protocol", &stream.protocol);
                o.text("service", &stream.service);
                o.text("client", &stream.client.to_string());
                o.text("server", &stream.server.to_string());
                o.bytes(stream.bytes);
            });
        });
    }
}

/// Groups, which are objects of names, which are objects of facts.
fn json_world(world: &World, out: &mut Vec<u8>) {
    object(out, |o| {
        for (group, things) in world.groups() {
            o.member(group, |out| {
                object(out, |o| {
                    for thing in things {
                        let facts = |o: &mut Object<'_>| {
                            thing.facts.iter().for_each(|(key, value)| o.text(key, &value.to_string()));
                        };
                        o.member(&thing.name, |out| object(out, facts));
                    }
                });
            });
        }
    });
}

fn time_text(time: Time) -> String {
    let mut text = String::new();
    format_time(time, &mut text);
    text
}
