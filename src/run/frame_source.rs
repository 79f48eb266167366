//! Where frames come from: files and pipes, a file that another program still writes, or an
//! interface.

use crate::captured::file_name;
use crate::digits::{counted, plural};
use crate::remark;
use crate::texts;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Reading;
use super::error::RunError;
use super::interrupt::Interrupt;
use super::pipe::Pipe;
use super::progress::Progress;
use crate::capture::{
    Capture, CaptureItem, CaptureProblem, Live, Source, Tail, interfaces, is_of_kernel,
};

/// Where frames come from, not opened yet.
#[derive(Clone, Debug)]
pub enum FrameInput {
    /// Captures, read as one in this order; `-` is standard input.
    Files(Vec<PathBuf>),
    /// A capture that another program still appends to, until a signal.
    Growing(PathBuf),
    /// An interface, until a signal: its name, and a capture filter or nothing.
    Interface(String, String),
}

impl FrameInput {
    /// Whether a signal is the normal end of reading it, so that somebody may look at what comes
    /// long before.
    pub fn ends_by_signal(&self) -> bool {
        !matches!(self, FrameInput::Files(_)) || self.reads_pipe()
    }

    /// Whether one of the captures is a pipe, or another file that may have no end.
    fn reads_pipe(&self) -> bool {
        matches!(self, FrameInput::Files(files) if files.iter().any(|file| is_stdin(file) || may_never_end(file)))
    }
}

/// Where frames come from, open.
pub(super) struct FrameSource {
    from: From,
    interrupt: Interrupt,
    /// Whether a signal is the normal end of this source, because it has no other.
    ends_by_signal: bool,
}

enum From {
    Files(Capture),
    Growing(Capture, Tail),
    Interface(Box<Live>),
}

impl FrameSource {
    /// Opens a source. With several threads, compressed captures are unpacked on a thread of their
    /// own.
    pub(super) fn new(reading: &Reading) -> Result<FrameSource, RunError> {
        let input = &reading.input;
        let quiet = reading.quiet;
        let interrupt = Interrupt::watch();
        let from = match input {
            FrameInput::Files(paths) => {
                let sources: Result<Vec<Source>, RunError> =
                    paths.iter().map(|path| source(path, &interrupt)).collect();
                let capture = Capture::new(sources?).unpacking_ahead(reading.threads > 1);
                From::Files(capture.converting(texts::convert))
            }
            FrameInput::Growing(path) => {
                refuse_what_never_grows(path)?;
                let requested = interrupt.clone();
                let tail = Tail::new(path, Arc::new(move || requested.is_requested()));
                if tail.waits() && !quiet {
                    remark::say(format_args!("{} is not there yet; Ctrl-C ends", file_name(path)));
                }
                From::Growing(Capture::new([]).converting(texts::convert), tail)
            }
            FrameInput::Interface(name, filter) => {
                let live = Live::open(name, filter)?;
                if !quiet {
                    remark::say(format_args!("capturing on {name}; Ctrl-C ends"));
                }
                From::Interface(Box::new(live))
            }
        };
        let ends_by_signal = input.ends_by_signal();
        if ends_by_signal {
            // Whoever asked for this may look at it long before its end.
            remark::say_waiting();
        }
        Ok(FrameSource { from, interrupt, ends_by_signal })
    }

    /// How far reading has come, if the length of the input is known.
    pub(super) fn progress(input: &FrameInput, quiet: bool) -> Progress {
        match input {
            FrameInput::Files(files) => Progress::of(files, quiet),
            FrameInput::Growing(_) | FrameInput::Interface(..) => Progress::none(),
        }
    }

