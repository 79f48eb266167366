//! Statistics as one JSON object. `docs/json.md` describes its keys.

use std::collections::BTreeMap;

use super::FrameSpan;
use crate::capture::Time;
use crate::facts::{
    ByteCounts, Conclusion, ProblemKind, Problems, Replies, RequestCounts, RequestKind, Stats,
    World,
};
use crate::print::conclusions::json_conclusions;
use crate::print::json::{JsonObject, json_object, json_round_trips};
use crate::session::Counts;
use crate::tree::Severity;

/// Appends statistics as one JSON object and a line feed.
pub fn stats_json(stats: &Stats, span: &FrameSpan, conclusions: &[Conclusion], out: &mut Vec<u8>) {
    json_object(out, |o| {
        o.number("frames", span.frames);
        o.number("records", stats.records());
        o.number("streams", stats.bytes().streams());
        o.counts("not_read", span.not_read.iter().cloned());
        o.member("span", |out| json_span(span, out));
        o.member("rates", |out| json_rates(stats, span, out));
        o.counts("messages", stats.messages());
        let mut carries = stats.carries().peekable();
        if carries.peek().is_some() {
            o.member("carries", |out| {
                json_object(out, |o| carries.for_each(|(message, all)| o.counts(message, all)))
            });
        }
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
        if stats.world().left_out() > 0 {
            o.number("learned_left_out", stats.world().left_out());
        }
        json_conclusions(conclusions, o);
    });
    out.push(b'\n');
}

fn json_span(span: &FrameSpan, out: &mut Vec<u8>) {
    json_object(out, |o| {
        let Some((first, last)) = span.times else { return };
        for (key, time) in [("first", first), ("last", last)] {
            o.time(key, time);
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
    json_object(out, |o| {
        for (key, rate) in counts.into_iter().filter_map(|(key, n)| Some((key, span.rate(n)?))) {
            o.decimal(key, rate);
        }
        if let Some((seconds, messages)) = stats.pace().busiest() {
            o.member("busiest_second", |out| {
                json_object(out, |o| {
                    o.time("time", Time { seconds, nanos: 0, digits: 0 });
                    o.number("messages", messages);
                });
            });
        }
    });
}

fn json_problems(problems: &Problems, o: &mut JsonObject<'_>) {
    let counts = problems.by_severity();
    o.counts(
        "severities",
        [("error", counts.errors), ("warning", counts.warnings), ("note", counts.notes)],
    );
    let kinds = problems.kinds(false);
    // A text is one member, also where it came with two severities.
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    kinds.iter().for_each(|kind| *sums.entry(&kind.text).or_default() += kind.count);
    o.counts(
        "problems",
        kinds.iter().filter_map(|kind| sums.remove(kind.text.as_str()).map(|n| (&kind.text, n))),
    );
    o.member("problems_by_severity", |out| {
        json_object(out, |o| {
            for severity in [Severity::Error, Severity::Warning, Severity::Note] {
                let own = |kind: &&ProblemKind| kind.severity == severity;
                o.counts(
                    severity.word(),
                    kinds.iter().filter(own).map(|kind| (&kind.text, kind.count)),
                );
            }
        });
    });
}

/// By message; where requests of one message carry different things, each of these below it.
fn json_replies(replies: &Replies, out: &mut Vec<u8>) {
    let kinds = replies.kinds();
    let mut messages: Vec<(&str, Vec<&RequestKind>)> = Vec::new();
    for kind in &kinds {
        match messages.iter_mut().find(|(message, _)| *message == kind.message) {
            Some((_, own)) => own.push(kind),
            None => messages.push((&kind.message, vec![kind])),
        }
    }
    json_object(out, |o| {
        for (message, kinds) in messages {
            o.member(message, |out| {
                json_object(out, |o| {
                    let mut all = RequestCounts::default();
                    kinds.iter().for_each(|kind| all.add(&kind.counts));
                    json_requests(&all, o);
                    let mut carries = kinds
                        .iter()
                        .filter_map(|kind| Some((kind.carries.as_deref()?, &kind.counts)))
                        .peekable();
                    if carries.peek().is_some() {
                        o.member("carries", |out| {
                            json_object(out, |o| {
                                for (carried, counts) in carries {
                                    o.member(carried, |out| {
                                        json_object(out, |o| json_requests(counts, o));
                                    });
                                }
                            });
                        });
                    }
                });
            });
        }
    });
}

fn json_requests(counts: &RequestCounts, o: &mut JsonObject<'_>) {
    o.number("count", counts.sent);
    o.number("answered", counts.answered);
    o.number("refused", counts.refused);
    o.number("unanswered", counts.unanswered);
    o.latencies("latency_ms", &counts.latency);
    o.latencies("network_ms", &counts.network);
    if let Some(slowest) = counts.slowest {
        o.number("slowest", slowest.record);
        if let Some(network) = slowest.network {
            o.milliseconds("slowest_network_ms", network);
        }
    }
}

fn json_refused(replies: &Replies, out: &mut Vec<u8>) {
    let mut by_message: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for (message, reason, n) in replies.refusals() {
        by_message.entry(message).or_default().push((reason, n));
    }
    json_object(out, |o| {
        by_message.into_iter().for_each(|(message, reasons)| o.counts(message, reasons))
    });
}

fn json_bytes(bytes: &ByteCounts, out: &mut Vec<u8>) {
    json_object(out, |o| {
        o.bytes(bytes.all());
        for (key, list) in [("by_protocol", bytes.protocols()), ("by_service", bytes.services())] {
            o.member(key, |out| {
                json_object(out, |o| {
                    list.iter().for_each(|(name, own)| {
                        o.member(name, |out| json_object(out, |o| o.bytes(*own)))
                    })
                });
            });
        }
        o.member("by_stream", |out| json_object(out, |o| json_streams(bytes, o)));
        if bytes.unlisted() > 0 {
            o.number("streams_not_listed", bytes.unlisted());
        }
    });
}

fn json_streams(bytes: &ByteCounts, o: &mut JsonObject<'_>) {
    // Where a number had several connections, they are one member.
    for connections in bytes.listed().chunk_by(|a, b| a.key() == b.key()) {
        let Some(stream) = connections.first() else { continue };
        let mut bytes = Counts::default();
        connections.iter().for_each(|connection| bytes.add(connection.bytes));
        o.member(&format!("{}:{}", stream.transport.word(), stream.stream), |out| {
            json_object(out, |o| {
                o.text("protocol", &stream.protocol);
                o.text("service", &stream.service);
                o.text("client", &stream.client.to_string());
                o.text("server", &stream.server.to_string());
                json_round_trips(&stream.round_trips, o);
                o.bytes(bytes);
            });
        });
    }
}

/// Groups, which are objects of names, which are objects of facts.
pub(in crate::print) fn json_world(world: &World, out: &mut Vec<u8>) {
    json_object(out, |o| {
        for (group, things) in world.groups() {
            o.member(group, |out| {
                json_object(out, |o| {
                    for thing in things {
                        let facts = |o: &mut JsonObject<'_>| {
                            thing
                                .facts
                                .iter()
                                .for_each(|(key, value)| o.text(key, &value.to_string()));
                        };
                        o.member(&thing.name, |out| json_object(out, facts));
                    }
                });
            });
        }
    });
}
