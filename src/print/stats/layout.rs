//! Tables and lists in lines of at most [`WIDTH`] characters.
//!
//! Columns in which every cell is 0 or empty are left out. Columns that do not fit beside each
//! other go into a further table below.

use std::fmt::Write;

use crate::captured::escape;
use crate::print::width::{padded, width};

/// Characters of a line.
pub(super) const WIDTH: usize = 80;
/// The fewest characters left for names; with fewer, further columns go into a table of their own.
const NAME: usize = 24;

/// A table: rows of numbers, each with a name.
pub(super) struct Table {
    title: String,
    heads: Vec<String>,
    rows: Vec<Row>,
}

struct Row {
    /// A line above the row, where it differs from that of the row before.
    heading: String,
    name: String,
    cells: Vec<String>,
}

/// A column of a table, and the characters of its widest cell with the space before it.
struct Placed {
    column: usize,
    width: usize,
}

impl Table {
    /// A table without rows, with the heads of its columns.
    pub(super) fn new(title: &str, heads: &[&str]) -> Table {
        let heads = heads.iter().map(ToString::to_string).collect();
        Table { title: title.to_string(), heads, rows: Vec::new() }
    }

    /// Adds a row, with one cell for each head.
    pub(super) fn row(&mut self, name: String, cells: Vec<String>) {
        self.row_below(String::new(), name, cells);
    }

    /// Adds a row below a heading.
    pub(super) fn row_below(&mut self, heading: String, name: String, cells: Vec<String>) {
        let name = if heading.is_empty() { name } else { format!("  {name}") };
        self.rows.push(Row { heading, name, cells });
    }

    /// Appends the table, with an empty line before it; nothing where it has no rows.
    pub(super) fn write(&self, out: &mut String) {
        let mut columns: Vec<usize> =
            (0..self.heads.len()).filter(|column| self.has_content(*column)).collect();
        if self.rows.is_empty() {
            return;
        }
        let mut further = false;
        let names = self
            .rows
            .iter()
            .map(|row| width(&row.name))
            .chain([width(&self.title)])
            .max()
            .unwrap_or(0);
        loop {
            let most = WIDTH - names.min(NAME);
            let mut taken = 0;
            let fits = |column: &&usize| {
                taken += self.width(**column);
                taken <= most
            };
            let fitting = columns.iter().take_while(fits).count().max(1).min(columns.len());
            let rest = columns.split_off(fitting);
            self.part(&columns, names, further, out);
            further = true;
            if rest.is_empty() {
                return;
            }
            columns = rest;
        }
    }

    /// Appends a table of some of the columns. A further one below has only the rows with something
    /// in these columns.
    fn part(&self, columns: &[usize], names: usize, further: bool, out: &mut String) {
        // Each width is a look at every row, so it is taken once.
        let placed: Vec<Placed> =
            columns.iter().map(|c| Placed { column: *c, width: self.width(*c) }).collect();
        let taken: usize = placed.iter().map(|column| column.width).sum();
        let names = names.min(WIDTH.saturating_sub(taken));
        out.push('\n');
        line(&self.title, names, &placed, |column| self.heads.get(column), out);
        let mut heading = "";
        let used = |row: &&Row| {
            !further
                || columns.iter().any(|column| row.cells.get(*column).is_some_and(|c| is_used(c)))
        };
        for row in self.rows.iter().filter(used) {
            if row.heading != heading {
                heading = &row.heading;
                wrapped("", heading, out);
            }
            line(&row.name, names, &placed, |column| row.cells.get(column), out);
        }
    }

    fn has_content(&self, column: usize) -> bool {
        self.rows.iter().filter_map(|row| row.cells.get(column)).any(|cell| is_used(cell))
    }

    /// The characters of a column with the space before it.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.cells.get(column));
        cells.chain(self.heads.get(column)).map(|cell| width(cell)).max().unwrap_or(0) + 2
    }
}

