//! Pseudonyms: values that identify a person are replaced by values of the same form, before any
//! output sees a record.
//!
//! Tables say what is a person's (`person name`, `person number`, …) and what is a secret. The
//! bytes of a message are rewritten in place, and its tree with them, so that fields, spans, hex
//! and exported packets agree, and no output can show what another one hides. A pseudonym is a
//! keyed function of the name alone: nothing is remembered for it, and the same person has the same
//! pseudonym in every place and every capture with the same key. `docs/sharing.md` says what stays
//! visible.
//!
//! This module knows trees, tables and records. It knows no protocol, no file and no output.

mod known;
mod leaf;
mod message;
mod permute;
mod region;
mod text;
mod values;

use std::net::SocketAddr;

use crate::capture::{Moment, Time};
use crate::session::{Ends, Event, EventKind, Learned, LearnedValue, Secret};
use crate::tree::TreeParts;
use known::KnownPersons;
use values::{FILLER, Values};

/// Seconds of the longest way that `--shift-time` moves times back: ten years. The shortest is a
/// tenth of it.
const MAX_SHIFT: u64 = 10 * 365 * 86_400;

/// Gives pseudonyms to the records of one run.
pub struct Pseudonyms {
    values: Values,
    known: KnownPersons,
    /// Seconds that are added to every time.
    shift: i64,
    /// Only secrets become something else.
    secrets_alone: bool,
    /// The message at hand.
    parts: TreeParts,
    bytes: Vec<u8>,
}

impl Pseudonyms {
    /// Pseudonyms under a key; `shift` says whether times are moved, by as much for every capture
    /// under this key.
    pub fn new(key: &[u8; 16], shift: bool) -> Pseudonyms {
        let values = Values::new(key);
        let least = MAX_SHIFT / 10;
        let by = least + values.constant("shift") % (MAX_SHIFT - least);
        let shift = if shift { -(by as i64) } else { 0 };
        let known = KnownPersons::default();
        let parts = TreeParts::default();
        let bytes = Vec::new();
        Pseudonyms { values, known, shift, secrets_alone: false, parts, bytes }
    }

    /// Replaces secrets, and leaves everything else as it is.
    pub fn of_secrets(key: &[u8; 16]) -> Pseudonyms {
        Pseudonyms { secrets_alone: true, ..Pseudonyms::new(key, false) }
    }

    /// The ends of a connection: the client's address and port become others, and the server's
    /// address where it is the client's own.
    pub fn ends(&mut self, ends: Ends) -> Ends {
        if self.secrets_alone {
            return ends;
        }
        self.known.address(ends.client.ip(), &self.values);
        let server = if self.known.addresses.contains(&ends.server.ip()) {
            SocketAddr::new(self.values.address(ends.server.ip()), ends.server.port())
        } else {
            ends.server
        };
        Ends { client: self.values.socket(ends.client), server }
    }

    /// The time of a frame, as outputs get it.
    pub fn moment(&self, at: Moment) -> Moment {
        let seconds = at.time.seconds.saturating_add(self.shift).max(0);
        Moment { time: Time { seconds, ..at.time }, ..at }
    }

    /// An event. Its bytes become filler, known names in its text become pseudonyms, and its key is
    /// left out.
    pub fn event(&self, mut event: Event) -> Event {
        if self.secrets_alone {
            return event;
        }
        event.bytes.fill(FILLER);
        self.known.sweep_text(&mut event.text);
        if let EventKind::Key { key_file, secret } = &mut event.kind {
            event.text = event.text.replace(key_file.as_str(), "a key file");
            *key_file = "a key file".into();
            *secret = Secret::new(String::new());
        }
        event
    }

    /// The facts that a session learned from a connection with these ends, which are `shown` as
    /// others.
    pub fn learned(&self, mut all: Vec<Learned>, ends: Ends, shown: Ends) -> Vec<Learned> {
        if self.secrets_alone {
            return all;
        }
        let real = ends.to_string();
        let shown = shown.to_string();
        for fact in &mut all {
            // Addresses alone would be found in a text, ports would not.
            match fact.name.strip_prefix(&real).map(str::to_string) {
                Some(mut rest) => {
                    self.known.sweep_text(&mut rest);
                    fact.heading = (fact.heading + shown.len()).saturating_sub(real.len());
                    fact.name = format!("{shown}{rest}");
                }
                None => self.known.sweep_text(&mut fact.name),
            }
            for value in fact.facts.iter_mut().map(|(_, value)| value) {
                let LearnedValue::Text(text) = value else { continue };
                match text.parse() {
                    Ok(address) => *text = self.values.address(address).to_string(),
                    Err(_) if text.contains('@') => *text = self.values.name(text),
                    Err(_) => self.known.sweep_text(text),
                }
            }
        }
        all
    }

    /// Filler of the same length.
    pub fn filler(length: usize) -> Vec<u8> {
        vec![FILLER; length]
    }
}
