//! Expressions over values of which some are not known yet, and the other way round: the value that
//! a number must have for an expression to have a given value.

use super::super::program::*;
use super::super::text::BinaryOp;
use super::{Encoding, Frame, Slot};

/// The value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Known(i128),
    /// A value that it needs is absent, or the result does not fit.
    Absent,
    /// It needs a value that is not known yet.
    Unknown,
}

/// Where an expression stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'s> {
    /// The kept values of its structure.
    pub(super) slots: &'s [Slot],
    /// The bit behind the values before it.
    pub(super) pos: usize,
    /// How many bits of the region follow, where that is known.
    pub(super) left: Option<usize>,
}

impl Encoding<'_> {
    /// The kept values of a structure.
    pub(super) fn kept(&self, frame: Frame) -> &[Slot] {
        self.slots.get(frame.base..frame.base + frame.length).unwrap_or(&[])
    }

    /// The value of an expression at the end of what is written.
    pub(super) fn value_of(&self, id: ExprId, frame: Frame) -> Value {
        let place = Place { slots: self.kept(frame), pos: self.pos(), left: None };
        self.evaluate(id, place)
    }

    fn slot_value(&self, place: Place<'_>, slot: u16, signed: bool) -> Value {
        let number = match place.slots.get(usize::from(slot)).copied().unwrap_or(Slot::Absent) {
            Slot::Absent => return Value::Absent,
            Slot::Number(number) => number,
            Slot::Unknown(id) => match self.unknowns.get(id as usize).and_then(|u| u.value) {
                Some(number) => number,
                None => return Value::Unknown,
            },
        };
        Value::Known(if signed { i128::from(number as i64) } else { i128::from(number) })
    }

    pub(super) fn evaluate(&self, id: ExprId, place: Place<'_>) -> Value {
        let truth = |holds: bool| Value::Known(i128::from(holds));
        match self.tables.ex(id) {
            None => Value::Absent,
            Some(Ex::Const(n)) => Value::Known(*n),
            Some(Ex::Slot { slot, signed }) => self.slot_value(place, *slot, *signed),
            Some(Ex::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b)) => {
                let (a, b) = (self.holds(*a, place), self.holds(*b, place));
                let decides = *op == BinaryOp::Or;
                match (a, b) {
                    (Some(a), _) if a == decides => truth(decides),
                    (_, Some(b)) if b == decides => truth(decides),
                    (Some(_), Some(_)) => truth(!decides),
                    _ => Value::Unknown,
                }
            }
            Some(Ex::Binary(op, a, b)) => {
                match (self.evaluate(*a, place), self.evaluate(*b, place)) {
                    (Value::Absent, _) | (_, Value::Absent) => Value::Absent,
                    (Value::Known(a), Value::Known(b)) => {
                        apply(*op, a, b).map_or(Value::Absent, Value::Known)
                    }
                    _ => Value::Unknown,
                }
            }
            Some(Ex::Not(a)) => self.holds(*a, place).map_or(Value::Unknown, |holds| truth(!holds)),
            Some(Ex::In(a, list)) => match self.evaluate(*a, place) {
                Value::Known(value) => {
                    let all = || list.iter().map(|of| self.evaluate(*of, place));
                    if all().any(|of| of == Value::Known(value)) {
                        truth(true)
                    } else if all().any(|of| of == Value::Unknown) {
                        Value::Unknown
                    } else {
                        truth(false)
                    }
                }
                other => other,
            },
            Some(Ex::Remaining) => {
                place.left.map_or(Value::Unknown, |left| Value::Known(left as i128 / 8))
            }
            Some(Ex::More) => place.left.map_or(Value::Unknown, |left| truth(left > 0)),
            Some(Ex::Next(passed)) => {
                let byte = self.out.bytes().get(place.pos / 8 + *passed as usize);
                byte.map_or(Value::Unknown, |byte| Value::Known(i128::from(*byte)))
            }
            Some(Ex::Dialect(n)) => truth(self.dialects & (1 << n) != 0),
            Some(Ex::Here) => Value::Known((place.pos / 8) as i128),
            Some(Ex::State(at)) => {
                let state = self.state.states.get(*at as usize);
                state.map_or(Value::Absent, |value| Value::Known(i128::from(*value)))
            }
            Some(Ex::Recall(kind, key)) => match self.evaluate(*key, place) {
                Value::Known(key) => {
                    let value = self.state.memory.recall(*kind, key as u64);
                    value.map_or(Value::Absent, |value| Value::Known(i128::from(value)))
                }
                other => other,
            },
        }
    }

    /// Whether an expression depends on how much of the region follows.
    pub(super) fn needs_end(&self, id: ExprId) -> bool {
        match self.tables.ex(id) {
            Some(Ex::Remaining | Ex::More | Ex::Next(_)) => true,
            Some(Ex::Binary(_, a, b)) => self.needs_end(*a) || self.needs_end(*b),
            Some(Ex::Not(a) | Ex::Recall(_, a)) => self.needs_end(*a),
            Some(Ex::In(a, list)) => {
                self.needs_end(*a) || list.iter().any(|of| self.needs_end(*of))
            }
            _ => false,
        }
    }

    /// Whether an expression holds. `None` if that is not known yet.
    pub(super) fn holds(&self, id: ExprId, place: Place<'_>) -> Option<bool> {
        match self.evaluate(id, place) {
            Value::Known(value) => Some(value != 0),
            Value::Absent => Some(false),
            Value::Unknown => None,
        }
    }

    /// Whether a test holds. `None` if that is not known yet.
    pub(super) fn test(&self, test: &Test, place: Place<'_>) -> Option<bool> {
        let number = |slot: u16| match self.slot_value(place, slot, false) {
            Value::Known(value) => Some(Some(value as u64)),
            Value::Absent => Some(None),
            Value::Unknown => None,
        };
        Some(match *test {
            Test::Has(slot, mask) => number(slot)?.is_some_and(|v| v & mask == mask),
            Test::Equals(slot, value) => number(slot)? == Some(value),
            Test::Differs(slot, value) => number(slot)?.is_some_and(|v| v != value),
            Test::Above(slot, value) => number(slot)?.is_some_and(|v| v > value),
            Test::Dialect(dialect, spoken) => (self.dialects & (1 << dialect) != 0) == spoken,
            Test::More => place.left? > 0,
            Test::General(id) => self.holds(id, place)?,
        })
    }

    /// The unknown number of an expression, and the value that it must have for the expression to
    /// have the value `wanted`.
    pub(super) fn solve(&self, id: ExprId, wanted: i128, place: Place<'_>) -> Option<(u32, u64)> {
        match self.tables.ex(id)? {
            Ex::Slot { slot, .. } => match place.slots.get(usize::from(*slot)) {
                Some(Slot::Unknown(id)) => Some((*id, wanted as u64)),
                _ => None,
            },
            Ex::Binary(op, a, b) => match (self.evaluate(*a, place), self.evaluate(*b, place)) {
                (Value::Unknown, Value::Known(b)) => {
                    let a_is = match op {
                        BinaryOp::Add => wanted - b,
                        BinaryOp::Sub => wanted + b,
                        BinaryOp::Mul if b != 0 && wanted % b == 0 => wanted / b,
                        BinaryOp::Div => wanted.checked_mul(b)?,
                        BinaryOp::Shl if (0..64).contains(&b) => wanted >> b,
                        BinaryOp::Shr if (0..64).contains(&b) => wanted.checked_shl(b as u32)?,
                        BinaryOp::BitXor => wanted ^ b,
                        _ => return None,
                    };
                    self.solve(*a, a_is, place)
                }
                (Value::Known(a), Value::Unknown) => {
                    let b_is = match op {
                        BinaryOp::Add => wanted - a,
                        BinaryOp::Sub => a - wanted,
                        BinaryOp::Mul if a != 0 && wanted % a == 0 => wanted / a,
                        BinaryOp::BitXor => wanted ^ a,
                        _ => return None,
                    };
                    self.solve(*b, b_is, place)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The numbers, and the unknown one that each is for, that decide what an expression is: those
    /// that it is compared with, and their neighbours.
    pub(super) fn candidates(&self, id: ExprId, place: Place<'_>, to: &mut Vec<(u32, u64)>) {
        match self.tables.ex(id) {
            Some(Ex::Binary(BinaryOp::And | BinaryOp::Or, a, b)) => {
                self.candidates(*a, place, to);
                self.candidates(*b, place, to);
            }
            Some(Ex::Binary(_, a, b)) => {
                for (side, other) in [(a, b), (b, a)] {
                    if let Value::Known(value) = self.evaluate(*other, place) {
                        let near = [value, value + 1, value - 1];
                        to.extend(near.iter().filter_map(|n| self.solve(*side, *n, place)));
                    }
                }
            }
            Some(Ex::In(a, list)) => {
                for of in list {
                    if let Value::Known(value) = self.evaluate(*of, place) {
                        to.extend(self.solve(*a, value, place));
                    }
                }
            }
            Some(Ex::Not(a)) => self.candidates(*a, place, to),
            _ => {}
        }
    }
}
