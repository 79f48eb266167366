//! Short texts that outputs copy again and again.

use super::program::Name;

/// A text, ready to be appended. Up to 32 bytes are in a block of fixed size, padded with spaces: to copy that takes a few instructions
/// where a copy of unknown length takes a call; what was too much is written over.
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

    /// How many bytes it has.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // nobody asks
    pub fn len(&self) -> usize {
        self.text.len()
    }
}

impl Name {
    /// Whether JSON has it as it is: its form for JSON has a comma, quotes and a colon more, and nothing else.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.json.len() == self.plain.len() + 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_one_is_in_its_block_before_spaces() {
        for length in [0, 1, 31, 32, 33, 100] {
            let ready = Ready::new(&"x".repeat(length));
            assert_eq!((ready.bytes(), ready.len()), ("x".repeat(length).as_bytes(), length));
            let block = ready.block().map(|(block, used)| (block.to_vec(), used));
            assert_eq!(block, (length <= 32).then(|| (format!("{:32}", "x".repeat(length)).into_bytes(), length)));
        }
    }
}
