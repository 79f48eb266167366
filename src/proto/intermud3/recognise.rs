//! Recognises mudmode, and tells which end is the client, from the first bytes of either direction.

use super::framing::{self, PacketStep};
use crate::proto::{Opening, Verdict};

/// The verdict on one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    /// It is something else.
    Against,
    /// Too few bytes to tell.
    Open,
    /// A whole packet whose text may be mudmode, but not an array with a type.
    Weak,
    /// A length and the start of an array with a type.
    Plain,
}

/// Judges both directions. A server that an earlier connection identified is trusted unless the
/// bytes contradict it.
pub(super) fn verdict(opening: &Opening<'_>) -> Verdict {
    let signs = [opening.client, opening.server].map(|b| sign(b, opening.whole));
    let known = opening.known.filter(|k| k.protocol == "intermud3");
    let clean = !signs.contains(&Sign::Against);
    let sure = match signs[0].max(signs[1]) {
        Sign::Plain => true,
        Sign::Weak => clean && (opening.last || known.is_some()),
        Sign::Open => clean && known.is_some() && opening.last,
        Sign::Against => false,
    };
    if sure {
        let guess = known.is_some_and(|k| k.swapped);
        return Verdict::Yes { swapped: !opening.whole && swapped(opening).unwrap_or(guess) };
    }
    // One direction may speak something else by mistake (a browser on a router's port): the other
    // one decides.
    if opening.last || signs == [Sign::Against; 2] { Verdict::No } else { Verdict::Maybe }
}

/// Whether the end that was taken for the client is the server, as far as the first bytes of either
/// end show it.
fn swapped(opening: &Opening<'_>) -> Option<bool> {
    match (speaker(opening.client), speaker(opening.server)) {
        (Some(client), _) => Some(client == Speaker::Server),
        (None, Some(server)) => Some(server == Speaker::Client),
        (None, None) => None,
    }
}

fn sign(bytes: &[u8], whole: bool) -> Sign {
    if framing::begins(bytes) || framing::find(bytes).is_some() {
        return Sign::Plain;
    }
    match framing::step(bytes, usize::MAX, false) {
        PacketStep::Need(_) if bytes.len() < framing::PREFIX + 3 => match bytes.first() {
            None | Some(0) => Sign::Open,
            Some(_) if !whole => Sign::Open,
            Some(_) => Sign::Against,
        },
        PacketStep::Packet(n) => match bytes.get(framing::PREFIX..n) {
            Some(text) if mudmode(text) => Sign::Weak,
            _ => Sign::Open,
        },
        PacketStep::Need(_)
            if bytes
                .get(framing::PREFIX..)
                .is_some_and(|t| t.starts_with(b"({") || t.starts_with(b"([")) =>
        {
            Sign::Weak
        }
        PacketStep::Need(_) if bytes.get(framing::PREFIX) == Some(&b'(') => Sign::Open,
        PacketStep::StrayNul | PacketStep::TooLong(_) => Sign::Plain,
        _ if !whole => Sign::Open,
        _ => Sign::Against,
    }
}

/// Whether a text begins and ends as mudmode may.
fn mudmode(text: &[u8]) -> bool {
    let text = text.strip_suffix(&[0]).unwrap_or(text).trim_ascii();
    match (text.first(), text.last()) {
        (Some(b'('), Some(b')')) => true,
        (Some(b'"'), Some(b'"')) => text.len() > 1,
        (Some(b'-' | b'0'..=b'9'), _) => {
            text.iter().all(|b| b.is_ascii_digit() || b"+-.eE".contains(b))
        }
        _ => false,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    Client,
    Server,
}

/// The side that sends this packet, if its type tells: muds log in to routers, and the client of an
/// out-of-band connection sends first.
fn speaker(bytes: &[u8]) -> Option<Speaker> {
    let mut rest = bytes.get(framing::find(bytes).unwrap_or(0)..)?;
    for _ in 0..8 {
        let whole = framing::length(rest)? as usize + framing::PREFIX;
        let text = rest.get(framing::PREFIX..whole.min(rest.len()))?;
        if let Some(found) = speaker_of(text) {
            return Some(found);
        }
        rest = rest.get(whole..)?;
    }
    None
}

fn speaker_of(text: &[u8]) -> Option<Speaker> {
    let elements = text.strip_prefix(b"({\"")?;
    let kind = elements.split(|b| *b == b'"').next()?;
    match kind {
        b"startup-req" | b"startup-req-1" | b"startup-req-2" | b"startup-req-3"
        | b"irn-startup-req" | b"oob-begin" => {
            return Some(Speaker::Client);
        }
        b"startup-reply" | b"mudlist" | b"chanlist-reply" => return Some(Speaker::Server),
        _ => {}
    }
    let mut parts = elements.split(|b| *b == b',').skip(2);
    let (originator, _, target) = (parts.next()?, parts.next()?, parts.next()?);
    // Routers' names begin with a star.
    match (originator.starts_with(b"\"*"), target.starts_with(b"\"*")) {
        (true, false) => Some(Speaker::Server),
        (false, true) => Some(Speaker::Client),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::session::Ends;

    fn packet(text: &str) -> Vec<u8> {
        let mut out = (text.len() as u32).to_be_bytes().to_vec();
        out.extend_from_slice(text.as_bytes());
        out
    }

    fn of(client: &[u8], server: &[u8], whole: bool, last: bool) -> Verdict {
        let ends = Ends {
            client: "127.0.0.1:50000".parse().unwrap(),
            server: "127.0.0.1:8080".parse().unwrap(),
        };
        verdict(&Opening { client, server, ends, whole, last, known: None })
    }

    const AS_GUESSED: Verdict = Verdict::Yes { swapped: false };
    const SWAPPED: Verdict = Verdict::Yes { swapped: true };

    #[test]
    fn either_direction_tells() {
        let tell = packet(r#"({"tell",5,"A","a","B","b","A","hi",})"#);
        assert_eq!(of(&tell, b"", true, false), AS_GUESSED);
        assert_eq!(of(b"", &tell, true, false), AS_GUESSED);
        assert_eq!(of(b"GET / HTTP/1.1\r\n", &tell, true, false), AS_GUESSED);
        assert_eq!(of(&tell[..6], b"", true, false), Verdict::Maybe);
        assert_eq!(of(b"GET / HTTP/1.1\r\n", b"", true, false), Verdict::Maybe);
        assert_eq!(of(b"GET / HTTP/1.1\r\n", b"HTTP/1.1 200 OK\r\n", true, false), Verdict::No);
    }

    #[test]
    fn a_value_that_is_no_array_is_believed_at_the_end_only() {
        assert_eq!(of(b"\0\0\0\x04123\0", b"", true, false), Verdict::Maybe);
        assert_eq!(of(b"\0\0\0\x04123\0", b"", true, true), AS_GUESSED);
        assert_eq!(of(b"\0\0\0\x04zzz\0", b"", true, true), Verdict::No);
    }

    #[test]
    fn a_stream_joined_late_finds_the_next_packet_and_the_client() {
        let mut late = b"lo\",})\0".to_vec();
        late.extend(packet(r#"({"mudlist",5,"*r",0,"A",0,1,([]),})"#));
        assert_eq!(of(&late, b"", false, false), SWAPPED);
        assert_eq!(of(b"", &late, false, false), AS_GUESSED);
        let to_router = packet(r#"({"channel-listen",5,"A",0,"*r",0,"c",1,})"#);
        assert_eq!(of(b"", &to_router, false, false), SWAPPED);
    }
}
