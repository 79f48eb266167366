//! Chat messages as lines for people and as JSON.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::clock::format_time;
use crate::captured::escape;
use crate::facts::{ChatLine, ChatParty};

/// A chat message as a JSON object.
pub fn chat_json(line: &ChatLine) -> Value {
    let (transport, stream) = line.stream;
    let mut time = String::new();
    format_time(line.at.time, &mut time);
    let mut object = json!({
        "record": line.record,
        "time": time,
        "frame": line.at.frame,
        "transport": transport.word(),
        "stream": stream,
        "protocol": line.protocol,
        "service": line.service,
        "message": line.message,
        "sent_by": line.side.word(),
        "from": speaker_json(&line.from),
    });
    let mut add = |key: &str, value: Option<Value>| {
        if let (Some(object), Some(value)) = (object.as_object_mut(), value) {
            object.insert(key.into(), value);
        }
    };
    let to: Vec<Value> = line.to.iter().map(speaker_json).collect();
    add("to", (!to.is_empty()).then(|| to.into()));
    add("channel", line.channel.clone().map(Into::into));
    add("conversation", line.session.clone().map(Into::into));
    add("kind", (!line.kind.is_empty()).then(|| line.kind.clone().into()));
    add("text", Some(line.text.clone().into()));
    add("relays", line.relays.map(Into::into));
    object
}

fn speaker_json(speaker: &ChatParty) -> Value {
    let mut object = Map::new();
    for (key, value) in [("name", &speaker.name), ("id", &speaker.id)] {
        if let Some(value) = value {
            object.insert(key.into(), value.clone().into());
        }
    }
    object.into()
}

/// Appends a chat message as one line: `2026-11-20T10:16:27Z #88 Ada to Bob [private]: hello`.
pub fn chat_text(line: &ChatLine, out: &mut String) {
    format_time(line.at.time, out);
    let _ = write!(out, " #{} {} {}", line.record, line.protocol, speaker_text(&line.from));
    if !line.to.is_empty() {
        let to: Vec<String> = line.to.iter().map(speaker_text).collect();
        let _ = write!(out, " to {}", to.join(", "));
    }
    if let Some(channel) = &line.channel {
        let _ = write!(out, " on {}", escape(channel));
    }
    if !line.kind.is_empty() {
        let kinds: Vec<String> = line.kind.iter().map(|kind| words(kind)).collect();
        let _ = write!(out, " [{}]", escape(&kinds.join(", ")));
    }
    let _ = write!(out, ": {}", escape(&line.text));
    if let Some(first) = line.relays {
        let _ = write!(out, "  (passed on, said in #{first})");
    }
    out.push('\n');
}

/// The words of a name as programs write them: `private` of `kPrivateMsg`, `nothing special` of
/// `NOTHING_SPECIAL`.
fn words(name: &str) -> String {
    let mut out = String::new();
    let mut before = ' ';
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && before.is_lowercase() {
            out.push(' ');
        }
        out.extend(c.to_lowercase().filter(|c| *c != '_'));
        before = c;
    }
    // In such names, the words around it say that it is one of a list, and that it is about a
    // message.
    let bare = out.strip_prefix("k ").unwrap_or(&out);
    bare.strip_suffix(" msg").unwrap_or(bare).to_string()
}

fn speaker_text(speaker: &ChatParty) -> String {
    match (&speaker.name, &speaker.id) {
        (Some(name), _) => escape(name),
        (None, Some(id)) => escape(id),
        (None, None) => "somebody".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn names_of_programs_are_words() {
        for (name, expected) in [
            ("kPrivateMsg", "private"),
            ("kInterAgeMsg", "inter age"),
            ("NOTHING_SPECIAL", "nothing special"),
            ("SHOUT", "shout"),
            ("0x300", "0x300"),
            ("Msg", "msg"),
            ("", ""),
        ] {
            assert_eq!(words(name), expected);
        }
    }
}
