//! Unpacks zlib data, and tells how unpacking ended and how many bytes it used. It knows neither
//! trees nor tables.
//!
//! Regions are short, so setting the decompressor up costs more than unpacking. A region of
//! captured game traffic takes 12,000 instructions with zlib-rs; with miniz_oxide it took 30,000.

use flate2::{Decompress, FlushDecompress, Status};

/// How unpacking ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inflated {
    Whole,
    /// The zlib stream is complete, and this many bytes follow it.
    LeftOver(usize),
    Broken,
    /// The content is longer than was allowed.
    Limit,
}

/// What a message states about a compressed region.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedSizes {
    /// How many plain bytes come before the packed ones.
    pub(super) keep: usize,
    /// The size of the whole content, plain bytes included, that the message states. 0 if it states
    /// none. It may be wrong.
    pub(super) announced: usize,
}

/// The decompressor's state, which is reused.
#[derive(Default)]
pub(super) struct Inflater(Option<Decompress>);

impl Inflater {
    /// Copies the plain bytes that `raw` begins with to `out` and unpacks the rest behind them,
    /// until `out` has `limit` bytes. Returns how it ended and how many bytes of `raw` were used.
    pub(super) fn unpack(
        &mut self,
        raw: &[u8],
        sizes: PackedSizes,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> (Inflated, usize) {
        let PackedSizes { keep, announced } = sizes;
        let (plain, packed) = raw.split_at_checked(keep).unwrap_or((raw, &[]));
        out.extend_from_slice(plain);
        let inflate = self.0.get_or_insert_with(|| Decompress::new(true));
        inflate.reset(true);
        // The announced size may be wrong, so memory grows with the content itself.
        let mut room = announced.clamp(256, 1 << 16);
        let mut used = 0;
        let mut end = out.len();
        let ended = loop {
            out.resize(end.saturating_add(room).min(limit.saturating_add(1)).max(end), 0);
            let input = packed.get(used..).unwrap_or(&[]);
            let output = out.get_mut(end..).unwrap_or_default();
            let status = inflate.decompress(input, output, FlushDecompress::Finish);
            used = inflate.total_in() as usize;
            end = plain.len() + inflate.total_out() as usize;
            match status {
                _ if end > limit => break Inflated::Limit,
                Ok(Status::StreamEnd) if used < packed.len() => {
                    break Inflated::LeftOver(packed.len() - used);
                }
                Ok(Status::StreamEnd) => break Inflated::Whole,
                Ok(_) if end == out.len() => room = end.max(room),
                _ => break Inflated::Broken,
            }
        };
        out.truncate(end.min(limit));
        (ended, plain.len() + used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn packed(content: &[u8]) -> Vec<u8> {
        let mut encoder =
            flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(content).and_then(|()| encoder.finish()).unwrap_or_default()
    }

    fn unpack(
        raw: &[u8],
        keep: usize,
        announced: usize,
        limit: usize,
    ) -> (Inflated, usize, Vec<u8>) {
        let mut out = Vec::new();
        let sizes = PackedSizes { keep, announced };
        let (ended, used) = Inflater::default().unpack(raw, sizes, limit, &mut out);
        (ended, used, out)
    }

    #[test]
    fn all_of_it_comes_out_whatever_was_announced() {
        for length in [0, 1, 255, 256, 257, 70_000, 300_000] {
            let content: Vec<u8> = (0..length).map(|i: u32| (i / 7) as u8).collect();
            let raw = packed(&content);
            for announced in [0, content.len(), usize::MAX] {
                assert_eq!(
                    unpack(&raw, 0, announced, 1 << 20),
                    (Inflated::Whole, raw.len(), content.clone())
                );
            }
            let behind = [raw.as_slice(), b"xyz"].concat();
            assert_eq!(
                unpack(&behind, 0, 0, 1 << 20),
                (Inflated::LeftOver(3), raw.len(), content.clone())
            );
            let before = [b"ab", raw.as_slice()].concat();
            let both = [b"ab", content.as_slice()].concat();
            assert_eq!(unpack(&before, 2, 0, 1 << 20), (Inflated::Whole, before.len(), both));
        }
    }

    #[test]
    fn content_may_be_as_long_as_allowed_and_no_longer() {
        let content = vec![7; 10_000];
        let raw = packed(&content);
        assert_eq!(unpack(&raw, 0, 0, 10_000), (Inflated::Whole, raw.len(), content.clone()));
        let (ended, _, out) = unpack(&raw, 0, 0, 9_999);
        assert_eq!((ended, out.as_slice()), (Inflated::Limit, content.get(..9_999).unwrap_or(&[])));
    }

    #[test]
    fn cut_anywhere_it_gives_what_it_has_and_says_so() {
        let content: Vec<u8> = (0..=255).collect();
        let raw = packed(&content);
        for cut in 0..raw.len() {
            let (ended, used, out) = unpack(raw.get(..cut).unwrap_or(&[]), 0, 256, 1 << 20);
            assert_eq!(ended, Inflated::Broken, "{cut}");
            assert!(used <= cut && content.starts_with(&out), "{cut}");
        }
    }
}
