//! Finds the key that opens a connection. It tries each candidate on the first bytes of both
//! directions, and the messages that come out must prove it. One candidate is no key: a server may
//! send in clear in spite of the handshake.

use super::evidence::{Against, weigh_message};
use super::keys::{KeyCandidate, KeyRing, KeyService, SessionCandidate, SessionHint, SessionKey};
use super::settings::MoulSettings;
use crate::session::{Context, Ends};
use crate::table::{Outcome, ServiceId};

/// Evidence that proves a key, in bits: a wrong key gives as much once in 2^PROOF tries.
const PROOF: i32 = 22;
/// Evidence that makes a key likely, in bits: a wrong key gives as much once in 2^LIKELY tries.
/// While more bytes may come, the session waits for proof of a likely key, because trying the next
/// one costs a modular power.
const LIKELY: i32 = 8;
/// How many bytes of a direction a trial looks at.
const MAX_BYTES: usize = 4096;

/// Whether a connection's messages are encrypted.
#[derive(Clone, PartialEq)]
pub(super) enum Encryption {
    /// In clear.
    Clear,
    /// Encrypted with this key, from this file.
    Encrypted(SessionKey, String),
}

/// The result of trying all candidates.
pub(super) enum KeyVerdict {
    /// The connection is encrypted in this way.
    Proved(Encryption),
    /// More bytes are needed.
    Undecided,
    /// No candidate opens it.
    None,
}

/// What is known of the connection whose key is wanted.
pub(super) struct KeyQuery<'a> {
    pub(super) service: ServiceId,
    pub(super) ends: Ends,
    pub(super) y: Option<&'a [u8]>,
    pub(super) seed: Option<[u8; 7]>,
    /// The first bytes behind the handshake, client's and server's.
    pub(super) bytes: [&'a [u8]; 2],
    /// No more bytes will come.
    pub(super) last: bool,
}

/// Tries all candidates, one after the other. A key is derived only when it is tried, since that
/// costs a modular power.
pub(super) fn find_key(query: &KeyQuery<'_>, context: &mut Context<'_>) -> KeyVerdict {
    if !query.last && query.bytes.iter().all(|bytes| bytes.is_empty()) {
        return KeyVerdict::Undecided;
    }
    let mut undecided = false;
    let mut best: Option<(i32, Attempt<'_>)> = None;
    let mut tried = Vec::new();
    let service =
        context.tables.service(query.service).and_then(|s| KeyService::from_word(&s.name));
    let keys = &MoulSettings::of(context.settings).keys;
    for candidate in list_candidates(query, service, keys) {
        let Some(attempt) = candidate.make_attempt(query, keys) else { continue };
        if let Encryption::Encrypted(key, _) = &attempt.mode {
            // Two services may share a key, and a session's own key may be given beside the
            // long-term one: each is tried once.
            if tried.contains(key) {
                continue;
            }
            tried.push(*key);
        }
        // Work for a carried key is charged before it is done, and refunded if the key fits.
        let cost = query.bytes.iter().map(|bytes| bytes.len().min(MAX_BYTES) as u64).sum();
        if attempt.carried && !keys.budget.take_keystream(cost) {
            continue;
        }
        match try_encryption(query, &attempt.mode, context) {
            Trial::Fits(bits) if bits >= PROOF => return attempt.accept(cost, service, keys),
            Trial::Fits(bits) if bits >= LIKELY && !query.last => return KeyVerdict::Undecided,
            Trial::Fits(bits) => {
                undecided = true;
                if best.as_ref().is_none_or(|b| bits > b.0) {
                    best = Some((bits, attempt));
                }
            }
            Trial::Pending => undecided = true,
            Trial::Fails => {}
        }
    }
    match best {
        // At the end of the connection no more evidence can come: one flawless message is enough,
        // if chance rarely gives it.
        Some((bits, attempt)) if query.last && bits >= 12 => attempt.accept(0, service, keys),
        _ if undecided && !query.last => KeyVerdict::Undecided,
        _ => KeyVerdict::None,
    }
}

/// One way to open a connection, to be tried.
struct Attempt<'a> {
    mode: Encryption,
    /// The private key that it is made with.
    private: Option<KeyCandidate<'a>>,
    /// The capture carries the key, so its work is charged to the budget.
    carried: bool,
    /// A modular power was charged for it.
    power: bool,
}

impl Attempt<'_> {
    /// The attempt opens the connection: refunds what it was charged, and lets its key be the first
    /// for the next one.
    fn accept(self, keystream: u64, service: Option<KeyService>, keys: &KeyRing) -> KeyVerdict {
        if let Some(private) = &self.private {
            keys.opened(private, service);
        }
        if self.carried {
            keys.budget.return_keystream(keystream);
        }
        if self.power {
            keys.budget.return_power();
        }
        KeyVerdict::Proved(self.mode)
    }
}

