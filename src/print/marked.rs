//! Texts with marks for their colours, which become escape codes, and lines that are broken between
//! words. The marks are controls, which no text from outside has once it was escaped.

use super::paint::{Paint, Style};

/// Here begins what is wrong: a refusal, a wait, an error.
pub(super) const BAD: char = '\u{1}';
/// Here begins what is important.
pub(super) const STRONG: char = '\u{2}';
/// Here begins what is less important.
pub(super) const DIM: char = '\u{3}';
/// Here ends what began.
pub(super) const END: char = '\u{4}';

/// Appends lines of marked text: the marks become colours, and lines of more than `width`
/// characters are broken between words, the further ones indented.
pub fn append_marked(
    text: &str,
    paint: &Paint,
    width: Option<usize>,
    indent: usize,
    out: &mut String,
) {
    for line in text.lines() {
        append_line(line, paint, width, indent, out);
        out.push('\n');
    }
}

fn append_line(line: &str, paint: &Paint, width: Option<usize>, indent: usize, out: &mut String) {
    let mut used = 0;
    let mut open = Style::default();
    for word in line.split_inclusive(' ') {
        let long = columns(word.trim_end());
        if width.is_some_and(|width| used + long > width) && used > indent && long > 0 {
            out.truncate(out.trim_end_matches(' ').len());
            out.push_str(open.off);
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            out.push_str(open.on);
            used = indent;
        }
        used += columns(word);
        for c in word.chars() {
            let style = match c {
                BAD => paint.bad,
                STRONG => paint.name,
                DIM => paint.dim,
                END => {
                    out.push_str(open.off);
                    open = Style::default();
                    continue;
                }
                _ => {
                    out.push(c);
                    continue;
                }
            };
            out.push_str(style.on);
            open = style;
        }
    }
    out.push_str(open.off);
}

/// The columns of a text, without its marks.
fn columns(text: &str) -> usize {
    text.split(is_mark).map(super::width::width).sum()
}

fn is_mark(c: char) -> bool {
    matches!(c, BAD | STRONG | DIM | END)
}

/// A text without its marks.
pub(super) fn without_marks(mut text: String) -> String {
    text.retain(|c| !is_mark(c));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::paint::Marks;

    #[test]
    fn marks_become_colours_and_long_lines_are_broken() {
        let text = format!("who   a {BAD}long line{END} of words\n");
        let mut plain = String::new();
        append_marked(&text, &Paint::default(), None, 6, &mut plain);
        assert_eq!(plain, "who   a long line of words\n");
        let mut broken = String::new();
        append_marked(&text, &Paint::new(true, Marks::default()), Some(14), 6, &mut broken);
        let [on, off] = ["\u{1b}[31m", "\u{1b}[0m"];
        assert_eq!(broken, format!("who   a {on}long{off}\n      {on}line{off} of\n      words\n"));
    }
}
