//! Which key opens a connection? Each candidate is tried on the first bytes of both directions, and must be proved by
//! the messages it gives; so must the possibility that nothing is encrypted in spite of the handshake.

use super::super::{Context, Ends};
use super::evidence::{Against, evidence};
use super::keys::{Deriver, KeyCandidate, KeyRing, KeyService, SessionCandidate, SessionHint, SessionKey};
use super::settings::MoulSettings;
use crate::table::{Outcome, ServiceId};

/// Evidence that proves a key, in bits: a wrong key would give such messages once in 2^PROOF tries.
const PROOF: i32 = 22;
/// Evidence that makes a key likely, in bits: a wrong key has that much once in 2^LIKELY tries. While more bytes may come, the session waits for proof of a likely
/// key, because trying the next one costs a modular power.
const LIKELY: i32 = 8;
/// How many bytes of a direction a trial looks at.
const LOOK: usize = 4096;

/// Whether a connection's messages are encrypted.
#[derive(Clone, PartialEq)]
pub(super) enum Encryption {
    /// In clear.
    Clear,
    /// Encrypted with this key, from this file.
    Encrypted(SessionKey, String),
}

/// What a trial of all candidates gave.
pub(super) enum KeyVerdict {
    /// The connection is encrypted in this way.
    Proved(Encryption),
    /// More bytes are needed.
    Undecided,
    /// None of them.
    None,
}

/// What is known of a connection when its key is looked for.
pub(super) struct Lock<'a> {
    pub(super) service: ServiceId,
    pub(super) ends: Ends,
    pub(super) y: Option<&'a [u8]>,
    pub(super) seed: Option<[u8; 7]>,
    /// The first bytes behind the handshake, client's and server's.
    pub(super) bytes: [&'a [u8]; 2],
    /// No more bytes will come.
    pub(super) last: bool,
}

/// Tries all that might open a connection, one after the other. A key is derived only when it is tried, since that costs a modular power.
pub(super) fn unlock(lock: &Lock<'_>, deriver: &mut Deriver, context: &mut Context<'_>) -> KeyVerdict {
    if !lock.last && lock.bytes.iter().all(|bytes| bytes.is_empty()) {
        return KeyVerdict::Undecided;
    }
    let mut undecided = false;
    let mut best: Option<(i32, Attempt)> = None;
    let mut tried = Vec::new();
    let service = context.tables.service(lock.service).and_then(|s| KeyService::from_word(&s.name));
    let keys = &MoulSettings::of(context.settings).keys;
    for candidate in candidates(lock, service, keys) {
        let Some(attempt) = candidate.attempt(lock, keys, deriver) else { continue };
        if let Encryption::Encrypted(key, _) = &attempt.mode {
            // Two services may share a key, and a session's own key may be given beside the long-term one: each is tried once.
            if tried.contains(key) {
                continue;
            }
            tried.push(*key);
        }
        // Work for a key that the capture carries is charged before it is done, and given back if the key fits.
        let cost = lock.bytes.iter().map(|bytes| bytes.len().min(LOOK) as u64).sum();
        if attempt.carried && !keys.budget.take_keystream(cost) {
            continue;
        }
        match trial(lock, &attempt.mode, context) {
            Trial::Fits(bits) if bits >= PROOF => return attempt.proved(cost, keys),
            Trial::Fits(bits) if bits >= LIKELY && !lock.last => return KeyVerdict::Undecided,
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
        // At the end of the connection, one whole message without a flaw is enough if chance hardly gives it.
        Some((bits, attempt)) if lock.last && bits >= 12 => attempt.proved(0, keys),
        _ if undecided && !lock.last => KeyVerdict::Undecided,
        _ => KeyVerdict::None,
    }
}

/// One way to open a connection, to be tried.
struct Attempt {
    mode: Encryption,
    /// The capture carries the key: the work is taken from the budget.
    carried: bool,
    /// A power was taken from the budget for it.
    power: bool,
}

impl Attempt {
    /// This opens the connection; what it took from the budget goes back.
    fn proved(self, keystream: u64, keys: &KeyRing) -> KeyVerdict {
        if self.carried {
            keys.budget.return_keystream(keystream);
        }
        if self.power {
            keys.budget.return_power();
        }
        KeyVerdict::Proved(self.mode)
    }
}

/// Something that may open a connection.
enum Candidacy<'a> {
    /// The key of a session.
    Session(SessionCandidate<'a>),
    /// A server's private key, from which the session's key is derived.
    Private(KeyCandidate<'a>),
    /// No key: in spite of the handshake nothing may be encrypted.
    Clear,
}

impl Candidacy<'_> {
    /// An attempt with this candidate; `None` if it gives no key, or if the budget has no power left for it.
    fn attempt(self, lock: &Lock<'_>, keys: &KeyRing, deriver: &mut Deriver) -> Option<Attempt> {
        let encrypted = |key, file: &str| Encryption::Encrypted(key, file.to_string());
        Some(match self {
            Candidacy::Session(found) => {
                Attempt { mode: encrypted(found.line.key, found.file), carried: found.carried, power: false }
            }
            Candidacy::Private(found) => {
                let (y, seed) = (lock.y?, lock.seed?);
                let power = found.carried && !deriver.remembers(found.key, y);
                if power && !keys.budget.take_power() {
                    return None;
                }
                let key = deriver.session_key(found.key, y, &seed)?;
                Attempt { mode: encrypted(key, found.file), carried: found.carried, power }
            }
            Candidacy::Clear => Attempt { mode: Encryption::Clear, carried: false, power: false },
        })
    }
}

/// What might open a connection: all keys that the user gave, the surest first, then those that the capture carries, and at last no key at all.
fn candidates<'a>(
    lock: &Lock<'_>,
    service: Option<KeyService>,
    keys: &'a KeyRing,
) -> impl Iterator<Item = Candidacy<'a>> {
    let hint = SessionHint {
        service,
        y: lock.y,
        seed: lock.seed,
        client: Some(lock.ends.client),
        server: Some(lock.ends.server),
    };
    let sessions = keys.sessions(&hint);
    let of = move |carried: bool| {
        let sessions: Vec<_> = sessions.iter().filter(|found| found.carried == carried).copied().collect();
        let private = keys.candidates(service).filter(move |found| found.carried == carried);
        sessions.into_iter().map(Candidacy::Session).chain(private.map(Candidacy::Private))
    };
    of(false).chain(of(true)).chain([Candidacy::Clear])
}

