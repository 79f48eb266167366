//! The servers that have a key of their own. It knows names and generators, nothing else.

use std::fmt;

/// A kind of MOUL server whose connections are encrypted. (The file server's never are.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// The gatekeeper, which tells clients the addresses of the file and auth servers.
    GateKeeper,
    /// The auth server: accounts, vault, scores.
    Auth,
    /// The game server: one age each.
    Game,
    /// The customer service server, which no open shard runs.
    Csr,
}

impl Service {
    /// Every service, in the order reports list them.
    pub const ALL: [Service; 4] = [Service::GateKeeper, Service::Auth, Service::Game, Service::Csr];

    /// Its name as everywhere in moulsniff: `gatekeeper`, `auth`, `game`, `csr`.
    pub fn name(self) -> &'static str {
        match self {
            Service::GateKeeper => "gatekeeper",
            Service::Auth => "auth",
            Service::Game => "game",
            Service::Csr => "csr",
        }
    }

    /// The Diffie-Hellman generator *g* that clients have built in for this service.
    pub fn generator(self) -> u64 {
        match self {
            Service::GateKeeper => 4,
            Service::Auth => 41,
            Service::Game => 73,
            Service::Csr => 97,
        }
    }

    /// The service whose usual generator this is.
    pub fn from_generator(generator: u64) -> Option<Service> {
        Service::ALL.into_iter().find(|service| service.generator() == generator)
    }

    /// The service a word of a key file means: `gate` is the gatekeeper's short form. Case is
    /// ignored.
    pub fn from_word(word: &str) -> Option<Service> {
        if word.eq_ignore_ascii_case("gate") {
            return Some(Service::GateKeeper);
        }
        Service::ALL.into_iter().find(|service| word.eq_ignore_ascii_case(service.name()))
    }

    /// What a file's own name says, where it names exactly one service (`auth_key.der`).
    pub(super) fn from_file_name(name: &str) -> Option<Service> {
        let base = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
        let mut found = None;
        for (word, service) in
            [("gate", Service::GateKeeper), ("auth", Service::Auth), ("game", Service::Game), ("csr", Service::Csr)]
        {
            if base.contains(word) && found.replace(service).is_some() {
                return None;
            }
        }
        found
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_counts_when_it_names_one_service() {
        assert_eq!(Service::from_file_name("keys/moss_auth_key.der"), Some(Service::Auth));
        assert_eq!(Service::from_file_name("/home/gamer/GateKeeper.bin"), Some(Service::GateKeeper));
        assert_eq!(Service::from_file_name("auth/private.der"), None);
        assert_eq!(Service::from_file_name("game_and_auth.der"), None);
    }

    #[test]
    fn words_and_generators_name_services() {
        assert_eq!(Service::from_word("Gate"), Some(Service::GateKeeper));
        assert_eq!(Service::from_word("gatekeeper"), Some(Service::GateKeeper));
        assert_eq!(Service::from_word("file"), None);
        for service in Service::ALL {
            assert_eq!(Service::from_generator(service.generator()), Some(service));
            assert_eq!(Service::from_word(service.name()), Some(service));
        }
        assert_eq!(Service::from_generator(2), None);
    }
}
