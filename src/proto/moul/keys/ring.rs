//! All keys of all files, in the order in which they should be tried. It hands out keys with the
//! names of their files; it does not decrypt, so it does not know whether a key fits.

use super::budget::Budget;
use super::derive::{Deriver, SessionKey};
use super::file::KeyFile;
use super::private::PrivateKey;
use super::service::KeyService;
use super::session::{Fit, SessionHint, SessionLine, Y_KEPT};
use crate::proto::Expected;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most session keys handed out for one session.
const MOST: usize = 64;

/// How far a keystream is searched if its position is not known.
#[derive(Clone, Copy, Debug)]
pub struct SearchBounds {
    /// Positions tried in one search.
    pub positions: usize,
    /// Searches in one run. Each may take longer than a second.
    pub searches: usize,
}

impl Default for SearchBounds {
    fn default() -> Self {
        SearchBounds { positions: 4 << 20, searches: 32 }
    }
}

/// The most keys kept from captures: a capture may hold any number.
#[derive(Clone, Copy, Debug)]
pub struct CarriedBounds {
    /// Private keys. Each is tried on every encrypted connection.
    pub private: usize,
    /// Keys of sessions.
    pub sessions: usize,
}

impl Default for CarriedBounds {
    fn default() -> Self {
        CarriedBounds { private: 64, sessions: 65_536 }
    }
}

/// The keys of a run. Keys are added, never removed.
#[derive(Clone, Debug, Default)]
pub struct KeyRing {
    files: Vec<KeyOrigin>,
    keys: Vec<RingKey>,
    sessions: Vec<RingSession>,
    by_y: HashMap<Vec<u8>, Vec<usize>>,
    by_seed: HashMap<[u8; 7], Vec<usize>>,
    by_end: HashMap<SocketAddr, Vec<usize>>,
    anonymous: Vec<usize>,
    searched: Arc<AtomicUsize>,
    /// Shared by clones, so it is known for the whole run.
    trials: Arc<Mutex<Trials>>,
    /// How far a keystream is searched if its position is not known.
    pub search: SearchBounds,
    /// How many more keys captures may bring.
    pub carried: CarriedBounds,
    /// How much work the keys of captures may still cause.
    pub budget: Budget,
}

/// What trying private keys has shown so far.
#[derive(Debug, Default)]
struct Trials {
    deriver: Deriver,
    /// Which keys opened connections to which service, the latest last.
    opened: Vec<(Option<KeyService>, usize)>,
}

/// A source of keys.
#[derive(Clone, Debug)]
struct KeyOrigin {
    name: String,
    /// The capture itself carries these keys; the user did not give them.
    carried: bool,
}

/// A private key, and the place of its file.
#[derive(Clone, Debug)]
struct RingKey {
    file: usize,
    key: PrivateKey,
}

/// The key of a session, and the place of its file.
#[derive(Clone, Debug)]
struct RingSession {
    file: usize,
    line: SessionLine,
}

/// A private key to try.
#[derive(Clone, Copy, Debug)]
pub struct KeyCandidate<'a> {
    /// The key.
    pub key: &'a PrivateKey,
    /// Its place on the ring.
    place: usize,
    /// The file it came from, as the user named it.
    pub file: &'a str,
    /// Whether the capture carries it. The caller then charges its work to the
    /// [budget](KeyRing::budget).
    pub carried: bool,
}

/// A session key to try.
#[derive(Clone, Copy, Debug)]
pub struct SessionCandidate<'a> {
    /// The key, and what identifies its session.
    pub line: &'a SessionLine,
    /// The file it came from, as the user named it.
    pub file: &'a str,
    /// Whether the capture carries it. The caller then charges its work to the
    /// [budget](KeyRing::budget).
    pub carried: bool,
}

impl KeyRing {
    /// Adds a file's keys. A key that is already there is not added again: it keeps its first file,
    /// but takes over a server that a later file names.
    pub fn add(&mut self, file: KeyFile) {
        let (name, keys, sessions) = file.into_parts();
        self.add_all(KeyOrigin { name, carried: false }, keys, sessions);
    }

