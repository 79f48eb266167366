//! Conclusions as commands print them.

use std::io::{self, IsTerminal};

use super::options::ReadArgs;
use super::terminal::{coloured, marks, width};
use crate::digits::counted;
use crate::facts::{Conclusion, Weight};
use crate::print::{ConclusionLines, Paint};
use crate::run::RunOutcome;

/// Lines of conclusions at the head of another output.
const AT_HEAD: usize = 12;
/// What was typed is shown in commands up to so many characters.
const MAX_TYPED: usize = 80;

/// Conclusions as lines for a standard output that is a terminal or not.
pub(super) fn print_conclusions(
    conclusions: &[Conclusion],
    args: &ReadArgs,
    terminal: bool,
    lines: usize,
) -> String {
    let paint = Paint::new(coloured(args.general.color, terminal), marks(terminal));
    let typed = typed(args);
    let shown = ConclusionLines { paint: &paint, typed: &typed, width: terminal.then(width) };
    let mut text = String::new();
    shown.write(conclusions, lines, &mut text);
    text
}

/// Conclusions at the head of another output: those that something is wrong, and an empty line.
pub(super) fn at_head(conclusions: &[Conclusion], args: &ReadArgs) -> String {
    let terminal = io::stdout().is_terminal();
    let heavy: Vec<Conclusion> =
        conclusions.iter().filter(|one| one.weight < Weight::Hint).cloned().collect();
    let mut text = print_conclusions(&heavy, args, terminal, AT_HEAD);
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// What to say where nothing is wrong.
pub(super) fn nothing_wrong(outcome: &RunOutcome) -> String {
    let summary = outcome.pipeline.summary();
    match summary.messages {
        0 => "nothing was read\n".to_string(),
        messages => format!(
            "nothing is wrong in {} of {}{}\n",
            counted(messages, "message"),
            counted(summary.streams, "stream"),
            match summary.bytes.undecoded {
                0 => String::new(),
                bytes => format!("; {} of it could not be decoded", counted(bytes, "byte")),
            }
        ),
    }
}

/// The captures and keys that were typed, for commands to be typed next; `…` where they are long.
fn typed(args: &ReadArgs) -> String {
    let quoted = |text: String| {
        if !text.contains([' ', '\'', '"', '$', '*', '(', '&', ';']) {
            return text;
        }
        format!("'{}'", text.replace('\'', "'\\''"))
    };
    let captures: Vec<String> =
        args.captures.paths().map(|path| quoted(path.to_string_lossy().into_owned())).collect();
    let files = args.keys.protocols.in_force().filter_map(|(option, files)| {
        let (_, paths) = files.filter(|(source, _)| source == "command line")?;
        let all = paths
            .iter()
            .map(|path| format!("--{option} {}", quoted(path.to_string_lossy().into_owned())));
        Some(all.collect::<Vec<_>>().join(" "))
    });
    let all: Vec<String> = captures.into_iter().chain(files).collect();
    let text = all.join(" ");
    if text.is_empty() || text.chars().count() > MAX_TYPED { "…".to_string() } else { text }
}
