//! Protocols: one folder each, and the trait by which all other code knows them.
//!
//! A protocol brings its tables, its recogniser, its sessions (`src/session` describes them), and
//! everything else that only it knows: options, key files, types with code, meanings of numbers.
//! This module knows nothing of packets or outputs. Of captures it only knows times.

mod alone;
mod declared;
mod encoded;
mod loaded;
mod named;
mod options;
#[macro_use]
mod registry;
mod secrets;
mod texts;

use crate::capture::Moment;
use crate::remark;
use crate::session::{Ends, Session, Settings, Start, Transport};
pub use alone::{MessageOrEvent, feed_alone, read_alone};
pub use declared::DeclaredProtocol;
pub use encoded::{EncodedMessage, MessageEncoder, Seal};
pub use loaded::{all_tables, load_tables};
pub use named::{NamedService, TakeMessage, decode_named, near_types};
pub use options::{FileRule, OptionFile, OptionKind, OptionSpec, OptionValues, SettingsError};
pub use secrets::{
    Fact, FactValue, Secrets, SecretsBlock, SecretsEntry, SecretsRefusal, SecretsReport,
};

pub use texts::{MAX_PIECE, TextEnds, TextFormat, TextPiece, TextReader};

use std::sync::OnceLock;

use crate::table::{
    EncodeError, Encoder, Evaluator, Meaning, Native, Service, TableError, TableSource, Tables,
    Written,
};

macro_rules! declare {
    ($($folder:ident::$protocol:ident,)*) => {
        $(pub mod $folder;)*

        /// All protocols, in the order in which they are asked about a connection.
        pub static PROTOCOLS: &[&dyn Protocol] = &[$(&$folder::$protocol),*];
    };
}

with_protocols!(declare);

/// The protocol with a name.
pub fn protocol_named(name: &str) -> Option<&'static dyn Protocol> {
    PROTOCOLS.iter().copied().find(|p| p.name() == name)
}

/// The first bytes of a TCP connection, or the latest datagram of each side of a UDP one, before
/// its protocol is known.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// What the client sent so far, or its latest datagram.
    pub client: &'a [u8],
    /// What the server sent so far, or its latest datagram.
    pub server: &'a [u8],
    /// Both ends. Without a captured SYN, which of them is the client is a guess.
    pub ends: Ends,
    /// Whether these are the connection's first bytes: a SYN was captured.
    pub whole: bool,
    /// Whether this is the last question about this connection: no more bytes come, or the bound on
    /// waiting bytes is reached.
    pub last: bool,
    /// A server at one of the ends, if an earlier connection or the user's settings identified it.
    pub known: Option<Known<'a>>,
}

/// A server that an earlier connection of the capture identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<'a> {
    /// The protocol it speaks.
    pub protocol: &'static str,
    /// The service it offers, if it is only one.
    pub service: Option<&'a str>,
    /// Whether it is at the end that is taken for the client.
    pub swapped: bool,
}

/// Whether a connection belongs to a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is not.
    No,
    /// More bytes are needed to decide.
    Maybe,
    /// It is.
    Yes {
        /// Whether the side that was taken for the client is the server.
        swapped: bool,
    },
}

/// What the user's settings say of a connection, before its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The service, if it is known.
    pub service: Option<&'static str>,
    /// Whether the end that is taken for the client is the server.
    pub swapped: bool,
}

/// Names that records of a protocol may have although no table declares them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordNames {
    /// Messages.
    pub messages: &'static [&'static str],
    /// Services.
    pub services: &'static [&'static str],
    /// Services of the tables that no record has, each with what its records have in its place.
    pub other_services: &'static [(&'static str, &'static str)],
    /// Whether senders choose the message names, so that any name may occur.
    pub any_message: bool,
    /// Fields whose name is followed by `_` and a number.
    pub numbered_fields: &'static [&'static str],
}

