//! Sessions as blocks of text, as rows of a table, as JSON, and as CSV.

mod json;
mod rows;
mod text;
mod times;

use super::clock::format_time;
use super::csv::csv_cell;
use crate::capture::Time;
use crate::captured::escape;
use crate::digits::milliseconds;
use crate::facts::{ClientSession, Conclusion, Identity, IdentityValue, SessionStream};
use crate::tree::ProblemCounts;
pub use json::session_json;
pub use rows::{SessionRow, session_rows, session_state};
pub use text::{INDENT as SESSION_INDENT, session_text, step_text};

/// The header of [`session_csv`].
pub const SESSION_COLUMNS: &str = "session,protocol,client,who,who_kind,who_id,of,of_kind,of_id,start,end,duration_ms,state,\
     streams,places,place,place_from,place_to,messages_client,messages_server,requests_sent,\
     requests_answered,requests_refused,requests_unanswered,p50_ms,p95_ms,max_ms,network_p50_ms,\
     slowest,slowest_network_ms,errors,warnings,notes,first_record,last_record,sent_again,lost,\
     acknowledgements,mean_ack_ms";

/// Appends a session, about which these conclusions are, as one line of comma-separated values, one
/// value a column: of who the client is, its most particular identity and the one that this is of.
pub fn session_csv(session: &ClientSession, conclusions: &[Conclusion], out: &mut Vec<u8>) {
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
    let latest = session.latest();
    let [who, who_kind, who_id] = identity_cells(latest.last().copied());
    let [of, of_kind, of_id] = identity_cells(latest.first().copied().filter(|_| latest.len() > 1));
    let place = session.places.last();
    let cells = [
        session.number.to_string(),
        session.protocol.clone(),
        session.client.to_string(),
        who,
        who_kind,
        who_id,
        of,
        of_kind,
        of_id,
        time_text(session.start.time),
        time_text(session.end.time),
        milliseconds(session.duration()).to_string(),
        session_state(session, conclusions).0,
        session.streams.len().to_string(),
        session.places.len().to_string(),
        place.and_then(|place| place_name(&place.name, &place.id)).unwrap_or_default(),
        place.map_or(String::new(), |place| time_text(place.from.time)),
        place.and_then(|place| place.to).map_or(String::new(), |to| time_text(to.time)),
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

/// The name, the kind and the number of an identity.
fn identity_cells(identity: Option<&Identity>) -> [String; 3] {
    let Some(Identity { kind, id, name, .. }) = identity else { return Default::default() };
    let id = id.as_ref().map_or(String::new(), ToString::to_string);
    [name.clone().unwrap_or_default(), kind.clone(), id]
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