/// A candidate for opening a connection.
enum Candidacy<'a> {
    /// The key of a session.
    Session(SessionCandidate<'a>),
    /// A server's private key, from which the session's key is derived.
    Private(KeyCandidate<'a>),
    /// No key: the messages may be in clear in spite of the handshake.
    Clear,
}

impl<'a> Candidacy<'a> {
    /// An attempt with this candidate. `None` if it gives no key, or if the budget has no power
    /// left for it.
    fn make_attempt(self, query: &KeyQuery<'_>, keys: &KeyRing) -> Option<Attempt<'a>> {
        let encrypted = |key, file: &str| Encryption::Encrypted(key, file.to_string());
        Some(match self {
            Candidacy::Session(found) => Attempt {
                mode: encrypted(found.line.key, found.file),
                private: None,
                carried: found.carried,
                power: false,
            },
            Candidacy::Private(found) => {
                let y = query.y?;
                let seed = query.seed?;
                let power = found.carried && !keys.remembers(&found, y);
                if power && !keys.budget.take_power() {
                    return None;
                }
                let key = keys.derive(&found, y, &seed)?;
                let mode = encrypted(key, found.file);
                Attempt { mode, private: Some(found), carried: found.carried, power }
            }
            Candidacy::Clear => {
                Attempt { mode: Encryption::Clear, private: None, carried: false, power: false }
            }
        })
    }
}

/// The candidates for a connection: first the user's keys, the surest first, then the keys that the
/// capture carries, and finally no key.
fn list_candidates<'a>(
    query: &KeyQuery<'_>,
    service: Option<KeyService>,
    keys: &'a KeyRing,
) -> impl Iterator<Item = Candidacy<'a>> {
    let hint = SessionHint {
        service,
        y: query.y,
        seed: query.seed,
        client: Some(query.ends.client),
        server: Some(query.ends.server),
    };
    let sessions = keys.sessions(&hint);
    let of = move |carried: bool| {
        let sessions: Vec<_> =
            sessions.iter().filter(|found| found.carried == carried).copied().collect();
        let private =
            keys.latest_first(service).into_iter().filter(move |found| found.carried == carried);
        sessions.into_iter().map(Candidacy::Session).chain(private.map(Candidacy::Private))
    };
    of(false).chain(of(true)).chain([Candidacy::Clear])
}

enum Trial {
    Fits(i32),
    Pending,
    Fails,
}

/// Reads the first messages of both directions on the assumption that `mode` is right.
fn try_encryption(query: &KeyQuery<'_>, mode: &Encryption, context: &mut Context<'_>) -> Trial {
    let mut total = 0;
    let mut pending = false;
    for (sender, bytes) in query.bytes.iter().enumerate() {
        let mut plain = bytes.get(..MAX_BYTES).unwrap_or(bytes).to_vec();
        if let Encryption::Encrypted(key, _) = mode {
            key.cipher().apply(&mut plain);
        }
        match try_direction(query.service, sender, &plain, context) {
            Trial::Fits(bits) => total += bits,
            Trial::Pending => pending = true,
            Trial::Fails => return Trial::Fails,
        }
    }
    if total > 0 {
        Trial::Fits(total)
    } else if pending {
        Trial::Pending
    } else {
        Trial::Fails
    }
}

