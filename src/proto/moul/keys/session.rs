//! A session's own key and the values that identify the session: the line of a `shard.keys` that
//! opens one connection. It knows no streams: the caller describes a stream and gets the keys that
//! may belong to it.

use super::derive::SessionKey;
use super::service::KeyService;
use std::net::SocketAddr;

/// How many bytes of y identify a session. Key files hold no more of it.
pub(super) const Y_KEPT: usize = 8;

/// Where the keystream of one direction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeystreamStart {
    /// Not given: right behind the handshake if the capture has one. Otherwise it has to be
    /// searched for.
    #[default]
    Search,
    /// The first keystream byte encrypted the stream byte with this TCP sequence number (as on the
    /// wire). Cutting the capture does not change it.
    Sequence(u32),
    /// This many bytes of keystream had been used before the first captured byte of this direction.
    Used(u64),
}

/// The RC4 key of one session, and what identifies the session. Everything but the key may be
/// missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLine {
    /// The key, for both directions.
    pub key: SessionKey,
    /// The server's kind.
    pub service: Option<KeyService>,
    /// The client's end of the connection.
    pub client: Option<SocketAddr>,
    /// The server's end of the connection.
    pub server: Option<SocketAddr>,
    /// The client's y as on the wire (little-endian), whole or its first bytes; a file keeps eight
    /// of them.
    pub y: Option<Vec<u8>>,
    /// The server's seed as on the wire.
    pub seed: Option<[u8; 7]>,
    /// The keystream from client to server.
    pub client_start: KeystreamStart,
    /// The keystream from server to client.
    pub server_start: KeystreamStart,
}

impl SessionLine {
    /// A key that nothing identifies yet.
    pub fn new(key: SessionKey) -> SessionLine {
        SessionLine {
            key,
            service: None,
            client: None,
            server: None,
            y: None,
            seed: None,
            client_start: KeystreamStart::Search,
            server_start: KeystreamStart::Search,
        }
    }

    /// Why this line fits a session. `None` if it belongs to another one.
    ///
    /// If both know y, y decides; otherwise the seed does. The ends may then differ, because
    /// addresses get rewritten. Without y and seed the ends must agree. A line that nothing
    /// identifies fits any session, but comes last.
    pub(super) fn fits(&self, hint: &SessionHint<'_>) -> Option<Fit> {
        let y = agree(self.y.as_deref(), hint.y, same_y);
        let seed = agree(self.seed.as_ref(), hint.seed.as_ref(), |a, b| a == b);
        if y == Some(false) || seed == Some(false) {
            return None;
        }
        let ends = [
            agree(self.client, hint.client, |a, b| a == b),
            agree(self.server, hint.server, |a, b| a == b),
        ];
        let ends_fit = ends.contains(&Some(true)) && !ends.contains(&Some(false));
        if y == Some(true) {
            Some(Fit::Y)
        } else if seed == Some(true) {
            Some(if ends_fit { Fit::SeedAndEnds } else { Fit::Seed })
        } else if ends_fit {
            Some(Fit::Ends)
        } else if self.is_anonymous()
            && agree(self.service, hint.service, |a, b| a == b) != Some(false)
        {
            Some(Fit::Anonymous)
        } else {
            None
        }
    }

    /// Whether nothing says which session the key belongs to.
    pub(super) fn is_anonymous(&self) -> bool {
        self.y.is_none() && self.seed.is_none() && self.client.is_none() && self.server.is_none()
    }
}

/// What the caller knows of the session whose key it wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionHint<'a> {
    /// The server's kind.
    pub service: Option<KeyService>,
    /// The client's y, whole, as on the wire.
    pub y: Option<&'a [u8]>,
    /// The server's seed, as on the wire.
    pub seed: Option<[u8; 7]>,
    /// The client's end of the connection.
    pub client: Option<SocketAddr>,
    /// The server's end of the connection.
    pub server: Option<SocketAddr>,
}

/// Why a line fits a session, the best reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    Y,
    SeedAndEnds,
    Seed,
    Ends,
    Anonymous,
}

/// A y shorter than eight bytes must be equal as a whole. Of a longer one, the first eight bytes
/// must be equal.
fn same_y(kept: &[u8], whole: &[u8]) -> bool {
    match (kept.get(..Y_KEPT), whole.get(..Y_KEPT)) {
        (Some(kept), Some(whole)) => kept == whole,
        (None, None) => kept == whole,
        _ => false,
    }
}

fn agree<T>(ours: Option<T>, theirs: Option<T>, same: impl Fn(T, T) -> bool) -> Option<bool> {
    Some(same(ours?, theirs?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn line() -> SessionLine {
        SessionLine {
            service: Some(KeyService::Auth),
            client: Some("10.0.0.2:40000".parse().unwrap()),
            server: Some("10.0.0.1:14617".parse().unwrap()),
            y: Some(vec![1, 2, 3, 4, 5, 6, 7, 8]),
            seed: Some([9; 7]),
            ..SessionLine::new(SessionKey::new([0; 7]))
        }
    }

    const WHOLE_Y: [u8; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

    #[test]
    fn y_decides_whatever_the_addresses_say() {
        let hint = SessionHint {
            y: Some(&WHOLE_Y),
            client: Some("[::1]:9".parse().unwrap()),
            ..Default::default()
        };
        assert_eq!(line().fits(&hint), Some(Fit::Y));
        let other =
            SessionHint { y: Some(&[5; 64]), client: line().client, server: line().server, ..hint };
        assert_eq!(line().fits(&other), None, "the same ports were used again by another session");
        assert_eq!(line().fits(&SessionHint { seed: Some([8; 7]), ..hint }), None);
    }

    #[test]
    fn the_seed_alone_is_enough_and_the_ends_make_it_surer() {
        let hint = SessionHint { seed: Some([9; 7]), ..Default::default() };
        assert_eq!(line().fits(&hint), Some(Fit::Seed));
        assert_eq!(
            line().fits(&SessionHint { client: line().client, ..hint }),
            Some(Fit::SeedAndEnds)
        );
        assert!(Fit::SeedAndEnds < Fit::Seed);
    }

    #[test]
    fn a_session_joined_late_is_found_by_its_ends() {
        let hint =
            SessionHint { client: line().client, server: line().server, ..Default::default() };
        assert_eq!(line().fits(&hint), Some(Fit::Ends));
        let server_only = SessionLine { client: None, ..line() };
        assert_eq!(server_only.fits(&hint), Some(Fit::Ends));
        let other = SessionHint { client: Some("10.0.0.2:40001".parse().unwrap()), ..hint };
        assert_eq!(line().fits(&other), None);
        assert_eq!(line().fits(&SessionHint::default()), None, "nothing known is no reason");
    }

    #[test]
    fn a_key_known_by_nothing_is_tried_last_for_its_service() {
        let bare = SessionLine {
            service: Some(KeyService::Game),
            ..SessionLine::new(SessionKey::new([0; 7]))
        };
        assert_eq!(bare.fits(&SessionHint::default()), Some(Fit::Anonymous));
        let auth = SessionHint {
            service: Some(KeyService::Auth),
            y: Some(&WHOLE_Y),
            ..Default::default()
        };
        assert_eq!(bare.fits(&auth), None);
    }

    #[test]
    fn a_short_y_must_be_equal() {
        let short = SessionLine { y: Some(vec![1, 2]), ..line() };
        let hint = SessionHint { y: Some(&[1, 2]), ..Default::default() };
        assert_eq!(short.fits(&hint), Some(Fit::Y));
        assert_eq!(short.fits(&SessionHint { y: Some(&WHOLE_Y), ..hint }), None);
    }
}
