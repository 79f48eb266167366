//! Sessions as JSON. `docs/json.md` describes the keys.

use super::earlier;
use crate::facts::{
    ClientSession, Conclusion, Identity, IdentityValue, Place, SessionStream, StoryLine,
    StoryOutcome, TiedBy, World,
};
use crate::print::conclusions::json_conclusions;
use crate::print::json::{JsonObject, json_list, json_object, json_round_trips, number, string};
use crate::print::stats::json_world;
use crate::tree::ProblemCounts;

/// Appends a session as one JSON object; `story` adds its story.
pub fn session_json(
    session: &ClientSession,
    conclusions: &[Conclusion],
    story: bool,
    out: &mut Vec<u8>,
) {
    json_object(out, |o| {
        o.number("session", session.number);
        o.text("protocol", &session.protocol);
        o.text("client", &session.client.to_string());
        o.time("start", session.start.time);
        o.time("end", session.end.time);
        o.milliseconds("duration_ms", session.duration());
        o.object("who", |o| {
            session.latest().into_iter().for_each(|identity| json_identity(identity, o))
        });
        let before: Vec<&Identity> = earlier(session).collect();
        json_identities("earlier", &before, o);
        json_identities("refused", &session.refused.iter().collect::<Vec<_>>(), o);
        o.member("streams", |out| {
            json_list(out, &session.streams, |out, stream| {
                json_object(out, |o| json_stream(stream, o))
            });
        });
        if !session.places.is_empty() {
            o.member("places", |out| {
                json_list(out, &session.places, |out, place| {
                    json_object(out, |o| json_place(place, o))
                });
            });
        }
        if session.places_left_out > 0 {
            o.number("places_left_out", session.places_left_out);
        }
        json_requests(session, o);
        let ProblemCounts { errors: error, warnings: warning, notes: note } = session.problems;
        o.counts("problems", [("error", error), ("warning", warning), ("note", note)]);
        o.number("first_record", session.first_record);
        o.number("last_record", session.last_record);
        if let Some(last) = &session.last_message {
            o.object("last_message", |o| {
                o.number("record", last.record);
                o.text("from", last.from.word());
                o.text("message", &last.message);
                o.milliseconds("before_end_ms", session.since(last.at.time));
            });
        }
        if story {
            o.member("story", |out| {
                json_list(out, &session.story, |out, line| {
                    json_object(out, |o| json_story(line, o))
                });
            });
            o.number("steps_left_out", session.steps_left_out);
        }
        json_conclusions(conclusions, o);
    });
}

fn json_requests(session: &ClientSession, o: &mut JsonObject<'_>) {
    let requests = &session.requests;
    o.counts(
        "requests",
        [
            ("sent", requests.sent),
            ("answered", requests.answered),
            ("refused", requests.refused),
            ("unanswered", requests.unanswered),
        ],
    );
    if session.forgotten > 0 {
        o.number("requests_forgotten", session.forgotten);
    }
    json_lines("refusals", &session.refusals, o);
    json_lines("unanswered", &session.unanswered, o);
    o.latencies("latency_ms", &requests.latency);
    o.latencies("network_ms", &requests.network);
    if let Some(slowest) = requests.slowest {
        o.number("slowest", slowest.record);
        if let Some(network) = slowest.network {
            o.milliseconds("slowest_network_ms", network);
        }
    }
}

fn json_lines(key: &str, lines: &[StoryLine], o: &mut JsonObject<'_>) {
    if !lines.is_empty() {
        o.member(key, |out| {
            json_list(out, lines, |out, line| json_object(out, |o| json_story(line, o)))
        });
    }
}

fn json_identities(key: &str, all: &[&Identity], o: &mut JsonObject<'_>) {
    if !all.is_empty() {
        o.member(key, |out| {
            json_list(out, all, |out, identity| json_object(out, |o| json_identity(identity, o)));
        });
    }
}

fn json_identity(identity: &Identity, o: &mut JsonObject<'_>) {
    if let Some(name) = &identity.name {
        o.text(&format!("{}_name", identity.kind), name);
    }
    if let Some(id) = &identity.id {
        json_id(&format!("{}_id", identity.kind), id, o);
    }
}

fn json_id(key: &str, id: &IdentityValue, o: &mut JsonObject<'_>) {
    o.member(key, |out| match id {
        IdentityValue::Number(n) => number(out, *n),
        IdentityValue::Text(text) => string(out, text),
    });
}

fn json_stream(stream: &SessionStream, o: &mut JsonObject<'_>) {
    let (transport, id) = stream.id;
    let [client, server] = stream.messages;
    o.text("transport", transport.word());
    o.number("stream", id.into());
    o.text("service", &stream.service);
    o.text("server", &stream.server.to_string());
    o.text("client", &stream.client.to_string());
    o.time("start", stream.start.time);
    o.time("end", stream.end.time);
    o.text("how", stream.how.word());
    if let Some(side) = stream.closed_by {
        o.text("closed_by", side.word());
    }
    json_round_trips(&stream.round_trips, o);
    o.counts("messages", [("client", client), ("server", server)]);
    if let Some(mean) = stream.mean_acknowledgement() {
        o.number("sent_again", stream.sent_again);
        o.number("acknowledgements", stream.acknowledged.0);
        o.milliseconds("mean_ack_ms", mean);
    }
    if let Some(lost) = stream.lost() {
        o.number("lost", lost);
    }
    if !stream.learned.is_empty() {
        let mut world = World::default();
        world.learn(stream.learned.clone());
        o.member("learned", |out| json_world(&world, out));
    }
    o.object("bytes", |o| o.bytes(stream.bytes));
    match stream.tied_by {
        TiedBy::Said => {}
        TiedBy::Address => o.text("by", "address"),
        TiedBy::Time => o.text("by", "time"),
    }
}

fn json_place(place: &Place, o: &mut JsonObject<'_>) {
    if let Some(name) = &place.name {
        o.text("name", name);
    }
    if let Some(id) = &place.id {
        json_id("id", id, o);
    }
    o.time("from", place.from.time);
    if let Some(to) = place.to {
        o.time("to", to.time);
    }
    o.number("record", place.record);
}

fn json_story(line: &StoryLine, o: &mut JsonObject<'_>) {
    let (transport, stream) = line.stream;
    o.number("record", line.record);
    o.time("time", line.at.time);
    o.text("transport", transport.word());
    o.number("stream", stream.into());
    o.text("message", &line.message);
    if let Some(carries) = &line.carries {
        o.text("carries", carries);
    }
    o.text("text", &line.text);
    if line.times > 1 {
        o.number("times", line.times.into());
    }
    match &line.outcome {
        StoryOutcome::None => {}
        StoryOutcome::Answered(nanos) => o.milliseconds("answered_ms", *nanos),
        StoryOutcome::Refused(why, nanos) => {
            o.text("refused", why);
            if let Some(nanos) = nanos {
                o.milliseconds("answered_ms", *nanos);
            }
        }
        StoryOutcome::Unanswered { nanos, part } => {
            o.milliseconds("unanswered_ms", *nanos);
            if *part {
                o.member("in_part", |out| out.extend_from_slice(b"true"));
            }
        }
    }
}
