//! Captures frames from a network interface, through the system's libpcap. Without the feature
//! `live`, every call returns an error that says so.

use std::fmt;

pub use system::{Live, interfaces};

/// A network interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its state, addresses and description, for people.
    pub about: String,
}

/// Packet counts of the system during a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Packets that matched the capture filter.
    pub received: u64,
    /// Packets that were dropped because a buffer was full.
    pub dropped: u64,
}

/// Why an interface cannot be captured on. Its text is one line.
#[derive(Clone, Debug)]
pub enum LiveError {
    /// The program was built without the feature `live`.
    NotBuilt,
    /// There is no such interface: its name, and the names of all interfaces.
    NoInterface(String, Vec<String>),
    /// The user has no permission to capture: the interface.
    NoRight(String),
    /// libpcap rejects the capture filter: the filter, and libpcap's message.
    Filter(String, String),
    /// Any other error: the interface, and libpcap's message.
    Other(String, String),
}

impl fmt::Display for LiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveError::NotBuilt => f.write_str(
                "this build cannot capture: build it with `cargo build --release --features live` \
                 (needs libpcap; Debian's libpcap-dev), or pipe: tcpdump -i IFACE -U -w - | \
                 moulsniff -",
            ),
            LiveError::NoInterface(name, known) => {
                let near = crate::suggest::suggestion(name, known.iter().map(String::as_str));
                write!(
                    f,
                    "there is no interface `{name}`{near}; there are {} (-D lists them)",
                    known.join(", ")
                )
            }
            LiveError::NoRight(name) => write!(
                f,
                "no right to capture on {name}: run with sudo, or give the program the right \
                 once: sudo setcap cap_net_raw,cap_net_admin=eip $(command -v moulsniff)"
            ),
            LiveError::Filter(filter, why) => {
                write!(
                    f,
                    "-f '{filter}': {why}; expected a capture filter such as 'tcp port 14617' \
                     (man pcap-filter)"
                )
            }
            LiveError::Other(name, why) => write!(f, "{name}: {why}"),
        }
    }
}

impl std::error::Error for LiveError {}

#[cfg(feature = "live")]
mod system {
    use super::super::{Frame, Time};
    use super::{Interface, LiveError, Taken};
    use pcap::{Active, Capture, Device, Error, Precision};

    /// Bytes captured of each packet; no link layer has longer ones.
    const SNAP_LEN: i32 = 262_144;
    /// Size of the kernel's buffer in bytes.
    const BUFFER: i32 = 16 << 20;
    /// Milliseconds for which the kernel collects packets before it passes them on. Passing on each
    /// packet at once would reserve a slot of the largest packet's size for each.
    const GATHER: i32 = 10;
    /// How long to sleep if there is no packet. Waiting in libpcap instead would delay the reaction
    /// to Ctrl-C.
    const WAIT: std::time::Duration = std::time::Duration::from_millis(5);

    /// A capture on an interface.
    pub struct Live {
        name: String,
        capture: Capture<Active>,
        link: u16,
        nanos: bool,
        frames: u64,
    }

    impl Live {
        /// Begins to capture the packets that match `filter`, a filter of libpcap's; all packets if
        /// it is empty.
        ///
        /// # Errors
        /// There is no such interface, the user has no permission, or libpcap rejects the filter.
        pub fn open(name: &str, filter: &str) -> Result<Live, LiveError> {
            let other = |e: Error| refused(name, &text(e));
            let ready = |precision| {
                let inactive = Capture::from_device(name).map_err(other)?;
                let ready =
                    inactive.promisc(true).snaplen(SNAP_LEN).buffer_size(BUFFER).timeout(GATHER);
                ready.precision(precision).open().and_then(Capture::setnonblock).map_err(other)
            };
            let (mut capture, nanos) = match ready(Precision::Nano) {
                Ok(capture) => (capture, true),
                Err(_) => (ready(Precision::Micro)?, false),
            };
            capture.filter(filter, true).map_err(|e| LiveError::Filter(filter.into(), text(e)))?;
            let link = match capture.get_datalink().0 {
                // `DLT_RAW` of most systems and of OpenBSD: `LINKTYPE_RAW` in files.
                12 | 14 => 101,
                other => u16::try_from(other).unwrap_or(u16::MAX),
            };
            Ok(Live { name: name.into(), capture, link, nanos, frames: 0 })
        }

