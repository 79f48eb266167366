//! The head of an HTTP message: its first line and its headers, by their places in the bytes.
//!
//! The crate `httparse` reads it. This file says where each part is, and how long the body is. It
//! knows no message.

use httparse::{EMPTY_HEADER, ParserConfig, Status};

/// A longer head is none.
pub(super) const MAX_HEAD: usize = 64 << 10;

/// The most headers of a message.
const MAX_HEADERS: usize = 128;

/// Where something is: its first byte, and how many it has.
pub(super) type Place = (usize, usize);

/// A head that is there from its first byte to the empty line that ends it.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// Bytes, the empty line included.
    pub(super) length: usize,
    pub(super) line: FirstLine,
    /// Names and values.
    pub(super) headers: Vec<(Place, Place)>,
}

/// The first line.
#[derive(Clone, Copy, Debug)]
pub(super) enum FirstLine {
    Request { method: Place, target: Place },
    Reply { status: u16, reason: Place },
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    /// This many bytes.
    Bytes(u64),
    /// Chunks, the last one empty.
    Chunks,
    /// It goes on until the connection ends.
    UntilEnd,
    /// The head states a length that is no number.
    Unreadable,
}

/// What is at the start of some bytes.
pub(super) enum HeadStep {
    Head(Head),
    /// More bytes are needed.
    Need,
    /// No head, with the reason.
    No(&'static str),
}

/// Reads the head at the start of some bytes.
pub(super) fn read(bytes: &[u8], is_reply: bool) -> HeadStep {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let place = |part: &[u8]| -> Place {
        (part.as_ptr().addr().saturating_sub(bytes.as_ptr().addr()), part.len())
    };
    let window = bytes.get(..MAX_HEAD).unwrap_or(bytes);
    let (parsed, line, found) = if is_reply {
        let mut reply = httparse::Response::new(&mut headers);
        let mut config = ParserConfig::default();
        config.allow_obsolete_multiline_headers_in_responses(true);
        config.allow_spaces_after_header_name_in_responses(true);
        let parsed = config.parse_response(&mut reply, window);
        let reason = reply.reason.map_or((0, 0), |reason| place(reason.as_bytes()));
        let line = FirstLine::Reply { status: reply.code.unwrap_or(0), reason };
        (parsed, line, reply.headers)
    } else {
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(window);
        let part = |text: Option<&str>| text.map_or((0, 0), |text| place(text.as_bytes()));
        let line = FirstLine::Request { method: part(request.method), target: part(request.path) };
        (parsed, line, request.headers)
    };
    match parsed {
        Ok(Status::Complete(length)) => {
            let headers =
                found.iter().map(|header| (place(header.name.as_bytes()), place(header.value)));
            HeadStep::Head(Head { length, line, headers: headers.collect() })
        }
        Ok(Status::Partial) if bytes.len() < MAX_HEAD => HeadStep::Need,
        Ok(Status::Partial) => HeadStep::No("the head of an HTTP message would be too long"),
        Err(httparse::Error::TooManyHeaders) => {
            HeadStep::No("the head of an HTTP message has too many headers")
        }
        Err(_) => HeadStep::No("no HTTP message begins here"),
    }
}

impl Head {
    /// The value of a header, by its name in lower case.
    pub(super) fn header<'b>(&self, bytes: &'b [u8], name: &str) -> Option<&'b [u8]> {
        let (_, value) = self
            .headers
            .iter()
            .find(|(place, _)| part(bytes, *place).eq_ignore_ascii_case(name.as_bytes()))?;
        Some(part(bytes, *value))
    }

    /// Whether a header's value has a word, in any case.
    pub(super) fn has_word(&self, bytes: &[u8], name: &str, word: &str) -> bool {
        let value = self.header(bytes, name).unwrap_or_default();
        value.to_ascii_lowercase().split(|byte| b",; ".contains(byte)).any(|w| w == word.as_bytes())
    }

    /// Whether it is a reply after which another one to the same request comes.
    pub(super) fn is_interim(&self) -> bool {
        matches!(self.line, FirstLine::Reply { status: 100..=199, .. })
    }

    /// How long the body is. `of_head`: it answers a request for the head alone.
    pub(super) fn body(&self, bytes: &[u8], of_head: bool) -> BodyLength {
        if let FirstLine::Reply { status, .. } = self.line
            && (of_head || matches!(status, 100..=199 | 204 | 304))
        {
            return BodyLength::Bytes(0);
        }
        if self.has_word(bytes, "transfer-encoding", "chunked") {
            return BodyLength::Chunks;
        }
        match self.header(bytes, "content-length") {
            Some(value) => std::str::from_utf8(value.trim_ascii())
                .ok()
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok())
                .map_or(BodyLength::Unreadable, BodyLength::Bytes),
            None if matches!(self.line, FirstLine::Reply { .. }) => BodyLength::UntilEnd,
            None => BodyLength::Bytes(0),
        }
    }
}

/// The bytes at a place.
pub(super) fn part(bytes: &[u8], (at, length): Place) -> &[u8] {
    bytes.get(at..at.saturating_add(length)).unwrap_or_default()
}

/// Whether a head of HTTP/1 begins here, as far as the bytes go.
pub(super) fn begins(bytes: &[u8], is_reply: bool) -> bool {
    if is_reply {
        let length = bytes.len().min(7);
        return length > 0 && bytes.get(..length) == b"HTTP/1.".get(..length);
    }
    METHODS.iter().any(|method| {
        let length = bytes.len().min(method.len());
        length > 0 && bytes.get(..length) == method.get(..length)
    })
}

/// The methods of requests, each with the blank behind it.
const METHODS: [&[u8]; 8] =
    [b"GET ", b"POST ", b"PUT ", b"DELETE ", b"HEAD ", b"OPTIONS ", b"PATCH ", b"COPY "];
