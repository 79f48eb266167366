//! Sessions as blocks of text, as JSON, and as CSV.

mod json;
mod text;

use super::clock::format_time;
use super::csv::csv_cell;
use crate::capture::Time;
use crate::captured::escape;
use crate::digits::milliseconds;
use crate::facts::{ClientSession, Identity, IdentityValue, SessionStream};
use crate::tree::ProblemCounts;
pub use json::session_json;
pub use text::session_text;

/// The header of [`session_csv`].
pub const SESSION_COLUMNS: &str = "session,protocol,client,who,start,end,duration_ms,streams,places,messages_client,messages_server,requests_sent,requests_answered,requests_refused,requests_unanswered,p50_ms,p95_ms,max_ms,network_p50_ms,slowest,slowest_network_ms,errors,warnings,notes,first_record,last_record,sent_again,lost,acknowledgements,mean_ack_ms";

/// Appends a session as one line of comma-separated values.
pub fn session_csv(session: &ClientSession, out: &mut Vec<u8>) {
    let ProblemCounts { errors: error, warnings: warning, notes: note } = session.problems;
    let [client, server] = session.messages();
    let requests = &session.requests;
    let figure =
        |nanos: Option<i64>| nanos.map_or(String::new(), |nanos| milliseconds(nanos).to_string());
    // Where no stream has any, the cell is empty.
    let sum = |of: &dyn Fn(&SessionStream) -> Option<u64>| {
        session
            .streams
            .iter()
            .filter_map(of)
            .reduce(|sum, one| sum + one)
            .map_or(String::new(), |sum| sum.to_string())
    };
    let places: Vec<String> =
        session.places.iter().filter_map(|place| place_name(&place.name, &place.id)).collect();
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
        figure(requests.network.percentile(50)),
        requests.slowest.map_or(String::new(), |slowest| slowest.record.to_string()),
        figure(requests.slowest.and_then(|slowest| slowest.network)),
        error.to_string(),
        warning.to_string(),
        note.to_string(),
        session.first_record.to_string(),
        session.last_record.to_string(),
        sum(&|stream| stream.mean_acknowledgement().map(|_| stream.sent_again)),
        sum(&SessionStream::lost),
        sum(&|stream| stream.mean_acknowledgement().map(|_| stream.acknowledged.0)),
        figure(session.mean_acknowledgement()),
    ];
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        csv_cell(cell, out);
    }
    out.push(b'\n');
}

/// Earlier identities of the client that a later one of the same kind replaced.
fn earlier(session: &ClientSession) -> impl Iterator<Item = &Identity> {
    let latest = session.latest();
    session
        .who
        .iter()
        .filter(move |identity| !latest.iter().any(|known| std::ptr::eq(*known, *identity)))
}

fn who_text(session: &ClientSession) -> String {
    let parts: Vec<String> = session.latest().into_iter().map(identity_text).collect();
    parts.join(", ")
}

fn identity_text(identity: &Identity) -> String {
    let name = identity.name.as_ref().map(|name| format!(" \"{}\"", escape(name)));
    let id = identity.id.as_ref().map(|id| format!(" {id}"));
    format!("{}{}{}", identity.kind, name.unwrap_or_default(), id.unwrap_or_default())
}

fn place_name(name: &Option<String>, id: &Option<IdentityValue>) -> Option<String> {
    name.clone().or_else(|| id.as_ref().map(ToString::to_string))
}

fn time_text(time: Time) -> String {
    let mut text = String::new();
    format_time(time, &mut text);
    text
}
