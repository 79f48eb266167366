//! `moulsniff export files`: every file that was transferred, put together.

use clap::Args;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::file_index::{INDEX_COLUMNS, LISTED_COLUMNS, index_json, index_line, listed_line};
use super::file_name::FileNames;
use super::file_writer::FileWriter;
use crate::captured::file_name;
use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::options::{FilterArgs, LiveArgs, ReadArgs, size};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::summary::{before_commit, refuse_interrupted};
use crate::digits::{counted, plural};
use crate::facts::Files;
use crate::output_file::{Access, Inputs, OutputFile, Spool};
use crate::pipeline::{Filtered, Output, StreamOver};
use crate::print::json::one_line;
use crate::record::Record;
use crate::remark::say;
use crate::run::CaptureRun;

/// Transferred files.
#[derive(Args, Debug)]
pub struct ExportFilesArgs {
    /// Write the files and index.csv into this folder. It is created if necessary; existing files
    /// are never replaced
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Write at most this much of one file, from its beginning
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub max_file_size: usize,
    /// Print JSON, one object a file
    #[arg(long)]
    pub json: bool,
    /// The captures.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Captures that still grow.
    #[command(flatten)]
    pub live: LiveArgs,
    /// Which messages are looked at.
    #[command(flatten)]
    pub filter: FilterArgs,
}

pub(super) fn run(args: &ExportFilesArgs) -> Result<Status, CliError> {
    let Plan { reading, setup, filter, redact, ending, .. } = Plan::new(PlanArgs {
        live: Some(&args.live),
        filter: Some(&args.filter),
        output: Some(&args.output),
        ..PlanArgs::new(&args.read)
    })?;
    let fail = |error| CliError::File(file_name(&args.output), error);
    let run = CaptureRun::new(&reading, setup)?;
    let folder = files::create_folder(&args.output)?;
    let max_file = args.max_file_size as u64;
    let lists = Lists::new(&args.output, &reading.inputs, args.json).map_err(fail)?;
    let mut names = FileNames::new(&args.output);
    for name in ["index.csv", "listed.csv"] {
        names.reserve(name);
    }
    let spool = Spool::create(&args.output).map_err(fail)?;
    let collector = FileCollector {
        files: Files::new(max_file, redact),
        writer: FileWriter::new(names, spool, reading.inputs.clone(), max_file),
        lists,
        found: FoundFiles::default(),
        error: None,
    };
    let mut filtered = Filtered::new(collector, filter.clone(), u64::MAX);
    let mut outcome = run.into_output(&mut filtered);
    let mut collector = filtered.into_inner();
    if !outcome.interrupted {
        collector.files.finish();
        collector.write();
    }
    let too_many = collector.files.has_too_many_entries();
    let FileCollector { lists, found, error, .. } = collector;
    if let Some(error) = error {
        return Err(fail(error));
    }
    refuse_interrupted(&mut outcome, || {
        let FoundFiles { files, incomplete, .. } = found;
        format!(
            "{} in {}, {incomplete} of them incomplete; no list of them was written",
            counted(files, "file"),
            file_name(&args.output)
        )
    })?;
    before_commit(&mut outcome, filter.as_deref(), &args.output)?;
    lists.commit().map_err(fail)?;
    folder.keep();
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let status = ending.status(&outcome, filter.as_deref())?;
    if !ending.quiet {
        let FoundFiles { files, incomplete, absent } = found;
        let dir = file_name(&args.output);
        say(format_args!(
            "{} in {dir}, {incomplete} of them incomplete; {absent} {} asked for and not sent",
            counted(files, "file"),
            plural(absent, "was", "were")
        ));
        if too_many {
            say(format_args!("lists have more entries than are compared with files"));
        }
    }
    ending.say_summary(&mut outcome);
    Ok(status)
}

/// How many files there are.
#[derive(Clone, Copy, Default)]
struct FoundFiles {
    files: u64,
    incomplete: u64,
    absent: u64,
}

/// Puts files together, and writes those that are over.
struct FileCollector {
    files: Files,
    writer: FileWriter,
    lists: Lists,
    found: FoundFiles,
    error: Option<io::Error>,
}

