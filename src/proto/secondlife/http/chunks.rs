//! Bodies in chunks: where one ends, and what is in it. It knows no tree.

use super::head::Place;

/// A line with a chunk's size, or of a trailer, is no longer than this.
const MAX_LINE: usize = 4096;

/// How far the chunks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkEnd {
    /// Up to and with the empty line behind the last one: this many bytes.
    Whole(usize),
    /// More bytes are needed: this many at least.
    Need(usize),
    /// From this byte on they are no chunks.
    Broken(usize),
}

/// Walks over chunks, and hands the place of each one's content to `take`.
pub(super) fn walk(bytes: &[u8], take: &mut dyn FnMut(Place)) -> ChunkEnd {
    let mut at = 0;
    loop {
        let line = match line(bytes, at) {
            Ok(line) => line,
            Err(end) => return end,
        };
        let digits = line.split(|byte| b"; \t".contains(byte)).next().unwrap_or_default();
        let size = std::str::from_utf8(digits)
            .ok()
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let Some(size) = size else { return ChunkEnd::Broken(at) };
        let from = at + line.len() + 2;
        if size == 0 {
            return trailers(bytes, from);
        }
        let Some(end) = from.checked_add(size).and_then(|end| end.checked_add(2)) else {
            return ChunkEnd::Broken(at);
        };
        let there = bytes.len().min(end - 2).saturating_sub(from);
        take((from, there));
        match bytes.get(end - 2..end) {
            Some(b"\r\n") => at = end,
            Some(_) => return ChunkEnd::Broken(end - 2),
            None => return ChunkEnd::Need(end),
        }
    }
}

/// Headers behind the last chunk, and the empty line.
fn trailers(bytes: &[u8], mut at: usize) -> ChunkEnd {
    loop {
        match line(bytes, at) {
            Ok([]) => return ChunkEnd::Whole(at + 2),
            Ok(line) => at += line.len() + 2,
            Err(end) => return end,
        }
    }
}

/// A line without its end.
fn line(bytes: &[u8], at: usize) -> Result<&[u8], ChunkEnd> {
    let rest = bytes.get(at..).unwrap_or_default();
    let window = rest.get(..MAX_LINE).unwrap_or(rest);
    match memchr::memmem::find(window, b"\r\n") {
        Some(length) => Ok(rest.get(..length).unwrap_or_default()),
        None if window.len() < MAX_LINE => Err(ChunkEnd::Need(bytes.len() + 1)),
        None => Err(ChunkEnd::Broken(at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(bytes: &[u8]) -> (Vec<u8>, ChunkEnd) {
        let mut all = Vec::new();
        let end = walk(bytes, &mut |(at, length)| {
            all.extend_from_slice(bytes.get(at..at + length).unwrap_or_default());
        });
        (all, end)
    }

    #[test]
    fn chunks_end_with_an_empty_one_and_what_stands_behind_it() {
        let body = b"4;x=y\r\nWiki\r\n5\r\npedia\r\n0\r\nA: b\r\n\r\nmore";
        assert_eq!(content(body), (b"Wikipedia".to_vec(), ChunkEnd::Whole(body.len() - 4)));
    }

    #[test]
    fn cut_chunks_give_what_is_there() {
        assert_eq!(content(b"4\r\nWi"), (b"Wi".to_vec(), ChunkEnd::Need(9)));
        assert_eq!(content(b"4"), (Vec::new(), ChunkEnd::Need(2)));
        assert_eq!(content(b"4\r\nWiki\r\n0\r\n").1, ChunkEnd::Need(13));
    }

    #[test]
    fn what_is_no_size_is_no_chunk() {
        assert_eq!(content(b"4\r\nWiki??").1, ChunkEnd::Broken(7));
        assert_eq!(content(b"xyz\r\n").1, ChunkEnd::Broken(0));
        assert_eq!(content(b"ffffffffffffffff\r\n").1, ChunkEnd::Broken(0));
        assert_eq!(content(b"-1\r\n").1, ChunkEnd::Broken(0));
    }
}
