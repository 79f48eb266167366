//! What happened in captures, and not only what was said: sessions, conclusions and statistics, and
//! the differences of two captures. The same as the program prints as JSON.

use std::path::Path;
use std::sync::Arc;

use super::decoder::Decoder;
use super::error::LibraryError;
use super::records::RunCounts;
use crate::capture::{Capture, CaptureItem};
use crate::diff::{
    CompareOptions, Comparison, DetailCollector, DiffBounds, Digester, IgnoreList, RecordOf,
    difference_json, differences,
};
use crate::facts::{self, Account, ClientSession, Conclusions, FilesFacts};
use crate::pipeline::{Diagnosis, Filtered, Output, Pipeline, Setup, StatsCounter, StreamOver};
use crate::print::conclusion_lines;
use crate::print::sessions::session_json;
use crate::print::stats::{FrameSpan, stats_json};
use crate::proto::LazyTables;
use crate::record::Record;
use crate::texts;

/// Bytes that a comparison takes, as the program's `diff` does.
const DIFF_MEMORY: usize = 256 << 20;

/// What happened in a capture.
#[derive(Debug)]
pub struct Findings {
    sessions: Vec<Session>,
    conclusions: Vec<Conclusion>,
    counts: RunCounts,
    stats: String,
    error: Option<LibraryError>,
}

/// A client's session: everything that it did over all of its connections.
#[derive(Clone, Debug)]
pub struct Session {
    session: ClientSession,
    json: String,
}

/// One thing that is wrong in a capture, or worth knowing.
#[derive(Clone, Debug)]
pub struct Conclusion {
    conclusion: facts::Conclusion,
    json: String,
}

/// What is different in two captures: a message that one of them lacks, or a field.
#[derive(Clone, Debug)]
pub struct Difference {
    message: String,
    records: [Option<u64>; 2],
    json: String,
}

impl Findings {
    /// The sessions, in the order in which they were over.
    ///
    /// ```
    /// let decoder = moulsniff::Decoder::new().keys("keys/shard.keys")?;
    /// let found = decoder.examine("captures/moul/golden.pcap")?;
    /// let session = found.sessions().first().ok_or("no session")?;
    /// assert_eq!((session.number(), session.protocol()), (1, "moul"));
    /// assert_eq!(session.client().to_string(), "10.9.0.2");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sessions(&self) -> &[Session] {
        &self.sessions
    }

    /// What is wrong, the worst first.
    ///
    /// ```
    /// let found = moulsniff::Decoder::new().examine("captures/moul/kind_game.pcap")?;
    /// let worst = found.conclusions().first().ok_or("nothing is wrong")?;
    /// assert_eq!((worst.weight(), worst.kind()), ("stop", "no_key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn conclusions(&self) -> &[Conclusion] {
        &self.conclusions
    }

    /// The counts of the capture.
    pub fn counts(&self) -> RunCounts {
        self.counts
    }

    /// The statistics, as `moulsniff stats --json` prints them.
    ///
    /// ```
    /// let found = moulsniff::Decoder::new().examine("captures/moul/golden.pcap")?;
    /// assert!(found.stats_json().starts_with("{\"frames\":"));
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    pub fn stats_json(&self) -> &str {
        &self.stats
    }

    /// Why the capture could not be read to its end; what was before that was examined.
    pub fn error(&self) -> Option<&LibraryError> {
        self.error.as_ref()
    }
}

impl Session {
    /// Its number, from 1, as the filter's `session == N` counts.
    pub fn number(&self) -> u64 {
        self.session.number
    }

    /// The protocol's name.
    pub fn protocol(&self) -> &str {
        &self.session.protocol
    }

    /// The client's address.
    pub fn client(&self) -> std::net::IpAddr {
        self.session.client
    }

    /// What the client is called, the most particular name last: account, then player.
    pub fn names(&self) -> Vec<&str> {
        self.session.latest().iter().filter_map(|identity| identity.name.as_deref()).collect()
    }

    /// The session as `moulsniff sessions --story --json` prints it.
    pub fn json(&self) -> &str {
        &self.json
    }
}

