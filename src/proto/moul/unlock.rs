//! Which key opens a connection? Each candidate is tried on the first bytes of both directions, and must be proved by
//! the messages it gives; so must the possibility that nothing is encrypted in spite of the handshake.

use super::super::{Context, Ends};
use super::evidence::{Against, evidence};
use crate::keys::{Deriver, KeyRing, Service as KeyService, SessionHint, SessionKey};
use crate::table::{Outcome, ServiceId};

/// A connection is taken for decrypted when chance would have given such messages once in 2^PROOF tries.
const PROOF: i32 = 22;
/// How many bytes of a direction a trial looks at.
const LOOK: usize = 4096;

/// How a connection's messages come.
#[derive(Clone, PartialEq)]
pub(super) enum Mode {
    /// As they are.
    Clear,
    /// Encrypted with this key, from this file.
    Encrypted(SessionKey, String),
}

/// What a trial of all candidates gave.
pub(super) enum Verdict {
    /// This is it.
    Proved(Mode),
    /// More bytes would tell.
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

/// Tries all that might open a connection, one after the other: a key is derived when its turn comes, since each costs a power.
pub(super) fn unlock(lock: &Lock<'_>, deriver: &mut Deriver, context: &mut Context<'_>) -> Verdict {
    if !lock.last && lock.bytes.iter().all(|bytes| bytes.is_empty()) {
        return Verdict::Undecided;
    }
    let mut undecided = false;
    let mut best: Option<(i32, Mode)> = None;
    let mut tried = Vec::new();
    let service = context.tables.service(lock.service).and_then(|s| KeyService::from_word(&s.name));
    for mode in candidates(lock, service, context.keys, deriver) {
        if let Mode::Encrypted(key, _) = &mode {
            if tried.contains(key) {
                continue;
            }
            tried.push(*key);
        }
        match trial(lock, &mode, context) {
            Trial::Fits(bits) if bits >= PROOF => return Verdict::Proved(mode),
            Trial::Fits(bits) => {
                undecided = true;
                if best.as_ref().is_none_or(|b| bits > b.0) {
                    best = Some((bits, mode));
                }
            }
            Trial::Pending => undecided = true,
            Trial::Fails => {}
        }
    }
    match best {
        // At the end a single whole message without a flaw is enough if it is hardly chance.
        Some((bits, mode)) if lock.last && bits >= 12 => Verdict::Proved(mode),
        _ if undecided && !lock.last => Verdict::Undecided,
        _ => Verdict::None,
    }
}

/// What might open a connection, the surest first.
fn candidates<'a>(
    lock: &'a Lock<'_>,
    service: Option<KeyService>,
    keys: &'a KeyRing,
    deriver: &'a mut Deriver,
) -> impl Iterator<Item = Mode> + 'a {
    let hint = SessionHint {
        service,
        y: lock.y,
        seed: lock.seed,
        client: Some(lock.ends.client),
        server: Some(lock.ends.server),
    };
    let sessions = keys.sessions(&hint).into_iter().map(|s| Mode::Encrypted(s.line.key, s.file.to_string()));
    let derived = keys.candidates(service).filter_map(move |candidate| {
        let key = deriver.session_key(candidate.key, lock.y?, &lock.seed?)?;
        Some(Mode::Encrypted(key, candidate.file.to_string()))
    });
    sessions.chain(derived).chain([Mode::Clear])
}

enum Trial {
    Fits(i32),
    Pending,
    Fails,
}

/// Reads the first messages of both directions as a mode would have them.
fn trial(lock: &Lock<'_>, mode: &Mode, context: &mut Context<'_>) -> Trial {
    let mut total = 0;
    let mut pending = false;
    for (sender, bytes) in lock.bytes.iter().enumerate() {
        let mut plain = bytes.get(..LOOK).unwrap_or(bytes).to_vec();
        if let Mode::Encrypted(key, _) = mode {
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
            // Messages that end where the bytes end do so hardly by chance.
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
            // A known number whose layout nobody published speaks for the key, and ends what can be tried.
            Outcome::NoLayout(..) => break Trial::Fits(total + 6),
            Outcome::Unknown(..) | Outcome::Malformed(_) if total >= PROOF => break Trial::Fits(total),
            Outcome::Unknown(..) | Outcome::Malformed(_) => break Trial::Fails,
        }
    };
    context.evaluator.memory.frozen = false;
    trial
}
