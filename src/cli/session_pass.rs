//! A first reading of captures that finds out which stream belongs to which session, for
//! `--session` and the key `session`.

use std::path::Path;

use super::error::CliError;
use super::files;
use super::summary::refuse_interrupted;
use crate::digits::{counted, plural};
use crate::facts::{SessionMap, Sessions};
use crate::pipeline::{Output, Setup, StreamOver};
use crate::record::Record;
use crate::remark;
use crate::run::{CaptureRun, FrameInput, Reading};

/// Reads the captures for their sessions. Hands back the setup, and which record belongs to which
/// session.
///
/// # Errors
/// What is read cannot be read twice, or has no session of the number `wanted`, or a signal ended
/// the reading.
pub(super) fn session_map(
    reading: &Reading,
    setup: Setup,
    wanted: Option<u64>,
) -> Result<(Setup, SessionMap), CliError> {
    read_twice(&reading.input)?;
    let first = Reading { keep: None, quiet: true, ..reading.clone() };
    let mut pass = SessionPass { sessions: Sessions::ties_only(), map: SessionMap::default() };
    let mut outcome = CaptureRun::new(&first, setup)?.into_output(&mut pass);
    refuse_interrupted(&mut outcome, || {
        "nothing is printed, since the sessions are not known yet".to_string()
    })?;
    let SessionPass { mut sessions, mut map } = pass;
    sessions.finish().for_each(|session| map.add(&session));
    map.complete();
    if let Some(number) = wanted.filter(|number| !(1..=map.sessions()).contains(number)) {
        // If the captures could not be read to their end, that is the reason for a missing session.
        return Err(outcome
            .error
            .take()
            .map_or_else(|| no_session(number, map.sessions()), CliError::from));
    }
    if map.left_out() > 0 && !reading.quiet {
        let count = map.left_out();
        remark::warn(format!(
            "{} {} too many streams to be remembered; {} records belong to none",
            counted(count, "session"),
            plural(count, "has", "have"),
            plural(count, "its", "their")
        ));
    }
    Ok((outcome.pipeline.into_setup(), map))
}

/// The mistake of asking for a session that is not there.
pub(super) fn no_session(number: u64, sessions: u64) -> CliError {
    CliError::Typed(match sessions {
        0 => format!("there is no session {number}: there are no sessions"),
        1 => format!("there is no session {number}: there is 1"),
        _ => format!(
            "there is no session {number}: there are {sessions}, which `moulsniff sessions` lists"
        ),
    })
}

fn read_twice(input: &FrameInput) -> Result<(), CliError> {
    let why = "a session is known once its capture was read to the end, so --session and the key \
               `session` need files that can be read twice";
    let FrameInput::Files(captures) = input else { return Err(CliError::Typed(why.into())) };
    let once = |path: &Path| {
        path.as_os_str() == "-"
            || path.metadata().is_ok_and(|facts| !facts.is_file() && !facts.is_dir())
    };
    match captures.iter().find(|path| once(path)) {
        Some(path) => Err(CliError::Typed(format!("{}: {why}", files::name(path)))),
        None => Ok(()),
    }
}

/// Takes the sessions of all records.
struct SessionPass {
    sessions: Sessions,
    map: SessionMap,
}

impl SessionPass {
    fn add_finished(&mut self) {
        self.sessions.take_finished().iter().for_each(|session| self.map.add(session));
    }
}

impl Output for SessionPass {
    fn record(&mut self, record: &Record<'_>) {
        self.sessions.record(record);
        self.add_finished();
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        self.sessions.stream_over(
            (over.key.transport, over.key.number),
            over.counts,
            &over.learned,
        );
    }
}