    /// The next frame or secrets. After `None`, [`goes_on`](FrameSource::goes_on) says whether
    /// there may be more.
    pub(super) fn next_item(&mut self) -> Result<Option<CaptureItem<'_>>, RunError> {
        match &mut self.from {
            From::Files(capture) | From::Growing(capture, _) => Ok(capture.next_item()?),
            From::Interface(live) => Ok(live.next_frame()?.map(CaptureItem::Frame)),
        }
    }

    /// Whether more may come after `None`: a ring's next file, or a packet on the interface.
    pub(super) fn goes_on(&mut self) -> bool {
        match &mut self.from {
            From::Files(_) => false,
            From::Growing(capture, tail) => {
                if let Some(change) = tail.change() {
                    remark::say(format_args!("moulsniff: {} {change}", file_name(tail.path())));
                }
                let Some(grown) = tail.next_file() else { return false };
                if grown.missed > 0 {
                    let missed = grown.missed;
                    let name = grown.source.name();
                    remark::say(format_args!(
                        "moulsniff: {} before {name} {} removed unread",
                        counted(missed, "file"),
                        plural(missed, "was", "were")
                    ));
                }
                capture.push(grown.source);
                true
            }
            From::Interface(_) => !self.interrupt.is_requested(),
        }
    }

    /// Whether a signal is the normal end.
    pub(super) fn ends_by_signal(&self) -> bool {
        self.ends_by_signal
    }

    /// Tells the source whether a signal asked for the end.
    pub(super) fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Whether reading the next frame may block.
    pub(super) fn may_block(&self) -> bool {
        match &self.from {
            From::Files(capture) | From::Growing(capture, _) => !capture.is_at_hand(),
            From::Interface(_) => true,
        }
    }

    /// How many files were begun.
    pub(super) fn files(&self) -> u64 {
        match &self.from {
            From::Files(capture) | From::Growing(capture, _) => capture.files(),
            From::Interface(_) => 1,
        }
    }

    /// The name of the file that is read, without its folder.
    pub(super) fn name(&self) -> String {
        match &self.from {
            From::Files(capture) | From::Growing(capture, _) => {
                let path = capture.name().map(Path::new).and_then(Path::file_name);
                path.map_or(String::new(), |name| file_name(Path::new(name)))
            }
            From::Interface(_) => String::new(),
        }
    }

    /// How many frames were dropped when they were captured, as far as it is known.
    pub(super) fn dropped(&mut self) -> u64 {
        match &mut self.from {
            From::Files(capture) | From::Growing(capture, _) => capture.dropped(),
            From::Interface(live) => live.taken().dropped,
        }
    }

    /// Bytes read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        match &self.from {
            From::Files(capture) | From::Growing(capture, _) => capture.bytes_read(),
            From::Interface(_) => 0,
        }
    }

    /// Reports how many packets the kernel dropped, if it counts them.
    pub(super) fn say_dropped(&mut self) {
        if let From::Interface(live) = &mut self.from {
            let dropped = live.taken().dropped;
            remark::say(format_args!("{} dropped by the kernel", counted(dropped, "packet")));
        }
    }
}

/// Refuses anything but a plain file, because no other program appends to it. Accepts a name that
/// does not exist yet.
fn refuse_what_never_grows(path: &Path) -> Result<(), RunError> {
    let what = match path.metadata() {
        Ok(facts) if facts.is_dir() => "a folder",
        Ok(facts) if !facts.is_file() => "a named pipe or a device",
        Ok(_) if is_of_kernel(path) => "a file of the kernel",
        _ => return Ok(()),
    };
    let text = format!("expected a capture file that another program writes, found {what}");
    Err(RunError::File(path.to_string_lossy().into_owned(), io::Error::other(text)))
}

/// Whether an error only says that a capture ends within a packet. After a signal that is no error,
/// because the writer may be in the middle of a packet.
pub(super) fn is_unfinished(error: &RunError) -> bool {
    let RunError::Capture(error) = error else { return false };
    matches!(error.problem(), CaptureProblem::Cut { .. } | CaptureProblem::Empty)
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether reading a file may wait forever: a named pipe, a terminal or another device, or a file
/// that the kernel makes while it is read.
#[cfg(unix)]
fn may_never_end(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = path.metadata().map(|facts| facts.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_char_device()) || is_of_kernel(path)
}

#[cfg(not(unix))]
fn may_never_end(_: &Path) -> bool {
    false
}

fn source(path: &Path, interrupt: &Interrupt) -> Result<Source, RunError> {
    let (name, pipe) = if is_stdin(path) {
        ("standard input".to_string(), Pipe::new(|| Ok(io::stdin()), interrupt.clone()))
    } else if may_never_end(path) {
        let from = path.to_path_buf();
        (
            path.to_string_lossy().into_owned(),
            Pipe::new(move || File::open(from), interrupt.clone()),
        )
    } else {
        return Ok(Source::path(path));
    };
    match pipe {
        Ok(pipe) => Ok(Source::reader(name, Box::new(pipe))),
        Err(error) => Err(RunError::File(path.to_string_lossy().into_owned(), error)),
    }
}

/// The interfaces that can be captured on, one a line: name, tab, description.
///
/// # Errors
/// If this build has no live capture, or the system does not list them.
pub fn list_interfaces() -> Result<String, RunError> {
    let all = interfaces()?;
    Ok(all.iter().map(|interface| format!("{}\t{}\n", interface.name, interface.about)).collect())
}