/// A protocol: its tables, how it is recognised, its sessions, and everything else that only it
/// knows.
///
/// Code outside the protocol's folder knows it by this trait alone. The registry holds one value of
/// the type, which all threads use.
///
/// # Order of the calls
///
/// [`options`](Protocol::options) is asked while the command line is read.
/// [`settings`](Protocol::settings) comes once a run, before any frame; its value is given to every
/// later call that takes settings, and [`Secrets::carry`] may add to it while the capture is read.
/// [`prepare`](Protocol::prepare) comes once for each evaluator, before its first message. The two
/// `recognise` calls come for each new connection, again and again as bytes arrive, until one
/// protocol answers [`Verdict::Yes`] or all [`Verdict::No`]; then [`session`](Protocol::session)
/// comes once. Everything else may be asked at any time, and must be cheap.
pub trait Protocol: Sync {
    /// The name, as in the JSON: lower-case letters and digits.
    fn name(&self) -> &str;
    /// The embedded tables.
    fn sources(&self) -> Vec<TableSource>;
    /// The types of the tables that need code.
    fn natives(&self) -> &'static [Native] {
        &[]
    }
    /// The words that tables may write after `shown` beside the general ones, each with what trees
    /// append to such a number.
    fn meanings(&self) -> &'static [Meaning] {
        &[]
    }
    /// The usual ports of its servers. They are not used to recognise a connection. If nothing was
    /// recognised, they tell which protocol to suggest.
    fn usual_ports(&self) -> &[(Transport, u16)] {
        &[]
    }
    /// The transports of its connections. Bytes that are decoded without a capture have the first
    /// one.
    fn transports(&self) -> &[Transport] {
        &[Transport::Tcp]
    }
    /// Converts a table file in this protocol's own syntax into the table language. `None` if it is
    /// not in that syntax.
    fn foreign_tables(&self, _name: &str, _text: &str) -> Option<Result<TableSource, TableError>> {
        None
    }
    /// Whether the ports of a service (`service NAME when port N`) select it for a connection.
    fn services_by_port(&self) -> bool {
        false
    }
    /// Names that filters have to accept although no table declares them, and names that they must
    /// not accept.
    fn record_names(&self) -> RecordNames {
        RecordNames::default()
    }

    /// Example command lines for this protocol, for the help.
    fn command_lines(&self) -> &'static [&'static str] {
        &[]
    }
    /// The options that the protocol has on the command line.
    fn options(&self) -> &'static [OptionSpec] {
        &[]
    }
    /// Makes the settings from the given options. `warn` prints a warning to the user, one line a
    /// call.
    fn settings(
        &self,
        _values: &OptionValues,
        _warn: &mut dyn FnMut(String),
    ) -> Result<Settings, SettingsError> {
        Ok(Settings::default())
    }
    /// The protocol's handling of secrets, if it has encrypted connections.
    fn secrets(&self) -> Option<&'static dyn Secrets> {
        None
    }
    /// What the settings say of a connection between two ends. A key for one connection also tells
    /// which protocol it speaks.
    fn expects(&self, _ends: Ends, _settings: &Settings) -> Option<Expected> {
        None
    }
    /// The format of texts that hold this protocol's traffic, if there is one.
    fn text_format(&self) -> Option<&'static dyn TextFormat> {
        None
    }
    /// Decrypts a file that was transferred encrypted, or says why it cannot. `None` if the file is
    /// not encrypted. `keys` are the numbers that messages of the capture brought (`file key` in
    /// tables), the likeliest first.
    fn open_file(&self, _bytes: &[u8], _keys: &[Vec<u32>]) -> Option<Result<Vec<u8>, String>> {
        None
    }
    /// Makes an evaluator ready for this protocol's types with code.
    fn prepare(&self, _evaluator: &mut Evaluator, _settings: &Settings) {}

    /// Writes a message, if the protocol's own code reads the frames of its messages, or their
    /// values. `None` if the tables alone say how it is written.
    fn encode(
        &self,
        _tables: &Tables,
        _encoder: &mut Encoder,
        _message: Written<'_>,
    ) -> Option<Result<Vec<u8>, EncodeError>> {
        None
    }

    /// Learns from a message that was written what later ones need, as a session does from one that
    /// was read. `stream` is the number of its connection.
    fn learn(
        &self,
        _tables: &Tables,
        _encoder: &mut Encoder,
        _message: &EncodedMessage,
        _stream: &str,
    ) {
    }

    /// What encrypts the messages of a connection to a service, when a capture is written. `None`
    /// if the protocol encrypts nothing.
    fn seal(&self, _service: &str) -> Option<Box<dyn Seal>> {
        None
    }

    /// Whether a TCP connection is this protocol's. The tables are compiled when they are first
    /// asked for: most connections need none.
    fn recognise_tcp(&self, _opening: &Opening<'_>, _tables: &LazyTables) -> Verdict {
        Verdict::No
    }
    /// Whether a conversation of datagrams is this protocol's.
    fn recognise_udp(&self, _opening: &Opening<'_>, _tables: &LazyTables) -> Verdict {
        Verdict::No
    }
    /// A session for a connection that was recognised, or that the user wants decoded as this
    /// protocol.
    fn session(&self, start: &Start<'_>, tables: &Tables) -> Box<dyn Session>;
}

impl dyn Protocol + '_ {
    /// The transport of bytes that are decoded without a capture.
    pub fn transport(&self) -> Transport {
        self.transports().first().copied().unwrap_or(Transport::Tcp)
    }

    /// The same, of bytes of a service. Messages that describe themselves come in streams.
    pub fn transport_of(&self, service: Option<&Service>) -> Transport {
        match service {
            Some(service) if service.positional => Transport::Tcp,
            _ => self.transport(),
        }
    }
}

/// The settings of all protocols.
#[derive(Debug)]
pub struct AllSettings(Vec<Settings>);

impl AllSettings {
    /// Makes the settings of every protocol from the given options.
    ///
    /// # Errors
    /// The error of the first protocol that cannot work with its options.
    pub fn new(
        values: &OptionValues,
        warn: &mut dyn FnMut(String),
    ) -> Result<AllSettings, SettingsError> {
        PROTOCOLS
            .iter()
            .map(|protocol| protocol.settings(values, warn))
            .collect::<Result<_, _>>()
            .map(AllSettings)
    }