impl FileCollector {
    /// Writes the files that are over.
    fn write(&mut self) {
        for entry in self.files.take_entries() {
            let written = self.lists.listed(|out| listed_line(&entry, out));
            self.keep_error(written);
        }
        for file in self.files.take_over() {
            if self.error.is_some() {
                return;
            }
            let written = self.writer.write(&file).and_then(|written| {
                match (&written.path, file.complete) {
                    (None, _) => self.found.absent += 1,
                    (Some(_), complete) => {
                        self.found.files += 1;
                        self.found.incomplete += u64::from(!complete);
                    }
                }
                self.lists
                    .index(|out| index_line(&file, &written, out), || index_json(&file, &written))
            });
            self.keep_error(written);
        }
        if self.files.is_idle() {
            let cleared = self.writer.spool.clear();
            self.keep_error(cleared);
        }
    }

    fn keep_error(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.error.get_or_insert(error);
        }
    }
}

impl FileCollector {
    fn take(&mut self, record: &Record<'_>, kept: bool) {
        if self.error.is_some() {
            return;
        }
        let spool = &mut self.writer.spool;
        let error = &mut self.error;
        let mut keep = |bytes: &[u8]| {
            spool.append(bytes).map_err(|wrong| error.get_or_insert(wrong).kind()).ok()
        };
        self.files.record(record, kept, &mut keep);
    }
}

impl Output for FileCollector {
    fn record(&mut self, record: &Record<'_>) {
        self.take(record, true);
    }

    /// It may belong to a file of which other records are kept.
    fn dropped(&mut self, record: &Record<'_>) {
        self.take(record, false);
    }

    fn stream_over(&mut self, stream: &StreamOver<'_>) {
        self.files.stream_over((stream.key.transport, stream.key.number));
    }

    fn wants_more(&mut self, _may_block: bool) -> bool {
        self.write();
        self.error.is_none()
    }
}

/// The lists of what was found: index.csv, listed.csv where a server sent lists, and JSON on
/// standard output where it is wanted.
struct Lists {
    folder: PathBuf,
    inputs: Inputs,
    index: OutputFile,
    listed: Option<OutputFile>,
    json: bool,
    line: Vec<u8>,
}

impl Lists {
    fn new(folder: &Path, inputs: &Inputs, json: bool) -> io::Result<Lists> {
        let mut index = create(folder, "index", inputs)?;
        index.write_all(INDEX_COLUMNS.as_bytes())?;
        Ok(Lists {
            folder: folder.to_path_buf(),
            inputs: inputs.clone(),
            index,
            listed: None,
            json,
            line: Vec::new(),
        })
    }

    fn index(
        &mut self,
        write: impl Fn(&mut Vec<u8>),
        json: impl Fn() -> serde_json::Value,
    ) -> io::Result<()> {
        self.line.clear();
        write(&mut self.line);
        self.index.write_all(&self.line)?;
        if self.json {
            // The reader of standard output may close it early (`| head`); the files are still
            // written.
            match writeln!(io::stdout().lock(), "{}", one_line(&json())) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.json = false,
                written => written?,
            }
        }
        Ok(())
    }

    fn listed(&mut self, write: impl Fn(&mut Vec<u8>)) -> io::Result<()> {
        self.line.clear();
        let mut file = match self.listed.take() {
            Some(file) => file,
            None => {
                let mut file = create(&self.folder, "listed", &self.inputs)?;
                file.write_all(LISTED_COLUMNS.as_bytes())?;
                file
            }
        };
        write(&mut self.line);
        file.write_all(&self.line)?;
        self.listed = Some(file);
        Ok(())
    }

    fn commit(self) -> io::Result<()> {
        if let Some(listed) = self.listed {
            listed.commit()?;
        }
        self.index.commit()
    }
}

/// Begins a list. One of an earlier run stays: the new one gets a number.
fn create(folder: &Path, name: &str, inputs: &Inputs) -> io::Result<OutputFile> {
    let numbered = (2..).map(|number| folder.join(format!("{name}-{number}.csv")));
    let mut paths = std::iter::once(folder.join(format!("{name}.csv"))).chain(numbered);
    let free = paths.find(|path| path.symlink_metadata().is_err());
    OutputFile::create(&free.unwrap_or_else(|| folder.join(name)), Access::Owner, inputs)
}