    /// Adds keys that a capture carries, up to the bound. Returns whether all of them were added.
    pub fn add_carried(&mut self, file: KeyFile) -> bool {
        let (name, mut keys, mut sessions) = file.into_parts();
        let left = &mut self.carried;
        let all = keys.len() <= left.private && sessions.len() <= left.sessions;
        keys.truncate(left.private);
        sessions.truncate(left.sessions);
        left.private -= keys.len();
        left.sessions -= sessions.len();
        if !keys.is_empty() || !sessions.is_empty() {
            self.add_all(KeyOrigin { name, carried: true }, keys, sessions);
        }
        all
    }

    fn add_all(&mut self, origin: KeyOrigin, keys: Vec<PrivateKey>, sessions: Vec<SessionLine>) {
        let file = self.files.len();
        self.files.push(origin);
        for key in keys {
            match self.keys.iter_mut().find(|known| known.key.same_numbers(&key)) {
                Some(known) if known.key.service().is_none() => {
                    known.key.set_service(key.service())
                }
                Some(known) if key.service().is_none() || known.key.service() == key.service() => {}
                _ => self.keys.push(RingKey { file, key }),
            }
        }
        for line in sessions {
            self.index(&line);
            self.sessions.push(RingSession { file, line });
        }
    }

    fn index(&mut self, line: &SessionLine) {
        let at = self.sessions.len();
        if let Some(y) = &line.y {
            self.by_y.entry(truncate_y(y).to_vec()).or_default().push(at);
        }
        if let Some(seed) = line.seed {
            self.by_seed.entry(seed).or_default().push(at);
        }
        if let Some(end) = line.client.or(line.server) {
            self.by_end.entry(end).or_default().push(at);
        }
        // More keys than are ever handed out would only cost time.
        if line.is_anonymous() && self.anonymous.len() < MOST {
            self.anonymous.push(at);
        }
    }

    /// Takes one of the run's keystream searches. Returns whether one was left.
    pub fn may_search(&self) -> bool {
        self.searched.fetch_add(1, Ordering::Relaxed) < self.search.searches
    }

    /// Whether there are keys of single sessions.
    pub fn has_sessions(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// Whether there is no key to try.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.sessions.is_empty()
    }

