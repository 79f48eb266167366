//! Differences for people: a summary, then for each session and service short trees in which `-` is
//! the first capture and `+` the second one; or one line for each difference.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use serde_json::Value;

use super::detail_lines::FieldLine;
use super::difference::{
    Difference, DifferenceKind, DifferenceSum, FieldDifference, IdentityDifference, RecordOf,
    Section,
};
use crate::captured::escape;
use crate::digits::counted;
use crate::print::Paint;

/// Fields that are shown before and after one that differs.
const CONTEXT: usize = 3;
/// Differences of one sort that are shown in a section before the rest is counted.
const SHOWN: usize = 1;
/// Lines of a message that are shown.
const MAX_LINES: usize = 24;
/// Characters of a value.
const MAX_VALUE: usize = 100;

/// How differences are shown.
#[derive(Clone, Debug, Default)]
pub struct DiffStyle {
    /// Colours and marks.
    pub paint: Paint,
    /// The names of the captures, escaped.
    pub names: [String; 2],
}

impl DiffStyle {
    fn painted(&self, side: usize, text: &str) -> String {
        let style = if side == 0 { &self.paint.bad } else { &self.paint.meaning };
        format!("{}{text}{}", style.on, style.off)
    }

    fn dim(&self, text: &str) -> String {
        format!("{}{text}{}", self.paint.dim.on, self.paint.dim.off)
    }

    fn strong(&self, text: &str) -> String {
        format!("{}{text}{}", self.paint.name.on, self.paint.name.off)
    }
}

/// How much is the same and how much differs, in a few lines.
pub fn summary_text(sum: &DifferenceSum, style: &DiffStyle, out: &mut String) {
    let [a, b] = &style.names;
    let _ = writeln!(out, "{} {}", style.painted(0, "- A"), a);
    let _ = writeln!(out, "{} {}", style.painted(1, "+ B"), b);
    let _ = write!(out, "{} the same, ", counted(sum.same, "message"));
    let said: Vec<String> = DifferenceKind::ALL
        .iter()
        .zip(sum.kinds)
        .filter(|(_, n)| *n > 0)
        .map(|(kind, n)| kind_text(*kind, n))
        .collect();
    match sum.differences() {
        0 => out.push_str("no differences"),
        n => drop(write!(out, "{}: {}", counted(n, "difference"), said.join(", "))),
    }
    let [lost_a, lost_b] = sum.lost;
    for (n, name) in [(lost_a, 'A'), (lost_b, 'B')].into_iter().filter(|(n, _)| *n > 0) {
        let _ = write!(out, "; {} lost in {name}", counted(n, "message"));
    }
    let [unread_a, unread_b] = sum.unread_messages;
    for (n, name) in [(unread_a, 'A'), (unread_b, 'B')].into_iter().filter(|(n, _)| *n > 0) {
        let _ = write!(out, "; {} unread in {name}", counted(n, "message"));
    }
    let [bytes_a, bytes_b] = sum.unread_bytes;
    if bytes_a + bytes_b > 0 {
        let _ =
            write!(out, "; {} of A and {bytes_b} of B could not be read", counted(bytes_a, "byte"));
    }
    match sum.sent_again {
        [0, 0] => {}
        [a, b] if a == b => {
            let _ = write!(out, "; {} sent again in each, not compared", counted(a, "message"));
        }
        [a, b] => drop(write!(
            out,
            "; {} sent again in A and {b} in B, not compared",
            counted(a, "message")
        )),
    }
    if sum.renamed_once > 0 {
        let n = sum.renamed_once;
        let _ = write!(out, "; {} seen once, taken for renamed", counted(n, "number"));
    }
    if sum.not_reported > 0 {
        let _ = write!(out, "; {} of these are only counted (--max-memory)", sum.not_reported);
    }
    let [beyond_a, beyond_b] = sum.not_compared;
    for (n, name) in [(beyond_a, 'A'), (beyond_b, 'B')].into_iter().filter(|(n, _)| *n > 0) {
        let _ = write!(
            out,
            "; the last {} of {name} were too many to be compared (--max-memory)",
            counted(n, "message")
        );
    }
    out.push('\n');
}