fn try_direction(
    service: ServiceId,
    sender: usize,
    plain: &[u8],
    context: &mut Context<'_>,
) -> Trial {
    let tables = context.tables;
    let Some(def) = tables.service(service) else { return Trial::Fails };
    let mut at = 0;
    let mut total = 0;
    context.evaluator.memory.frozen = true;
    let trial = loop {
        let rest = plain.get(at..).unwrap_or(&[]);
        if rest.is_empty() && at > 0 {
            // A message rarely ends exactly where the bytes end by chance.
            break Trial::Fits(total + 8);
        }
        if rest.is_empty() || total >= 2 * PROOF {
            break Trial::Fits(total);
        }
        match context.evaluator.message(tables, service, sender, rest, context.tree) {
            Outcome::Message(_, n) => {
                let bits = weigh_message(
                    tables,
                    def,
                    sender,
                    context.tree,
                    rest.get(..n).unwrap_or(rest),
                    Against::Noise,
                );
                if bits < 0 {
                    break Trial::Fails;
                }
                total += bits;
                at += n.max(1);
            }
            Outcome::Need(n) if n > (64 << 20) => break Trial::Fails,
            Outcome::Need(_) if total > 0 => break Trial::Fits(total),
            Outcome::Need(_) => break Trial::Pending,
            // A known number is evidence for the key. But without a layout the end of the message
            // is not known, so the trial stops.
            Outcome::NoLayout(..) => break Trial::Fits(total + 6),
            Outcome::Unknown(..) | Outcome::Malformed(_) | Outcome::TooLong(..)
                if total >= PROOF =>
            {
                break Trial::Fits(total);
            }
            Outcome::Unknown(..) | Outcome::Malformed(_) | Outcome::TooLong(..) => {
                break Trial::Fails;
            }
        }
    };
    context.evaluator.memory.frozen = false;
    trial
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::super::keys::{Budget, CarriedWork, KeyFile, derive_session_key};
    use super::super::testing::{self, KEYS, SEED, Y};
    use super::*;
    use crate::proto::Moment;
    use crate::session::{Emit, Event, Message, Share, Side};
    use crate::table::Tables;
    use crate::tree::Tree;
    use std::net::{Ipv4Addr, SocketAddr};

    /// A ping: its number is the only evidence in it.
    const PING: &[u8] = b"\0\0\x0d\xf0\xad\x0b";

    struct IgnoreMessages;

    impl Emit for IgnoreMessages {
        fn message(&mut self, _: Moment, _: &Message<'_>, _: &Tables, _: &mut Tree) -> u64 {
            0
        }
        fn event(&mut self, _: Moment, _: Event) {}
        fn account(&mut self, _: Side, _: Share, _: u64) {}
    }

    /// Tries to unlock a client's first bytes to a game server, encrypted with a service's key.
    /// Returns the verdict and the number of powers it took.
    fn try_keys(of: KeyService, plain: &[u8], last: bool) -> (KeyVerdict, usize) {
        let mut keys = KeyRing::default();
        keys.add(KeyFile::parse("dirtsand.ini", KEYS).unwrap());
        try_ring(keys, of, plain, last)
    }

    /// The same with other keys on the ring.
    fn try_ring(keys: KeyRing, of: KeyService, plain: &[u8], last: bool) -> (KeyVerdict, usize) {
        let file = KeyFile::parse("dirtsand.ini", KEYS).unwrap();
        let mut bytes = plain.to_vec();
        match file.keys().iter().find(|key| key.service() == Some(of)) {
            Some(key) => derive_session_key(key, &Y, &SEED).unwrap().cipher().apply(&mut bytes),
            // A key that is on no ring.
            None => SessionKey::new([7; 7]).cipher().apply(&mut bytes),
        }
        let lazy = testing::tables();
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 14617));
        let query = KeyQuery {
            service: lazy.get().service_named("game").unwrap(),
            ends: Ends { client: at, server: at },
            y: Some(&Y),
            seed: Some(SEED),
            bytes: [&bytes, &[]],
            last,
        };
        let before = keys.powers();
        let verdict = testing::in_context(&lazy, keys.clone(), &mut IgnoreMessages, |context| {
            find_key(&query, context)
        });
        (verdict, keys.powers() - before)
    }

    #[test]
    fn a_likely_key_is_waited_for_and_no_other_one_derived() {
        let (verdict, powers) = try_keys(KeyService::Game, PING, false);
        assert!(matches!(verdict, KeyVerdict::Undecided));
        assert_eq!(powers, 1);
    }

    #[test]
    fn several_pings_prove_a_key_and_at_the_end_all_are_tried() {
        let (verdict, powers) = try_keys(KeyService::Game, &PING.repeat(3), false);
        assert!(matches!(verdict, KeyVerdict::Proved(Encryption::Encrypted(..))));
        assert_eq!(powers, 1);
        let (_, powers) = try_keys(KeyService::Game, PING, true);
        assert_eq!(powers, 3);
    }

    #[test]
    fn the_key_of_another_service_is_found_after_the_own_one_failed() {
        let (verdict, _) = try_keys(KeyService::Auth, &PING.repeat(3), false);
        assert!(matches!(verdict, KeyVerdict::Proved(Encryption::Encrypted(..))));
    }

    #[test]
    fn keys_that_the_capture_carries_come_after_the_users_and_cost_no_more_than_their_budget() {
        let pings = PING.repeat(3);
        let wrong = || {
            KeyFile::parse("wrong.der", include_bytes!("../../../keys/moss_game_key.der")).unwrap()
        };
        let right = || KeyFile::parse("carried", KEYS).unwrap();
        let ring = |powers, user: Option<KeyFile>, carried: Vec<KeyFile>| {
            let mut keys = KeyRing::default();
            keys.budget = Budget::new(CarriedWork { powers, keystream: 1 << 20 });
            carried.into_iter().for_each(|file| assert!(keys.add_carried(file)));
            user.into_iter().for_each(|file| keys.add(file));
            keys
        };
        // The user's key for another service is tried before the capture's for this one.
        let (verdict, powers) =
            try_ring(ring(9, Some(wrong()), vec![right()]), KeyService::Game, &pings, false);
        assert!(
            matches!(verdict, KeyVerdict::Proved(Encryption::Encrypted(_, file)) if file == "carried")
        );
        assert_eq!(powers, 2);
        // A key that opens the connection costs nothing.
        let keys = ring(1, None, vec![right()]);
        for _ in 0..3 {
            let (verdict, _) = try_ring(keys.clone(), KeyService::Game, &pings, false);
            assert!(matches!(verdict, KeyVerdict::Proved(Encryption::Encrypted(..))));
        }
        assert!(!keys.budget.should_report());
        // Keys that open nothing use it up, and then no further power is computed.
        let keys = ring(2, None, vec![right()]);
        let (verdict, powers) = try_ring(keys.clone(), KeyService::Csr, &pings, true);
        assert!(matches!(verdict, KeyVerdict::None));
        assert_eq!(powers, 2);
        assert!(keys.budget.should_report());
        let (_, powers) = try_ring(keys, KeyService::Csr, &pings, true);
        assert_eq!(powers, 0);
    }
}
