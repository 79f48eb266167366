//! The settings for decoding (keys, tables, bounds), and the way from them to the records of a
//! capture or of bytes.

use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use super::error::{ErrorKind, LibraryError};
use super::files;
use super::owned::{OwnedRecord, RecordContext};
use super::records::{Reader, Records};
use crate::capture::{Capture, Source};
use crate::captured::file_name;
use crate::filter::Filter;
use crate::flow::FlowLimits;
use crate::pipeline::{DecodeAs, Setup};
use crate::proto::{
    AllSettings, LazyTables, NamedService, OptionFile, OptionKind, OptionSpec, OptionValues,
    PROTOCOLS, Protocol, all_tables, decode_named,
};
use crate::session::Options;
use crate::suggest::suggestion;
use crate::table::{MAX_TABLE_BYTES, TableSource};
use crate::texts;

/// How to decode captures: the keys, tables and bounds. One decoder serves any number of captures.
///
/// ```
/// let decoder = moulsniff::Decoder::new().keys("keys/shard.keys")?;
/// let mut logins = 0;
/// for record in decoder.open("captures/moul/golden.pcap")? {
///     logins += u32::from(record?.message() == Some("Cli2Auth_AcctLoginRequest"));
/// }
/// assert_eq!(logins, 1);
/// # Ok::<(), moulsniff::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Decoder {
    values: OptionValues,
    tables: Vec<TableSource>,
    decode_as: Vec<String>,
    filter: Option<String>,
    redact: bool,
    options: Options,
    limits: FlowLimits,
    threads: Option<usize>,
}

impl Decoder {
    /// A decoder without keys, with the built-in tables and the bounds that the program has.
    ///
    /// ```
    /// let records = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?;
    /// assert_eq!(records.count(), 75);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Adds a key file, or those of a folder, of any kind that the program's `--keys` takes.
    ///
    /// ```
    /// let decoder =
    ///     moulsniff::Decoder::new().keys("keys/shard.keys")?.keys("keys/dirtsand.ini")?;
    /// let mut records = decoder.open("captures/moul/kind_game.pcap")?.filter_map(Result::ok);
    /// assert!(records.any(|record| record.event() == Some("key")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The file cannot be read. What it holds is looked at when a capture is opened.
    pub fn keys(self, path: impl AsRef<Path>) -> Result<Decoder, LibraryError> {
        self.file("keys", path)
    }

    /// Adds a file, or those of a folder, for an option of the program, by the option's name
    /// without hyphens.
    ///
    /// ```
    /// let decoder = moulsniff::Decoder::new().file("keys", "keys/moulars.toml")?;
    /// assert!(moulsniff::Decoder::new().file("kyes", "keys/moulars.toml").is_err());
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such option, or the file cannot be read.
    pub fn file(mut self, option: &str, path: impl AsRef<Path>) -> Result<Decoder, LibraryError> {
        let spec = spec(option)?;
        let path = path.as_ref();
        let OptionKind::Files(rule) = spec.kind else {
            return Err(LibraryError::new(
                ErrorKind::Given,
                format!("the option `{option}` takes a word and no file"),
            ));
        };
        let folder = path.is_dir().then(|| file_name(path));
        for file in files::named(path, rule.extension)? {
            let bytes = files::read(&file, rule.most_bytes)?;
            let file = OptionFile { name: file_name(&file), bytes, folder: folder.clone() };
            self.values.add_file(spec.name, file);
        }
        Ok(self)
    }

    /// Adds a file for an option of the program by its content; `name` is its name in errors.
    ///
    /// ```
    /// let keys = std::fs::read("keys/shard.keys")?;
    /// let decoder = moulsniff::Decoder::new().file_bytes("keys", "keys of the test", keys)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no such option.
    pub fn file_bytes(
        mut self,
        option: &str,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<Decoder, LibraryError> {
        self.values
            .add_file(spec(option)?.name, OptionFile { name: name.into(), bytes, folder: None });
        Ok(self)
    }

    /// Adds message tables from a file, or from the files of a folder that end in `.table`, as
    /// `--tables` does.
    ///
    /// ```
    /// let decoder = moulsniff::Decoder::new().tables("examples/protocols/redis.table")?;
    /// let records = decoder.decode("redis", b"PING\r\n")?;
    /// assert_eq!(records[0].protocol(), "redis");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The file cannot be read. What it holds is looked at when a capture is opened.
    pub fn tables(mut self, path: impl AsRef<Path>) -> Result<Decoder, LibraryError> {
        for file in files::named(path.as_ref(), Some("table"))? {
            let bytes = files::read(&file, MAX_TABLE_BYTES as u64)?;
            let name = file_name(&file);
            let text = String::from_utf8(bytes).map_err(|_| {
                LibraryError::new(ErrorKind::Table, format!("{name}: no UTF-8: tables are text"))
            })?;
            self.tables.push(TableSource { name, text: text.into() });
        }
        Ok(self)
    }

    /// Adds message tables from a text; `name` is its name in errors.
    ///
    /// ```
    /// let table = "protocol moul\n/// Asks for nothing.\nmessage auth client 9000 \
    ///              Cli2Auth_Nothing { trans_id: u32 }\n";
    /// let decoder = moulsniff::Decoder::new().table_text("mine", table);
    /// let records = decoder.decode("moul.auth.client", &[0x28, 0x23, 7, 0, 0, 0])?;
    /// assert_eq!(records[0].get("fields.trans_id").and_then(|id| id.as_i64()), Some(7));
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    pub fn table_text(mut self, name: impl Into<String>, text: impl Into<String>) -> Decoder {
        self.tables.push(TableSource { name: name.into(), text: text.into().into() });
        self
    }

    /// Decodes a port's connections as a protocol, without recognising them: `tcp:14000=moul`.
    ///
    /// ```
    /// let decoder = moulsniff::Decoder::new().decode_as("tcp:14617=moul");
    /// let first =
    ///     decoder.open("captures/moul/golden.pcap")?.next().ok_or("an empty capture")??;
    /// assert_eq!(first.protocol(), "moul");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decode_as(mut self, rule: impl Into<String>) -> Decoder {
        self.decode_as.push(rule.into());
        self
    }

