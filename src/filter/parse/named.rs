//! Parses the use of a filter or of columns by their name: `@name`.
//!
//! The named expression is parsed by itself. So a filter `a or b` is one condition wherever its
//! name is used, and a mistake in it is shown in its own text.

use std::collections::BTreeMap;

use super::{FilterParser, ParseResult};
use crate::filter::named::NamedExpression;
use crate::filter::path::Path;
use crate::filter::{BooleanExpr, FilterError};
use crate::suggest::suggestion;

/// How often an expression may use names, including the uses within named expressions, which may
/// use each other several times.
const MAX_USES: usize = 200;

/// A use of a named filter or list of columns.
struct NameInUse<'a> {
    name: &'a str,
    named: &'a NamedExpression,
}

impl<'a> FilterParser<'a> {
    /// The condition that a name stands for, of which the `@` comes next.
    pub(super) fn named_filter(&mut self, depth: usize) -> ParseResult<BooleanExpr> {
        let names = self.names.named();
        let used = self.named("filter", &names.filters, &names.columns)?;
        self.inside(used, |inner| {
            let condition = inner.or(depth + 1)?;
            if inner.rest().is_empty() { Ok(condition) } else { Err(inner.unexpected()) }
        })
    }

    /// The paths that a name stands for, of which the `@` comes next.
    pub(super) fn named_columns(&mut self) -> ParseResult<Vec<Path>> {
        let names = self.names.named();
        let used = self.named("list of columns", &names.columns, &names.filters)?;
        self.inside(used, FilterParser::path_list)
    }

    /// Takes `@` and a name, which is one of `known` or a mistake.
    fn named(
        &mut self,
        what: &str,
        known: &'a BTreeMap<String, NamedExpression>,
        others: &BTreeMap<String, NamedExpression>,
    ) -> ParseResult<NameInUse<'a>> {
        let at = self.at;
        self.take("@");
        let word = self.peek_word();
        self.at += word.len();
        let place = at..self.at;
        let Some((name, named)) = known.get_key_value(word) else {
            let hint = match others.contains_key(word) {
                true if what == "filter" => "; these are columns".into(),
                true => "; this is a filter".into(),
                false => suggestion(word, known.keys().map(String::as_str)),
            };
            return Err(self.wrong(place, format!("no {what} has the name `{word}`{hint}")));
        };
        if self.within.contains(&name.as_str()) {
            return Err(self.wrong(place, format!("`@{name}` uses itself")));
        }
        self.remarks.uses += 1;
        if self.remarks.uses > MAX_USES {
            return Err(self.wrong(place, format!("names are used more than {MAX_USES} times")));
        }
        Ok(NameInUse { name, named })
    }

    /// Lets `parse` read what a name stands for.
    fn inside<T>(
        &mut self,
        used: NameInUse<'a>,
        parse: impl FnOnce(&mut FilterParser<'a>) -> ParseResult<T>,
    ) -> ParseResult<T> {
        let NameInUse { name, named } = used;
        let mut inner = FilterParser::new(&named.text, self.names);
        inner.within = self.within.iter().copied().chain([name]).collect();
        inner.remarks = std::mem::take(&mut self.remarks);
        inner.skip_blanks();
        let own_doubts = inner.remarks.doubts.len();
        let origin = |error: FilterError| error.of(&format!("@{name} in {}", named.place));
        let parsed = parse(&mut inner).map_err(origin)?;
        self.remarks = inner.remarks;
        let doubts = self.remarks.doubts.split_off(own_doubts);
        self.remarks.doubts.extend(doubts.into_iter().map(origin));
        self.remarks.used.insert(format!("@{name}"), named.text.clone());
        Ok(parsed)
    }
}
