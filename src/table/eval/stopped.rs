//! Why the reading of a structure stopped, as a problem: for which field its bytes did not suffice,
//! or what else it was.

use super::super::cursor::Cursor;
use super::{Run, Stop};
use crate::tree::{Concern, Problem, ProblemText, Severity, Sym};

/// A field for which the bytes did not suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MissingField {
    name: Sym,
    /// The structure that it belongs to.
    structure: u32,
    place: StopPlace,
}

/// Where reading stopped. While the structures around a field are left, it stays the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StopPlace {
    /// The bit that the bytes would have to reach.
    bits: u64,
    pos: usize,
    nodes: u32,
}

impl Run<'_> {
    /// Reading stopped in a field of a structure, or in a field within that one, which was said
    /// before and is kept.
    #[cold]
    #[inline(never)]
    pub(super) fn stopped_in(
        &mut self,
        stop: Stop,
        name: Sym,
        structure: u32,
        cursor: &Cursor<'_>,
    ) -> Stop {
        if let Some(place) = self.stop_place(stop, cursor)
            && self.state.missing.is_none_or(|inner| inner.place != place)
        {
            self.state.missing = Some(MissingField { name, structure, place });
        }
        stop
    }

    fn stop_place(&self, stop: Stop, cursor: &Cursor<'_>) -> Option<StopPlace> {
        match stop {
            Stop::Short(bits) => {
                Some(StopPlace { bits, pos: cursor.pos(), nodes: self.tree.len() })
            }
            Stop::Unknown | Stop::Bad | Stop::Limit => None,
        }
    }

    /// Adds the reason why reading stopped, as a problem: of the structure whose field is missing,
    /// or else of `node`.
    pub(super) fn say_stop(&mut self, stop: Option<Stop>, node: u32, cursor: &Cursor<'_>) {
        let missing = self.state.missing.take();
        match stop {
            Some(stop @ Stop::Short(bits)) => {
                let missing =
                    missing.filter(|missing| self.stop_place(stop, cursor) == Some(missing.place));
                let (node, text) = match missing {
                    Some(MissingField { name, structure, .. }) => {
                        (structure, ProblemText::ShortFor(name))
                    }
                    None => (node, ProblemText::Fixed(ProblemText::SHORT)),
                };
                let a = bits.saturating_sub(cursor.limit() as u64).div_ceil(8) as i64;
                let b = cursor.left() as i64;
                self.tree.problem(Problem {
                    severity: Severity::Error,
                    node,
                    text,
                    a,
                    b,
                    bytes: None,
                    concern: Concern::None,
                });
            }
            Some(Stop::Unknown) => {
                self.problem(Severity::Note, node, "no layout is known from here on", 0, 0)
            }
            Some(Stop::Bad | Stop::Limit) | None => {}
        }
    }
}
