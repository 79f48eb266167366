//! What the terminal can show: colours, the characters of a line, marks beyond ASCII.

use super::options::When;
use crate::print::Marks;

/// Whether to use colour on a standard output that is a terminal or not.
pub(super) fn coloured(when: When, terminal: bool) -> bool {
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto => {
            let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            terminal && !dumb && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        }
    }
}

/// The characters of a line on the terminal: as `COLUMNS` says, or the terminal.
pub(super) fn width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let asked = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    said.or_else(asked).filter(|width| *width > 0).unwrap_or(80)
}

/// The marks for a standard output that is a terminal or not, as the locale allows.
pub(super) fn marks(terminal: bool) -> Marks {
    let set =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let locale = set.into_iter().find(|value| !value.is_empty());
    Marks::of_locale(locale.as_deref(), terminal)
}
