//! Conclusions as lines for people, and as JSON.

use std::fmt::Write;

use super::json::{JsonObject, json_list, json_object, number};
use super::marked::{BAD, DIM, END, STRONG, append_marked};
use super::paint::Paint;
use crate::captured::escape;
use crate::digits::plural;
use crate::facts::{Conclusion, Weight};

/// The characters of the weight before a sentence.
const WEIGHT: usize = 9;

/// The members of a conclusion; `place` is its number among all, from 1.
fn members(conclusion: &Conclusion, place: usize, o: &mut JsonObject<'_>) {
    o.number("conclusion", place as u64);
    o.text("weight", conclusion.weight.word());
    o.text("kind", conclusion.kind.word());
    o.text("text", &conclusion.text);
    if let Some(session) = conclusion.session {
        o.number("session", session);
    }
    for (key, list) in [("records", &conclusion.records), ("frames", &conclusion.frames)] {
        if !list.is_empty() {
            o.member(key, |out| json_list(out, list, |out, n| number(out, *n)));
        }
    }
    if let Some(blame) = conclusion.blame {
        o.text("side", blame.word());
    }
    if !conclusion.more.is_empty() {
        o.text("more", &conclusion.more);
    }
}

/// Appends conclusions as JSON objects, one a line.
pub fn conclusion_lines(conclusions: &[Conclusion], out: &mut Vec<u8>) {
    for (place, conclusion) in conclusions.iter().enumerate() {
        json_object(out, |o| members(conclusion, place + 1, o));
        out.push(b'\n');
    }
}

/// Adds conclusions as the member `conclusions`.
pub(super) fn json_conclusions(conclusions: &[Conclusion], o: &mut JsonObject<'_>) {
    let numbered: Vec<(usize, &Conclusion)> = (1..).zip(conclusions).collect();
    o.member("conclusions", |out| {
        json_list(out, &numbered, |out, (place, conclusion)| {
            json_object(out, |o| members(conclusion, *place, o));
        });
    });
}

/// How conclusions are shown to people.
pub struct ConclusionLines<'a> {
    /// The colours.
    pub paint: &'a Paint,
    /// What was typed, which stands for the `…` in commands.
    pub typed: &'a str,
    /// The characters of a line; longer sentences are broken. `None` breaks none.
    pub width: Option<usize>,
}

impl ConclusionLines<'_> {
    /// Appends as many conclusions as `lines` lines hold, at least one, and how many more there
    /// are.
    pub fn write(&self, conclusions: &[Conclusion], lines: usize, out: &mut String) {
        let mut used = 0;
        for (place, conclusion) in conclusions.iter().enumerate() {
            let mut text = String::new();
            self.one(conclusion, &mut text);
            used += text.matches('\n').count();
            if used > lines && place > 0 {
                let more = conclusions.len() - place;
                let are = plural(more, "is", "are");
                let _ = writeln!(out, "{:WEIGHT$}… and {more} more, which {are} less (--all)", "");
                return;
            }
            out.push_str(&text);
        }
    }

    /// Appends one conclusion: how bad it is, the sentence, what shows it, and the command that
    /// shows more.
    fn one(&self, conclusion: &Conclusion, out: &mut String) {
        let Conclusion { weight, text, more, .. } = conclusion;
        let mark = match weight {
            Weight::Stop => BAD,
            Weight::Trouble => STRONG,
            Weight::Hint => DIM,
        };
        let blank = WEIGHT - weight.word().len();
        let mut line = format!("{mark}{}{END}{:blank$}{}", weight.word(), "", escape(text));
        let _ = write!(line, "  {DIM}[{}]{END}", facts(conclusion));
        if !more.is_empty() {
            let _ = write!(line, "  {}", escape(&more.replace('…', self.typed)));
        }
        append_marked(&line, self.paint, self.width, WEIGHT, out);
    }
}

/// What shows a conclusion, in a few words.
fn facts(conclusion: &Conclusion) -> String {
    let mut parts = vec![conclusion.kind.word().to_string()];
    parts.extend(conclusion.session.map(|session| format!("session {session}")));
    for (noun, list) in [("record", &conclusion.records), ("frame", &conclusion.frames)] {
        let shown: Vec<String> = list.iter().take(3).map(ToString::to_string).collect();
        let more = if list.len() > shown.len() { " …" } else { "" };
        if !shown.is_empty() {
            let plural = plural(list.len(), "", "s");
            parts.push(format!("{noun}{plural} {}{more}", shown.join(" ")));
        }
    }
    parts.extend(conclusion.blame.map(|blame| blame.word().to_string()));
    parts.join("; ")
}
