//! Of whom a finding is: the session of its stream, the name of its client, and what its requests
//! were about. Where no sessions are collected, the client is its address.

use std::collections::{HashMap, HashSet};

use super::{ClientSession, StreamRef, TransportStream};
use crate::capture::Moment;
use crate::session::Side;

/// The most sessions whose names are kept.
const MAX_SESSIONS: usize = 4096;
/// The most requests of one session whose texts are kept.
const MAX_TEXTS: usize = 64;

/// The sessions of the streams with findings.
#[derive(Default)]
pub(super) struct SessionNames {
    wanted: HashSet<TransportStream>,
    sessions: Vec<NamedSession>,
    by_stream: HashMap<TransportStream, Vec<usize>>,
}

/// What conclusions say of a session.
pub(super) struct NamedSession {
    pub(super) number: u64,
    who: Option<String>,
    first_record: u64,
    last_record: u64,
    /// Its last message.
    pub(super) last: Option<(Moment, TransportStream)>,
    /// Requests that had trouble: their records and frames, and what they are about.
    texts: HashMap<u64, (u64, String)>,
}

impl SessionNames {
    /// There is a finding of a stream.
    pub(super) fn wanted(&mut self, stream: TransportStream) {
        if self.wanted.len() < MAX_SESSIONS {
            self.wanted.insert(stream);
        }
    }

    /// A session is over.
    pub(super) fn session(&mut self, session: &ClientSession) {
        let wanted = session.streams.iter().any(|stream| self.wanted.contains(&stream.id));
        if !wanted || self.sessions.len() >= MAX_SESSIONS {
            return;
        }
        let lines = session.unanswered.iter().chain(&session.refusals).chain(&session.slowest);
        let texts =
            lines.take(MAX_TEXTS).map(|line| (line.record, (line.at.frame, line.text.clone())));
        // Who plays is told before whose account it is.
        let named = session.latest().into_iter().rev().find_map(|identity| identity.name.clone());
        self.sessions.push(NamedSession {
            number: session.number,
            who: named,
            first_record: session.first_record,
            last_record: session.last_record,
            last: session.last_message.as_ref().map(|last| (last.at, last.stream)),
            texts: texts.collect(),
        });
        let place = self.sessions.len() - 1;
        for stream in &session.streams {
            self.by_stream.entry(stream.id).or_default().push(place);
        }
    }

    /// The session of a stream to which a record belongs.
    pub(super) fn of(&self, stream: &StreamRef, record: u64) -> Option<&NamedSession> {
        let places = self.by_stream.get(&stream.id)?;
        let mut all = places.iter().filter_map(|place| self.sessions.get(*place));
        let own = all.clone().find(|one| (one.first_record..=one.last_record).contains(&record));
        own.or_else(|| all.next_back())
    }

    /// One side of a stream in words: a client's name where it is known, or its address.
    pub(super) fn side(&self, stream: &StreamRef, record: u64, side: Side) -> String {
        match side {
            Side::Client => {
                let named = self.of(stream, record).and_then(|session| session.who.clone());
                named.unwrap_or_else(|| format!("the client {}", stream.ends.client))
            }
            Side::Server => format!("the {} server {}", stream.service, stream.ends.server),
        }
    }

    /// What a request is about, and its frame.
    pub(super) fn about(&self, stream: &StreamRef, record: u64) -> (String, u64) {
        let found = self.of(stream, record).and_then(|session| session.texts.get(&record));
        found.map_or((String::new(), 0), |(frame, text)| (text.clone(), *frame))
    }
}
