//! `moulsniff keys`: what key files hold, and keys within captures.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::args::{KeysCommand, ReadArgs};
use super::error::{CliError, Status};
use super::feed::SECRETS;
use super::intake::Intake;
use super::read::{feed, setup};
use crate::capture::{self, Source};
use crate::out::Record;
use crate::pipeline::{Output, Pipeline};
use crate::proto::moul::keys::{PrivateKey, SessionLine, shard_keys};

pub(super) fn run(command: &KeysCommand, args: &ReadArgs) -> Result<Status, CliError> {
    match command {
        KeysCommand::Check { files } => check(files),
        KeysCommand::Inject { input, output, private } => inject(input, output, *private, args),
        KeysCommand::Strip { input, output } => strip(input, output, args.quiet),
    }
}

fn check(files: &[std::path::PathBuf]) -> Result<Status, CliError> {
    let mut status = Status::Good;
    let mut out = std::io::stdout().lock();
    for path in files {
        match crate::proto::moul::keys::check(path) {
            Ok(report) => {
                if !report.opens() {
                    status = Status::Unreadable;
                }
                write!(out, "{report}").map_err(CliError::writing)?;
            }
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "moulsniff: {error}");
                status = Status::Unreadable;
            }
        }
    }
    Ok(status)
}

/// The keys of the sessions a capture holds, as a run over it proves them.
#[derive(Default)]
struct Proved(Vec<SessionLine>);

impl Output for Proved {
    fn record(&mut self, _record: &Record<'_>) {}

    fn session_key(&mut self, line: &SessionLine) {
        self.0.push(line.clone());
    }
}

fn inject(input: &Path, output: &Path, private: bool, args: &ReadArgs) -> Result<Status, CliError> {
    two_files(input, output)?;
    let args = ReadArgs { captures: vec![input.to_path_buf()], ..args.clone() };
    let mut setup = setup(&args)?;
    if setup.options.max_message == 0 {
        setup.options.max_message = 16 << 20;
    }
    let mut pipeline = Pipeline::new(setup, Proved::default());
    let read = feed(&args, Intake::progress(&args), &mut pipeline, |_, _| false);
    pipeline.finish();
    read?;
    let keys: Vec<PrivateKey> = if private { pipeline.keys().keys().cloned().collect() } else { Vec::new() };
    let sessions = std::mem::take(&mut pipeline.output().0);
    if keys.is_empty() && sessions.is_empty() {
        let why =
            if args.keys.is_empty() { "no key was given with --keys" } else { "these keys open none of its sessions" };
        return Err(CliError::Unreadable(format!("{}: {why}; nothing was written", input.display())));
    }
    let text = shard_keys(&keys, &sessions);
    let name = output.display().to_string();
    let mut file = create(output, &name)?;
    capture::inject(Source::path(input), capture::Output::new(&name, &mut file), SECRETS, text.as_bytes())?;
    if private {
        let _ = writeln!(
            std::io::stderr(),
            "WARNING: {name} now holds {} long-term PRIVATE KEYS of the shard. Whoever has this file can read every session with these \
             servers, past and future. Give it to nobody who may not; `moulsniff keys strip` takes them out.",
            keys.len()
        );
    }
    if !args.quiet {
        let _ = writeln!(std::io::stderr(), "{name}: the keys of {} sessions", sessions.len());
    }
    Ok(Status::Good)
}

fn strip(input: &Path, output: &Path, quiet: bool) -> Result<Status, CliError> {
    two_files(input, output)?;
    let name = output.display().to_string();
    // A file that cannot be read leaves nothing behind.
    let source = Source::path(input);
    File::open(input).map_err(|e| CliError::File(input.display().to_string(), e))?;
    let mut file = create(output, &name)?;
    let done = capture::strip(source, capture::Output::new(&name, &mut file), SECRETS)?;
    if !quiet {
        let _ = writeln!(std::io::stderr(), "{name}: {} blocks of keys taken out", done.removed);
    }
    Ok(Status::Good)
}

fn create(output: &Path, name: &str) -> Result<BufWriter<File>, CliError> {
    Ok(BufWriter::new(File::create(output).map_err(|e| CliError::File(name.to_string(), e))?))
}

/// The input is read while the output is written (and twice, to find its keys): both are files, and not the same.
fn two_files(input: &Path, output: &Path) -> Result<(), CliError> {
    if input.as_os_str() == "-" {
        return Err(CliError::Typed("the capture is read twice, so it has to be a file, not standard input".into()));
    }
    let same = matches!((input.canonicalize(), output.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if same {
        return Err(CliError::Typed(format!("{}: a capture is not written over itself", output.display())));
    }
    Ok(())
}
