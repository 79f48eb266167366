//! Writers for the types of the language whose values tell their own length or begin within a byte:
//! the inverse of `eval/numbers.rs`.

use std::net::Ipv6Addr;

use super::super::eval::LONGEST_NAME;
use super::super::program::ReadAs;
use super::{Encoding, Field, Given, Slot, Stop};

/// A number of up to 64 bits, without a sign or with one.
fn number(encoding: &mut Encoding<'_>, field: &Field, signed: bool) -> Result<u64, Stop> {
    let value = encoding.number(field)?;
    let fits = match signed {
        true => i64::try_from(value).map(|value| value as u64).ok(),
        false => u64::try_from(value).ok(),
    };
    match fits {
        Some(value) => Ok(value),
        None => {
            let ty = encoding.type_text(field.ty).to_string();
            encoding.fail_at(field, format!("{value} does not fit {ty}"))
        }
    }
}

/// The most bytes of an integer with seven bits a byte: the argument, or 10.
fn put_sevens(encoding: &mut Encoding<'_>, field: &Field, bytes: &[u8]) -> Result<(), Stop> {
    let most = match encoding.arg(field, 0) {
        0 => 10,
        most => most.min(10) as usize,
    };
    if bytes.len() > most {
        return encoding.fail_at(field, format!("does not fit {most} bytes of seven bits"));
    }
    encoding.out().put(bytes);
    Ok(())
}

fn sevens(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

pub(in crate::table) fn write_leb128(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field, false)?;
    put_sevens(encoding, field, &sevens(value))?;
    Ok(Slot::Number(value))
}

pub(in crate::table) fn write_sleb128(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field, true)?;
    let mut left = value as i64;
    let mut bytes = Vec::new();
    loop {
        let byte = left as u8 & 0x7f;
        left >>= 7;
        let last = left == 0 && byte & 0x40 == 0 || left == -1 && byte & 0x40 != 0;
        bytes.push(byte | if last { 0 } else { 0x80 });
        if last {
            break;
        }
    }
    put_sevens(encoding, field, &bytes)?;
    Ok(Slot::Number(value))
}

pub(in crate::table) fn write_zigzag(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field, true)?;
    let bits = (value << 1) ^ ((value as i64 >> 63) as u64);
    put_sevens(encoding, field, &sevens(bits))?;
    Ok(Slot::Number(value))
}

pub(in crate::table) fn write_vlq(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field, false)?;
    let mut bytes = vec![value as u8 & 0x7f];
    let mut left = value >> 7;
    while left > 0 {
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.reverse();
    put_sevens(encoding, field, &bytes)?;
    Ok(Slot::Number(value))
}

pub(in crate::table) fn write_prefixint(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field, false)?;
    let Some(power) = (0..4).find(|power| value < 1 << ((8u32 << power) - 2)) else {
        return encoding.fail_at(field, format!("{value} does not fit 62 bits"));
    };
    let size = 1usize << power;
    let mut bytes = value.to_be_bytes().get(8 - size..).unwrap_or(&[]).to_vec();
    if let Some(first) = bytes.first_mut() {
        *first |= (power as u8) << 6;
    }
    encoding.out().put(&bytes);
    Ok(Slot::Number(value))
}

/// The most significant bit first, in a byte and in the number.
pub(in crate::table) fn write_bitsbe(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let value = number(encoding, field, false)?;
    let width = encoding.arg(field, 0).clamp(1, 64) as u32;
    if width < 64 && value >> width != 0 {
        return encoding.fail_at(field, format!("{value} does not fit {width} bits"));
    }
    for bit in (0..width).rev() {
        encoding.out().put_bit_be(value >> bit & 1 != 0);
    }
    Ok(Slot::Number(value))
}

/// A number in no bytes of its own: it follows from others.
pub(in crate::table) fn write_computed(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let Given::Json(_) = field.given else { return Ok(Slot::Number(encoding.arg(field, 0))) };
    let given = encoding.number(field)?;
    let expression = match encoding.tables.type_def(field.ty).map(|def| &def.read) {
        Some(ReadAs::Native { args, .. }) => args.first().copied(),
        _ => None,
    };
    if let Some(expression) = expression {
        encoding.require(expression, given, field, "is given")?;
    }
    Ok(Slot::Number(given as u64))
}

