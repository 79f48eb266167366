//! The properties of a record that need no path: its place in the capture, its sender, its name.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::OwnedRecord;
use crate::facts::{InfoSource, definition, refused};
use crate::print::format_time;
use crate::record::{Body, MessageView, StoredBody, event_word};
use crate::session::{Reply, Side, Transport};

impl OwnedRecord {
    /// Its number, from 1, counted before any filter.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.number(), 31);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn number(&self) -> u64 {
        self.stored.head.number
    }

    /// The number of the frame that completed it, from 1, as Wireshark numbers it; 0 for a message
    /// without a capture.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.frame(), 35);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn frame(&self) -> u64 {
        self.stored.head.at.frame
    }

    /// When that frame was captured.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// let since_1970 = record.time().duration_since(std::time::UNIX_EPOCH)?;
    /// assert_eq!(since_1970.as_millis(), 1_700_000_000_034);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn time(&self) -> SystemTime {
        let time = self.stored.head.at.time;
        let whole = Duration::from_secs(time.seconds.unsigned_abs());
        let at = if time.seconds < 0 {
            UNIX_EPOCH.checked_sub(whole)
        } else {
            UNIX_EPOCH.checked_add(whole)
        };
        at.and_then(|at| at.checked_add(Duration::from_nanos(time.nanos.into())))
            .unwrap_or(UNIX_EPOCH)
    }

    /// The same in RFC 3339, with the capture's own number of decimals.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.time_text(), "2023-11-14T22:13:20.034000Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn time_text(&self) -> String {
        let mut text = String::new();
        format_time(self.stored.head.at.time, &mut text);
        text
    }

    /// TCP or UDP.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.transport(), moulsniff::Transport::Tcp);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transport(&self) -> Transport {
        self.stored.head.transport
    }

    /// The stream's number, from 0, as Wireshark counts the streams of a transport.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.stream(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stream(&self) -> u32 {
        self.stored.head.stream
    }

    /// The sender.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.src().to_string(), "10.9.0.1:14617");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn src(&self) -> SocketAddr {
        self.stored.head.src
    }

    /// The receiver.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.dst().port(), 50001);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dst(&self) -> SocketAddr {
        self.stored.head.dst
    }

    /// Which side sent it.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.from(), moulsniff::Side::Server);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from(&self) -> Side {
        self.stored.head.from
    }

    /// The protocol's name.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.protocol(), "moul");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn protocol(&self) -> &str {
        self.stored.head.protocol
    }

    /// The service's name; empty for a message without a capture.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.service(), "auth");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn service(&self) -> &str {
        &self.stored.service
    }

    /// The message's name; `None` for an event.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.message(), Some("Auth2Cli_AcctSetPlayerReply"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn message(&self) -> Option<&str> {
        self.is_message().then_some(self.stored.text.as_str())
    }

    /// The event's name, such as `gap` or `stream_end`; `None` for a message.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.last().ok_or("none")??;
    /// assert_eq!(record.event(), Some("stream_end"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn event(&self) -> Option<&'static str> {
        self.view(|record| event_word(&record.body)).filter(|word| !word.is_empty())
    }

    /// The text of an event for people. `None` for a message.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.last().ok_or("none")??;
    /// assert_eq!(record.event(), Some("stream_end"));
    /// assert_eq!(record.text(), Some("still open at the capture's end"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn text(&self) -> Option<&str> {
        match &self.stored.body {
            StoredBody::Message { .. } => None,
            StoredBody::Event(event) => Some(&event.text),
            StoredBody::StreamEnd { .. } => Some(&self.stored.text),
        }
    }

    /// The message's number as on the wire, where it has one.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.type_number(), Some(7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn type_number(&self) -> Option<u64> {
        match self.stored.body {
            StoredBody::Message { number, .. } => number,
            _ => None,
        }
    }

    /// The message's bytes, decrypted; empty for an event.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.bytes(), [7, 0, 6, 0, 0, 0, 14, 0, 0, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bytes(&self) -> &[u8] {
        &self.stored.bytes
    }

    /// Offset of the message's first byte in its direction of the stream; 0 in a datagram, and for
    /// an event.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.offset(), 228);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offset(&self) -> u64 {
        match self.stored.body {
            StoredBody::Message { offset, .. } => offset,
            _ => 0,
        }
    }

    /// The number of the record that this one answers.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.reply_to(), Some(30));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reply_to(&self) -> Option<u64> {
        Some(self.reply()?.record)
    }

    /// The time since the record that this one answers.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.elapsed(), Some(std::time::Duration::from_millis(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn elapsed(&self) -> Option<Duration> {
        let nanos = self.reply()?.nanos;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
    }

    /// Why the message refuses its request, in a word: the name of the result, or its number, or
    /// the message's own name. `None` if it does not.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().open("captures/moul/golden.pcap")?.nth(30).ok_or("none")??;
    /// assert_eq!(record.refused().as_deref(), Some("kNetErrPlayerNotFound"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refused(&self) -> Option<String> {
        self.view(|record| {
            let Body::Message { message, tables, tree } = &record.body else { return None };
            let values = MessageView { tables, tree, bytes: message.bytes };
            let refused = refused(definition(message.name, tables, tree)?, &values)?;
            Some(refused.reason(message.name.raw(), &values))
        })?
    }

    /// What the message carries, where its name does not say it: the class of an object, a method,
    /// a kind, an error code.
    ///
    /// ```
    /// let records = moulsniff::Decoder::new().open("captures/intermud3/i3_edge_small.pcapng")?;
    /// let mut carried = records.flatten().filter_map(|record| record.carries());
    /// assert_eq!(carried.next().as_deref(), Some("bad-pkt"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn carries(&self) -> Option<String> {
        self.view(|record| {
            let Body::Message { message, tables, tree } = &record.body else { return None };
            let def = definition(message.name, tables, tree);
            let source = InfoSource::new(
                message,
                def,
                MessageView { tables, tree, bytes: message.bytes },
                false,
            );
            Some(source.carried()?.into_owned())
        })?
    }

    fn is_message(&self) -> bool {
        matches!(self.stored.body, StoredBody::Message { .. })
    }

    fn reply(&self) -> Option<Reply> {
        match self.stored.body {
            StoredBody::Message { reply, .. } => reply,
            _ => None,
        }
    }
}
