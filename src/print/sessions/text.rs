//! Sessions as blocks of text.

use std::fmt::Write;

use super::times::{Precision, date};
use super::{earlier, identity_text, place_name, who_text};
use crate::captured::escape;
use crate::digits::{counted, milliseconds, plural};
use crate::facts::{ClientSession, SessionStream, StoryLine, StoryOutcome, TiedBy};
use crate::print::marked::{BAD, END, STRONG, without_marks};
use crate::record::EndedBy;
use crate::session::Counts;
use crate::session::{Learned, LearnedValue, Side, Transport};
use crate::tree::ProblemCounts;

/// Refused requests and unanswered ones that are printed, of either kind.
const TROUBLES: usize = 8;

/// The characters before what a line of a block says.
pub const INDENT: usize = 12;

/// A session as a block of text with marks for colours; `story` adds its story.
pub fn session_text(session: &ClientSession, story: bool, out: &mut String) {
    let ends = Precision::of([session.start.time, session.end.time].into_iter());
    let start = ends.clock(session.start.time);
    let end = ends.text(session.end.time);
    let day = date(session.start.time);
    let _ = writeln!(
        out,
        "{STRONG}session {}  {}  {}{END}",
        session.number, session.protocol, session.client
    );
    let _ = writeln!(out, "  time      {day} {start} to {end}, {}", span_text(session.duration()));
    let who = who_text(session);
    let refused: Vec<String> = session.refused.iter().map(identity_text).collect();
    let refused = if refused.is_empty() {
        String::new()
    } else {
        format!("; refused as {}", refused.join(", "))
    };
    let _ =
        writeln!(out, "  who       {}{refused}", if who.is_empty() { "not said" } else { &who });
    let before: Vec<String> = earlier(session).map(identity_text).collect();
    if !before.is_empty() {
        let _ = writeln!(out, "  before    {}", before.join(", "));
    }
    streams_text(session, out);
    let mut label = "places";
    let times = session.places.iter().flat_map(|place| [Some(place.from), place.to]);
    let precision = Precision::of(times.flatten().map(|at| at.time));
    for place in &session.places {
        let Some(name) = place_name(&place.name, &place.id) else { continue };
        let until = place.to.map_or("the end".into(), |to| precision.text(to.time));
        let from = precision.text(place.from.time);
        let _ = writeln!(out, "  {label:<8}  {}  {from} to {until}", escape(&name));
        label = "";
    }
    if session.places_left_out > 0 {
        let _ = writeln!(out, "            {} more left out", session.places_left_out);
    }
    requests_text(session, out);
    troubles_text("stuck", session, out);
    troubles_text("refused", session, out);
    network_text(session, out);
    if session.problems != ProblemCounts::default() {
        let _ = writeln!(out, "  problems  {}", session.problems);
    }
    let _ = writeln!(out, "  records   {} to {}", session.first_record, session.last_record);
    last_text(session, out);
    if story {
        story_text(session, out);
    }
    out.push('\n');
}

/// The outcome of a session's requests.
fn requests_text(session: &ClientSession, out: &mut String) {
    let requests = &session.requests;
    let _ = write!(
        out,
        "  requests  {} sent, {} answered, {} refused, {} unanswered",
        requests.sent, requests.answered, requests.refused, requests.unanswered
    );
    let unknown = requests.unknown();
    if unknown > 0 {
        let _ = write!(out, ", {unknown} not known");
    }
    if let (Some(half), Some(most), Some(max)) =
        (requests.latency.percentile(50), requests.latency.percentile(95), requests.latency.max())
    {
        let [half, most, max] = [half, most, max].map(milliseconds);
        let _ = write!(out, "; p50 {half} ms, p95 {most} ms, max {max} ms");
    }
    out.push('\n');
}

/// The streams of a session, each with what is known of it as a whole.
fn streams_text(session: &ClientSession, out: &mut String) {
    let mut label = "streams";
    for stream in &session.streams {
        let (transport, number) = stream.id;
        let [client, server] = stream.messages;
        let guess = match stream.tied_by {
            TiedBy::Time => "  (a guess: of those at this address, the client that goes on next)",
            TiedBy::Address if session.streams.len() > 1 => "  (by its address)",
            TiedBy::Address | TiedBy::Said => "",
        };
        let _ = writeln!(
            out,
            "  {label:<8}  {} {number}  {}  {}  {client} + {server} messages, {}{guess}",
            transport.word(),
            escape(&stream.service),
            stream.server,
            how_text(stream)
        );
        unread_text(stream, out);
        if let Some(mean) = stream.mean_acknowledgement() {
            let again = stream.sent_again;
            let count = stream.acknowledged.0;
            let lost = stream.lost().map_or(String::new(), |lost| format!("{lost} lost, "));
            let mean = milliseconds(mean);
            let _ = writeln!(
                out,
                "            {lost}{again} sent again, {} after {mean} ms on average",
                counted(count, "acknowledgement")
            );
        }
        for learned in &stream.learned {
            learned_text(learned, out);
        }
        label = "";
    }
}