fn kind_text(kind: DifferenceKind, n: u64) -> String {
    match kind {
        DifferenceKind::OnlyA => format!("{n} only in A"),
        DifferenceKind::OnlyB => format!("{n} only in B"),
        DifferenceKind::Value => counted(n, "value"),
        DifferenceKind::Form => counted(n, "form"),
        DifferenceKind::Order => format!("{n} in another order"),
        DifferenceKind::Refused => format!("{n} refused in one of them"),
        DifferenceKind::Latency => format!("{n} slower in B"),
        DifferenceKind::Unread => format!("{n} in what can be read"),
    }
}

/// A section: its heading, its differences, and what was lost. Nothing where nothing differs and
/// nothing was lost. `session` is the heading of the section before.
pub fn section_text(section: &Section, session: &mut String, style: &DiffStyle, out: &mut String) {
    let lost: u64 = section.lost.iter().map(|lost| lost.messages).sum();
    if section.differences.is_empty() && lost == 0 {
        return;
    }
    heading(section, session, style, out);
    let mut seen: HashMap<String, usize> = HashMap::new();
    let keys: Vec<String> = section.differences.iter().map(sort_of).collect();
    for key in &keys {
        *seen.entry(key.clone()).or_insert(0) += 1;
    }
    let mut shown: HashMap<&str, usize> = HashMap::new();
    for (difference, key) in section.differences.iter().zip(&keys) {
        let count = shown.entry(key).or_insert(0);
        *count += 1;
        if *count > SHOWN {
            continue;
        }
        difference_text(difference, style, out);
        let more = seen.get(key).map_or(0, |all| all.saturating_sub(SHOWN));
        if *count == SHOWN && more > 0 {
            let _ = writeln!(out, "      {}", style.dim(&format!("{more} more like this")));
        }
    }
    for lost in section.lost.iter().filter(|lost| lost.messages > 0) {
        let (own, other) = if lost.side == 0 { ('A', 'B') } else { ('B', 'A') };
        let text = match lost.bytes {
            0 => {
                format!("{} of {other} came before {own} began", counted(lost.messages, "message"))
            }
            bytes if lost.unread => format!(
                "{} of {other} fell into what could not be read in {own} ({}, record {})",
                counted(lost.messages, "message"),
                counted(bytes, "byte"),
                lost.record
            ),
            bytes => format!(
                "{} of {other} fell into what {own} lost ({}, record {})",
                counted(lost.messages, "message"),
                counted(bytes, "byte"),
                lost.record
            ),
        };
        let _ = writeln!(out, "    {}", style.dim(&text));
    }
}

fn heading(section: &Section, session: &mut String, style: &DiffStyle, out: &mut String) {
    let number = |side: Option<u32>| side.map_or("none".to_string(), |n| (n + 1).to_string());
    let [a, b] = section.session_key;
    let who = if section.session.is_empty() {
        String::new()
    } else {
        format!("  {}", escape(&section.session))
    };
    let title =
        format!("session {} in A, {} in B  {}{who}", number(a), number(b), section.protocol);
    if *session != title {
        let _ = writeln!(out, "\n{}", style.strong(&title));
        *session = title;
    }
    let streams = match &section.streams {
        [Some(a), Some(b)] if a == b => a.clone(),
        [Some(a), Some(b)] => format!("{a} in A, {b} in B"),
        [Some(a), None] => format!("{a} in A, nothing like it in B"),
        [None, Some(b)] => format!("{b} in B, nothing like it in A"),
        [None, None] => String::new(),
    };
    let _ = writeln!(out, "  {}  {}", style.strong(&escape(&section.service)), style.dim(&streams));
}

/// What differences that are folded have in common.
fn sort_of(difference: &Difference) -> String {
    let mut key =
        if difference.message.is_empty() { difference.info.clone() } else { difference.name() };
    for field in &difference.fields {
        let _ = write!(key, " {}", field.kind.word());
        let mut digits = false;
        for c in field.path.as_deref().unwrap_or_default().chars() {
            // The places of elements are no difference.
            if !(c.is_ascii_digit() && digits) {
                key.push(if c.is_ascii_digit() { '0' } else { c });
            }
            digits = c.is_ascii_digit();
        }
        if let Some(identity) = &field.identity {
            let _ = write!(key, " {}", identity.kind);
        }
    }
    key
}