impl Conclusion {
    /// How bad it is: `stop`, `trouble` or `hint`.
    pub fn weight(&self) -> &'static str {
        self.conclusion.weight.word()
    }

    /// What it is about, in a word of `docs/diagnosing.md`.
    pub fn kind(&self) -> &'static str {
        self.conclusion.kind.word()
    }

    /// A sentence for people.
    pub fn text(&self) -> &str {
        &self.conclusion.text
    }

    /// The session that it is about.
    pub fn session(&self) -> Option<u64> {
        self.conclusion.session
    }

    /// The numbers of the records that show it.
    pub fn records(&self) -> &[u64] {
        &self.conclusion.records
    }

    /// The conclusion as `moulsniff diagnose --json` prints it.
    pub fn json(&self) -> &str {
        &self.json
    }
}

impl Difference {
    /// The message's name.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The numbers of its records in the first capture and in the second.
    pub fn records(&self) -> [Option<u64>; 2] {
        self.records
    }

    /// The difference as `moulsniff diff --json` prints it: one line for each field.
    pub fn json(&self) -> &str {
        &self.json
    }
}

impl Decoder {
    /// Reads a capture whole and says what happened in it: sessions, what is wrong, statistics.
    /// With a [`filter`](Decoder::filter), only the records that it keeps are in the statistics;
    /// sessions and conclusions are those of all records.
    ///
    /// ```
    /// let decoder = moulsniff::Decoder::new().keys("keys/dirtsand.ini")?;
    /// let found = decoder.examine("captures/moul/full_dirtsand.pcapng")?;
    /// let players: Vec<&str> =
    ///     found.sessions().iter().filter_map(|session| session.names().pop()).collect();
    /// assert!(!players.is_empty());
    /// assert!(found.error().is_none());
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no such file, nothing in it could be read, or something that was given to the
    /// decoder is wrong.
    pub fn examine(&self, path: impl AsRef<Path>) -> Result<Findings, LibraryError> {
        let setup = self.setup()?;
        let filter = self.compiled_filter(&setup)?;
        let account = Account::default();
        let counter = StatsCounter::new(filter.is_some(), &account);
        let mut output = Examiner {
            diagnosis: Diagnosis::with_sessions(&account),
            sessions: Vec::new(),
            tables: Arc::clone(&setup.tables),
            counted: Filtered::new(counter, filter.map(Arc::new), u64::MAX),
        };
        let (pipeline, error) = read_whole(path.as_ref(), setup, &mut output)?;
        Ok(output.into_findings(&pipeline, error))
    }

    /// Compares two captures: what only one of them has, and what is different in messages that
    /// both have. With a [`filter`](Decoder::filter), only the messages that it keeps are compared.
    ///
    /// ```
    /// let decoder = moulsniff::Decoder::new();
    /// let different = decoder.diff("captures/moul/golden.pcap", "captures/moul/changed.pcap")?;
    /// assert!(different.iter().any(|one| one.message() == "Auth2Cli_PlayerDeleteReply"));
    /// assert!(decoder.diff("captures/moul/golden.pcap", "captures/moul/golden.pcap")?.is_empty());
    /// # Ok::<(), moulsniff::Error>(())
    /// ```
    ///
    /// # Errors
    /// One of them cannot be read to its end, or something that was given to the decoder is wrong.
    pub fn diff(
        &self,
        a: impl AsRef<Path>,
        b: impl AsRef<Path>,
    ) -> Result<Vec<Difference>, LibraryError> {
        let [a, b] = [a.as_ref(), b.as_ref()];
        let ignore = IgnoreList::default();
        let bounds = DiffBounds::of(DIFF_MEMORY);
        let digest = |path| {
            let setup = self.setup()?;
            let filter = self.compiled_filter(&setup)?;
            let mut digester = Digester::new(&ignore, filter.as_ref(), false, bounds);
            read_to_end(path, setup, &mut digester)?;
            Ok::<_, LibraryError>(digester.finish())
        };
        let [digest_a, digest_b] = [digest(a)?, digest(b)?];
        let comparison = Comparison::new(&digest_a, &digest_b, CompareOptions { latency: None });
        let collect = |path, wanted| {
            let redact = self.redacts();
            let mut collector = DetailCollector::new(wanted, &ignore, false, redact, bounds);
            if collector.wants_more(false) {
                read_to_end(path, self.setup()?, &mut collector)?;
            }
            Ok::<_, LibraryError>(collector.finish())
        };
        let [in_a, in_b] = comparison.wanted();
        let [of_a, of_b] = [collect(a, in_a)?, collect(b, in_b)?];
        let sections = differences(&comparison, [&of_a, &of_b], bounds);
        let described = sections.iter().flat_map(|section| {
            section.differences.iter().map(|difference| {
                let mut json = String::new();
                difference_json(section, difference, &mut json);
                let record = |of: Option<RecordOf>| of.map(|of| of.record);
                Difference {
                    message: difference.message.clone(),
                    records: [record(difference.a), record(difference.b)],
                    json,
                }
            })
        });
        Ok(described.collect())
    }
}

