//! Shows progress on standard error if that is a terminal. It knows counts and sizes, but no
//! capture and no record.

use crate::digits::counted;
use crate::remark;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[cfg(not(target_family = "wasm"))]
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::capture::Source;
use crate::pipeline::Summary;

/// Smaller files are read too fast to see a progress line.
const WORTH: u64 = 4 << 20;
/// How often the numbers change, and after how many frames the clock is read.
const EVERY: Duration = Duration::from_millis(100);
const FRAMES: u32 = 256;
/// Cut to the width of the terminal.
#[cfg(not(target_family = "wasm"))]
const LINE: &str = "{wide_msg}";

/// The progress line, if there is one.
pub struct Progress {
    bar: Option<ProgressBar>,
    /// The bytes of all files.
    total: u64,
    begun: Instant,
    frames: u32,
    /// When the numbers changed last.
    last: Option<Instant>,
}

/// A writer whose output may share a terminal with that line.
pub struct Beside<W: Write> {
    bar: Option<ProgressBar>,
    to: W,
}

impl Progress {
    /// A progress line for some files. None unless their size is known and large and standard error
    /// is a terminal.
    pub(super) fn of(captures: &[PathBuf], quiet: bool) -> Progress {
        let sizes =
            captures.iter().map(|path| Source::path(path).size()).collect::<Option<Vec<u64>>>();
        let total = sizes.map_or(0, |sizes| sizes.iter().sum());
        let shown = !quiet && total >= WORTH && io::stderr().is_terminal();
        let bar = if shown { new_bar(total) } else { None };
        Progress { bar, total, ..Progress::none() }
    }

    /// No line at all.
    pub(super) fn none() -> Progress {
        Progress { bar: None, total: 0, begun: Instant::now(), frames: 0, last: None }
    }

    /// A writer that moves the line out of its way.
    pub(super) fn beside<W: Write>(&self, to: W) -> Beside<W> {
        // They share a screen only if standard output is a terminal too.
        let bar = self.bar.clone().filter(|_| io::stdout().is_terminal());
        Beside { bar, to }
    }

    /// Counts a frame.
    pub(super) fn frame(&mut self, read: impl FnOnce() -> (u64, Summary)) {
        self.frames = self.frames.wrapping_add(1);
        let Some(bar) = &self.bar else { return };
        if !self.frames.is_multiple_of(FRAMES) || self.last.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        let (bytes, summary) = read();
        let part = (bytes as f64 / self.total.max(1) as f64).clamp(f64::EPSILON, 1.0);
        let left = self.begun.elapsed().as_secs_f64() * (1.0 - part) / part;
        bar.set_message(format!(
            "{:>3.0}% of {} MiB, {left:.0} s left; {}, {}",
            part * 100.0,
            self.total >> 20,
            counted(summary.messages, "message"),
            summary.problems
        ));
    }

    /// Ends the line: everything was read.
    pub(super) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Says a remark ([`remark::warn`]), above the progress.
    pub(super) fn say_before(&self, line: String) {
        let write = || remark::warn(line);
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

#[cfg(not(target_family = "wasm"))]
fn new_bar(total: u64) -> Option<ProgressBar> {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(LINE);
    Some(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
}

#[cfg(target_family = "wasm")]
fn new_bar(_total: u64) -> Option<ProgressBar> {
    None
}

/// WebAssembly has no terminal, so no such bar is ever made.
#[cfg(target_family = "wasm")]
#[derive(Clone)]
enum ProgressBar {}

#[cfg(target_family = "wasm")]
impl ProgressBar {
    fn set_message(&self, _text: String) {
        match *self {}
    }

    fn finish_and_clear(&self) {
        match *self {}
    }

    fn suspend<T>(&self, _act: impl FnOnce() -> T) -> T {
        match *self {}
    }
}

impl<W: Write> Write for Beside<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let to = &mut self.to;
        match &self.bar {
            None => to.write_all(bytes),
            Some(bar) => bar.suspend(|| to.write_all(bytes).and_then(|()| to.flush())),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