fn difference_text(difference: &Difference, style: &DiffStyle, out: &mut String) {
    let number = |of: &Option<RecordOf>| of.map_or(String::new(), |of| format!("#{}", of.record));
    let name = style.strong(&escape(&difference.name()));
    let info = style.dim(&cut(&escape(&difference.info)));
    let a = number(&difference.a);
    let b = number(&difference.b);
    if difference.fields.iter().any(|field| field.kind == DifferenceKind::Unread) {
        return unread_text(difference, style, out);
    }
    let _ = match (difference.a, difference.b) {
        (Some(_), None) => {
            writeln!(out, "    {} {name}  {a}  {info}", style.painted(0, "- only in A"))
        }
        (None, Some(_)) => {
            writeln!(out, "    {} {name}  {b}  {info}", style.painted(1, "+ only in B"))
        }
        _ => writeln!(out, "    {name}  A {a}  B {b}  {info}"),
    };
    for field in &difference.fields {
        field_text(field, difference, style, out);
    }
    if difference.fields.iter().any(|field| field.kind == DifferenceKind::Value) {
        lines_text(&difference.lines, difference, style, out);
    }
}

/// How many bytes of a direction could not be read.
fn unread_text(difference: &Difference, style: &DiffStyle, out: &mut String) {
    let record = |of: &Option<RecordOf>| {
        of.map_or(String::new(), |of| format!(", from record {} on", of.record))
    };
    for field in &difference.fields {
        let [a, b] = field.values.each_ref().map(|value| value.as_deref().unwrap_or("0"));
        let a = style.painted(0, &format!("{a} in A{}", record(&difference.a)));
        let b = style.painted(1, &format!("{b} in B{}", record(&difference.b)));
        let _ = writeln!(out, "    {}: {a}; {b}", style.strong(&escape(&difference.info)));
    }
}

/// What is said of a difference in words, beside its field.
fn field_text(
    field: &FieldDifference,
    difference: &Difference,
    style: &DiffStyle,
    out: &mut String,
) {
    let indent = "      ";
    let [a, b] = field
        .values
        .clone()
        .map(|value| value.map_or("nothing".to_string(), |value| value_text(&value)));
    let path = escape(field.path.as_deref().unwrap_or_default());
    let _ = match field.kind {
        DifferenceKind::OnlyA | DifferenceKind::OnlyB | DifferenceKind::Unread => Ok(()),
        DifferenceKind::Order => {
            writeln!(out, "{indent}is at another place among the messages of its direction")
        }
        DifferenceKind::Latency => {
            writeln!(
                out,
                "{indent}answered after {} ms, and after {} ms",
                style.painted(0, &a),
                style.painted(1, &b)
            )
        }
        DifferenceKind::Refused => writeln!(
            out,
            "{indent}refused in one of them\n{indent}{}",
            style.painted(0, &format!("- {path}  {a}"))
        )
        .and_then(|()| writeln!(out, "{indent}{}", style.painted(1, &format!("+ {path}  {b}")))),
        DifferenceKind::Form => writeln!(
            out,
            "{indent}another form\n{indent}{}",
            style.painted(0, &format!("- {path}  {a}"))
        )
        .and_then(|()| writeln!(out, "{indent}{}", style.painted(1, &format!("+ {path}  {b}")))),
        DifferenceKind::Value => match (&field.identity, difference.lines.is_empty()) {
            (Some(identity), _) => writeln!(out, "{indent}{}", identity_text(identity)),
            (None, true) => writeln!(
                out,
                "{indent}its fields differ; there were too many differences to look at them"
            ),
            (None, false) => Ok(()),
        },
    };
}

/// Which records show that numbers are those of different things.
fn identity_text(identity: &IdentityDifference) -> String {
    if identity.elsewhere.iter().all(Option::is_none) {
        return format!("another {}: these numbers occur nowhere else", escape(&identity.kind));
    }
    let [a, b] =
        identity.elsewhere.map(|of| of.map_or("none".to_string(), |of| format!("#{}", of.record)));
    let which = if identity.of_a {
        "A's number is a different one in B"
    } else {
        "B's number is a different one in A"
    };
    let more = match identity.more {
        0 => String::new(),
        n => format!("; {} more show the same", counted(u64::from(n), "message")),
    };
    format!("another {}: {which}, as A {a} and B {b} show{more}", escape(&identity.kind))
}

