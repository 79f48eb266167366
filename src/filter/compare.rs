//! Values against literals. Values of different kinds have no order and are never equal.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr};

use super::literal::{Literal, Number, nanoseconds};
use super::value::{Leaf, Scope};

/// How a value stands to a literal; nothing if they are of different kinds.
pub(super) fn compare(leaf: &Leaf<'_>, literal: &Literal) -> Option<Ordering> {
    match leaf {
        Leaf::Int(n) => numbers(Number::Int(*n), literal.number()?),
        Leaf::Long(n) => numbers(Number::Int(*n), literal.number.filter(|n| !literal.quoted || n.is_int())?),
        Leaf::Float(f) => numbers(Number::Float(*f), literal.number()?),
        Leaf::Bool(b) => Some(b.cmp(&literal.truth()?)),
        Leaf::Null => literal.is_null().then_some(Ordering::Equal),
        Leaf::Text(text) => Some(text.as_ref().cmp(literal.text()?)),
        Leaf::Hex(text) => Some(text.as_str().cmp(literal.bytes()?)),
        Leaf::Uuid(text) => {
            let wanted = literal.text()?.to_ascii_lowercase();
            Some(text.as_str().cmp(wanted.trim_start_matches('{').trim_end_matches('}')))
        }
        Leaf::Address(at) => match literal.address.filter(|_| !literal.quoted) {
            Some(ip) => Some(at.ip().cmp(&ip)),
            None => Some(at.to_string().as_str().cmp(literal.text()?)),
        },
        Leaf::Ipv4(n) => match literal.address {
            Some(IpAddr::V4(ip)) => Some(n.cmp(&u32::from(ip))),
            _ => Some(Ipv4Addr::from(*n).to_string().as_str().cmp(literal.text()?)),
        },
        Leaf::Time(time) => match literal.time {
            Some(wanted) => Some(nanoseconds(*time).cmp(&wanted)),
            None => Some(Scope::time_text(*time).as_str().cmp(literal.text()?)),
        },
        Leaf::Named(n, name) => match literal.number() {
            Some(wanted) => numbers(Number::Int(*n), wanted),
            None => (*name == literal.text()).then_some(Ordering::Equal).filter(|_| name.is_some()),
        },
        Leaf::Flags(n, ..) => numbers(Number::Int(*n), literal.number()?),
        Leaf::Composite => None,
    }
}

/// Whether a text contains another.
pub(super) fn contains(leaf: &Leaf<'_>, literal: &Literal) -> bool {
    let wanted = match leaf {
        Leaf::Hex(_) => literal.hex.as_deref().unwrap_or(&literal.raw),
        _ => &literal.raw,
    };
    text(leaf).is_some_and(|t| t.contains(wanted))
}

/// Whether flags are set: those of a name, or all of a number.
pub(super) fn has(leaf: &Leaf<'_>, literal: &Literal) -> bool {
    let Leaf::Flags(_, bits, symbols) = leaf else { return false };
    match literal.number() {
        Some(Number::Int(n)) => u64::try_from(n).is_ok_and(|n| n != 0 && bits & n == n),
        Some(Number::Float(_)) => false,
        None => symbols.values.iter().any(|v| v.value != 0 && bits & v.value == v.value && v.name == literal.raw),
    }
}

/// A value as text, where it is one in the JSON (or a name).
pub(super) fn text<'a>(leaf: &'a Leaf<'_>) -> Option<Cow<'a, str>> {
    Some(match leaf {
        Leaf::Text(text) => Cow::Borrowed(text.as_ref()),
        Leaf::Hex(text) | Leaf::Uuid(text) => Cow::Borrowed(text.as_str()),
        Leaf::Named(_, name) => Cow::Borrowed((*name)?),
        Leaf::Long(n) => Cow::Owned(n.to_string()),
        Leaf::Address(at) => Cow::Owned(at.to_string()),
        Leaf::Ipv4(n) => Cow::Owned(Ipv4Addr::from(*n).to_string()),
        Leaf::Time(time) => Cow::Owned(Scope::time_text(*time)),
        _ => return None,
    })
}

fn numbers(a: Number, b: Number) -> Option<Ordering> {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
        (a, b) => a.float().partial_cmp(&b.float()),
    }
}
