//! Reads the text of a configuration file. Every mistake is one line with its place and what is
//! expected there.
//!
//! Errors quote only names from the file: a user may have put a key into it by mistake.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Config, FilesOfConfig, TimeOfConfig, home};
use crate::captured::{escape, line_and_column};
use crate::cli::error::CliError;
use crate::cli::options::{TimeWord, file_options};
use crate::filter::{NamedExpression, can_be_named};
use crate::suggest::suggestion;

/// The option `--tables`, which belongs to no protocol.
pub(in crate::cli) const TABLES: &str = "tables";
/// The longest key of the file that an error repeats, in bytes.
const MAX_QUOTED: usize = 40;
const TIME: &str = "time";
const FILTERS: &str = "filters";
const COLUMNS: &str = "columns";

/// Reads the text of the file `name`, which is in `folder`.
pub(super) fn parse(name: &str, folder: &Path, bytes: &[u8]) -> Result<Config, CliError> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let read = bytes
            .get(..error.valid_up_to())
            .and_then(|read| str::from_utf8(read).ok())
            .unwrap_or_default();
        ConfigText { name, folder, text: read }.wrong(read.len(), "expected text in UTF-8")
    })?;
    let source = ConfigText { name, folder, text };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        source.wrong(at, &format!("no TOML: {}", error.message().replace('\n', "; ")))
    })?;
    let mut config = Config::default();
    for (key, value) in table.get_ref() {
        source.entry(key, value, &mut config)?;
    }
    Ok(config)
}

/// The file that is read.
struct ConfigText<'a> {
    name: &'a str,
    folder: &'a Path,
    text: &'a str,
}

impl ConfigText<'_> {
    /// A mistake at a byte of the text.
    fn wrong(&self, at: usize, what: &str) -> CliError {
        let (line, column) = line_and_column(self.text, at);
        CliError::Typed(format!("{}:{line}:{column}: {what}", self.name))
    }

    fn line(&self, at: usize) -> usize {
        line_and_column(self.text, at).0
    }

    fn entry(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        config: &mut Config,
    ) -> Result<(), CliError> {
        let word = key.get_ref().as_ref();
        let at = key.span().start;
        match word {
            TIME => {
                let form = self.time(value)?;
                config.time = Some(TimeOfConfig { form, line: self.line(at) });
            }
            FILTERS => {
                config.named.filters = self.named(value, "filter", "refused and service == auth")?
            }
            COLUMNS => {
                config.named.columns =
                    self.named(value, "list of columns", "record,time,message,info")?
            }
            _ if word == TABLES || file_options().any(|option| option == word) => {
                let files = FilesOfConfig {
                    option: word.into(),
                    paths: self.paths(value)?,
                    line: self.line(at),
                };
                config.files.push(files);
            }
            _ => {
                let known = || file_options().chain([TABLES, TIME, FILTERS, COLUMNS]);
                let near = suggestion(word, known());
                let all = known().collect::<Vec<_>>().join(", ");
                // What is longer is no misspelt word.
                let found = if word.len() <= MAX_QUOTED {
                    format!("`{}`{near}", escape(word))
                } else {
                    "another".into()
                };
                let what = format!("expected one of {all}, found {found}");
                return Err(self.wrong(at, &what));
            }
        }
        Ok(())
    }

    fn time(&self, value: &Spanned<DeValue<'_>>) -> Result<TimeWord, CliError> {
        let forms = || TimeWord::value_variants().iter().filter_map(TimeWord::to_possible_value);
        let names: Vec<String> = forms().map(|form| form.get_name().to_owned()).collect();
        let found = value.get_ref().as_str().unwrap_or_default();
        TimeWord::from_str(found, false).map_err(|_| {
            let near = suggestion(found, names.iter().map(String::as_str));
            self.wrong(
                value.span().start,
                &format!("expected one of {} in quotes{near}", names.join(", ")),
            )
        })
    }

    /// One path, or a list of them.
    fn paths(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<PathBuf>, CliError> {
        match value.get_ref() {
            DeValue::Array(list) => list.iter().map(|path| self.path(path)).collect(),
            _ => Ok(vec![self.path(value)?]),
        }
    }

    fn path(&self, value: &Spanned<DeValue<'_>>) -> Result<PathBuf, CliError> {
        let Some(path) = value.get_ref().as_str().filter(|path| !path.is_empty()) else {
            let what = "expected the path of a file or folder in quotes, or several in brackets: \
                        [\"a\", \"b\"]";
            return Err(self.wrong(value.span().start, what));
        };
        match path.strip_prefix("~/").zip(home()) {
            Some((below, home)) => Ok(home.join(below)),
            None => Ok(self.folder.join(path)),
        }
    }

    /// A table of expressions that have names.
    fn named(
        &self,
        value: &Spanned<DeValue<'_>>,
        what: &str,
        example: &str,
    ) -> Result<std::collections::BTreeMap<String, NamedExpression>, CliError> {
        let wrong = |at| {
            self.wrong(at, &format!("expected NAME = a {what} in quotes, such as \"{example}\""))
        };
        let Some(table) = value.get_ref().as_table() else { return Err(wrong(value.span().start)) };
        let mut named = std::collections::BTreeMap::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let at = key.span().start;
            if !can_be_named(name) {
                let what = format!(
                    "the name of a {what} has ASCII letters, digits, _ and -, and begins with a \
                     letter"
                );
                return Err(self.wrong(at, &what));
            }
            let Some(text) = value.get_ref().as_str().filter(|text| !text.trim().is_empty()) else {
                return Err(wrong(value.span().start));
            };
            let place = format!("{}, line {}", self.name, self.line(at));
            named.insert(name.to_owned(), NamedExpression { text: text.to_owned(), place });
        }
        Ok(named)
    }
}