enum Trial {
    Fits(i32),
    Pending,
    Fails,
}

/// Reads the first messages of both directions as if `mode` were the right one.
fn trial(lock: &Lock<'_>, mode: &Encryption, context: &mut Context<'_>) -> Trial {
    let mut total = 0;
    let mut pending = false;
    for (sender, bytes) in lock.bytes.iter().enumerate() {
        let mut plain = bytes.get(..LOOK).unwrap_or(bytes).to_vec();
        if let Encryption::Encrypted(key, _) = mode {
            key.cipher().apply(&mut plain);
        }
        match direction(lock.service, sender, &plain, context) {
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

fn direction(service: ServiceId, sender: usize, plain: &[u8], context: &mut Context<'_>) -> Trial {
    let tables = context.tables;
    let Some(def) = tables.service(service) else { return Trial::Fails };
    let mut at = 0;
    let mut total = 0;
    context.evaluator.memory.frozen = true;
    let trial = loop {
        let rest = plain.get(at..).unwrap_or(&[]);
        if rest.is_empty() && at > 0 {
            // It is hardly chance that a message ends where the bytes end.
            break Trial::Fits(total + 8);
        }
        if rest.is_empty() || total >= 2 * PROOF {
            break Trial::Fits(total);
        }
        match context.evaluator.message(tables, service, sender, rest, context.tree) {
            Outcome::Message(_, n) => {
                let bits = evidence(tables, def, sender, context.tree, rest.get(..n).unwrap_or(rest), Against::Noise);
                if bits < 0 {
                    break Trial::Fails;
                }
                total += bits;
                at += n.max(1);
            }
            Outcome::Need(n) if n > (64 << 20) => break Trial::Fails,
            Outcome::Need(_) if total > 0 => break Trial::Fits(total),
            Outcome::Need(_) => break Trial::Pending,
            // A known number whose layout is not published is evidence for the key, but where the message ends is not known.
            Outcome::NoLayout(..) => break Trial::Fits(total + 6),
            Outcome::Unknown(..) | Outcome::Malformed(_) if total >= PROOF => break Trial::Fits(total),
            Outcome::Unknown(..) | Outcome::Malformed(_) => break Trial::Fails,
        }
    };
    context.evaluator.memory.frozen = false;
    trial
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::super::keys::{Budget, CarriedWork, KeyFile, session_key};
    use super::super::testing::{self, KEYS, SEED, Y};
    use super::*;
    use crate::proto::{Decoded, Emit, Event, Message, Moment, Share, Side};
    use crate::table::Tables;
    use std::net::{Ipv4Addr, SocketAddr};

    /// A ping: its number is the only evidence in it.
    const PING: &[u8] = b"\0\0\x0d\xf0\xad\x0b";

    struct Deaf;

    impl Emit for Deaf {
        fn message(&mut self, _: Moment, _: &Message<'_>, _: &Tables, _: Decoded<'_>) -> u64 {
            0
        }
        fn event(&mut self, _: Moment, _: Event) {}
        fn account(&mut self, _: Side, _: Share, _: u64) {}
    }

    /// What comes of a client's first bytes to a game server, encrypted with a service's key; and how many powers that took.
    fn try_keys(of: KeyService, plain: &[u8], last: bool) -> (KeyVerdict, String) {
        let mut keys = KeyRing::default();
        keys.add(KeyFile::parse("dirtsand.ini", KEYS).unwrap());
        try_ring(keys, of, plain, last)
    }

    /// The same with other keys on the ring.
    fn try_ring(keys: KeyRing, of: KeyService, plain: &[u8], last: bool) -> (KeyVerdict, String) {
        let file = KeyFile::parse("dirtsand.ini", KEYS).unwrap();
        let mut bytes = plain.to_vec();
        match file.keys().iter().find(|key| key.service() == Some(of)) {
            Some(key) => session_key(key, &Y, &SEED).unwrap().cipher().apply(&mut bytes),
            // A key that is on no ring.
            None => SessionKey::new([7; 7]).cipher().apply(&mut bytes),
        }
        let lazy = testing::tables();
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 14617));
        let lock = Lock {
            service: lazy.get().service_named("game").unwrap(),
            ends: Ends { client: at, server: at },
            y: Some(&Y),
            seed: Some(SEED),
            bytes: [&bytes, &[]],
            last,
        };
        let mut deriver = Deriver::default();
        let verdict = testing::in_context(&lazy, keys, &mut Deaf, |context| unlock(&lock, &mut deriver, context));
        (verdict, format!("{deriver:?}"))
    }

    #[test]
    fn a_likely_key_is_waited_for_and_no_other_one_derived() {
        let (verdict, powers) = try_keys(KeyService::Game, PING, false);
        assert!(matches!(verdict, KeyVerdict::Undecided));
        assert_eq!(powers, "Deriver { 1 remembered }");
    }

    #[test]
    fn several_pings_prove_a_key_and_at_the_end_all_are_tried() {
        let (verdict, powers) = try_keys(KeyService::Game, &PING.repeat(3), false);
        assert!(matches!(verdict, KeyVerdict::Proved(Encryption::Encrypted(..))));
        assert_eq!(powers, "Deriver { 1 remembered }");
        let (_, powers) = try_keys(KeyService::Game, PING, true);
        assert_eq!(powers, "Deriver { 3 remembered }");
    }

    #[test]
    fn the_key_of_another_service_is_found_after_the_own_one_failed() {
        let (verdict, _) = try_keys(KeyService::Auth, &PING.repeat(3), false);
        assert!(matches!(verdict, KeyVerdict::Proved(Encryption::Encrypted(..))));
    }

    #[test]
    fn keys_that_the_capture_carries_come_after_the_users_and_cost_no_more_than_their_budget() {
        let pings = PING.repeat(3);
        let wrong = || KeyFile::parse("wrong.der", include_bytes!("../../../keys/moss_game_key.der")).unwrap();
        let right = || KeyFile::parse("carried", KEYS).unwrap();
        let ring = |powers, user: Option<KeyFile>, carried: Vec<KeyFile>| {
            let mut keys = KeyRing::default();
            keys.budget = Budget::new(CarriedWork { powers, keystream: 1 << 20 });
            carried.into_iter().for_each(|file| assert!(keys.add_carried(file)));
            user.into_iter().for_each(|file| keys.add(file));
            keys
        };
        // The user's key for another service is tried before the capture's for this one.
        let (verdict, powers) = try_ring(ring(9, Some(wrong()), vec![right()]), KeyService::Game, &pings, false);
        assert!(matches!(verdict, KeyVerdict::Proved(Encryption::Encrypted(_, file)) if file == "carried"));
        assert_eq!(powers, "Deriver { 2 remembered }");
        // A key that opens the connection costs nothing.
        let keys = ring(1, None, vec![right()]);
        for _ in 0..3 {
            let (verdict, _) = try_ring(keys.clone(), KeyService::Game, &pings, false);
            assert!(matches!(verdict, KeyVerdict::Proved(Encryption::Encrypted(..))));
        }
        assert!(!keys.budget.is_to_be_reported());
        // Those that open nothing use it up, and then not one more power is computed.
        let keys = ring(2, None, vec![right()]);
        let (verdict, powers) = try_ring(keys.clone(), KeyService::Csr, &pings, true);
        assert!(matches!(verdict, KeyVerdict::None));
        assert_eq!(powers, "Deriver { 2 remembered }");
        assert!(keys.budget.is_to_be_reported());
        let (_, powers) = try_ring(keys, KeyService::Csr, &pings, true);
        assert_eq!(powers, "Deriver { 0 remembered }");
    }
}