/// Appends a line of a table: a name, and cells below each other in columns.
fn line<'a>(
    name: &str,
    names: usize,
    columns: &[Placed],
    cell: impl Fn(usize) -> Option<&'a String>,
    out: &mut String,
) {
    let mut line = padded(name, names);
    if width(name) > names {
        // A long name has a line of its own.
        wrapped("", name, out);
        line = " ".repeat(names);
    }
    for Placed { column, width: room } in columns {
        let cell = cell(*column).map_or("", String::as_str);
        let blanks = room.saturating_sub(width(cell));
        let _ = write!(line, "{:blanks$}{cell}", "");
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// A list of counts, each with the name behind it, which may be text from outside.
pub(super) fn counted_list<'a>(
    title: &str,
    list: impl IntoIterator<Item = (&'a str, u64)>,
    out: &mut String,
) {
    let mut list = list.into_iter().peekable();
    if list.peek().is_some() {
        let _ = writeln!(out, "\n{title}");
    }
    for (name, n) in list {
        wrapped(&format!("{n:>10}  "), &escape(name), out);
    }
}

/// Appends a text behind `before`, broken between words into as many lines as it takes; the further
/// ones are indented as the first.
pub(super) fn wrapped(before: &str, text: &str, out: &mut String) {
    let indent = width(before).min(WIDTH / 2);
    let room = WIDTH - width(before).min(WIDTH / 2);
    out.push_str(before);
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let mut rest = word;
        while !rest.is_empty() {
            if used > room || used > 0 && is_wider(rest.trim_end(), room - used) {
                line_end(out);
                out.push_str(&" ".repeat(indent));
                used = 0;
            }
            // A word that is longer than a line is cut.
            let end = rest.char_indices().nth(room - used).map_or(rest.len(), |(at, _)| at);
            let (now, later) = if !is_wider(rest.trim_end(), room - used) {
                (rest, "")
            } else {
                rest.split_at(end)
            };
            out.push_str(now);
            used += width(now);
            rest = later;
        }
    }
    line_end(out);
}

/// Whether a text is wider than this many characters. Of a long text only the beginning is looked
/// at, since it is asked anew for each line of a word.
fn is_wider(text: &str, most: usize) -> bool {
    let long = text.char_indices().nth(4 * WIDTH);
    long.is_some() || width(text) > most
}

/// Ends a line, without spaces before its end.
fn line_end(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

fn is_used(cell: &str) -> bool {
    !cell.is_empty() && cell != "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(list: &[u64]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn columns_of_zeros_are_left_out() {
        let mut table = Table::new("bytes", &["payload", "lost", "opaque"]);
        table.row("all".into(), cells(&[10, 0, 3]));
        table.row_below("game".into(), "tcp 4".into(), cells(&[7, 0, 0]));
        let mut out = String::new();
        table.write(&mut out);
        assert_eq!(
            out,
            "\nbytes    payload  opaque\nall           10       3\ngame\n  tcp 4        7       \
             0\n"
        );
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let mut out = String::new();
        let heads: Vec<String> = (0..20).map(|n| format!("a long head {n}")).collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let mut table = Table::new("table", &heads);
        let name = "a name of several words that is longer than what is left beside the columns, \
                    and longer than a line";
        table.row(name.into(), cells(&[u64::MAX; 20]));
        table.row("x".repeat(200), cells(&[1; 20]));
        table.write(&mut out);
        wrapped("        12  ", name, &mut out);
        wrapped("        12  ", &"y".repeat(300), &mut out);
        assert!(out.lines().all(|line| width(line) <= WIDTH), "{out}");
        assert_eq!(out.matches("18446744073709551615").count(), 20);
        assert_eq!(out.matches('y').count(), 300);
        assert!(out.ends_with(&format!("{}{}\n", " ".repeat(12), "y".repeat(28))), "{out}");
    }
}
