//! Types with code: how a protocol lists them, and those of the language itself. Each has code for
//! both directions.

use super::cursor::Cursor;
use super::encode::{self, WriteCode};
use super::eval::{self, Call, Run, Stop};

/// The code that reads a type.
pub type Code = fn(&mut Run<'_>, &mut Cursor<'_>, &Call) -> Result<u64, Stop>;

/// A type with code, as a protocol lists it.
#[derive(Debug, Clone, Copy)]
pub struct Native {
    /// The name tables use.
    pub name: &'static str,
    /// Its code: reads at the cursor, adds its nodes (exactly one without the span mark), and
    /// returns the value that expressions see.
    pub read: Code,
    /// Its code in the other direction: writes what `read` would read. `None` if it cannot be
    /// written.
    pub write: Option<WriteCode>,
    /// Whether its values are numbers, which may count something.
    pub number: bool,
    /// Whether a value can be written in several forms, such as a number with more bytes than it
    /// needs.
    pub forms: bool,
    /// Whether its bytes may refer to those of an earlier value, so that its value does not tell
    /// them.
    pub refers: bool,
    /// The table types of its parts. They are looked up once, for [`Call::part`].
    pub parts: &'static [&'static str],
}

impl Native {
    /// One without parts of other types.
    pub const fn new(name: &'static str, read: Code) -> Native {
        Native { name, read, write: None, number: false, forms: false, refers: false, parts: &[] }
    }

    /// The same with the code that writes it.
    pub const fn written_by(self, write: WriteCode) -> Native {
        Native { write: Some(write), ..self }
    }

    /// The same for bytes that may refer to those of an earlier value.
    pub const fn refers(self) -> Native {
        Native { refers: true, ..self }
    }

    /// The same for values that can be written in several forms.
    pub const fn forms(self) -> Native {
        Native { forms: true, ..self }
    }

    /// The same for a number.
    pub const fn number(self) -> Native {
        Native { number: true, ..self }
    }
}

/// Those that every protocol can use.
pub const LANGUAGE: [Native; 10] = [
    Native::new("leb128", eval::leb128).written_by(encode::write_leb128).number().forms(),
    Native::new("sleb128", eval::sleb128).written_by(encode::write_sleb128).number().forms(),
    Native::new("zigzag", eval::zigzag).written_by(encode::write_zigzag).number().forms(),
    Native::new("vlq", eval::vlq).written_by(encode::write_vlq).number().forms(),
    Native::new("prefixint", eval::prefixint).written_by(encode::write_prefixint).number().forms(),
    Native::new("bitsbe", eval::bitsbe).written_by(encode::write_bitsbe).number(),
    Native::new("computed", eval::computed).written_by(encode::write_computed),
    Native::new("labels", eval::labels).written_by(encode::write_labels).refers(),
    Native::new("ipv6", eval::ipv6).written_by(encode::write_ipv6),
    Native::new("mac", eval::mac).written_by(encode::write_mac),
];

/// The types of OuroDev's bit streams, `bits` first. A protocol that uses them lists them among its
/// natives.
pub const BITSTREAM: [Native; 14] = [
    Native::new("bits", eval::bits).written_by(encode::write_bits).number(),
    Native::new("maybe bits", eval::maybe_bits).written_by(encode::write_maybe_bits).number(),
    Native::new("autobits", eval::autobits).written_by(encode::write_autobits).number(),
    Native::new("autobits2", eval::autobits2).written_by(encode::write_autobits2).number(),
    Native::new("alignedbits", eval::alignedbits).written_by(encode::write_alignedbits),
    Native::new("packint", eval::packint).written_by(encode::write_packint).number(),
    Native::new("maybe packint", eval::maybe_packint)
        .written_by(encode::write_maybe_packint)
        .number(),
    Native::new("string", eval::string).written_by(encode::write_string),
    Native::new("maybe string", eval::maybe_string).written_by(encode::write_maybe_string),
    Native::new("alignedstring", eval::alignedstring).written_by(encode::write_alignedstring),
    Native::new("indexstring", eval::indexstring).written_by(encode::write_indexstring),
    Native::new("indexgeneric", eval::indexgeneric).written_by(encode::write_indexgeneric),
    Native::new("float32", eval::float32).written_by(encode::write_float32),
    Native::new("maybe float32", eval::maybe_float32).written_by(encode::write_maybe_float32),
];
