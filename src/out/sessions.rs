//! Sessions as blocks of text, as JSON, and as CSV.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::clock::format_time;
use super::csv::csv_cell;
use crate::capture::Time;
use crate::captured::escape;
use crate::digits::milliseconds;
use crate::facts::{Identity, IdentityValue, Latencies, Session, SessionStream, StoryLine, StoryOutcome};
use crate::record::EndedBy;

/// The header of [`session_csv`].
pub const SESSION_COLUMNS: &str = "session,protocol,client,who,start,end,duration_ms,streams,places,messages_client,messages_server,requests_sent,requests_answered,requests_refused,requests_unanswered,p50_ms,p95_ms,max_ms,errors,warnings,notes,first_record,last_record";

/// A session as one JSON object; `story` adds its story.
pub fn session_json(session: &Session, story: bool) -> Value {
    let who: Map<String, Value> = session.latest().into_iter().flat_map(identity_json).collect();
    let [note, warning, error] = session.problems;
    let requests = &session.requests;
    let mut out = json!({
        "session": session.number,
        "protocol": session.protocol,
        "client": session.client.to_string(),
        "start": time_text(session.start.time),
        "end": time_text(session.end.time),
        "duration_ms": milliseconds(session.duration()),
        "who": who,
    });
    let earlier: Vec<Value> = earlier(session).map(|identity| identity_json(identity).collect()).collect();
    if let Some(object) = out.as_object_mut() {
        if !earlier.is_empty() {
            object.insert("earlier".into(), earlier.into());
        }
        if !session.refused.is_empty() {
            let refused = session.refused.iter().map(|identity| identity_json(identity).collect::<Value>());
            object.insert("refused".into(), refused.collect());
        }
        object.insert("streams".into(), session.streams.iter().map(stream_json).collect());
        if !session.places.is_empty() {
            object.insert("places".into(), session.places.iter().map(place_json).collect());
        }
        object.insert(
            "requests".into(),
            json!({ "sent": requests.sent, "answered": requests.answered, "refused": requests.refused, "unanswered": requests.unanswered }),
        );
        if let Some(latency) = latency_json(&requests.latency) {
            object.insert("latency_ms".into(), latency);
        }
        object.insert("problems".into(), json!({ "error": error, "warning": warning, "note": note }));
        object.insert("first_record".into(), session.first_record.into());
        object.insert("last_record".into(), session.last_record.into());
        if story {
            object.insert("story".into(), session.story.iter().map(story_json).collect());
            object.insert("steps_left_out".into(), session.steps_left_out.into());
        }
    }
    out
}

/// Appends a session as one line of comma-separated values.
pub fn session_csv(session: &Session, out: &mut Vec<u8>) {
    let [note, warning, error] = session.problems;
    let [client, server] = session.messages();
    let requests = &session.requests;
    let figure = |nanos: Option<i64>| nanos.map_or(String::new(), |nanos| milliseconds(nanos).to_string());
    let places: Vec<String> = session.places.iter().filter_map(|place| place_name(&place.name, &place.id)).collect();
    let cells = [
        session.number.to_string(),
        session.protocol.clone(),
        session.client.to_string(),
        who_text(session),
        time_text(session.start.time),
        time_text(session.end.time),
        milliseconds(session.duration()).to_string(),
        session.streams.len().to_string(),
        places.join("; "),
        client.to_string(),
        server.to_string(),
        requests.sent.to_string(),
        requests.answered.to_string(),
        requests.refused.to_string(),
        requests.unanswered.to_string(),
        figure(requests.latency.percentile(50)),
        figure(requests.latency.percentile(95)),
        figure(requests.latency.max()),
        error.to_string(),
        warning.to_string(),
        note.to_string(),
        session.first_record.to_string(),
        session.last_record.to_string(),
    ];
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        csv_cell(cell, out);
    }
    out.push(b'\n');
}

