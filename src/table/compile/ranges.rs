//! Compiles names for ranges of message numbers (`low 51` for 0xffff0033) and for types with code.

use super::super::error::TableError;
use super::super::program::NumberRange;
use super::super::text::{ItemAst, NumberAst};
use super::Compiler;

impl Compiler<'_> {
    /// Checks a `code` declaration, which explains a type with code: there must be one of this
    /// name.
    pub(super) fn is_code(&self, item: &ItemAst) -> Result<(), TableError> {
        if self.code.is_none() || self.native_ids.contains_key(&item.name) {
            return Ok(());
        }
        let near =
            crate::suggest::suggestion(&item.name, self.native_ids.keys().map(String::as_str));
        self.error(item.at, format!("the protocol's code reads no type `{}`{near}", item.name))
    }

    /// Keeps a range, in place of an earlier one of its name.
    pub(super) fn add_range(&mut self, name: &str, base: u64, max: Option<u64>) {
        let range = NumberRange { name: name.to_string().into(), base, max };
        match self.out.ranges.iter_mut().find(|known| known.name == name) {
            Some(known) => *known = range,
            None => self.out.ranges.push(range),
        }
    }

    /// The number of a message as it is sent. `None` if the protocol uses names instead.
    pub(super) fn number(&self, number: &NumberAst) -> Result<Option<u64>, TableError> {
        let (range, at, number) = match number {
            NumberAst::Int(number) => return Ok(Some(*number)),
            NumberAst::Text(_) | NumberAst::Any => return Ok(None),
            NumberAst::Within { range, at, number } => (range, *at, *number),
        };
        let Some(known) = self.out.ranges.iter().find(|known| known.name == *range) else {
            let names = self.out.ranges.iter().map(|known| known.name.as_ref());
            let near = crate::suggest::suggestion(range, names);
            return self.error(at, format!("there is no range of numbers `{range}`{near}"));
        };
        let base = known.base;
        if let Some(max) = known.max.filter(|max| number > *max) {
            return self.error(at, format!("the numbers of `{range}` end at {max}"));
        }
        match base.checked_add(number) {
            Some(sent) => Ok(Some(sent)),
            None => self.error(at, "a message's number has 64 bits at most"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::table::{TableError, TableSource, Tables};

    fn load(message: &str) -> Result<Tables, TableError> {
        let text = format!(
            "protocol p\nservice s optional\nnumbers low = 0xffff0000 max 0xfff9\n{message}"
        );
        Tables::load("p", vec![TableSource { name: "t".into(), text: text.into() }], &[])
    }

    #[test]
    fn a_number_is_counted_from_where_its_range_begins() {
        let tables = load("message s both low 51 A { a: u8 }").unwrap();
        let service = tables.service(tables.service_named("s").unwrap()).unwrap();
        assert_eq!(tables.message_id(service, 0, 0xffff_0033), tables.message_named("A"));
    }

    #[test]
    fn a_number_is_told_in_the_range_that_it_is_nearest_to() {
        let tables = load(
            "numbers high = 0 max 254\nnumbers fixed = 0 max 0xffffffff\nmessage s both low 51 A \
             {}",
        )
        .unwrap();
        assert_eq!(tables.number_in_range(0xffff_0033), Some(("low", 51)));
        assert_eq!(tables.number_in_range(7), Some(("high", 7)));
        assert_eq!(tables.number_in_range(0xffff_fffb), Some(("fixed", 0xffff_fffb)));
        assert_eq!(tables.number_in_range(1 << 32), None);
    }

    #[test]
    fn a_range_has_a_name_and_an_end() {
        for (message, expected) in [
            (
                "message s both lwo 51 A {}",
                "there is no range of numbers `lwo`; did you mean `low`?",
            ),
            ("message s both low 0xfffa A {}", "the numbers of `low` end at 65529"),
            (
                "message s both A {}",
                "expected the message's number (or its quoted name), found `A`",
            ),
            (
                "message s both low 51 A {}\nmessage s both 0xffff0033 B {}",
                "`A` has the number 4294901811 already",
            ),
        ] {
            let error = load(message).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
