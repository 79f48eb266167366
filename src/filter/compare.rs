//! Compares values with literals. Values of different kinds have no order and are never equal.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr};

use super::literal::{Literal, NumberLiteral, numbers};
use super::symbols::set_flags;
use super::value::{Leaf, RecordScope};
use super::{CompareOp, SetItem};

impl CompareOp {
    /// Whether the comparison holds for an order; `None` is that of values of different kinds.
    pub(super) fn holds(self, order: Option<std::cmp::Ordering>) -> bool {
        match self {
            CompareOp::Eq => order.is_some_and(|o| o.is_eq()),
            CompareOp::Ne => order.is_none_or(|o| o.is_ne()),
            CompareOp::Lt => order.is_some_and(|o| o.is_lt()),
            CompareOp::Le => order.is_some_and(|o| o.is_le()),
            CompareOp::Gt => order.is_some_and(|o| o.is_gt()),
            CompareOp::Ge => order.is_some_and(|o| o.is_ge()),
        }
    }
}

impl SetItem {
    /// Whether a value is in it, which compares with literals as `order` says.
    pub(super) fn contains(&self, order: &dyn Fn(&Literal) -> Option<Ordering>) -> bool {
        match self {
            SetItem::One(literal) => CompareOp::Eq.holds(order(literal)),
            SetItem::Range(from, to) => {
                CompareOp::Ge.holds(order(from)) && CompareOp::Le.holds(order(to))
            }
        }
    }
}

/// How a value compares with a literal; `None` if they are of different kinds.
pub(super) fn compare(leaf: &Leaf<'_>, literal: &Literal) -> Option<Ordering> {
    match leaf {
        Leaf::Int(n) | Leaf::Long(n) => numbers(NumberLiteral::Int(*n), literal.number?),
        Leaf::Float(f) => numbers(NumberLiteral::Float(*f), literal.number?),
        Leaf::Bool(b) => Some(b.cmp(&literal.truth()?)),
        Leaf::Null => literal.is_null().then_some(Ordering::Equal),
        // A text of digits equals a number written the same way, but numbers and texts have no
        // order.
        Leaf::Text(text) if literal.is_number() => {
            (**text == *literal.raw).then_some(Ordering::Equal)
        }
        Leaf::Text(text) => Some(text.as_ref().cmp(literal.text()?)),
        Leaf::Hex(text) => Some(text.as_str().cmp(literal.bytes()?)),
        Leaf::Uuid(text) => {
            let wanted = literal.text()?.to_ascii_lowercase();
            Some(text.as_str().cmp(wanted.trim_start_matches('{').trim_end_matches('}')))
        }
        Leaf::Address(at) => match (literal.host, literal.number) {
            (Some(host), _) => Some(host.compare(at.ip(), Some(at.port()))),
            (None, Some(port)) => numbers(NumberLiteral::Int(at.port().into()), port),
            (None, None) => Some(at.to_string().as_str().cmp(literal.text()?)),
        },
        Leaf::Ipv4(n) => match literal.host.filter(|host| !host.has_port()) {
            Some(host) => Some(host.compare(IpAddr::V4(Ipv4Addr::from(*n)), None)),
            None => Some(Ipv4Addr::from(*n).to_string().as_str().cmp(literal.text()?)),
        },
        Leaf::Time(time) => Some(RecordScope::time_text(*time).as_str().cmp(literal.text()?)),
        Leaf::Named(n, name) => match literal.number {
            Some(wanted) => numbers(NumberLiteral::Int(*n), wanted),
            None => (*name == literal.text()).then_some(Ordering::Equal).filter(|_| name.is_some()),
        },
        Leaf::Flags(n, ..) => numbers(NumberLiteral::Int(*n), literal.number?),
        Leaf::Composite => None,
    }
}

/// Whether a value's text contains another; of flags, whether the name of one that is set does.
pub(super) fn contains(leaf: &Leaf<'_>, literal: &Literal) -> bool {
    let wanted = match leaf {
        Leaf::Hex(_) => literal.hex.as_deref().unwrap_or(&literal.raw),
        _ => &literal.raw,
    };
    any_text(leaf, |text| text.contains(wanted))
}

/// Whether flags are set: those of a name, or all bits of a number.
pub(super) fn has(leaf: &Leaf<'_>, literal: &Literal) -> bool {
    let Leaf::Flags(_, bits, _) = leaf else { return false };
    match literal.number {
        Some(NumberLiteral::Int(n)) => u64::try_from(n).is_ok_and(|n| n != 0 && bits & n == n),
        Some(NumberLiteral::Float(_)) => false,
        None => flag_names(leaf).any(|name| name == literal.raw),
    }
}

/// Whether a value's text passes a test; of flags, whether the name of one that is set does.
pub(super) fn any_text(leaf: &Leaf<'_>, test: impl Fn(&str) -> bool) -> bool {
    text(leaf).is_some_and(|text| test(&text)) || flag_names(leaf).any(test)
}

fn flag_names<'a>(leaf: &'a Leaf<'_>) -> impl Iterator<Item = &'a str> {
    let flags = match leaf {
        Leaf::Flags(_, bits, symbols) => Some((*bits, *symbols)),
        _ => None,
    };
    flags.into_iter().flat_map(|(bits, symbols)| set_flags(symbols, bits))
}

/// A value's text, if it is a text in the JSON or has a name.
fn text<'a>(leaf: &'a Leaf<'_>) -> Option<Cow<'a, str>> {
    Some(match leaf {
        Leaf::Text(text) => Cow::Borrowed(text.as_ref()),
        Leaf::Hex(text) | Leaf::Uuid(text) => Cow::Borrowed(text.as_str()),
        Leaf::Named(_, name) => Cow::Borrowed((*name)?),
        Leaf::Long(n) => Cow::Owned(n.to_string()),
        Leaf::Address(at) => Cow::Owned(at.to_string()),
        Leaf::Ipv4(n) => Cow::Owned(Ipv4Addr::from(*n).to_string()),
        Leaf::Time(time) => Cow::Owned(RecordScope::time_text(*time)),
        _ => return None,
    })
}