/// Reads a capture as far as it goes. Returns the pipeline, and why that was not to the end.
fn read_whole(
    path: &Path,
    setup: Setup,
    out: &mut dyn Output,
) -> Result<(Pipeline, Option<LibraryError>), LibraryError> {
    let mut capture = Capture::open(path)?.converting(texts::convert);
    let mut pipeline = Pipeline::new(setup);
    let mut error = None;
    loop {
        match capture.next_item() {
            Ok(Some(CaptureItem::Frame(frame))) => pipeline.frame(&frame, out),
            Ok(Some(CaptureItem::Secrets(secrets))) => {
                // Events of the streams that stay closed report keys that cannot be used.
                let _ = pipeline.settings().carry(secrets.kind, secrets.data);
                continue;
            }
            Ok(None) => break,
            Err(why) => error = Some(LibraryError::from(why)),
        }
        if !out.wants_more(false) {
            break;
        }
    }
    pipeline.finish(out);
    match error {
        Some(error) if pipeline.summary().flow.frames == 0 => Err(error),
        error => Ok((pipeline, error)),
    }
}

/// Reads a capture that has to be whole.
fn read_to_end(path: &Path, setup: Setup, out: &mut dyn Output) -> Result<(), LibraryError> {
    match read_whole(path, setup, out)? {
        (_, Some(error)) => Err(error),
        (_, None) => Ok(()),
    }
}

/// Hands each record to all that is found out about a capture.
struct Examiner {
    diagnosis: Diagnosis,
    sessions: Vec<Session>,
    tables: Arc<[LazyTables]>,
    counted: Filtered<StatsCounter>,
}

impl Output for Examiner {
    fn record(&mut self, record: &Record<'_>) {
        let over = self.diagnosis.record(record);
        for session in over {
            self.sessions.push(described(session, self.diagnosis.conclusions(), &self.tables));
        }
        self.counted.record(record);
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        self.diagnosis.stream_over(over);
        self.counted.stream_over(over);
    }
}

impl Examiner {
    fn into_findings(self, pipeline: &Pipeline, error: Option<LibraryError>) -> Findings {
        let Examiner { mut diagnosis, mut sessions, tables, counted } = self;
        diagnosis.finish(|conclusions, session| {
            sessions.push(described(session, conclusions, &tables));
        });
        let files = FilesFacts { count: 1, ..FilesFacts::default() };
        let all = diagnosis.conclude(pipeline, files);
        let summary = pipeline.summary();
        let span = FrameSpan {
            frames: summary.flow.frames,
            times: summary.flow.times,
            not_read: pipeline.not_read().named(),
        };
        let mut stats = Vec::new();
        stats_json(counted.into_inner().stats(), &span, &all, &mut stats);
        let mut lines = Vec::new();
        conclusion_lines(&all, &mut lines);
        let lines = text(lines);
        let conclusions = all.into_iter().zip(lines.lines());
        let conclusions = conclusions
            .map(|(conclusion, line)| Conclusion { conclusion, json: line.to_owned() })
            .collect();
        let counts = RunCounts::of(&summary);
        Findings { sessions, conclusions, counts, stats: text(stats), error }
    }
}

fn described(session: ClientSession, conclusions: &Conclusions, all: &[LazyTables]) -> Session {
    let tables = |protocol: &str| LazyTables::of(all, protocol).map(LazyTables::get);
    let about = conclusions.of_session(&session, &tables);
    let mut json = Vec::new();
    session_json(&session, &about, true, &mut json);
    Session { session, json: text(json) }
}

/// JSON is text in UTF-8.
fn text(json: Vec<u8>) -> String {
    String::from_utf8_lossy(&json).into_owned()
}