/// A session as a block of text; `story` adds its story.
pub fn session_text(session: &Session, story: bool, out: &mut String) {
    let (start, end) = (time_text(session.start.time), time_text(session.end.time));
    let length = milliseconds(session.duration()) / 1000.0;
    let _ = writeln!(out, "session {}  {}  {}", session.number, session.protocol, session.client);
    let _ = writeln!(out, "  time      {start} to {end}, {length:.3} s");
    let who = who_text(session);
    let _ = writeln!(out, "  who       {}", if who.is_empty() { "not said" } else { &who });
    let before: Vec<String> = earlier(session).map(identity_text).collect();
    if !before.is_empty() {
        let _ = writeln!(out, "  before    {}", before.join(", "));
    }
    let refused: Vec<String> = session.refused.iter().map(identity_text).collect();
    if !refused.is_empty() {
        let _ = writeln!(out, "  refused   {}", refused.join(", "));
    }
    let mut label = "streams";
    for stream in &session.streams {
        let (transport, number) = stream.id;
        let [client, server] = stream.messages;
        let guess = if stream.certain || session.who.is_empty() { "" } else { "  (by its address)" };
        let _ = writeln!(
            out,
            "  {label:<8}  {} {number}  {}  {}  {client} + {server} messages, {}{guess}",
            transport.word(),
            escape(&stream.service),
            stream.server,
            how_text(stream.how)
        );
        label = "";
    }
    let mut label = "places";
    for place in &session.places {
        let Some(name) = place_name(&place.name, &place.id) else { continue };
        let until = place.to.map_or("the end".into(), |to| clock_text(to.time));
        let from = clock_text(place.from.time);
        let _ = writeln!(out, "  {label:<8}  {}  {from} to {until}", escape(&name));
        label = "";
    }
    let requests = &session.requests;
    let _ = write!(
        out,
        "  requests  {} sent, {} answered, {} refused, {} unanswered",
        requests.sent, requests.answered, requests.refused, requests.unanswered
    );
    if let (Some(half), Some(most), Some(max)) =
        (requests.latency.percentile(50), requests.latency.percentile(95), requests.latency.max())
    {
        let [half, most, max] = [half, most, max].map(milliseconds);
        let _ = write!(out, "; p50 {half} ms, p95 {most} ms, max {max} ms");
    }
    out.push('\n');
    let [note, warning, error] = session.problems;
    if note + warning + error > 0 {
        let _ = writeln!(out, "  problems  {error} errors, {warning} warnings, {note} notes");
    }
    let _ = writeln!(out, "  records   {} to {}", session.first_record, session.last_record);
    if story {
        story_text(session, out);
    }
    out.push('\n');
}

fn story_text(session: &Session, out: &mut String) {
    if session.steps_left_out > 0 {
        let _ = writeln!(out, "  story     {} steps in the middle are left out", session.steps_left_out);
    } else {
        let _ = writeln!(out, "  story");
    }
    let width = session.story.iter().map(|line| line.record.to_string().len()).max().unwrap_or(0);
    for line in &session.story {
        let text = if line.text.is_empty() { &line.message } else { &line.text };
        let _ = write!(out, "    {}  #{:<width$}  {}", clock_text(line.at.time), line.record, escape(text));
        let _ = match &line.outcome {
            StoryOutcome::None => Ok(()),
            StoryOutcome::Answered(nanos) => write!(out, ": answered after {} ms", milliseconds(*nanos)),
            StoryOutcome::Refused(why, nanos) => {
                write!(out, ": REFUSED, {} after {} ms", escape(why), milliseconds(*nanos))
            }
            StoryOutcome::Unanswered(nanos) => write!(out, ": NEVER ANSWERED, within {} ms", milliseconds(*nanos)),
        };
        out.push('\n');
    }
}

/// What the client said of itself before it said something else of the same kind.
fn earlier(session: &Session) -> impl Iterator<Item = &Identity> {
    let latest = session.latest();
    session.who.iter().filter(move |identity| !latest.iter().any(|known| std::ptr::eq(*known, *identity)))
}

fn who_text(session: &Session) -> String {
    let parts: Vec<String> = session.latest().into_iter().map(identity_text).collect();
    parts.join(", ")
}

