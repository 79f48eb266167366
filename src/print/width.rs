//! The columns that a text takes on a terminal: two for most characters of Chinese, Japanese and
//! Korean, none for a combining mark. It knows no record and no layout.

use unicode_width::UnicodeWidthChar;

/// The columns of a text.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// A text with blanks behind it, up to so many columns.
pub(super) fn padded(text: &str, columns: usize) -> String {
    let blanks = columns.saturating_sub(width(text));
    format!("{text}{:blanks$}", "")
}

/// As much of a text as goes into `most` columns; a cut one ends in `~`.
#[cfg(feature = "cli")]
pub(crate) fn cut(text: &str, most: usize) -> String {
    if most == usize::MAX || width(text) <= most {
        return text.to_string();
    }
    let mut left = most.saturating_sub(1);
    let fits = text.chars().take_while(|c| match left.checked_sub(columns(*c)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    let mut short: String = fits.collect();
    if most > 0 {
        short.push('~');
    }
    short
}

fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!(
            (cut("abc", 3), cut("abcd", 3), cut("abcd", 0)),
            ("abc".into(), "ab~".into(), String::new())
        );
    }

    #[test]
    fn characters_of_two_columns_are_counted_so() {
        assert_eq!((width("村正"), width("한글a"), width("e\u{301}")), (4, 5, 1));
        assert_eq!((cut("村正刀", 5), cut("村正刀", 4)), ("村正~".into(), "村~".into()));
    }
}