/// The fields that differ, each with some before and after it.
fn lines_text(lines: &[FieldLine], difference: &Difference, style: &DiffStyle, out: &mut String) {
    let paths: HashSet<&str> =
        difference.fields.iter().filter_map(|field| field.path.as_deref()).collect();
    let differs = |line: &FieldLine| !line.same && paths.contains(line.path.as_str());
    let mut near = vec![false; lines.len()];
    for at in lines.iter().enumerate().filter(|(_, line)| differs(line)).map(|(at, _)| at) {
        let around = near.iter_mut().take(at + CONTEXT + 1).skip(at.saturating_sub(CONTEXT));
        around.for_each(|near| *near = true);
    }
    let width = lines
        .iter()
        .zip(&near)
        .filter(|(_, near)| **near)
        .map(|(line, _)| line.path.chars().count())
        .max();
    let width = width.unwrap_or(0).min(60);
    let mut left = MAX_LINES;
    let mut skipped = false;
    for (line, near) in lines.iter().zip(near) {
        if !near || left == 0 {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            let _ = writeln!(out, "        {}", style.dim("..."));
        }
        left -= 1;
        let path = escape(&line.path);
        let [a, b] = line.values.clone().map(|value| value.map(|value| value_text(&value)));
        if line.same {
            let same = a.as_deref().unwrap_or_default();
            let other = b
                .filter(|other| other != same)
                .map_or(String::new(), |other| format!("  (B {other})"));
            let _ =
                writeln!(out, "        {}", style.dim(&format!("{path:<width$}  {same}{other}")));
            continue;
        }
        for (side, sign, value) in [(0, '-', a), (1, '+', b)] {
            if let Some(value) = value {
                let _ = writeln!(
                    out,
                    "      {}",
                    style.painted(side, &format!("{sign} {path:<width$}  {value}"))
                );
            }
        }
    }
    if skipped && left == 0 {
        let _ = writeln!(out, "        {}", style.dim("and further fields"));
    }
}

/// A value as a person reads it: an enum value with its name behind it, flags with theirs.
fn value_text(json: &str) -> String {
    let text = match serde_json::from_str::<Value>(json) {
        Ok(Value::Object(object)) if object.contains_key("value") => {
            let number = object.get("value").map_or(String::new(), Value::to_string);
            let names = object.get("names").and_then(Value::as_array).into_iter().flatten();
            let names: Vec<&str> =
                object.get("name").into_iter().chain(names).filter_map(Value::as_str).collect();
            format!("{number}  {}", names.join("|")).trim_end().to_string()
        }
        _ => json.to_string(),
    };
    cut(&escape(&text))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}

/// One line for each difference of a message, as compilers write theirs: the capture, the record,
/// and what is different there.
pub fn difference_line(
    section: &Section,
    difference: &Difference,
    style: &DiffStyle,
    out: &mut String,
) {
    let [name_a, name_b] = &style.names;
    let (name, record) = match (difference.a, difference.b) {
        (_, Some(b)) => (name_b, b.record),
        (Some(a), None) => (name_a, a.record),
        (None, None) => (name_a, 0),
    };
    for field in &difference.fields {
        let _ = write!(out, "{name}:{record}: {}: {}", field.kind.word(), escape(&section.service));
        if !difference.message.is_empty() {
            let _ = write!(out, " {}", escape(&difference.name()));
        }
        if let Some(path) = &field.path {
            let [a, b] = field
                .values
                .clone()
                .map(|value| value.map_or("nothing".into(), |value| value_text(&value)));
            let _ = write!(out, " {}: {a} -> {b}", escape(path));
        } else if !difference.info.is_empty() {
            let _ = write!(out, " {}", cut(&escape(&difference.info)));
        }
        if let (Some(a), Some(_)) = (difference.a, difference.b) {
            let _ = write!(out, " (record {} of A)", a.record);
        }
        if let Some(identity) = &field.identity {
            let _ = write!(out, "; {}", identity_text(identity));
        }
        out.push('\n');
    }
}
