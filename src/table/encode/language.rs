//! Writers for the types of the language whose values tell their own length or begin within a byte:
//! the inverse of `eval/numbers.rs`.

use std::net::Ipv6Addr;

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
    let value = match field.given {
        Given::Nothing if field.span => 0,
        _ => number(encoding, field, false)?,
    };
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
    let value = encoding.arg(field, 0);
    if let Given::Json(_) = field.given {
        let given = encoding.number(field)?;
        if given != i128::from(value) {
            let text =
                format!("is {given}, where the fields that it is computed from give {value}");
            return encoding.fail_at(field, text);
        }
    }
    Ok(Slot::Number(value))
}

/// Labels behind their lengths. Offsets to earlier names are not used.
pub(in crate::table) fn write_labels(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, Stop> {
    let (node, text) = encoding.string(field)?;
    let mut labels: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'.' => labels.push(Vec::new()),
            b'\\' => {
                let mut escaped = bytes.next().unwrap_or(b'\\');
                if escaped.is_ascii_digit() {
                    let digits = [escaped, bytes.next().unwrap_or(0), bytes.next().unwrap_or(0)];
                    let number = std::str::from_utf8(&digits).ok().and_then(|d| d.parse().ok());
                    match number {
                        Some(number) => escaped = number,
                        None => return encoding.fail(node, "has an escape that is no byte"),
                    }
                }
                labels.last_mut().get_or_insert(&mut Vec::new()).push(escaped);
            }
            _ => labels.last_mut().get_or_insert(&mut Vec::new()).push(byte),
        }
    }
    labels.retain(|label| !label.is_empty());
    if labels.iter().any(|label| label.len() >= 0x40) {
        return encoding.fail(node, "has a label of more than 63 bytes");
    }
    for label in labels {
        encoding.out().put(&[label.len() as u8]);
        encoding.out().put(&label);
    }
    encoding.out().put(&[0]);
    Ok(Slot::Number(0))
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
