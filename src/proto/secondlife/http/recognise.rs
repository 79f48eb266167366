//! Recognises the HTTP of Second Life, on any port. Other HTTP is far more common, so a connection
//! has to show something that only viewers and simulators send.

use super::head::{self, HeadStep};
use crate::digits::is_uuid;
use crate::proto::{Opening, Verdict};

/// What only Second Life and OpenSim have in heads and in the bodies of logins, in lower case.
const WORDS: [&[u8]; 3] = [b"application/llsd", b"\r\nx-secondlife-", b"login_to_simulator"];

/// Judges a connection by its first bytes.
pub(in crate::proto::secondlife) fn recognise(opening: &Opening<'_>) -> Verdict {
    let Opening { client, server, .. } = *opening;
    let asks = |bytes: &[u8]| !bytes.is_empty() && head::begins(bytes, false);
    let replies = |bytes: &[u8]| !bytes.is_empty() && head::begins(bytes, true);
    let swapped = !opening.whole && (asks(server) || replies(client));
    let (client, server) = if swapped { (server, client) } else { (client, server) };
    let strange = !client.is_empty() && !asks(client) || !server.is_empty() && !replies(server);
    if strange || client.is_empty() && server.is_empty() {
        let nothing_yet = client.is_empty() && server.is_empty() && !opening.last;
        return if nothing_yet { Verdict::Maybe } else { Verdict::No };
    }
    let ends = |bytes: &[u8]| memchr::memmem::find(bytes, b"\r\n\r\n").is_some();
    let known = opening.known.is_some_and(|known| known.protocol == "secondlife");
    let is_http = matches!(head::read(client, false), HeadStep::Head(_));
    if is_telling(client) || is_telling(server) || known && is_http || names_capability(client) {
        return Verdict::Yes { swapped };
    }
    if opening.last || ends(client) && ends(server) { Verdict::No } else { Verdict::Maybe }
}

fn is_telling(bytes: &[u8]) -> bool {
    let bytes = bytes.to_ascii_lowercase();
    WORDS.iter().any(|word| memchr::memmem::find(&bytes, word).is_some())
}

/// Whether a request is for a capability of OpenSim: `/CAPS/` or `/CE/`, a word or none, and a
/// UUID.
fn names_capability(client: &[u8]) -> bool {
    let line = client.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let found = [&b"/CAPS/"[..], b"/CE/"]
        .into_iter()
        .find_map(|word| memchr::memmem::find(line, word).map(|at| at + word.len()));
    let path = found.and_then(|at| line.get(at..)).unwrap_or_default();
    let path = path.split(|byte| b" ?".contains(byte)).next().unwrap_or_default();
    path.split(|byte| *byte == b'/').take(2).any(|part| is_uuid(part.get(..36).unwrap_or_default()))
}
