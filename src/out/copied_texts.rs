//! A cache of the texts of structures that are copies of one another
//! ([`Tree::add_copy`](crate::tree::Tree::add_copy)): to put the text of all that such a structure
//! consists of together takes longer than copying it.

/// Texts by the numbers of copies, in as many places as there are numbers, up to [`MOST`]; then a
/// text replaces one of an earlier number.
#[derive(Clone, Default)]
pub(super) struct CopiedTexts {
    places: Vec<(u64, Box<[u8]>)>,
}

/// The most texts, and the longest one in bytes.
const MOST: usize = 1 << 12;
const MOST_BYTES: usize = 1 << 10;

impl CopiedTexts {
    /// The text of copies with a number.
    #[inline(always)]
    pub(super) fn find(&self, number: u64) -> Option<&[u8]> {
        self.places
            .get(number as usize % MOST)
            .filter(|place| place.0 == number)
            .map(|place| &*place.1)
    }

    /// Keeps their text, unless it is long.
    #[cold]
    #[inline(never)]
    pub(super) fn keep(&mut self, number: u64, text: &[u8]) {
        if text.len() > MOST_BYTES {
            return;
        }
        let at = number as usize % MOST;
        if at >= self.places.len() {
            self.places.resize_with(at + 1, Default::default);
        }
        if let Some(place) = self.places.get_mut(at) {
            *place = (number, text.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_belongs_to_one_number() {
        let mut texts = CopiedTexts::default();
        let most = MOST as u64;
        for number in [3, 1, most + 3, 2 * most + 7] {
            assert_eq!(texts.find(number), None);
            texts.keep(number, format!("text {number}").as_bytes());
            assert_eq!(texts.find(number), Some(format!("text {number}").as_bytes()));
        }
        assert_eq!((texts.find(3), texts.find(1)), (None, Some(b"text 1".as_slice())));
        texts.keep(9, &[b'x'; MOST_BYTES + 1]);
        assert_eq!((texts.find(9), texts.places.len()), (None, 8));
    }
}
