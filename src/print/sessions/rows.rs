//! Sessions as rows of a table, one each.

use std::fmt::Write;

use super::place_name;
use super::times::Precision;
use crate::capture::Time;
use crate::captured::escape;
use crate::facts::{ClientSession, Conclusion, Kind, Weight};
use crate::print::marked::{BAD, DIM, END};
use crate::print::width::{padded, width};
use crate::record::EndedBy;

/// The most characters of a name, and of a place.
const MAX_NAME: usize = 28;

/// One session in a few words, with marks for colours.
pub struct SessionRow {
    number: u64,
    who: String,
    place: String,
    from: Time,
    to: Time,
    requests: u64,
    refused: u64,
    state: String,
    is_bad: bool,
}

impl SessionRow {
    /// The row of a session, about which these conclusions are.
    pub fn new(session: &ClientSession, conclusions: &[Conclusion]) -> SessionRow {
        let latest = session.latest();
        let named = latest.iter().rev().find_map(|identity| identity.name.as_deref());
        let who = named.map_or_else(|| session.client.to_string(), escape_short);
        let place = session.places.last().and_then(|place| place_name(&place.name, &place.id));
        let (state, is_bad) = session_state(session, conclusions);
        SessionRow {
            number: session.number,
            who,
            place: place.map_or(String::new(), |name| escape_short(&name)),
            from: session.start.time,
            to: session.end.time,
            requests: session.requests.sent,
            refused: session.requests.refused,
            state,
            is_bad,
        }
    }
}

/// How a session stands in one word: what stopped it, or how it ended; and whether that is bad.
pub fn session_state(session: &ClientSession, conclusions: &[Conclusion]) -> (String, bool) {
    // A kick after which it came again, and a request on its way at the end, are no state.
    let of = |kinds: &[Kind]| {
        conclusions.iter().find(|one| one.weight == Weight::Stop && kinds.contains(&one.kind))
    };
    let at = |one: &Conclusion| one.records.first().map_or(0, |record| *record);
    if let Some(one) = of(&[Kind::Waiting, Kind::DownloadStopped, Kind::ClosedWaiting]) {
        return (format!("STUCK #{}", at(one)), true);
    }
    if let Some(one) = of(&[Kind::Kicked]) {
        return (format!("kicked #{}", at(one)), true);
    }
    let refused = conclusions.iter().find(|one| one.kind == Kind::RefusedAtEnd);
    if let Some(one) = of(&[Kind::LoginLoop]).or(refused) {
        return (format!("refused #{}", at(one)), true);
    }
    let last = session.streams.iter().max_by_key(|stream| (stream.end.frame, stream.id.1));
    match last.map(|stream| stream.how) {
        Some(EndedBy::Reset) => ("reset".into(), true),
        Some(EndedBy::Fin) => ("over".into(), false),
        Some(EndedBy::Timeout) => ("fell silent".into(), false),
        Some(EndedBy::GivenUp) => ("given up".into(), false),
        Some(EndedBy::Open) | None => ("open".into(), false),
    }
}

/// Appends rows below their heads, with marks for colours.
pub fn session_rows(rows: &[SessionRow], out: &mut String) {
    let times = rows.iter().flat_map(|row| [row.from, row.to]);
    let precision = Precision::of(times);
    let widest = |of: &dyn Fn(&SessionRow) -> String, head: &str| {
        let all = rows.iter().map(|row| width(&of(row)));
        all.chain([head.len()]).max().unwrap_or(0)
    };
    let from = |row: &SessionRow| precision.text(row.from);
    let to = |row: &SessionRow| precision.text(row.to);
    let [number, who, place, begin, end] = [
        widest(&|row| row.number.to_string(), "session"),
        widest(&|row| row.who.clone(), "who"),
        widest(&|row| row.place.clone(), "place"),
        widest(&from, "from"),
        widest(&to, "to"),
    ];
    let _ = writeln!(
        out,
        "{DIM}{:>number$}  {:<who$}  {:<place$}  {:<begin$}  {:<end$}  requests  refused  \
         state{END}",
        "session", "who", "place", "from", "to"
    );
    for row in rows {
        let (on, off) =
            if row.is_bad { (BAD.to_string(), END.to_string()) } else { Default::default() };
        let refused = row.refused.to_string();
        let (bad, good) =
            if row.refused > 0 { (BAD.to_string(), END.to_string()) } else { Default::default() };
        let _ = writeln!(
            out,
            "{:>number$}  {}  {}  {:<begin$}  {:<end$}  {:>8}  {bad}{refused:>7}{good}  \
             {on}{}{off}",
            row.number,
            padded(&row.who, who),
            padded(&row.place, place),
            from(row),
            to(row),
            row.requests,
            row.state
        );
    }
}

fn escape_short(text: &str) -> String {
    let text = escape(text);
    match text.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
