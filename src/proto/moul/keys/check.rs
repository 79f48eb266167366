//! The report of `keys check` on a key file: format, servers, sizes, and what looks wrong. It holds
//! no secret: a key is named by the first digits of its public modulus.

use super::error::{KeyError, printable};
use super::file::{Format, check_opens_something, read_any};
use super::prime::{half_is_prime, is_probable_prime};
use super::private::{PrivateKey, PublicHalf, find_doubts};
use super::service::KeyService;
use super::session::SessionLine;
use std::fmt;
use std::net::SocketAddr;

/// What a key file holds.
#[derive(Clone, Debug)]
pub struct Report {
    /// The file's name.
    pub file: String,
    /// What kind of file it is.
    pub format: Format,
    /// Its private keys.
    pub keys: Vec<KeyReport>,
    /// Public halves without a private half.
    pub public: Vec<PublicReport>,
    /// Its session keys.
    pub sessions: Vec<SessionReport>,
    /// What a user should know.
    pub notes: Vec<String>,
    /// Why it opens nothing, if so: the error with which a run with this file ends.
    pub problem: Option<KeyError>,
}

/// What the report says about a private key.
#[derive(Clone, Debug)]
pub struct KeyReport {
    /// The server it is for. With `None` the key is tried on every server.
    pub service: Option<KeyService>,
    /// The first eight hex digits of N.
    pub fingerprint: String,
    /// Bits of N.
    pub modulus_bits: u64,
    /// Bits of the private exponent.
    pub exponent_bits: u64,
    /// Whether N is a prime, as far as eight rounds of Miller-Rabin can tell.
    pub prime: bool,
    /// Whether (N − 1) / 2 is a prime too.
    pub safe_prime: bool,
    /// Whether K is below N. The protocol does not require it.
    pub exponent_below_modulus: bool,
    /// The generator, if the file names it.
    pub generator: Option<u64>,
}

/// What the report says about a public half.
#[derive(Clone, Debug)]
pub struct PublicReport {
    /// The server it is for.
    pub service: Option<KeyService>,
    /// The first eight hex digits of N.
    pub fingerprint: String,
    /// Bits of N.
    pub modulus_bits: u64,
}

/// What the report says about a session key.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// The server's kind.
    pub service: Option<KeyService>,
    /// The client's end.
    pub client: Option<SocketAddr>,
    /// The server's end.
    pub server: Option<SocketAddr>,
    /// Whether the client's y or the server's seed identifies it.
    pub by_handshake: bool,
}

impl Report {
    /// Reports on a file's bytes. A file that opens nothing has a report too, with its `problem`.
    /// Only a file that could not be understood is an error.
    pub fn new(name: &str, bytes: &[u8]) -> Result<Report, KeyError> {
        let (format, contents) = read_any(name, bytes)?;
        let problem = check_opens_something(name, format, &contents);
        let mut notes = contents.notes;
        for key in &contents.keys {
            notes.extend(
                find_doubts(key.modulus())
                    .map(|doubt| format!("{}: {doubt}", name_server(key.service()))),
            );
        }
        Ok(Report {
            file: name.to_owned(),
            format,
            keys: contents.keys.iter().map(KeyReport::new).collect(),
            public: contents.public.iter().map(PublicReport::new).collect(),
            sessions: contents.sessions.iter().map(SessionReport::new).collect(),
            notes,
            problem,
        })
    }

    /// Whether the file opens anything.
    pub fn opens(&self) -> bool {
        self.problem.is_none()
    }
}

impl KeyReport {
    fn new(key: &PrivateKey) -> KeyReport {
        let prime = is_probable_prime(key.modulus());
        KeyReport {
            service: key.service(),
            fingerprint: key.fingerprint(),
            modulus_bits: key.modulus_bits(),
            exponent_bits: key.exponent_bits(),
            prime,
            safe_prime: prime && half_is_prime(key.modulus()),
            exponent_below_modulus: key.exponent() < key.modulus(),
            generator: key.generator(),
        }
    }
}

impl PublicReport {
    fn new(half: &PublicHalf) -> PublicReport {
        PublicReport {
            service: half.service(),
            fingerprint: half.fingerprint(),
            modulus_bits: half.modulus_bits(),
        }
    }
}

impl SessionReport {
    fn new(line: &SessionLine) -> SessionReport {
        SessionReport {
            service: line.service,
            client: line.client,
            server: line.server,
            by_handshake: line.y.is_some() || line.seed.is_some(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", printable(&self.file), self.format)?;
        for key in &self.keys {
            writeln!(f, "  {key}")?;
        }
        for half in &self.public {
            writeln!(f, "  {half}")?;
        }
        for session in &self.sessions {
            writeln!(f, "  {session}")?;
        }
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
        }
        match &self.problem {
            Some(problem) => writeln!(f, "  opens nothing: {}", problem.text()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for KeyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prime = match (self.safe_prime, self.prime) {
            (true, _) => "safe prime",
            (_, true) => "prime",
            _ => "NOT a prime",
        };
        let KeyReport { fingerprint, modulus_bits, exponent_bits, .. } = self;
        write!(
            f,
            "{:<10}  N {fingerprint}…, {modulus_bits} bits, {prime}",
            name_server(self.service)
        )?;
        write!(f, "; private exponent of {exponent_bits} bits")?;
        if !self.exponent_below_modulus {
            f.write_str(", larger than N")?;
        }
        match (self.generator, self.service) {
            (Some(g), Some(service)) if g != service.generator() => {
                write!(f, "; g {g}, where {service} usually has {}", service.generator())
            }
            (Some(g), _) => write!(f, "; g {g}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for PublicReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PublicReport { service, fingerprint, modulus_bits } = self;
        write!(
            f,
            "{:<10}  N {fingerprint}…, {modulus_bits} bits; no private exponent",
            name_server(*service)
        )
    }
}

impl fmt::Display for SessionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<10}  one session", name_server(self.service))?;
        if let Some(client) = self.client {
            write!(f, ", client {client}")?;
        }
        if let Some(server) = self.server {
            write!(f, ", server {server}")?;
        }
        f.write_str(match (self.by_handshake, self.client.or(self.server)) {
            (true, _) => ", found by its handshake",
            (false, Some(_)) => ", found by its addresses",
            (false, None) => ", known by nothing: tried for every session",
        })
    }
}

fn name_server(service: Option<KeyService>) -> &'static str {
    service.map_or("any server", KeyService::name)
}
