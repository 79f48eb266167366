//! Errors of reading and writing captures, each on one line: the file, the position, what was
//! expected.
//!
//! They concern the capture file alone. Damage in the captured traffic is never an error of this
//! kind.

use std::fmt;
use std::io;

use crate::captured::{Escaped, is_control, system_text};

/// Why a capture could not be read, or not to its end. Its text is one line for people.
#[derive(Debug)]
pub struct CaptureError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    file: String,
    at: u64,
    packing: Option<Packing>,
    problem: CaptureProblem,
}

/// How a capture file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// RFC 1952, one or more members.
    Gzip,
    /// RFC 8878, one or more frames.
    Zstd,
}

/// What is wrong, without the file and the position.
#[derive(Debug)]
#[non_exhaustive]
pub enum CaptureProblem {
    /// The file could not be opened.
    Open(io::Error),
    /// The path names a folder.
    Folder,
    /// The file has 0 bytes.
    Empty,
    /// The file does not begin like a capture of any known format.
    NotACapture {
        /// The first bytes, at most 4; none of a text, which may be a key.
        first: Vec<u8>,
        /// What the file looks like instead.
        looks_like: Option<&'static str>,
    },
    /// The file ends within a header, a packet or a block.
    Cut {
        /// Within what it ends.
        expected: &'static str,
        /// How many bytes that should have.
        wanted: u64,
        /// How many of them are there.
        got: u64,
    },
    /// A length field holds more than the limit.
    TooLong {
        /// What has the length.
        what: &'static str,
        /// The length it claims.
        length: u64,
        /// The length allowed.
        limit: u64,
    },
    /// Anything else that no intact capture holds: what was expected and what was found.
    Damaged(String),
    /// The compressed data ends early.
    PackingCut,
    /// The compressed data is damaged: the message of the decoder.
    PackingDamaged(String),
    /// The operating system refused to read on.
    Read(io::Error),
    /// The operating system refused to write the output.
    Write(io::Error),
}

/// A problem and where it is: everything but the file's name.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: u64,
    pub(super) problem: CaptureProblem,
}

/// The result of everything that reads a file without knowing its name.
pub(super) type ReadResult<T> = Result<T, Fault>;

impl CaptureError {
    pub(super) fn new(
        file: &str,
        packing: Option<Packing>,
        at: u64,
        problem: CaptureProblem,
    ) -> Self {
        Self(Box::new(Inner { file: printable(file), at, packing, problem }))
    }

    /// Whether the system could not read the file, of which nothing is known then.
    pub fn is_of_reading(&self) -> bool {
        matches!(self.problem(), CaptureProblem::Read(_))
    }

    /// The name of the file, as it was given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// The byte position, from 0; of a compressed file, in its unpacked data.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.0.at
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &CaptureProblem {
        &self.0.problem
    }
}

impl Fault {
    pub(super) fn new(at: u64, problem: CaptureProblem) -> Self {
        Self { at, problem }
    }

    pub(super) fn cut(at: u64, expected: &'static str, wanted: u64, got: u64) -> Self {
        Self::new(at, CaptureProblem::Cut { expected, wanted, got })
    }

    pub(super) fn damaged(at: u64, text: impl Into<String>) -> Self {
        Self::new(at, CaptureProblem::Damaged(text.into()))
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.problem {
            CaptureProblem::Open(error)
            | CaptureProblem::Read(error)
            | CaptureProblem::Write(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        write!(f, "{}: ", Escaped(&inner.file))?;
        match &inner.problem {
            CaptureProblem::Open(_) | CaptureProblem::Folder | CaptureProblem::Write(_) => {}
            _ => write!(f, "at byte {}{}: ", inner.at, inner.unpacked())?,
        }
        write!(f, "{}", inner.problem)
    }
}

impl Inner {
    fn unpacked(&self) -> &'static str {
        match self.packing {
            Some(_) => " of the unpacked data",
            None => "",
        }
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

impl fmt::Display for CaptureProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => match error.kind() {
                io::ErrorKind::NotFound => write!(f, "expected a capture file: no such file"),
                io::ErrorKind::PermissionDenied => {
                    write!(f, "expected a capture file: permission denied")
                }
                _ => write!(f, "expected a capture file: {}", one_line(error)),
            },
            Self::Folder => write!(f, "expected a capture file: this is a folder"),
            Self::Empty => write!(f, "expected a capture, got 0 bytes: the file is empty"),
            Self::NotACapture { first, looks_like } => not_a_capture(f, first, *looks_like),
            Self::Cut { expected, wanted, got } => {
                write!(f, "expected {expected} of {wanted} bytes, got {got}: the file is cut")
            }
            Self::TooLong { what, length, limit } => {
                write!(
                    f,
                    "expected {what} of at most {limit} bytes, its length field says {length}"
                )
            }
            Self::Damaged(text) => f.write_str(text),
            Self::PackingCut => {
                write!(f, "expected more compressed data, got none: the file is cut")
            }
            Self::PackingDamaged(text) => write!(f, "the compressed data is damaged: {text}"),
            Self::Read(error) => write!(f, "reading failed: {}", one_line(error)),
            Self::Write(error) => write!(f, "writing failed: {}", one_line(error)),
        }
    }
}

fn not_a_capture(
    f: &mut fmt::Formatter<'_>,
    first: &[u8],
    looks_like: Option<&str>,
) -> fmt::Result {
    write!(f, "expected a pcap or pcapng capture")?;
    for (at, byte) in first.iter().enumerate() {
        write!(f, "{} {byte:02x}", if at == 0 { ", got" } else { "" })?;
    }
    match looks_like {
        Some(what) => write!(f, ": this looks like {what}"),
        None => Ok(()),
    }
}

fn one_line(error: &io::Error) -> String {
    printable(&system_text(error))
}

/// `text` with its control characters replaced, so that an error stays on one line whatever the
/// name of the file is.
fn printable(text: &str) -> String {
    text.chars().map(|c| if is_control(c) { '\u{fffd}' } else { c }).collect()
}