        /// The next frame; `None` if none came for a short while.
        ///
        /// # Errors
        /// The interface was removed.
        pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, LiveError> {
            let packet = match self.capture.next_packet() {
                Ok(packet) => packet,
                Err(Error::TimeoutExpired) => {
                    std::thread::sleep(WAIT);
                    return Ok(None);
                }
                Err(error) => return Err(LiveError::Other(self.name.clone(), text(error))),
            };
            self.frames += 1;
            let fraction = u32::try_from(packet.header.ts.tv_usec).unwrap_or(0);
            let (nanos, digits) =
                if self.nanos { (fraction, 9) } else { (fraction.saturating_mul(1000), 6) };
            Ok(Some(Frame {
                number: self.frames,
                time: Time {
                    seconds: packet.header.ts.tv_sec,
                    nanos: nanos.min(999_999_999),
                    digits,
                },
                link: self.link,
                data: packet.data,
                wire_len: packet.header.len,
            }))
        }

        /// The system's packet counts so far.
        pub fn taken(&mut self) -> Taken {
            let stat = self.capture.stats().ok();
            stat.map_or_else(Taken::default, |s| Taken {
                received: s.received.into(),
                dropped: u64::from(s.dropped) + u64::from(s.if_dropped),
            })
        }
    }

    /// All interfaces.
    ///
    /// # Errors
    /// The system does not list them.
    pub fn interfaces() -> Result<Vec<Interface>, LiveError> {
        let devices = Device::list().map_err(|e| LiveError::Other("interfaces".into(), text(e)))?;
        Ok(devices
            .into_iter()
            .map(|device| {
                let addresses = device.addresses.iter().map(|a| a.addr.to_string());
                let state = if device.flags.is_up() { "up" } else { "down" };
                let about: Vec<String> =
                    [state.to_string()].into_iter().chain(addresses).chain(device.desc).collect();
                Interface { name: device.name, about: about.join(", ") }
            })
            .collect())
    }

    /// The error for an interface that could not be opened, by libpcap's message and by the
    /// interfaces that exist.
    fn refused(name: &str, words: &str) -> LiveError {
        let known: Vec<String> =
            interfaces().unwrap_or_default().into_iter().map(|i| i.name).collect();
        let lower = words.to_lowercase();
        if lower.contains("permi") || lower.contains("cap_net_raw") {
            LiveError::NoRight(name.into())
        } else if !known.iter().any(|k| k == name) {
            LiveError::NoInterface(name.into(), known)
        } else {
            LiveError::Other(name.into(), words.into())
        }
    }

    /// libpcap's message in one line.
    fn text(error: Error) -> String {
        let text = match error {
            Error::PcapError(text) => text,
            other => other.to_string(),
        };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[cfg(not(feature = "live"))]
mod system {
    use super::super::Frame;
    use super::{Interface, LiveError, Taken};
    use std::convert::Infallible;

    /// A capture on an interface. Without the feature `live` it has no values.
    pub struct Live(Infallible);

    impl Live {
        /// Fails: this build cannot capture.
        ///
        /// # Errors
        /// Always.
        pub fn open(_name: &str, _filter: &str) -> Result<Live, LiveError> {
            Err(LiveError::NotBuilt)
        }

        /// Never called, because there is no value to call it on.
        ///
        /// # Errors
        /// None.
        pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, LiveError> {
            match self.0 {}
        }

        /// Never called, because there is no value to call it on.
        pub fn taken(&mut self) -> Taken {
            match self.0 {}
        }
    }

    /// Fails: this build cannot capture.
    ///
    /// # Errors
    /// Always.
    pub fn interfaces() -> Result<Vec<Interface>, LiveError> {
        Err(LiveError::NotBuilt)
    }
}
