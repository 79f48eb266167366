//! Statistics as tables for people, in lines of at most 80 characters.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::FrameSpan;
use super::layout::{Table, counted_list, wrapped};
use crate::capture::Time;
use crate::captured::escape;
use crate::digits::{counted, plural};
use crate::facts::{ByteCounts, Latencies, ProblemKind, Replies, RequestCounts, Stats, World};
use crate::print::clock::format_time;
use crate::session::Counts;
use crate::session::{Learned, LearnedValue};
use crate::tree::{ProblemCounts, Severity};

/// Statistics as tables.
pub fn stats_text(stats: &Stats, span: &FrameSpan) -> String {
    let mut out = String::new();
    first_lines(stats, span, &mut out);
    let problems = stats.problems().kinds(true);
    for (title, severity) in [("errors", Severity::Error), ("warnings", Severity::Warning)] {
        problem_list(title, severity, &problems, &mut out);
    }
    byte_tables(stats.bytes(), &mut out);
    reply_tables(stats.replies(), &mut out);
    network_table(stats.bytes(), &mut out);
    message_list(stats, &mut out);
    counted_list("events", stats.events(), &mut out);
    let not_read = span.not_read.iter().map(|(reason, count)| (reason.as_str(), *count));
    counted_list("frames that were not read", not_read, &mut out);
    problem_list("notes", Severity::Note, &problems, &mut out);
    world_tables(stats.world(), &mut out);
    out
}

fn first_lines(stats: &Stats, span: &FrameSpan, out: &mut String) {
    let mut first = counted(span.frames, "frame");
    if let (Some((from, to)), Some(nanos)) = (span.times, span.nanos()) {
        let day = date(from);
        let end = if date(to) == day { String::new() } else { format!("{} ", date(to)) };
        let _ = write!(
            first,
            " in {}, {day} {} to {end}{} UTC",
            duration(nanos),
            clock(from),
            clock(to)
        );
    }
    wrapped("", &first, out);
    let streams = stats.bytes().streams();
    let messages = stats.pace().messages();
    let mut second = format!("{}, {}", counted(streams, "stream"), counted(messages, "message"));
    if let (Some(rate), Some((at, most))) = (span.rate(messages), stats.pace().busiest()) {
        let busiest = clock(Time { seconds: at, nanos: 0, digits: 0 });
        let _ = write!(second, ": {}/s, {most} in the busiest second ({busiest})", rounded(rate));
    }
    wrapped("", &second, out);
    let all = stats.bytes().all();
    if all.payload > 0 {
        let mut third = counted(all.payload, "payload byte");
        if let Some(rate) = span.rate(all.payload) {
            let _ = write!(third, ", {}/s", rounded(rate));
        }
        let _ = write!(third, ", {} understood", share(all.explained + all.opaque, all.payload));
        for (n, what) in [(all.closed, "not opened by any key"), (all.lost, "more never captured")]
        {
            if n > 0 {
                let _ = write!(third, ", {n} {what}");
            }
        }
        wrapped("", &third, out);
    }
    // That all is decoded is only said where all was read.
    let problems = stats.problems().by_severity();
    if problems != ProblemCounts::default() || messages > 0 && all.is_whole() {
        wrapped("", &problems.to_string(), out);
    }
}

/// Messages by name; where a name does not say what a message carries, by that as well.
fn message_list(stats: &Stats, out: &mut String) {
    let mut carried: BTreeMap<&str, Vec<(&str, u64)>> = stats.carries().collect();
    let mut lines: Vec<(String, u64)> = Vec::new();
    for (message, n) in stats.messages() {
        let own = carried.remove(message).unwrap_or_default();
        let bare = n.saturating_sub(own.iter().map(|(_, n)| n).sum());
        if bare > 0 {
            lines.push((message.to_string(), bare));
        }
        lines.extend(own.into_iter().map(|(carried, n)| (format!("{message} {carried}"), n)));
    }
    lines.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counted_list("messages", lines.iter().map(|(text, n)| (text.as_str(), *n)), out);
}

fn problem_list(title: &str, severity: Severity, kinds: &[ProblemKind], out: &mut String) {
    let own = kinds.iter().filter(|kind| kind.severity == severity);
    counted_list(title, own.map(|kind| (kind.text.as_str(), kind.count)), out);
}

/// Byte counts, as heads of columns and as cells.
const BYTES: [&str; 6] = ["payload", "explained", "opaque", "undecoded", "closed", "lost"];