/// The facts that a stream's session learned, without counts of zero.
fn learned_text(learned: &Learned, out: &mut String) {
    let facts = learned.facts.iter().filter_map(|(key, value)| match value {
        LearnedValue::Count(0) | LearnedValue::Microseconds(0) => None,
        LearnedValue::Microseconds(n) => {
            let nanos = i64::try_from(*n).unwrap_or(i64::MAX).saturating_mul(1000);
            let key = key.trim_end_matches("_microseconds").replace('_', " ");
            Some(format!("{key} {} ms", milliseconds(nanos)))
        }
        _ => Some(format!("{} {value}", key.replace('_', " "))),
    });
    let facts: Vec<String> = facts.collect();
    let name =
        learned.name.get(learned.heading..).unwrap_or("").trim_start_matches([',', ':', ' ']);
    let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let _ = writeln!(out, "            {}", escape(&format!("{name}{}", facts.join(", "))));
}

/// The last message of a session.
fn last_text(session: &ClientSession, out: &mut String) {
    let Some(last) = &session.last_message else { return };
    let from = last.from.word();
    let message = escape(&last.message);
    let before = match session.since(last.at.time) {
        0 => "at the end".to_string(),
        nanos => format!("{} before the end", span_text(nanos)),
    };
    let _ = writeln!(out, "  last      #{} of the {from}, {message}, {before}", last.record);
}

fn story_text(session: &ClientSession, out: &mut String) {
    if session.steps_left_out > 0 {
        let _ = writeln!(
            out,
            "  story     {} in the middle {} left out",
            counted(session.steps_left_out, "step"),
            plural(session.steps_left_out, "is", "are")
        );
    } else {
        let _ = writeln!(out, "  story");
    }
    let precision = Precision::of(session.story.iter().map(|line| line.at.time));
    let width = session.story.iter().map(|line| line.record.to_string().len()).max().unwrap_or(0);
    for line in &session.story {
        let _ = write!(out, "    {}  #{:<width$}  ", precision.text(line.at.time), line.record);
        line_text(line, session, out);
    }
}

/// Requests that got no reply, or a refusal.
fn troubles_text(label: &str, session: &ClientSession, out: &mut String) {
    let (lines, all, mut label) = match label {
        "stuck" => (&session.unanswered, session.requests.unanswered, label),
        _ => (&session.refusals, session.requests.refused, label),
    };
    for line in lines.iter().take(TROUBLES) {
        let _ = write!(out, "  {label:<8}  #{} {}  ", line.record, escape(&line.message));
        line_text(line, session, out);
        label = "";
    }
    let told = lines.len().min(TROUBLES) as u64;
    if all > told {
        let _ = writeln!(out, "  {label:<8}  … and {} more", all - told);
    }
}

/// A step's text and its outcome.
pub fn step_text(line: &StoryLine, session: &ClientSession) -> String {
    let mut text = String::new();
    line_text(line, session, &mut text);
    without_marks(text).trim_end().to_string()
}

fn line_text(line: &StoryLine, session: &ClientSession, out: &mut String) {
    out.push_str(&escape(if line.text.is_empty() { &line.message } else { &line.text }));
    if line.times > 1 {
        let _ = write!(out, " (and {} more)", line.times - 1);
    }
    let _ = match &line.outcome {
        StoryOutcome::None => Ok(()),
        StoryOutcome::Answered(nanos) => write!(out, ": answered after {}", length_text(*nanos)),
        StoryOutcome::Refused(why, nanos) => {
            let after =
                nanos.map_or(String::new(), |nanos| format!(" after {}", length_text(nanos)));
            let why = if why.is_empty() { String::new() } else { format!(", {}", escape(why)) };
            write!(out, ": {BAD}REFUSED{why}{after}{END}")
        }
        StoryOutcome::Unanswered { nanos, part } => {
            let never = if *part { "ANSWERED IN PART" } else { "NEVER ANSWERED" };
            write!(out, ": {BAD}{never}, {}{END}", until_text(line, *nanos, session))
        }
    };
    out.push('\n');
}