    /// Keeps only the records that an expression keeps, in the language of the program's
    /// `--filter`.
    ///
    /// ```
    /// let decoder = moulsniff::Decoder::new().filter("refused");
    /// let first =
    ///     decoder.open("captures/moul/golden.pcap")?.next().ok_or("nothing was refused")??;
    /// assert_eq!(first.refused().as_deref(), Some("kNetErrPlayerNotFound"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn filter(self, expression: impl Into<String>) -> Decoder {
        Decoder { filter: Some(expression.into()), ..self }
    }

    /// Hides values that tables mark as secret, in values, spans, JSON and trees.
    ///
    /// ```
    /// let decoder =
    ///     moulsniff::Decoder::new().redact().filter("message == Cli2Auth_AcctLoginRequest");
    /// let login = decoder.open("captures/moul/golden.pcap")?.next().ok_or("no login")??;
    /// assert!(login.json().contains("<redacted, "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn redact(self) -> Decoder {
        Decoder { redact: true, ..self }
    }

    /// The largest message that is reassembled, in bytes (default 16 MiB). A larger one becomes an
    /// event `limit`.
    ///
    /// ```
    /// let decoder = moulsniff::Decoder::new().max_message(1 << 20);
    /// assert_eq!(decoder.open("captures/moul/golden.pcap")?.count(), 75);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_message(mut self, bytes: usize) -> Decoder {
        self.options.max_message = bytes;
        self
    }

    /// How many bytes of all streams together may wait for missing ones before them (default 32
    /// MiB). Beyond that, the missing bytes count as lost.
    ///
    /// ```
    /// let decoder = moulsniff::Decoder::new().max_waiting(1 << 20);
    /// assert_eq!(decoder.open("captures/moul/golden.pcap")?.count(), 75);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_waiting(mut self, bytes: usize) -> Decoder {
        self.limits.total_buffer = bytes;
        self
    }

    /// How many threads decode: 1, or none with 0, so that [`Records::next`](Iterator::next)
    /// decodes. Where the system has no threads, as in WebAssembly, it does so in any case.
    ///
    /// ```
    /// let decoder = moulsniff::Decoder::new().threads(0);
    /// assert_eq!(decoder.open("captures/moul/golden.pcap")?.count(), 75);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn threads(self, threads: usize) -> Decoder {
        Decoder { threads: Some(threads), ..self }
    }

    /// Opens a capture (pcap or pcapng; plain, gzip, or zstd with the feature `zstd`) and begins to
    /// decode it.
    ///
    /// ```
    /// for record in moulsniff::Decoder::new().open("captures/moul/golden.pcap")? {
    ///     println!("{}", record?.tree());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no such file, or something that was given to the decoder is wrong. What is wrong
    /// further on in the capture comes as an item of the iterator.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Records, LibraryError> {
        self.begin(Capture::open(path.as_ref())?)
    }

    /// Opens several captures as one, in this order: streams go on from one to the next.
    ///
    /// ```
    /// let rotated = ["captures/moul/golden.pcap", "captures/moul/kind_game.pcap"];
    /// let services: Vec<String> = moulsniff::Decoder::new()
    ///     .open_all(rotated)?
    ///     .filter_map(Result::ok)
    ///     .map(|record| record.service().to_owned())
    ///     .collect();
    /// assert!(services.contains(&"auth".to_owned()) && services.contains(&"game".to_owned()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Something that was given to the decoder is wrong. A capture that cannot be read comes as an
    /// item of the iterator.
    pub fn open_all<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Records, LibraryError> {
        self.begin(Capture::new(paths.into_iter().map(|path| Source::path(path.as_ref()))))
    }

    /// Decodes a capture while it comes from a reader, such as a pipe; `name` is its name in
    /// errors. Each record is there as soon as its last byte came.
    ///
    /// ```
    /// let pipe = std::fs::File::open("captures/moul/golden.pcap")?;
    /// assert_eq!(moulsniff::Decoder::new().read("a pipe", pipe)?.count(), 75);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Something that was given to the decoder is wrong.
    pub fn read(
        &self,
        name: &str,
        reader: impl Read + Send + 'static,
    ) -> Result<Records, LibraryError> {
        self.begin(Capture::from_reader(name, Box::new(reader)))
    }

    /// Decodes a capture that is in memory.
    ///
    /// ```
    /// let capture = std::fs::read("captures/moul/kind_game.pcap")?;
    /// let records = moulsniff::Decoder::new().keys("keys/dirtsand.ini")?.bytes(capture)?;
    /// assert!(
    ///     records
    ///         .filter_map(Result::ok)
    ///         .any(|record| record.message() == Some("Cli2Game_JoinAgeRequest"))
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Something that was given to the decoder is wrong.
    pub fn bytes(&self, capture: Vec<u8>) -> Result<Records, LibraryError> {
        self.read("bytes", Cursor::new(capture))
    }

    /// Decodes messages that come without a capture: from a log, a debugger, a test. `name` is
    /// protocol, service and direction, as in `moul.auth.client`.
    ///
    /// ```
    /// let bytes = [0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0];
    /// let records = moulsniff::Decoder::new().decode("moul.auth.client", &bytes)?;
    /// assert_eq!(records[0].message(), Some("Cli2Auth_VaultNodeFetch"));
    /// assert_eq!(records[0].get("fields.node_id").and_then(|id| id.as_i64()), Some(1001));
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such service, or the bytes are not whole messages of it.
    pub fn decode(&self, name: &str, bytes: &[u8]) -> Result<Vec<OwnedRecord>, LibraryError> {
        let tables: Arc<[LazyTables]> = all_tables(self.tables.clone())?.into();
        let settings = AllSettings::new(&self.values, &mut |_| {})?;
        let context = Arc::new(RecordContext::new(Arc::clone(&tables), self.redact));
        let mut records = Vec::new();
        let named = NamedService::find(&tables, name)?;
        let (named, _) = named.decide_side(&[bytes.to_vec()], &settings)?;
        decode_named(named, bytes, &settings, &mut |message, tables, tree| {
            records.push(OwnedRecord::alone(
                &context,
                message,
                tables,
                tree,
                records.len() as u64 + 1,
            ));
        })
        .map_err(|error| {
            LibraryError::new(ErrorKind::Bytes, LibraryError::from(error).to_string())
        })?;
        Ok(records)
    }

    /// What an encoder needs.
    pub(super) fn tables_and_settings(
        &self,
    ) -> Result<(Arc<[LazyTables]>, AllSettings), LibraryError> {
        let tables = all_tables(self.tables.clone())?.into();
        Ok((tables, AllSettings::new(&self.values, &mut |_| {})?))
    }

    fn begin(&self, capture: Capture) -> Result<Records, LibraryError> {
        let capture = capture.converting(texts::convert);
        let setup = self.setup()?;
        let filter = self.compiled_filter(&setup)?;
        let context = RecordContext::new(Arc::clone(&setup.tables), self.redact);
        let reader = Reader { capture, setup, filter, context: Arc::new(context) };
        Ok(Records::begin(reader, self.threads != Some(0)))
    }

    pub(super) fn compiled_filter(&self, setup: &Setup) -> Result<Option<Filter>, LibraryError> {
        let compile = |text: &String| Filter::compile(text, &setup.tables, self.redact);
        Ok(self.filter.as_ref().map(compile).transpose()?)
    }

    #[cfg(feature = "answers")]
    pub(super) fn redacts(&self) -> bool {
        self.redact
    }

    pub(super) fn setup(&self) -> Result<Setup, LibraryError> {
        let tables: Arc<[LazyTables]> = all_tables(self.tables.clone())?.into();
        let protocols: Vec<&dyn Protocol> =
            tables.iter().map(|lazy| lazy.protocol() as _).collect();
        let rule = |text: &String| {
            let wrong = |why| LibraryError::new(ErrorKind::Given, format!("{text}: {why}"));
            DecodeAs::parse(text, &protocols).map_err(wrong)
        };
        let decode_as = self.decode_as.iter().map(rule).collect::<Result<Vec<_>, _>>()?;
        DecodeAs::agree(&decode_as).map_err(|why| LibraryError::new(ErrorKind::Given, why))?;
        Ok(Setup {
            tables,
            settings: AllSettings::new(&self.values, &mut |_| {})?,
            options: self.options,
            decode_as,
            limits: self.limits,
            max_held: self.limits.total_buffer,
            names: true,
            pseudonyms: None,
        })
    }
}

/// A protocol's option, by its name.
fn spec(option: &str) -> Result<&'static OptionSpec, LibraryError> {
    let mut all = PROTOCOLS.iter().flat_map(|protocol| protocol.options());
    all.clone().find(|spec| spec.name == option).ok_or_else(|| {
        let near = suggestion(option, all.by_ref().map(|spec| spec.name));
        LibraryError::new(ErrorKind::Given, format!("there is no option `{option}`{near}"))
    })
}
