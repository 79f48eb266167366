//! Where frames come from: files and pipes, a file that another program still writes, or an interface.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use super::args::ReadArgs;
use super::error::CliError;
use super::feed::threads;
use super::interrupt::Interrupt;
use super::progress::Progress;
use crate::capture::{Capture, Frame, Item, Live, PcapngWriter, Problem, Source, Tail, interfaces};

/// Frames from wherever they were asked for.
pub(super) struct Intake {
    from: From,
    interrupt: Interrupt,
}

enum From {
    Files(Capture),
    Growing(Capture, Tail),
    Interface(Box<Live>),
}

impl Intake {
    /// What was asked for. Only one of the three can be.
    pub(super) fn new(args: &ReadArgs) -> Result<Intake, CliError> {
        let ways = [!args.captures.is_empty(), args.tail.is_some(), args.interface.is_some()];
        if ways.into_iter().filter(|w| *w).count() > 1 {
            return Err(CliError::Typed("captures, --tail and -i exclude each other".into()));
        }
        if let Some(name) = &args.interface {
            let live = Live::open(name, args.capture_filter.as_deref().unwrap_or(""))?;
            if !args.quiet {
                let _ = writeln!(io::stderr(), "capturing on {name}; Ctrl-C ends");
            }
            return Ok(Intake { from: From::Interface(Box::new(live)), interrupt: Interrupt::watch() });
        }
        let Some(path) = &args.tail else {
            let capture = Capture::new(args.captures.iter().map(|path| source(path)));
            let capture = capture.unpacking_ahead(threads(args) > 1);
            return Ok(Intake { from: From::Files(capture), interrupt: Interrupt::default() });
        };
        let interrupt = Interrupt::watch();
        let wish = interrupt.clone();
        let tail = Tail::new(path, Arc::new(move || wish.is_wished()));
        if tail.waits() && !args.quiet {
            let _ = writeln!(io::stderr(), "{} is not there yet; Ctrl-C ends", path.display());
        }
        Ok(Intake { from: From::Growing(Capture::new([]), tail), interrupt })
    }

    /// How far reading has come, where that can be known.
    pub(super) fn progress(args: &ReadArgs) -> Progress {
        if args.captures.is_empty() { Progress::none() } else { Progress::of(&args.captures, args.quiet) }
    }

    /// The next thing; nothing where [`Intake::goes_on`] is to be asked.
    pub(super) fn next_item(&mut self) -> Result<Option<Item<'_>>, CliError> {
        match &mut self.from {
            From::Files(capture) | From::Growing(capture, _) => Ok(capture.next_item()?),
            From::Interface(live) => Ok(live.next_frame()?.map(Item::Frame)),
        }
    }

    /// Whether there is more to come although there was nothing.
    pub(super) fn goes_on(&mut self) -> bool {
        match &mut self.from {
            From::Files(_) => false,
            From::Growing(capture, tail) => match tail.next_file() {
                None => false,
                Some(grown) => {
                    if grown.missed > 0 {
                        let name = grown.source.name();
                        let _ = writeln!(
                            io::stderr(),
                            "moulsniff: {} files before {name} were removed unread",
                            grown.missed
                        );
                    }
                    capture.push(grown.source);
                    true
                }
            },
            From::Interface(_) => !self.is_over(),
        }
    }

    /// Whether an end is wished for.
    pub(super) fn is_over(&self) -> bool {
        self.interrupt.is_wished()
    }

    /// Knows whether an end is wished for.
    pub(super) fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Whether the next frame may have to be waited for.
    pub(super) fn may_wait(&self) -> bool {
        match &self.from {
            From::Files(capture) | From::Growing(capture, _) => !capture.is_at_hand(),
            From::Interface(_) => true,
        }
    }

    /// Bytes read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        match &self.from {
            From::Files(capture) | From::Growing(capture, _) => capture.bytes_read(),
            From::Interface(_) => 0,
        }
    }

    /// Says what the system counted, where it did.
    pub(super) fn say_taken(&mut self) {
        if let From::Interface(live) = &mut self.from {
            let taken = live.taken();
            let _ =
                writeln!(io::stderr(), "{} packets captured, {} dropped by the kernel", taken.received, taken.dropped);
        }
    }
}

/// Whether an error is none once an end is wished for: a capture that is still written may be in the middle of a packet.
pub(super) fn is_unfinished(error: &CliError) -> bool {
    let CliError::Capture(error) = error else { return false };
    matches!(error.problem(), Problem::Cut { .. } | Problem::Empty)
}

fn source(path: &Path) -> Source {
    if path.as_os_str() == "-" { Source::reader("standard input", Box::new(io::stdin())) } else { Source::path(path) }
}

/// The file that keeps what was seen.
pub(super) struct Keep {
    name: String,
    to: Option<PcapngWriter<BufWriter<File>>>,
}

impl Keep {
    /// The file that was asked for, or none.
    pub(super) fn new(args: &ReadArgs) -> Result<Keep, CliError> {
        let Some(path) = &args.write else { return Ok(Keep { name: String::new(), to: None }) };
        let name = path.display().to_string();
        let fail = |e| CliError::File(name.clone(), e);
        let file = File::create(path).map_err(fail)?;
        let to = PcapngWriter::new(BufWriter::new(file)).map_err(fail)?;
        Ok(Keep { name, to: Some(to) })
    }

    /// Keeps a frame.
    pub(super) fn frame(&mut self, frame: &Frame<'_>) -> Result<(), CliError> {
        let name = &self.name;
        self.to.as_mut().map_or(Ok(()), |to| to.frame(frame)).map_err(|e| CliError::File(name.clone(), e))
    }

    /// Hands on what was kept so far, for whoever watches the file.
    pub(super) fn flush(&mut self) -> Result<(), CliError> {
        let name = &self.name;
        self.to.as_mut().map_or(Ok(()), PcapngWriter::flush).map_err(|e| CliError::File(name.clone(), e))
    }
}

/// `-D`: the interfaces that there are, one a line.
pub(super) fn list(out: &mut Vec<u8>) -> Result<(), CliError> {
    for interface in interfaces()? {
        let _ = writeln!(out, "{}\t{}", interface.name, interface.about);
    }
    Ok(())
}