/// The labels of a name, each behind its length.
fn wire_labels(encoding: &Encoding<'_>, node: u32, text: &str) -> Result<Vec<Vec<u8>>, Stop> {
    if text.len() > LONGEST_NAME {
        return encoding.fail(node, format!("has more than {LONGEST_NAME} bytes"));
    }
    let mut labels: Vec<Vec<u8>> = vec![vec![0]];
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut label = byte;
        match byte {
            b'.' => {
                labels.push(vec![0]);
                continue;
            }
            b'\\' => {
                label = bytes.next().unwrap_or(b'\\');
                if label.is_ascii_digit() {
                    let digits = [label, bytes.next().unwrap_or(0), bytes.next().unwrap_or(0)];
                    let number = std::str::from_utf8(&digits).ok().and_then(|d| d.parse().ok());
                    match number {
                        Some(number) => label = number,
                        None => return encoding.fail(node, "has an escape that is no byte"),
                    }
                }
            }
            _ => {}
        }
        labels.last_mut().into_iter().for_each(|last| last.push(label));
    }
    // A dot at the end names the root, which has no label.
    if labels.last().is_some_and(|last| last.len() == 1) {
        labels.pop();
    }
    if text == "." {
        labels.clear();
    }
    for label in &mut labels {
        match label.len() - 1 {
            0 => return encoding.fail(node, "has a label without a byte"),
            length @ ..0x40 => {
                label.first_mut().into_iter().for_each(|first| *first = length as u8)
            }
            _ => return encoding.fail(node, "has a label of more than 63 bytes"),
        }
    }
    Ok(labels)
}

/// Writes each label behind its length. If an earlier name ends with the rest of this one, an
/// offset to it takes the place of the rest.
pub(in crate::table) fn write_labels(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let base = encoding.arg(field, 0) as usize;
    let (node, text) = encoding.string(field)?;
    let text = text.to_string();
    let labels = wire_labels(encoding, node, &text)?;
    let captured = encoding
        .shown_bytes(node)
        .find(|bytes| encoding.whole_name(bytes, base).is_some_and(|name| name == labels.concat()));
    if let Some(captured) = captured.map(<[u8]>::to_vec) {
        encoding.out().put(&captured);
        return Ok(Slot::Number(0));
    }
    for (at, label) in labels.iter().enumerate() {
        let rest = labels.get(at..).unwrap_or(&[]).concat();
        if let Some(offset) = encoding.earlier_name(&rest, base) {
            encoding.out().put(&(0xc000 | offset).to_be_bytes());
            return Ok(Slot::Number(0));
        }
        encoding.keep_name(rest, base);
        encoding.out().put(label);
    }
    encoding.out().put(&[0]);
    Ok(Slot::Number(0))
}

/// The offset of a byte, if 14 bits are enough for it.
fn offset(at: usize, base: usize) -> Option<u16> {
    u16::try_from(at.checked_sub(base)?).ok().filter(|offset| *offset < 0x4000)
}

impl Encoding<'_> {
    /// A name may be referred to from here on, unless its place in the message is not known yet.
    fn keep_name(&mut self, name: Vec<u8>, base: usize) {
        let at = self.pos() / 8;
        if self.outer.is_empty() && offset(at, base).is_some() {
            self.names.entry(name).or_insert(at);
        }
    }

    /// The offset of a name that was written before, from the byte `base` on.
    fn earlier_name(&mut self, name: &[u8], base: usize) -> Option<u16> {
        let at = *self.names.get(name).filter(|_| self.outer.is_empty())?;
        self.state.asked.names = true;
        offset(at, base).filter(|_| !self.state.habits.whole_names)
    }

    /// The labels of a name that ends with an offset, from where it leads to in what is written.
    fn whole_name(&self, captured: &[u8], base: usize) -> Option<Vec<u8>> {
        let (mut name, mut rest) = (Vec::new(), captured);
        let mut lowest = self.out.bytes().len();
        loop {
            let (length, behind) = rest.split_first()?;
            match *length {
                0 => return Some(name),
                length @ 1..0x40 if name.len() <= LONGEST_NAME => {
                    let label = rest.get(..1 + usize::from(length))?;
                    name.extend_from_slice(label);
                    rest = rest.get(label.len()..)?;
                }
                high @ 0xc0.. => {
                    let low = usize::from(*behind.first()?);
                    let to = base.checked_add(usize::from(high & 0x3f) << 8 | low)?;
                    lowest = Some(to).filter(|to| *to < lowest)?;
                    rest = self.out.bytes().get(to..)?;
                }
                _ => return None,
            }
        }
    }
}

pub(in crate::table) fn write_ipv6(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let (node, text) = encoding.string(field)?;
    let Ok(address) = text.parse::<Ipv6Addr>() else {
        return encoding.fail(node, "is no IPv6 address such as ::1");
    };
    encoding.out().put(&address.octets());
    Ok(Slot::Number(0))
}

pub(in crate::table) fn write_mac(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let (node, text) = encoding.string(field)?;
    let bytes = super::super::parse_hex(text).filter(|bytes| bytes.len() == 6);
    let Some(bytes) = bytes else {
        return encoding.fail(node, "is no MAC address such as 00:11:22:33:44:55");
    };
    encoding.out().put(&bytes);
    Ok(Slot::Number(0))
}
