//! From JSON to bytes.

use std::fmt;
use std::sync::Arc;

use super::decoder::Decoder;
use super::error::LibraryError;
use crate::proto::{AllSettings, LazyTables, MessageEncoder, NamedService};
use crate::table::Json;

/// Makes messages of JSON: the inverse of a [`Decoder`]. It computes what the JSON does not have,
/// such as counts and lengths.
///
/// ```
/// let mut encoder = moulsniff::Encoder::new()?;
/// let ping = r#"{"message": "Cli2Auth_PingRequest", "fields": {"ping_time_ms": 1, "trans_id": 2, "payload": "ff"}}"#;
/// let bytes = encoder.encode_as("moul.auth.client", ping)?;
/// assert_eq!(bytes, [0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0xff]);
/// # Ok::<(), moulsniff::Error>(())
/// ```
pub struct Encoder {
    pub(super) tables: Arc<[LazyTables]>,
    pub(super) settings: AllSettings,
    pub(super) encoder: MessageEncoder,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl Decoder {
    /// An encoder for the same tables: the way back from JSON to bytes.
    ///
    /// ```
    /// let decoder = moulsniff::Decoder::new().tables("examples/protocols/redis.table")?;
    /// let record = decoder.decode("redis", b"PING\r\n")?.remove(0);
    /// let bytes = decoder.encoder()?.encode(&record.json())?;
    /// assert_eq!(bytes.as_deref(), Some(record.bytes()));
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    ///
    /// # Errors
    /// Something that was given to the decoder is wrong.
    pub fn encoder(&self) -> Result<Encoder, LibraryError> {
        let (tables, settings) = self.tables_and_settings()?;
        Ok(Encoder::with(tables, settings))
    }
}

impl Encoder {
    /// An encoder with the built-in tables. [`Decoder::encoder`] makes one with others.
    ///
    /// ```
    /// assert!(moulsniff::Encoder::new().is_ok());
    /// ```
    ///
    /// # Errors
    /// None with the built-in tables.
    pub fn new() -> Result<Encoder, LibraryError> {
        Decoder::new().encoder()
    }

    pub(super) fn with(tables: Arc<[LazyTables]>, settings: AllSettings) -> Encoder {
        let encoder = MessageEncoder::new(&tables, &settings, false);
        Encoder { tables, settings, encoder }
    }

    /// Demands every field, also one that has a default.
    ///
    /// ```
    /// let mut encoder = moulsniff::Encoder::new()?.exact();
    /// let ping =
    ///     r#"{"message": "Cli2Auth_PingRequest", "fields": {"trans_id": 2, "payload": ""}}"#;
    /// let error = encoder.encode(ping).err().ok_or("a field is missing")?;
    /// assert_eq!(error.to_string(), "fields.ping_time_ms: is missing: u32");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn exact(self) -> Encoder {
        let encoder = MessageEncoder::new(&self.tables, &self.settings, true);
        Encoder { encoder, ..self }
    }

    /// The bytes of a message: of a record as [`Record::json`](crate::Record::json) gives it, or as
    /// the program prints it. `None` if the record is an event.
    ///
    /// ```
    /// let mut encoder = moulsniff::Encoder::new()?;
    /// for record in moulsniff::Decoder::new().open("captures/moul/golden.pcap")? {
    ///     let record = record?;
    ///     if let Some(bytes) = encoder.encode(&record.json())? {
    ///         assert_eq!(bytes, record.bytes());
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The text is no JSON, or its fields are not those of the message. The error's text begins
    /// with the path of what is wrong.
    pub fn encode(&mut self, json: &str) -> Result<Option<Vec<u8>>, LibraryError> {
        let json = Json::parse(json)?;
        let message = self.encoder.encode(&self.tables, &json, None)?;
        Ok(message.map(|message| message.bytes))
    }

    /// The same for JSON that does not say its service and its direction. `name` has them, as in
    /// `moul.auth.client`.
    ///
    /// ```
    /// let mut encoder = moulsniff::Encoder::new()?;
    /// let fetch =
    ///     r#"{"message": "Cli2Auth_VaultNodeFetch", "fields": {"trans_id": 7, "node_id": 1001}}"#;
    /// let bytes = encoder.encode_as("moul.auth.client", fetch)?;
    /// assert_eq!(bytes, [0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0]);
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`encode`](Self::encode), and there may be no such service.
    pub fn encode_as(&mut self, name: &str, json: &str) -> Result<Vec<u8>, LibraryError> {
        let of = NamedService::find(&self.tables, name)?;
        let json = Json::parse(json)?;
        let message = self.encoder.encode(&self.tables, &json, Some(of))?;
        Ok(message.map_or_else(Vec::new, |message| message.bytes))
    }
}
