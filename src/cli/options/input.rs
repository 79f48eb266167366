//! What is read: captures that were typed as words or with `-r`, and captures that still grow.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// Where help lists these options.
pub(super) const HEADING: &str = "Input";

/// The captures in the order in which they were typed.
#[derive(Clone, Debug, Default)]
pub struct CaptureArgs(Vec<TypedCapture>);

/// One of them.
#[derive(Clone, Debug)]
struct TypedCapture {
    path: PathBuf,
    /// It was typed without `-r`.
    is_word: bool,
}

/// What clap has of them: each kind apart.
#[derive(Args)]
#[command(next_help_heading = HEADING)]
struct CapturesByKind {
    /// Captures, folders of captures, or `-` for standard input
    ///
    /// Pcap or pcapng, plain, gzip or zstd. Several are read as one, in the order of their first
    /// frames.
    #[arg(value_name = "CAPTURE", required_unless_present = "read_file")]
    captures: Vec<PathBuf>,
    /// Read a capture, as CAPTURE does; for users of tshark and tcpdump
    #[arg(short = 'r', value_name = "FILE", id = "read_file", hide_short_help = true)]
    read_files: Vec<PathBuf>,
}

/// Captures that still grow.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
#[command(mut_arg("captures", |arg| arg.required_unless_present_any(["interface", "tail"])))]
pub struct LiveArgs {
    /// Capture on an interface, such as lo or any, until Ctrl-C
    #[arg(short, long, value_name = "IFACE")]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub interface: Option<String>,
    /// Capture only these packets, such as 'tcp port 14617'
    ///
    /// With -i; man pcap-filter has the language.
    #[arg(short = 'f', long, value_name = "FILTER", requires = "interface")]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub capture_filter: Option<String>,
    /// Also write the captured frames to a pcapng file
    ///
    /// With -i. An existing file is replaced when the capture ends.
    #[arg(short, long, value_name = "FILE", requires = "interface", conflicts_with = "pseudonyms")]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub write: Option<PathBuf>,
    /// Follow a capture that still grows
    ///
    /// Another program writes it, or a ring of files (dumpcap -b). Ctrl-C ends it.
    #[arg(long, value_name = "FILE")]
    pub tail: Option<PathBuf>,
}

impl LiveArgs {
    /// Whether none was asked for.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.interface.is_none() && self.tail.is_none()
    }
}

impl CaptureArgs {
    /// All of them.
    pub(in crate::cli) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().map(|typed| &typed.path)
    }

    /// Those that were typed without `-r`.
    pub(in crate::cli) fn words(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().filter(|typed| typed.is_word).map(|typed| &typed.path)
    }

    /// Takes the first word away: it turned out to be no capture.
    pub(in crate::cli) fn take_first_word(&mut self) -> Option<PathBuf> {
        let place = self.0.iter().position(|typed| typed.is_word)?;
        Some(self.0.remove(place).path)
    }

    /// Takes a word away that turned out to be no capture.
    pub(in crate::cli) fn take_word(&mut self, word: &Path) {
        if let Some(place) = self.0.iter().position(|typed| typed.is_word && typed.path == word) {
            self.0.remove(place);
        }
    }

    /// How many there are.
    pub(in crate::cli) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<PathBuf> for CaptureArgs {
    fn from(path: PathBuf) -> CaptureArgs {
        CaptureArgs(vec![TypedCapture { path, is_word: true }])
    }
}

impl Args for CaptureArgs {
    fn augment_args(command: Command) -> Command {
        CapturesByKind::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        CapturesByKind::augment_args_for_update(command)
    }
}

impl FromArgMatches for CaptureArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<CaptureArgs, Error> {
        let CapturesByKind { captures, read_files } = CapturesByKind::from_arg_matches(matches)?;
        let kinds = [("captures", captures, true), ("read_file", read_files, false)];
        let placed = kinds.into_iter().flat_map(|(id, paths, is_word)| {
            let places = matches.indices_of(id).into_iter().flatten();
            places.zip(paths).map(move |(place, path)| (place, TypedCapture { path, is_word }))
        });
        let mut placed: Vec<(usize, TypedCapture)> = placed.collect();
        placed.sort_by_key(|(place, _)| *place);
        Ok(CaptureArgs(placed.into_iter().map(|(_, typed)| typed).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = CaptureArgs::from_arg_matches(matches)?;
        Ok(())
    }
}