    /// Hands secrets that a capture carries, in a block of type `kind`, to their protocol. Returns
    /// a warning for the user, if there is one.
    pub fn carry(&mut self, kind: u32, secrets: &[u8]) -> Option<String> {
        let of = |protocol: &&&dyn Protocol| {
            protocol.secrets().is_some_and(|own| own.block_type() == kind)
        };
        let protocol = PROTOCOLS.iter().find(of)?;
        protocol.secrets()?.carry(secrets, self.named_mut(protocol.name())?)
    }

    /// Replaces the settings of one protocol and keeps those of the others.
    #[must_use]
    pub fn with(mut self, protocol: &str, settings: Settings) -> AllSettings {
        if let Some(place) = self.named_mut(protocol) {
            *place = settings;
        }
        self
    }

    /// The settings of the protocol that some tables belong to.
    pub fn of(&self, tables: &LazyTables) -> &Settings {
        self.0.get(tables.place).unwrap_or(&Settings::NONE)
    }

    /// The settings of a protocol by its name, to be changed; `None` if there is no such protocol.
    pub fn named_mut(&mut self, protocol: &str) -> Option<&mut Settings> {
        self.0.get_mut(place(protocol)?)
    }

    /// The settings of a protocol by its name.
    pub fn named(&self, protocol: &str) -> &Settings {
        place(protocol).and_then(|at| self.0.get(at)).unwrap_or(&Settings::NONE)
    }
}

impl Default for AllSettings {
    /// Settings without any option.
    fn default() -> Self {
        AllSettings(PROTOCOLS.iter().map(|_| Settings::default()).collect())
    }
}

/// The index of a protocol in the registry.
fn place(protocol: &str) -> Option<usize> {
    PROTOCOLS.iter().position(|p| p.name() == protocol)
}

/// A protocol's tables, compiled when they are first needed.
pub struct LazyTables {
    protocol: &'static dyn Protocol,
    /// The index of the protocol in the registry.
    place: usize,
    further: Vec<TableSource>,
    compiled: OnceLock<Tables>,
}

impl LazyTables {
    /// The tables of a protocol with further sources on top; these are checked at once.
    pub fn new(
        protocol: &'static dyn Protocol,
        further: Vec<TableSource>,
    ) -> Result<LazyTables, TableError> {
        let place = place(protocol.name()).unwrap_or(usize::MAX);
        let lazy = LazyTables { protocol, place, further, compiled: OnceLock::new() };
        if !lazy.further.is_empty() {
            let tables = load_tables(protocol, &lazy.further)?;
            let _ = lazy.compiled.set(tables);
        }
        Ok(lazy)
    }

    /// The tables of a protocol that some files declare as a whole. It stays in memory until the
    /// program ends: a user declares a handful of protocols, and every output refers to them by
    /// reference.
    pub fn declared(name: &str, sources: Vec<TableSource>) -> Result<LazyTables, TableError> {
        let tables = Tables::load(name, sources.clone(), DeclaredProtocol::NATIVES)?;
        let first = sources.first().map_or("", |source| source.name.as_str());
        let protocol = DeclaredProtocol::of(&tables).ok_or_else(|| {
            TableError::unquoted(first, format!("no file declares the protocol `{name}`"))
        })?;
        let protocol: &'static DeclaredProtocol = Box::leak(Box::new(protocol));
        let lazy =
            LazyTables { protocol, place: usize::MAX, further: sources, compiled: OnceLock::new() };
        let _ = lazy.compiled.set(tables);
        Ok(lazy)
    }

    /// The remark that the further sources have texts of which none will be hidden.
    pub fn unmarked(&self) -> Option<TableError> {
        let embedded = self.protocol.sources().len();
        if self.further.is_empty() { None } else { self.get().unmarked(embedded) }
    }

    /// The tables of a protocol, by its name.
    pub fn of<'a>(all: &'a [LazyTables], protocol: &str) -> Option<&'a LazyTables> {
        all.iter().find(|lazy| lazy.protocol.name() == protocol)
    }

    /// The protocol.
    pub fn protocol(&self) -> &'static dyn Protocol {
        self.protocol
    }

    /// The sources on top of the embedded ones.
    pub fn further(&self) -> &[TableSource] {
        &self.further
    }

    /// The compiled tables. If the embedded ones do not compile, which a test rules out, the
    /// program ends with the place of the mistake: without tables it would decode nothing,
    /// silently.
    pub fn get(&self) -> &Tables {
        self.compiled.get_or_init(|| {
            load_tables(self.protocol, &self.further).unwrap_or_else(|error| defective(&error))
        })
    }
}

fn defective(error: &TableError) -> ! {
    remark::say(format_args!("moulsniff: this build's own tables do not compile\n{error}"));
    std::process::exit(1)
}