/// The end of a request's wait: when one side closed the connection, or at the end of the capture.
fn until_text(line: &StoryLine, nanos: i64, session: &ClientSession) -> String {
    let stream = session.streams.iter().find(|stream| stream.id == line.stream);
    let what = match stream {
        Some(stream) if matches!(stream.how, EndedBy::Fin | EndedBy::Reset) => {
            format!("{} ", how_text(stream))
        }
        _ if nanos == 0 => return "the capture ends with it".to_string(),
        _ => "in ".to_string(),
    };
    let after = if what == "in " { "" } else { "after " };
    format!("{what}{after}{}", length_text(nanos))
}

/// What lies between two times, of which the second may be before the first.
fn span_text(nanos: i64) -> String {
    match nanos {
        ..0 => format!("the clock went back by {}", length_text(nanos.saturating_neg())),
        _ => length_text(nanos),
    }
}

/// A length of time, in a unit that says something.
fn length_text(nanos: i64) -> String {
    if nanos < 1_000_000_000 {
        format!("{} ms", milliseconds(nanos))
    } else {
        format!("{:.3} s", milliseconds(nanos) / 1000.0)
    }
}

/// How much of the replies' times the network took, and how much the servers took.
fn network_text(session: &ClientSession, out: &mut String) {
    let mut parts: Vec<String> = Vec::new();
    for (end, times) in [("server", &session.to_server), ("client", &session.to_client)] {
        let Some(half) = times.percentile(50) else { continue };
        let most = times.max().map(milliseconds).filter(|most| *most > milliseconds(half));
        let most = most.map_or(String::new(), |most| format!(" (at most {most})"));
        parts.push(format!("{} ms to the {end} and back{most}", milliseconds(half)));
    }
    if parts.is_empty() {
        let udp = session.streams.iter().all(|stream| stream.id.0 == Transport::Udp);
        let why = if udp {
            "nothing in UDP tells it from the server"
        } else {
            "the capture shows no opening and no acknowledgements"
        };
        let _ = writeln!(out, "  network   not known: {why}");
    } else {
        let _ = writeln!(out, "  network   {}, from where it was captured", parts.join(", "));
    }
    slowest_text(session, out);
}

/// The request that waited longest, and how much of that the network took.
fn slowest_text(session: &ClientSession, out: &mut String) {
    let Some(slowest) = session.requests.slowest else { return };
    let _ = write!(out, "  slowest   #{}", slowest.record);
    if let Some(line) = &session.slowest {
        let text =
            if line.text.is_empty() { String::new() } else { format!("  {}", escape(&line.text)) };
        let _ = write!(out, " {}{text}", escape(&line.message));
    }
    let whole = milliseconds(slowest.nanos);
    let _ = match slowest.network {
        Some(network) => writeln!(
            out,
            ": {whole} ms, of which the network took {} and the server {}",
            milliseconds(network),
            milliseconds(slowest.nanos - network)
        ),
        None => writeln!(out, ": {whole} ms"),
    };
}

/// How a stream ended, for people.
fn how_text(stream: &SessionStream) -> &'static str {
    match (stream.how, stream.closed_by) {
        (EndedBy::Fin, Some(Side::Client)) => "closed by the client",
        (EndedBy::Fin, Some(Side::Server)) => "closed by the server",
        (EndedBy::Fin, None) => "closed",
        (EndedBy::Reset, Some(Side::Client)) => "reset by the client",
        (EndedBy::Reset, Some(Side::Server)) => "reset by the server",
        (EndedBy::Reset, None) => "reset",
        (EndedBy::Open, _) => "open at the capture's end",
        (EndedBy::Timeout, _) => "fell silent",
        (EndedBy::GivenUp, _) => "given up, too many streams",
    }
}

/// Bytes of a stream that were not captured or could not be read: what was in them is not known.
fn unread_text(stream: &SessionStream, out: &mut String) {
    let Counts { undecoded, closed, lost, .. } = stream.bytes;
    let parts = [
        (lost, "never captured"),
        (undecoded, "not understood"),
        (closed, "not opened by any key"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(bytes, what)| format!("{} {what}", counted(*bytes, "byte")))
        .collect();
    if !parts.is_empty() {
        let _ = writeln!(out, "            {}", parts.join(", "));
    }
}
