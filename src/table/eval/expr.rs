//! Expressions: they compute numbers from kept values. A comparison with an absent value is false.

use super::super::cursor::Cursor;
use super::super::program::*;
use super::super::text::BinaryOp;
use super::{Run, Slots};

impl Run<'_> {
    /// Whether a condition holds. Most conditions test one flag, so that case comes first.
    #[inline(always)]
    pub(super) fn test(&mut self, test: &Test, frame: Slots, cursor: &Cursor<'_>) -> bool {
        match test {
            Test::Has(slot, mask) => self.has(frame, *slot, *mask),
            _ => self.any_test(test, frame, cursor),
        }
    }

    #[inline(always)]
    fn has(&self, frame: Slots, slot: u16, mask: u64) -> bool {
        self.slot(frame, slot).is_some_and(|v| v & mask == mask)
    }

    #[inline(never)]
    fn any_test(&mut self, test: &Test, frame: Slots, cursor: &Cursor<'_>) -> bool {
        match *test {
            Test::Has(slot, mask) => self.has(frame, slot, mask),
            Test::Equals(slot, value) => self.slot(frame, slot) == Some(value),
            Test::Differs(slot, value) => self.slot(frame, slot).is_some_and(|v| v != value),
            Test::Above(slot, value) => self.slot(frame, slot).is_some_and(|v| v > value),
            Test::Dialect(dialect, spoken) => self.speaks(dialect) == spoken,
            Test::More => cursor.left_bits() > 0,
            Test::General(id) => self.expr(id, frame, cursor).is_some_and(|v| v != 0),
        }
    }

    #[inline]
    pub(super) fn slot(&self, frame: Slots, slot: u16) -> Option<u64> {
        frame.kept(&self.state.slots, slot)
    }

    /// The value of an argument in 64 bits, in two's complement if negative. 0 if it has no value.
    /// Constants and kept values need no evaluation.
    #[inline]
    pub(super) fn word(&mut self, id: ExprId, frame: Slots, cursor: &Cursor<'_>) -> u64 {
        match self.tables.ex(id) {
            Some(Ex::Slot { slot, .. }) => self.slot(frame, *slot).unwrap_or(0),
            Some(Ex::Const(n)) => *n as u64,
            Some(Ex::Dialect(n)) => u64::from(self.speaks(*n)),
            _ => self.expr(id, frame, cursor).unwrap_or(0) as u64,
        }
    }

    /// The value of an expression as a length. `None` if it has no value or is negative.
    #[inline]
    pub(super) fn length(&mut self, id: ExprId, frame: Slots, cursor: &Cursor<'_>) -> Option<u64> {
        match self.tables.ex(id) {
            Some(Ex::Slot { slot, signed: false }) => self.slot(frame, *slot),
            _ => self.expr(id, frame, cursor).and_then(|n| u64::try_from(n).ok()),
        }
    }

    /// Whether a dialect is in use. Notes that the message depends on the answer.
    pub(super) fn speaks(&mut self, dialect: u32) -> bool {
        self.state.consulted |= 1 << dialect;
        self.state.dialects & (1 << dialect) != 0
    }

    /// The value of an expression. `None` if a value that it needs is absent, or if the result
    /// exceeds 64 bits.
    pub(super) fn expr(&mut self, id: ExprId, frame: Slots, cursor: &Cursor<'_>) -> Option<i128> {
        let tables = self.tables;
        match tables.ex(id)? {
            Ex::Const(n) => Some(*n),
            Ex::Slot { slot, signed } => {
                let value = self.slot(frame, *slot)?;
                Some(if *signed { i128::from(value as i64) } else { i128::from(value) })
            }
            Ex::Binary(BinaryOp::And, a, b) => {
                let left = self.expr(*a, frame, cursor).is_some_and(|v| v != 0);
                Some(i128::from(left && self.expr(*b, frame, cursor).is_some_and(|v| v != 0)))
            }
            Ex::Binary(BinaryOp::Or, a, b) => {
                let left = self.expr(*a, frame, cursor).is_some_and(|v| v != 0);
                Some(i128::from(left || self.expr(*b, frame, cursor).is_some_and(|v| v != 0)))
            }
            Ex::Binary(op, a, b) => {
                let a = self.expr(*a, frame, cursor)?;
                let b = self.expr(*b, frame, cursor)?;
                apply(*op, a, b)
            }
            Ex::Not(a) => Some(i128::from(self.expr(*a, frame, cursor).is_none_or(|v| v == 0))),
            Ex::In(a, list) => {
                let value = self.expr(*a, frame, cursor)?;
                let found = list.iter().any(|v| self.expr(*v, frame, cursor) == Some(value));
                Some(i128::from(found))
            }
            Ex::Remaining => Some(cursor.left() as i128),
            Ex::More => Some(i128::from(cursor.left_bits() > 0)),
            Ex::Dialect(n) => Some(i128::from(self.speaks(*n))),
            Ex::Here => Some((cursor.pos() / 8) as i128),
            Ex::Next(passed) => cursor.rest().get(*passed as usize).map(|byte| i128::from(*byte)),
            Ex::State(place) => self.state.state(*place).map(i128::from),
            Ex::Recall(kind, key) => {
                let key = self.expr(*key, frame, cursor)?;
                self.state.memory.recall(*kind, key as u64).map(i128::from)
            }
        }
    }
}
