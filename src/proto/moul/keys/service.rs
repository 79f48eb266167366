//! The servers that have a key of their own. It knows names and generators, nothing else.

use std::fmt;

/// A kind of MOUL server whose connections are encrypted. (The file server's never are.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyService {
    /// The gatekeeper, which tells clients the addresses of the file and auth servers.
    GateKeeper,
    /// The auth server: accounts, vault, scores.
    Auth,
    /// The game server: one age each.
    Game,
    /// The customer service server, which no open shard runs.
    Csr,
}

impl KeyService {
    /// Every service, in the order reports list them.
    pub const ALL: [KeyService; 4] =
        [KeyService::GateKeeper, KeyService::Auth, KeyService::Game, KeyService::Csr];

    /// Its name: `gatekeeper`, `auth`, `game`, `csr`.
    pub fn name(self) -> &'static str {
        match self {
            KeyService::GateKeeper => "gatekeeper",
            KeyService::Auth => "auth",
            KeyService::Game => "game",
            KeyService::Csr => "csr",
        }
    }

    /// The Diffie-Hellman generator *g* that clients have built in for this service.
    pub fn generator(self) -> u64 {
        match self {
            KeyService::GateKeeper => 4,
            KeyService::Auth => 41,
            KeyService::Game => 73,
            KeyService::Csr => 97,
        }
    }

    /// The service whose usual generator this is.
    pub fn from_generator(generator: u64) -> Option<KeyService> {
        KeyService::ALL.into_iter().find(|service| service.generator() == generator)
    }

    /// The service that a word of a key file names. `gate` is short for the gatekeeper. Case is
    /// ignored.
    pub fn from_word(word: &str) -> Option<KeyService> {
        if word.eq_ignore_ascii_case("gate") {
            return Some(KeyService::GateKeeper);
        }
        KeyService::ALL.into_iter().find(|service| word.eq_ignore_ascii_case(service.name()))
    }

    /// The service that a file's name mentions (`auth_key.der`). `None` unless it mentions exactly
    /// one.
    pub(super) fn from_file_name(name: &str) -> Option<KeyService> {
        let base = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
        let mut found = None;
        for (word, service) in [
            ("gate", KeyService::GateKeeper),
            ("auth", KeyService::Auth),
            ("game", KeyService::Game),
            ("csr", KeyService::Csr),
        ] {
            if base.contains(word) && found.replace(service).is_some() {
                return None;
            }
        }
        found
    }
}

impl fmt::Display for KeyService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_counts_when_it_names_one_service() {
        assert_eq!(KeyService::from_file_name("keys/moss_auth_key.der"), Some(KeyService::Auth));
        assert_eq!(
            KeyService::from_file_name("/home/gamer/GateKeeper.bin"),
            Some(KeyService::GateKeeper)
        );
        assert_eq!(KeyService::from_file_name("auth/private.der"), None);
        assert_eq!(KeyService::from_file_name("game_and_auth.der"), None);
    }

    #[test]
    fn words_and_generators_name_services() {
        assert_eq!(KeyService::from_word("Gate"), Some(KeyService::GateKeeper));
        assert_eq!(KeyService::from_word("gatekeeper"), Some(KeyService::GateKeeper));
        assert_eq!(KeyService::from_word("file"), None);
        for service in KeyService::ALL {
            assert_eq!(KeyService::from_generator(service.generator()), Some(service));
            assert_eq!(KeyService::from_word(service.name()), Some(service));
        }
        assert_eq!(KeyService::from_generator(2), None);
    }
}
