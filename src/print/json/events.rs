//! The keys of events, and of a direction's end.

use super::strings::hex;
use super::{number, string, write_counts};
use crate::print::scratch::TextWriter;
use crate::record::{Body, EndedBy, event_word};
use crate::session::Counts;
use crate::session::{Event, EventKind};

pub(super) fn event_body(event: &Event, redact: bool, w: &mut TextWriter<'_>) {
    let out = w.vec();
    let name = event_word(&Body::Event(event));
    out.extend_from_slice(b"\"event\":\"");
    out.extend_from_slice(name.as_bytes());
    out.push(b'"');
    for (key, value) in [("offset", event.offset), ("length", event.length)] {
        if let Some(n) = value {
            out.extend_from_slice(format!(",\"{key}\":").as_bytes());
            number(out, n);
        }
    }
    match &event.kind {
        EventKind::Key { key_file, .. } => {
            out.extend_from_slice(b",\"key_file\":");
            string(out, key_file);
        }
        EventKind::Resync { passed_over } => {
            out.extend_from_slice(b",\"passed_over\":");
            number(out, *passed_over);
        }
        EventKind::Unanswered { request, message, waited, part } => {
            out.extend_from_slice(b",\"request\":");
            number(out, *request);
            out.extend_from_slice(b",\"waited_ms\":");
            out.extend_from_slice(format!("{}", crate::digits::milliseconds(*waited)).as_bytes());
            if *part {
                out.extend_from_slice(b",\"in_part\":true");
            }
            out.extend_from_slice(b",\"message\":");
            string(out, message);
        }
        EventKind::Limit { limit } => {
            out.extend_from_slice(b",\"limit\":");
            string(out, limit);
        }
        _ => {}
    }
    out.extend_from_slice(b",\"text\":");
    string(out, &event.text);
    event_bytes(event, redact, w);
}

/// The bytes that became no message, as far as the event shows them. What they say is not known, so
/// all of them may be secret.
fn event_bytes(event: &Event, redact: bool, w: &mut TextWriter<'_>) {
    if event.bytes.is_empty() {
        return;
    }
    w.fixed(b",\"bytes\":\"");
    if redact {
        w.raw(format!("<redacted, {} bytes>", event.bytes.len()).as_bytes());
    } else {
        hex(w, &event.bytes);
    }
    w.byte(b'"');
    if event.cut() > 0 {
        w.fixed(b",\"bytes_cut\":");
        w.number(event.cut());
    }
}

pub(super) fn stream_end(end: EndedBy, text: &str, counts: Counts, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"event\":\"stream_end\",\"end\":\"");
    out.extend_from_slice(end.word().as_bytes());
    out.extend_from_slice(b"\",\"bytes\":");
    write_counts(counts, out);
    out.extend_from_slice(b",\"text\":");
    string(out, text);
}