fn identity_text(identity: &Identity) -> String {
    let name = identity.name.as_ref().map(|name| format!(" \"{}\"", escape(name)));
    let id = identity.id.as_ref().map(|id| format!(" {id}"));
    format!("{}{}{}", identity.kind, name.unwrap_or_default(), id.unwrap_or_default())
}

fn identity_json(identity: &Identity) -> impl Iterator<Item = (String, Value)> {
    let id = identity.id.as_ref().map(|id| (format!("{}_id", identity.kind), id_json(id)));
    let name = identity.name.as_ref().map(|name| (format!("{}_name", identity.kind), Value::from(name.as_str())));
    name.into_iter().chain(id)
}

fn id_json(id: &IdentityValue) -> Value {
    match id {
        IdentityValue::Number(number) => (*number).into(),
        IdentityValue::Text(text) => text.as_str().into(),
    }
}

fn stream_json(stream: &SessionStream) -> Value {
    let (transport, number) = stream.id;
    let [client, server] = stream.messages;
    let bytes = stream.bytes;
    let mut out = json!({
        "transport": transport.word(), "stream": number, "service": stream.service, "server": stream.server.to_string(),
        "client": stream.client.to_string(), "start": time_text(stream.start.time), "end": time_text(stream.end.time),
        "how": stream.how.word(), "messages": { "client": client, "server": server },
        "bytes": { "payload": bytes.payload, "explained": bytes.explained, "opaque": bytes.opaque,
                   "undecoded": bytes.undecoded, "closed": bytes.closed, "lost": bytes.lost },
    });
    if !stream.certain {
        set(&mut out, "by", "address".into());
    }
    out
}

/// How a stream ended, for people.
fn how_text(how: EndedBy) -> &'static str {
    match how {
        EndedBy::Fin => "closed",
        EndedBy::Reset => "reset",
        EndedBy::Open => "open at the capture's end",
        EndedBy::Timeout => "fell silent",
        EndedBy::GivenUp => "given up, too many streams",
    }
}

fn place_json(place: &crate::facts::Place) -> Value {
    let mut out = Map::new();
    if let Some(name) = &place.name {
        out.insert("name".into(), name.as_str().into());
    }
    if let Some(id) = &place.id {
        out.insert("id".into(), id_json(id));
    }
    out.insert("from".into(), time_text(place.from.time).into());
    if let Some(to) = place.to {
        out.insert("to".into(), time_text(to.time).into());
    }
    out.insert("record".into(), place.record.into());
    out.into()
}

fn place_name(name: &Option<String>, id: &Option<IdentityValue>) -> Option<String> {
    name.clone().or_else(|| id.as_ref().map(ToString::to_string))
}

fn story_json(line: &StoryLine) -> Value {
    let (transport, stream) = line.stream;
    let mut out = json!({
        "record": line.record, "time": time_text(line.at.time), "transport": transport.word(), "stream": stream,
        "message": line.message, "text": line.text,
    });
    match &line.outcome {
        StoryOutcome::None => {}
        StoryOutcome::Answered(nanos) => set(&mut out, "answered_ms", milliseconds(*nanos).into()),
        StoryOutcome::Refused(why, nanos) => {
            set(&mut out, "refused", why.as_str().into());
            set(&mut out, "answered_ms", milliseconds(*nanos).into());
        }
        StoryOutcome::Unanswered(nanos) => set(&mut out, "unanswered_ms", milliseconds(*nanos).into()),
    }
    out
}

/// Adds a key to an object.
fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.into(), value);
    }
}

fn latency_json(latency: &Latencies) -> Option<Value> {
    let [p50, p95, max] = [latency.percentile(50)?, latency.percentile(95)?, latency.max()?].map(milliseconds);
    Some(json!({ "p50": p50, "p95": p95, "max": max }))
}

fn time_text(time: Time) -> String {
    let mut text = String::new();
    format_time(time, &mut text);
    text
}

/// The time of day.
fn clock_text(time: Time) -> String {
    let text = time_text(time);
    text.split_once('T').map_or("", |(_, clock)| clock).trim_end_matches('Z').to_string()
}
