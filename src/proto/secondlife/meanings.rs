//! Explains numbers of Second Life in words, for trees.

use std::io::Write;

use crate::table::Meaning;

/// The words that tables may write after `shown`.
pub(super) const MEANINGS: [Meaning; 7] = [
    Meaning { name: "time_dilation", write: time_dilation },
    Meaning { name: "grid_place", write: grid_place },
    Meaning { name: "color", write: color },
    Meaning { name: "inverted_color", write: inverted_color },
    Meaning { name: "color_and_transparency", write: color_and_transparency },
    Meaning { name: "parcel_sequence", write: parcel_sequence },
    Meaning { name: "pay_price", write: pay_price },
];

/// How fast a region's time runs: 65535 is full speed.
fn time_dilation(value: u64, out: &mut Vec<u8>) {
    let _ = write!(out, "{:.4}", value as f64 / 65535.0);
}

/// Where a region is: in regions of 256 metres, to the east and to the north.
fn grid_place(handle: u64, out: &mut Vec<u8>) {
    let regions = |metres: u64| metres as f64 / 256.0;
    let _ = write!(out, "{}, {}", regions(handle >> 32), regions(handle & 0xffff_ffff));
}

/// Red, green, blue and opacity, a byte each.
fn color(rgba: u64, out: &mut Vec<u8>) {
    let [red, green, blue, opacity] = (rgba as u32).to_be_bytes();
    let _ = write!(out, "#{red:02x}{green:02x}{blue:02x}");
    if opacity != u8::MAX {
        let _ = write!(out, ", {:.0} % opaque", f64::from(opacity) / 2.55);
    }
}

/// The same, each byte inverted.
fn inverted_color(rgba: u64, out: &mut Vec<u8>) {
    color(!rgba, out);
}

/// Red, green, blue and transparency.
fn color_and_transparency(rgbt: u64, out: &mut Vec<u8>) {
    color(rgbt ^ 0xff, out);
}

/// Why a parcel is sent that was not asked for. Other numbers are those of requests.
fn parcel_sequence(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(match value as i64 {
        -10_000 => b"SELECTED_PARCEL",
        -20_000 => b"COLLISION_NOT_IN_GROUP_PARCEL",
        -30_000 => b"COLLISION_BANNED_PARCEL",
        -40_000 => b"COLLISION_NOT_ON_LIST_PARCEL",
        -50_000 => b"HOVERED_PARCEL",
        _ => b"",
    });
}

/// What stands in the place of a sum.
fn pay_price(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(match value as i64 {
        -1 => b"PAY_PRICE_HIDE",
        -2 => b"PAY_PRICE_DEFAULT",
        _ => b"",
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn said(write: fn(u64, &mut Vec<u8>), value: u64) -> String {
        let mut out = Vec::new();
        write(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_region_has_a_place_on_the_grid() {
        assert_eq!(said(grid_place, 1_099_511_628_032_000), "1000, 1000");
        assert_eq!(said(grid_place, (256_128 << 32) + 255), "1000.5, 0.99609375");
    }

    #[test]
    fn colours_are_told_as_on_the_web() {
        assert_eq!(said(color, 0xff80_00ff), "#ff8000");
        assert_eq!(said(inverted_color, 0), "#ffffff");
        assert_eq!(said(inverted_color, 0x007f_ff80), "#ff8000, 50 % opaque");
        assert_eq!(said(color_and_transparency, 0xff00_0000), "#ff0000");
    }
}
