//! Links from a message to earlier ones, at the end of its line: it repeats an earlier message, or
//! acknowledges some.
//!
//! It knows links as the tree has them. How they are expressed on the wire is the protocol's
//! business.

use super::super::json::milliseconds;
use super::super::scratch::TextWriter;
use crate::tree::{LinkKind, RecordLink};

/// More records than this are counted instead of named.
const NAMED: usize = 8;

/// Appends ` [sent again: record 12, 1000.5 ms later]` and ` [acknowledges records 2, 3]`. If the
/// only acknowledged record is the one that the message replies to, it is left out, because the
/// line has it already.
pub(super) fn links(said: Option<u64>, all: &[RecordLink], w: &mut TextWriter<'_>) {
    for link in all.iter().filter(|l| l.kind == LinkKind::SentAgain) {
        w.fixed(b"   [sent again: record ");
        w.number(link.record);
        w.fixed(b", ");
        milliseconds(w, link.nanos);
        w.fixed(b" ms later]");
    }
    let acks = || all.iter().filter(|l| l.kind == LinkKind::Acknowledges);
    match (acks().next(), acks().count()) {
        (None, _) => {}
        (Some(only), 1) if said == Some(only.record) => {}
        (Some(only), 1) => {
            w.fixed(b"   [acknowledges record ");
            w.number(only.record);
            w.fixed(b", ");
            milliseconds(w, only.nanos);
            w.fixed(b" ms]");
        }
        (_, count) => {
            w.fixed(b"   [acknowledges records ");
            for (i, link) in acks().take(NAMED).enumerate() {
                if i > 0 {
                    w.fixed(b", ");
                }
                w.number(link.record);
            }
            if count > NAMED {
                w.fixed(b" and ");
                w.number((count - NAMED) as u64);
                w.fixed(b" more");
            }
            w.byte(b']');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::scratch::Scratch;

    fn said(reply: Option<u64>, all: &[(LinkKind, u64)]) -> String {
        let all: Vec<RecordLink> = all
            .iter()
            .map(|(kind, record)| RecordLink {
                kind: *kind,
                node: 0,
                record: *record,
                nanos: 1_500_400,
            })
            .collect();
        let mut out = Vec::new();
        let mut scratch = Scratch::default();
        let mut w = scratch.writer(&mut out);
        links(reply, &all, &mut w);
        w.finish();
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn what_a_message_has_to_do_with_earlier_ones() {
        use LinkKind::{Acknowledges, SentAgain};
        assert_eq!(said(None, &[]), "");
        assert_eq!(said(Some(2), &[(Acknowledges, 2)]), "");
        assert_eq!(said(None, &[(Acknowledges, 2)]), "   [acknowledges record 2, 1.5 ms]");
        assert_eq!(
            said(Some(2), &[(Acknowledges, 2), (Acknowledges, 4)]),
            "   [acknowledges records 2, 4]"
        );
        let both = [(SentAgain, 7), (Acknowledges, 9)];
        assert_eq!(
            said(None, &both),
            "   [sent again: record 7, 1.5 ms later]   [acknowledges record 9, 1.5 ms]"
        );
        let many: Vec<(LinkKind, u64)> = (1..=10).map(|n| (Acknowledges, n)).collect();
        assert_eq!(
            said(None, &many),
            "   [acknowledges records 1, 2, 3, 4, 5, 6, 7, 8 and 2 more]"
        );
    }
}