    /// The names of all files added, in order.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|origin| origin.name.as_str())
    }

    /// How many private keys there are.
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// Every private key, in the order the files gave them.
    pub fn keys(&self) -> impl Iterator<Item = &PrivateKey> {
        self.keys.iter().map(|known| &known.key)
    }

    /// Finds a session key whose line names both ends of this connection. `a` was taken for the
    /// client's end, `b` for the server's.
    pub fn session_between(&self, a: SocketAddr, b: SocketAddr) -> Option<Expected> {
        let lines = self.by_end.get(&a).into_iter().chain(self.by_end.get(&b)).flatten();
        lines.take(MOST).filter_map(|at| self.sessions.get(*at)).find_map(
            |RingSession { line, .. }| {
                let ends = (line.client?, line.server?);
                let swapped = ends == (b, a);
                (swapped || ends == (a, b))
                    .then(|| Expected { service: line.service.map(KeyService::name), swapped })
            },
        )
    }

    /// Every private key, in the order in which to try them for a connection to `service`. The
    /// user's keys come before those that the capture carries. Within both groups, keys for the
    /// service come first, then keys for an unknown server, then all others. Without a `service`,
    /// the files' order holds.
    pub fn candidates(
        &self,
        service: Option<KeyService>,
    ) -> impl Iterator<Item = KeyCandidate<'_>> {
        let rank = move |key: &PrivateKey| match (service, key.service()) {
            (None, _) => 0,
            (Some(wanted), Some(found)) if wanted == found => 0,
            (Some(_), None) => 1,
            _ => 2,
        };
        let all = move |carried: bool, wanted: u8| {
            let keys = self.keys.iter().enumerate();
            keys.filter(move |(_, known)| rank(&known.key) == wanted)
                .map(|(place, known)| self.candidate(place, known))
                .filter(move |candidate| candidate.carried == carried)
        };
        [false, true]
            .into_iter()
            .flat_map(move |carried| (0..3).flat_map(move |wanted| all(carried, wanted)))
    }

    /// The [candidates](KeyRing::candidates) for a connection to `service`, but first those that
    /// opened one before, the latest first: the next connection is likely to the same server. A key
    /// that the capture carries still comes after all of the user's.
    pub fn latest_first(&self, service: Option<KeyService>) -> Vec<KeyCandidate<'_>> {
        let mut candidates: Vec<_> = self.candidates(service).collect();
        let trials = self.trials();
        candidates.sort_by_cached_key(|candidate| {
            let opened =
                trials.opened.iter().position(|known| *known == (service, candidate.place));
            (candidate.carried, std::cmp::Reverse(opened))
        });
        candidates
    }

    /// Notes that a candidate opened a connection to `service`.
    pub fn opened(&self, candidate: &KeyCandidate<'_>, service: Option<KeyService>) {
        let known = (service, candidate.place);
        let opened = &mut self.trials().opened;
        if opened.last() != Some(&known) {
            opened.retain(|earlier| *earlier != known);
            opened.push(known);
        }
    }

    /// Whether the modular power for this candidate and `y` was computed before, so that
    /// [`derive`](KeyRing::derive) costs nothing.
    pub fn remembers(&self, candidate: &KeyCandidate<'_>, y: &[u8]) -> bool {
        self.trials().deriver.remembers(candidate.place, y)
    }

    /// The session key that a candidate gives, as
    /// [`derive_session_key`](super::derive_session_key).
    pub fn derive(
        &self,
        candidate: &KeyCandidate<'_>,
        y: &[u8],
        seed: &[u8; 7],
    ) -> Option<SessionKey> {
        self.trials().deriver.derive(candidate.place, candidate.key, y, seed)
    }

    /// How many modular powers are remembered.
    #[cfg(test)]
    pub(in crate::proto::moul) fn powers(&self) -> usize {
        self.trials().deriver.remembered()
    }

    fn trials(&self) -> MutexGuard<'_, Trials> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session keys that may belong to a session, at most 64. The user's keys come before those
    /// that the capture carries. Within both groups, keys identified by y come first, then by the
    /// seed, by the ends of the connection, and by nothing.
    pub fn sessions(&self, hint: &SessionHint<'_>) -> Vec<SessionCandidate<'_>> {
        let lists = [
            hint.y.and_then(|y| self.by_y.get(truncate_y(y))),
            hint.seed.and_then(|seed| self.by_seed.get(&seed)),
            hint.client.and_then(|end| self.by_end.get(&end)),
            hint.server.and_then(|end| self.by_end.get(&end)),
            Some(&self.anonymous),
        ];
        let mut found: Vec<(bool, Fit, usize)> = Vec::new();
        for at in lists.into_iter().flatten().flatten() {
            let Some(RingSession { file, line }) = self.sessions.get(*at) else { continue };
            found.extend(line.fits(hint).map(|fit| (self.is_carried(*file), fit, *at)));
        }
        found.sort_unstable();
        found.dedup();
        let found = found.into_iter().filter_map(|(_, _, at)| self.sessions.get(at)).take(MOST);
        found
            .map(|RingSession { file, line }| SessionCandidate {
                line,
                file: self.file(*file),
                carried: self.is_carried(*file),
            })
            .collect()
    }

    fn candidate<'a>(&'a self, place: usize, known: &'a RingKey) -> KeyCandidate<'a> {
        KeyCandidate {
            key: &known.key,
            place,
            file: self.file(known.file),
            carried: self.is_carried(known.file),
        }
    }

    fn file(&self, at: usize) -> &str {
        self.files.get(at).map_or("", |origin| origin.name.as_str())
    }

    fn is_carried(&self, at: usize) -> bool {
        self.files.get(at).is_some_and(|origin| origin.carried)
    }
}

