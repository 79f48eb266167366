//! Which session a record belongs to, for a second reading of the same captures.
//!
//! A stream belongs to one session at a time. If a stream is idle for so long that its session
//! ends, it belongs to another session from its next record on. So an entry says from which frame
//! on a stream belongs to a session; it takes 16 bytes. This file knows only finished sessions and
//! records.

use super::ClientSession;
use crate::record::Record;
use crate::session::Transport;

/// The most entries, which take 48 MiB, and half as much again while their list grows. Streams of
/// later sessions belong to no session.
const MAX_ENTRIES: usize = 3 << 20;

/// From a frame on, a stream belongs to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SessionEntry {
    stream: u32,
    session: u32,
    frame: u64,
}

/// The sessions of captures, by stream.
#[derive(Debug, Default)]
pub struct SessionMap {
    tcp: Vec<SessionEntry>,
    udp: Vec<SessionEntry>,
    sessions: u64,
    left_out: u64,
}

impl SessionMap {
    /// Adds a session that is over.
    pub fn add(&mut self, session: &ClientSession) {
        self.sessions = self.sessions.max(session.number);
        let Ok(number) = u32::try_from(session.number) else {
            self.left_out += 1;
            return;
        };
        if self.tcp.len() + self.udp.len() + session.streams.len() > MAX_ENTRIES {
            self.left_out += 1;
            return;
        }
        for stream in &session.streams {
            let (transport, id) = stream.id;
            self.list(transport).push(SessionEntry {
                stream: id,
                session: number,
                frame: stream.start.frame,
            });
        }
    }

    /// Every session was added: puts the entries in order, so that they can be looked up.
    pub fn complete(&mut self) {
        for list in [&mut self.tcp, &mut self.udp] {
            list.sort_unstable_by_key(|entry| (entry.stream, entry.frame, entry.session));
        }
    }

    /// The number of the session that a record belongs to, from 1.
    /// [`complete`](SessionMap::complete) has to be called before.
    pub fn session(&self, record: &Record<'_>) -> Option<u32> {
        self.find(record.transport, record.stream, record.at.frame)
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> u64 {
        self.sessions
    }

    /// How many of them are not known by their streams, because there are too many streams.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn find(&self, transport: Transport, stream: u32, frame: u64) -> Option<u32> {
        let list = match transport {
            Transport::Tcp => &self.tcp,
            Transport::Udp => &self.udp,
        };
        let behind = list.partition_point(|entry| (entry.stream, entry.frame) <= (stream, frame));
        let of_stream = |entry: &&SessionEntry| entry.stream == stream;
        let begun = behind.checked_sub(1).and_then(|at| list.get(at)).filter(of_stream);
        // What is read late, as after lost bytes, may be of a frame before the first record of its
        // stream. Of sessions that were left out it is not known.
        let first = || list.get(behind).filter(of_stream).filter(|_| self.left_out == 0);
        begun.or_else(first).map(|entry| entry.session)
    }

    fn list(&mut self, transport: Transport) -> &mut Vec<SessionEntry> {
        match transport {
            Transport::Tcp => &mut self.tcp,
            Transport::Udp => &mut self.udp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_belongs_to_the_session_that_began_last() {
        let mut map = SessionMap::default();
        for (stream, session, frame) in [(7, 3, 900), (7, 1, 5), (2, 2, 6)] {
            map.tcp.push(SessionEntry { stream, session, frame });
        }
        map.udp.push(SessionEntry { stream: 7, session: 4, frame: 1 });
        map.complete();
        let tcp = |stream, frame| map.find(Transport::Tcp, stream, frame);
        assert_eq!(
            [tcp(7, 4), tcp(7, 5), tcp(7, 899), tcp(7, 900), tcp(7, 9999)],
            [Some(1), Some(1), Some(1), Some(3), Some(3)]
        );
        assert_eq!([tcp(2, 6), tcp(1, 6), tcp(8, 6)], [Some(2), None, None]);
        assert_eq!(map.find(Transport::Udp, 7, 2), Some(4));
        map.left_out = 1;
        assert_eq!(
            map.find(Transport::Tcp, 7, 4),
            None,
            "a session that was left out may have been before"
        );
    }
}