fn byte_cells(c: Counts) -> Vec<String> {
    [c.payload, c.explained, c.opaque, c.undecoded, c.closed, c.lost]
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn byte_tables(bytes: &ByteCounts, out: &mut String) {
    let mut table = Table::new("bytes", &BYTES);
    table.row("all".into(), byte_cells(bytes.all()));
    bytes.protocols().iter().for_each(|(name, own)| table.row(name.clone(), byte_cells(*own)));
    bytes
        .services()
        .iter()
        .for_each(|(name, own)| table.row(format!("  {name}"), byte_cells(*own)));
    table.write(out);
    let mut table = Table::new("streams", &BYTES);
    let mut servers: Vec<String> = Vec::new();
    let mut streams: Vec<_> = Vec::new();
    for stream in bytes.listed() {
        let server = format!("{} {}  {}", stream.protocol, stream.service, stream.server);
        let place = servers.iter().rposition(|known| *known == server).unwrap_or_else(|| {
            servers.push(server);
            servers.len() - 1
        });
        streams.push((place, stream));
    }
    streams.sort_by_key(|(place, _)| *place);
    for (place, stream) in streams {
        let name = format!("{} {}  {}", stream.transport.word(), stream.stream, stream.client);
        table.row_below(
            servers.get(place).cloned().unwrap_or_default(),
            name,
            byte_cells(stream.bytes),
        );
    }
    table.write(out);
    if bytes.unlisted() > 0 {
        let _ = writeln!(
            out,
            "… and {} that {} not listed",
            counted(bytes.unlisted(), "stream"),
            plural(bytes.unlisted(), "is", "are")
        );
    }
}

fn reply_tables(replies: &Replies, out: &mut String) {
    let kinds = replies.kinds();
    let mut table = Table::new("requests", &["sent", "answered", "refused", "unanswered"]);
    let all = replies.all();
    let cells = |c: &RequestCounts| {
        [c.sent, c.answered, c.refused, c.unanswered].map(|n| n.to_string()).to_vec()
    };
    if kinds.len() > 1 {
        table.row("all".into(), cells(&all));
    }
    kinds.iter().for_each(|kind| table.row(escape(&kind.name()), cells(&kind.counts)));
    table.write(out);
    let acknowledged: u64 =
        kinds.iter().filter(|kind| kind.receipt).map(|kind| kind.counts.unknown()).sum();
    let unknown = all.unknown() - acknowledged;
    if unknown > 0 {
        let _ = writeln!(
            out,
            "Of {unknown} it is not known: a reply may be among bytes that were not captured."
        );
    }
    if acknowledged > 0 {
        let _ =
            writeln!(out, "{acknowledged} have no reply; to be acknowledged is enough for them.");
    }
    if replies.forgotten() > 0 {
        let _ = writeln!(
            out,
            "{} {} forgotten, because too many waited",
            counted(replies.forgotten(), "request"),
            plural(replies.forgotten(), "was", "were")
        );
    }
    let refusals: Vec<(String, u64)> = replies
        .refusals()
        .into_iter()
        .map(|(message, reason, n)| (format!("{message}: {reason}"), n))
        .collect();
    counted_list("refused", refusals.iter().map(|(text, n)| (text.as_str(), *n)), out);
    let mut table =
        Table::new("times to replies in ms", &["p50", "p95", "max", "slowest", "network"]);
    let mut slow: Vec<_> =
        kinds.into_iter().filter(|kind| kind.counts.latency.count() > 0).collect();
    slow.sort_by_key(|kind| std::cmp::Reverse(kind.counts.latency.max()));
    for kind in slow {
        let all = &kind.counts.latency;
        let mut cells: Vec<String> = [all.percentile(50), all.percentile(95), all.max()]
            .into_iter()
            .flatten()
            .map(milliseconds)
            .collect();
        cells.push(
            kind.counts.slowest.map_or(String::new(), |slowest| format!("#{}", slowest.record)),
        );
        let network = kind.counts.slowest.and_then(|slowest| slowest.network);
        cells.push(network.map_or(String::new(), milliseconds));
        table.row(escape(&kind.name()), cells);
    }
    table.write(out);
}

/// The round trips to both ends of the listed streams, by service.
fn network_table(bytes: &ByteCounts, out: &mut String) {
    let mut services: Vec<(&str, [Latencies; 2])> = Vec::new();
    for stream in bytes.listed() {
        let trips = [stream.round_trips.server, stream.round_trips.client];
        if trips.iter().all(Option::is_none) {
            continue;
        }
        let place =
            services.iter().position(|(name, _)| *name == stream.service).unwrap_or_else(|| {
                services.push((&stream.service, Default::default()));
                services.len() - 1
            });
        let Some((_, times)) = services.get_mut(place) else { continue };
        for (times, trip) in times.iter_mut().zip(trips) {
            trip.map(|trip| times.add(trip.nanos));
        }
    }
    let mut table =
        Table::new("network, there and back in ms", &["to server", "max", "to client", "max"]);
    for (name, times) in &services {
        let figures = times.iter().flat_map(|times| [times.percentile(50), times.max()]);
        table.row(
            escape(name),
            figures.map(|nanos| nanos.map_or(String::new(), milliseconds)).collect(),
        );
    }
    table.write(out);
}

/// Facts that sessions learned about their network: things with only numbers as tables, others as
/// lines.
fn world_tables(world: &World, out: &mut String) {
    for (group, things) in world.groups() {
        let title = group.replace('_', " ");
        let texts = |thing: &&Learned| {
            thing.facts.iter().any(|(_, value)| matches!(value, LearnedValue::Text(_)))
        };
        if things.iter().any(texts) {
            world_lines(&title, &things, out);
        } else {
            world_table(&title, &things, out);
        }
    }
    if world.left_out() > 0 {
        let _ = writeln!(out, "… and {} more that were not kept", world.left_out());
    }
}

fn world_lines(title: &str, things: &[&Learned], out: &mut String) {
    let names =
        things.iter().map(|thing| escape(&thing.name).chars().count()).max().unwrap_or(0).min(32);
    let _ = writeln!(out, "\n{title}");
    for thing in things {
        let facts: Vec<String> =
            thing.facts.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let name = escape(&thing.name);
        wrapped(&format!("  {name:names$}  "), &escape(&facts.join(", ")), out);
    }
}

fn world_table(title: &str, things: &[&Learned], out: &mut String) {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in things.iter().flat_map(|thing| &thing.facts) {
        if !keys.contains(key) {
            keys.push(key);
        }
    }
    let heads: Vec<String> =
        keys.iter().map(|key| key.replace("_microseconds", "_ms").replace('_', " ")).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new(title, &heads);
    for thing in things {
        let cell = |key: &&str| match thing.facts.iter().find(|(known, _)| known == key) {
            None | Some((_, LearnedValue::Microseconds(0))) => String::new(),
            Some((_, LearnedValue::Microseconds(n))) => {
                milliseconds(i64::try_from(*n).unwrap_or(i64::MAX) * 1000)
            }
            Some((_, value)) => value.to_string(),
        };
        let (heading, name) =
            thing.name.split_at_checked(thing.heading).unwrap_or(("", &thing.name));
        let name = name.trim_start_matches([',', ':', ' ']);
        let cells = keys.iter().map(cell).collect();
        table.row_below(escape(heading), escape(name), cells);
    }
    table.write(out);
}

/// A share of `all` in per cent. Only the whole is 100.00 %.
fn share(part: u64, all: u64) -> String {
    let text = format!("{:.2} %", part as f64 * 100.0 / all as f64);
    if part < all && text == "100.00 %" { "99.99 %".into() } else { text }
}

/// Nanoseconds as milliseconds with three digits that count.
fn milliseconds(nanos: i64) -> String {
    rounded(nanos as f64 / 1e6)
}

/// A number with three digits that count, or as a whole one.
fn rounded(n: f64) -> String {
    let decimals = match n.abs() {
        n if n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    format!("{n:.decimals$}")
}

/// `8.4 s`, `12 min 3 s`, `3 h 0 min`, `2 d 4 h`
fn duration(nanos: i64) -> String {
    let seconds = nanos / 1_000_000_000;
    match seconds {
        ..100 => format!("{} s", rounded(nanos as f64 / 1e9)),
        100..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..172_800 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

fn date(time: Time) -> String {
    let mut text = String::new();
    format_time(time, &mut text);
    text.split_once('T').map_or(String::new(), |(date, _)| date.to_string())
}

/// The time of day, in seconds.
fn clock(time: Time) -> String {
    let mut text = String::new();
    format_time(Time { digits: 0, ..time }, &mut text);
    text.split_once('T').map_or(String::new(), |(_, clock)| clock.trim_end_matches('Z').to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        let all = [0.0, 0.004, 0.312, 9.996, 53.722, 99.96, 12345.6].map(rounded);
        assert_eq!(all, ["0.00", "0.00", "0.31", "10.0", "53.7", "100", "12346"]);
    }

    #[test]
    fn durations_are_printed_in_the_usual_units() {
        let all =
            [8_377_500_000, 723_000_000_000, 10_859_000_000_000, 187_200_000_000_000].map(duration);
        assert_eq!(all, ["8.38 s", "12 min 3 s", "3 h 0 min", "2 d 4 h"]);
    }

    #[test]
    fn only_the_whole_is_all_of_it() {
        assert_eq!((share(3, 3), share(999_999, 1_000_000)), ("100.00 %".into(), "99.99 %".into()));
    }
}
