//! Short texts that outputs copy again and again.

use super::program::Name;

/// A text, ready to be appended. Up to 32 bytes are copied as one block of fixed size, which takes a few instructions where a copy
/// of unknown length takes a call; what was too much is cut off again.
#[derive(Debug, Clone)]
pub struct Ready {
    head: [u8; 32],
    text: Box<[u8]>,
}

impl Ready {
    /// A text made ready.
    pub fn new(text: &str) -> Ready {
        let mut head = [b' '; 32];
        head.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
        Ready { head, text: text.as_bytes().into() }
    }

    /// The whole of it in a block, and how many bytes of that it is; nothing where it is longer.
    #[inline(always)]
    pub fn block(&self) -> Option<(&[u8; 32], usize)> {
        (self.text.len() <= self.head.len()).then_some((&self.head, self.text.len()))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// Appends it.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>) {
        if self.text.len() > self.head.len() {
            out.extend_from_slice(&self.text);
            return;
        }
        let end = out.len() + self.text.len();
        out.extend_from_slice(&self.head);
        out.truncate(end);
    }

    /// How many bytes it has.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // nobody asks
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Appends it and spaces, so that there are `width` bytes in all, or more where it is longer.
    #[inline]
    pub fn append_padded(&self, width: usize, out: &mut Vec<u8>) {
        if width > self.head.len() || self.text.len() > width {
            self.append(out);
            spaces(out, width.saturating_sub(self.text.len()));
            return;
        }
        let end = out.len() + width;
        out.extend_from_slice(&self.head);
        out.truncate(end);
    }
}

impl Name {
    /// Whether JSON has it as it is: its form for JSON has a comma, quotes and a colon more, and nothing else.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.json.len() == self.plain.len() + 4
    }
}

/// Appends spaces.
#[inline]
pub fn spaces(out: &mut Vec<u8>, count: usize) {
    const SPACES: [u8; 32] = [b' '; 32];
    let end = out.len() + count;
    out.extend_from_slice(&SPACES);
    while out.len() < end {
        out.extend_from_slice(&SPACES);
    }
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_or_long_it_is_appended_as_it_is() {
        for length in [0, 1, 31, 32, 33, 100] {
            let text = "x".repeat(length);
            let mut out = b"before".to_vec();
            Ready::new(&text).append(&mut out);
            assert_eq!(out, format!("before{text}").into_bytes());
            for width in [0, 5, 32, 40, 90] {
                let mut out = b"before".to_vec();
                Ready::new(&text).append_padded(width, &mut out);
                assert_eq!(out, format!("before{text:width$}").into_bytes());
            }
        }
    }
}
