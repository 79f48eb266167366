//! Ctrl-C and SIGTERM ask a run to end: the frame at hand is finished, and the records so far are
//! printed.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;
use std::time::Duration;

use crate::output_file;

/// Exit status of a program that a signal ended.
const INTERRUPTED: i32 = 130;

/// How often the signal is looked at during a wait.
const LOOK: Duration = Duration::from_millis(50);

/// Lets a signal end the program at once, without unfinished files: for commands that only copy a
/// file.
pub fn exit_on_signal() {
    on_signal(exit);
}

/// A file that may not grow further (`ulimit -f`) is an error of the write, as a full disk is, and
/// not the end of the program. To be called before there are further threads, which take this over.
pub fn outlive_large_files() {
    #[cfg(unix)]
    {
        use nix::sys::signal::{SigSet, Signal};
        let mut set = SigSet::empty();
        set.add(Signal::SIGXFSZ);
        // Where that fails, the system does as it always did.
        let _ = set.thread_block();
    }
}

/// Treats signals as requests from now on, for a command that begins to write a file before its run
/// begins. Has no effect after [`exit_on_signal`].
pub fn watch_signals() {
    Interrupt::watch();
}

/// Whether a signal has asked for the end.
pub fn end_is_requested() -> bool {
    Interrupt::watch().is_requested()
}

/// Runs `act`, which may wait forever in a call that no signal interrupts, such as opening a named
/// pipe without a reader. A signal during `act` ends the program.
///
/// # Errors
/// If the system cannot start a thread.
pub fn unless_interrupted<T: Send + 'static>(
    act: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let interrupt = Interrupt::watch();
    let (to, done) = sync_channel(1);
    Builder::new().name("wait".into()).spawn(move || to.send(act()).unwrap_or_default())?;
    loop {
        match done.recv_timeout(LOOK) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) if interrupt.is_requested() => exit(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("a thread ended too early"));
            }
        }
    }
}

/// If signals cannot be watched, Ctrl-C ends the program at once.
#[cfg(not(target_family = "wasm"))]
fn on_signal(act: impl FnMut() + Send + 'static) {
    let _ = ctrlc::set_handler(act);
}

/// WebAssembly has no signals.
#[cfg(target_family = "wasm")]
fn on_signal(_act: impl FnMut() + Send + 'static) {}

fn exit() {
    output_file::exit_without_unfinished(INTERRUPTED)
}

/// Whether the end was requested.
#[derive(Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Watches for signals from now on. The first one is a request to all runs, also later ones,
    /// since a command may read its captures twice. A second one exits at once.
    pub(super) fn watch() -> Interrupt {
        static WATCHED: OnceLock<Interrupt> = OnceLock::new();
        WATCHED.get_or_init(Interrupt::begin).clone()
    }

    fn begin() -> Interrupt {
        let interrupt = Interrupt::default();
        let requested = Arc::clone(&interrupt.0);
        on_signal(move || {
            if requested.swap(true, Ordering::Relaxed) {
                exit();
            }
        });
        interrupt
    }

    /// Whether the end was requested.
    pub(super) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