fn truncate_y(y: &[u8]) -> &[u8] {
    y.get(..Y_KEPT).unwrap_or(y)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    const N: &str =
        "08r66inqpHi3ZKEhxUSRrp7pCpY3danJfMRsmXPaqQLLeryi+7xJw1Ob0xa3LBRQ9cgU+NJg9gzDv1x0favvkw==";
    const K: [&str; 4] = ["AQ==", "Ag==", "Aw==", "BA=="];

    /// Private keys by service and a number that tells them apart.
    fn file(name: &str, keys: &[(&str, usize)], sessions: &str) -> KeyFile {
        let line = |(service, which): &(&str, usize)| {
            format!("private {service} n={N} k={}{}\n", "A".repeat(84), K[*which])
        };
        let text: String = keys.iter().map(line).collect();
        KeyFile::parse(name, format!("{text}{sessions}").as_bytes()).unwrap()
    }

    fn ring(files: Vec<KeyFile>) -> KeyRing {
        let mut ring = KeyRing::default();
        files.into_iter().for_each(|file| ring.add(file));
        ring
    }

    fn order(ring: &KeyRing, service: Option<KeyService>) -> Vec<String> {
        let named = |candidate: KeyCandidate<'_>| {
            format!(
                "{} {}",
                candidate.file,
                candidate.key.service().map_or("any", KeyService::name)
            )
        };
        ring.candidates(service).map(named).collect()
    }

    #[test]
    fn the_servers_own_keys_come_first_then_unknown_ones_then_the_rest() {
        let ring = ring(vec![
            file("a", &[("game", 0), ("any", 1)], ""),
            file("b", &[("auth", 2), ("game", 3)], ""),
        ]);
        assert_eq!(order(&ring, Some(KeyService::Game)), ["a game", "b game", "a any", "b auth"]);
        assert_eq!(order(&ring, Some(KeyService::Csr)), ["a any", "a game", "b auth", "b game"]);
        assert_eq!(order(&ring, None), ["a game", "a any", "b auth", "b game"]);
    }

    #[test]
    fn the_same_key_is_tried_once_and_learns_its_server() {
        let ring = ring(vec![
            file("w", &[("any", 0)], ""),
            file("der", &[("auth", 0)], ""),
            file("x", &[("any", 0)], ""),
        ]);
        assert_eq!(order(&ring, None), ["w auth"]);
        assert_eq!(ring.files().collect::<Vec<_>>(), ["w", "der", "x"]);
    }

    #[test]
    fn a_key_that_opened_a_connection_comes_first_for_the_same_service() {
        let mut ring = ring(vec![file("a", &[("game", 0), ("any", 1)], "")]);
        assert!(ring.add_carried(file("c", &[("game", 2)], "")));
        let order = |service| {
            ring.latest_first(service).iter().map(|found| found.place).collect::<Vec<_>>()
        };
        let (game, auth) = (Some(KeyService::Game), Some(KeyService::Auth));
        assert_eq!(order(game), [0, 1, 2]);
        let opened = |place: usize| {
            let all = ring.latest_first(game);
            ring.opened(all.iter().find(|found| found.place == place).unwrap(), game);
        };
        opened(2);
        opened(1);
        assert_eq!((order(game), order(auth)), (vec![1, 0, 2], vec![1, 0, 2]));
        opened(0);
        assert_eq!((order(game), order(auth)), (vec![0, 1, 2], vec![1, 0, 2]));
    }

    #[test]
    fn session_keys_come_surest_first() {
        let sessions = "session rc4=00000000000000\n\
            session client=10.0.0.2:4 server=10.0.0.1:5 rc4=01010101010101\n\
            session server=10.0.0.1:5 rc4=02020202020202\n\
            session seed=07070707070707 rc4=03030303030303\n\
            session y=0102030405060708 client=10.0.0.9:4 rc4=04040404040404\n\
            session y=0909090909090909 client=10.0.0.2:4 rc4=05050505050505\n";
        let ring = ring(vec![file("s", &[], sessions)]);
        let tried = |hint: SessionHint<'_>| -> Vec<u8> {
            ring.sessions(&hint).iter().map(|candidate| candidate.line.key.as_bytes()[0]).collect()
        };
        let client = "10.0.0.2:4".parse().ok();
        let server = "10.0.0.1:5".parse().ok();
        let late = SessionHint { client, server, ..Default::default() };
        assert_eq!(tried(late), [1, 2, 5, 0]);
        let whole =
            SessionHint { y: Some(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), seed: Some([7; 7]), ..late };
        assert_eq!(tried(whole), [4, 3, 1, 2, 0]);
        assert_eq!(tried(SessionHint::default()), [0]);
        assert!(KeyRing::default().is_empty() && !ring.is_empty());
    }

    #[test]
    fn at_most_sixty_four_are_handed_out() {
        let many = "session rc4=00000000000000\n".repeat(1000);
        assert_eq!(ring(vec![file("m", &[], &many)]).sessions(&SessionHint::default()).len(), MOST);
    }
}
