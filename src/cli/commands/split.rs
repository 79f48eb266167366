//! `moulsniff split`: divides captures into several, so that what passed between two hosts stays in
//! one of them.

use crate::captured::file_name;
use crate::digits::{counted, plural};
use crate::remark;
use std::io::{self, BufWriter};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::capture::{CaptureProblem, Frame, Source, Splitter};
use crate::cli::capture_order::OrderedCaptures;
use crate::cli::error::{CliError, Status};
use crate::cli::options::{GeneralArgs, number_within};
use crate::cli::stale_files::StaleFiles;
use crate::cli::{config, files};
use crate::filter::HostPattern;
use crate::flow::hosts;
use crate::output_file::{Access, Inputs, OutputFile};
use crate::run;

/// Bytes of each part that are gathered before they are written.
const BUFFER: usize = 128 << 10;

/// Dividing captures.
#[derive(Args, Debug)]
pub struct SplitArgs {
    /// Divide these captures (pcap, pcapng; plain, gzip or zstd) as one, in the order of
    /// their first frames; a folder is all captures in it, `-` is standard input
    #[arg(value_name = "CAPTURE", required = true)]
    pub captures: Vec<PathBuf>,
    /// Read captures in the order given, not in that of their first frames
    #[arg(long)]
    pub as_given: bool,
    /// Write this many parts, at most 256
    #[arg(long, value_name = "N", value_parser = |text: &str| number_within(text, 1..=256))]
    pub into: u16,
    /// Write part-00.pcapng, part-01.pcapng and so on into this folder. It is created if
    /// necessary; existing parts are replaced, and a folder with further parts is refused
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Take these addresses or networks, separated by commas, for servers: a client's traffic with
    /// all of them stays in one part
    #[arg(long, value_name = "NET,...", value_delimiter = ',')]
    pub servers: Vec<String>,
    /// What every command has.
    #[command(flatten)]
    pub general: GeneralArgs,
}

pub(super) fn run(args: &SplitArgs) -> Result<Status, CliError> {
    let servers = networks(&args.servers)?;
    run::exit_on_signal();
    let config_file = config::file(&args.general);
    let inputs = Inputs::of(args.captures.iter().chain(&config_file).map(PathBuf::as_path));
    let captures = args.captures.iter().map(PathBuf::as_path);
    let access = Inputs::of(captures).access();
    refuse_other_parts(args)?;
    let folder = files::create_folder(&args.output)?;
    let parts: Vec<PartFile> = (0..args.into)
        .map(|number| PartFile::create(args, number, access, &inputs))
        .collect::<Result<_, _>>()?;
    let names: Vec<PathBuf> = parts.iter().map(|part| part.path.clone()).collect();
    let mut splitter =
        Splitter::new(parts.into_iter().map(|part| BufWriter::with_capacity(BUFFER, part.file)));
    let count = u64::from(args.into);
    let mut choose = |frame: &Frame<'_>| {
        let hosts = hosts(frame.link, frame.data, frame.wire_len);
        let part = hosts.map_or(0, |(from, to)| place(from, to, &servers) % count);
        usize::try_from(part).unwrap_or(0)
    };
    let mut unreadable: Vec<String> = Vec::new();
    let mut is_unread = false;
    for capture in &OrderedCaptures::new(&args.captures, args.as_given)?.paths {
        if let Err(error) = splitter.add(source(capture), &mut choose) {
            if let CaptureProblem::Write(error) = error.problem() {
                let error = io::Error::new(error.kind(), error.to_string());
                return Err(CliError::File(file_name(&args.output), error));
            }
            // What was read before damage is kept, as when decoding.
            is_unread |= error.is_of_reading();
            unreadable.push(error.to_string());
        }
    }
    let frames = splitter.frames();
    let left_out = splitter.left_out();
    if is_unread || frames == 0 && !unreadable.is_empty() {
        // The system could not read on, or nothing was read that older files are to be replaced
        // with.
        return Err(CliError::several(unreadable));
    }
    let done = splitter.finish().map_err(|e| CliError::File(file_name(&args.output), e))?;
    let mut used = 0;
    for ((file, frames), name) in done.into_iter().zip(&names) {
        let fail = |e| CliError::File(file_name(name), e);
        file.into_inner().map_err(|e| fail(e.into_error()))?.commit().map_err(fail)?;
        used += usize::from(frames > 0);
    }
    folder.keep();
    if !unreadable.is_empty() {
        return Err(CliError::several(unreadable));
    }
    if !args.general.quiet {
        let left_out = match left_out {
            0 => String::new(),
            blocks => format!(
                "; {} that {} the whole capture {} left out",
                counted(blocks, "block"),
                plural(blocks, "describes", "describe"),
                plural(blocks, "was", "were")
            ),
        };
        remark::say(format_args!(
            "{}: {} in {}, {used} of which {} any{left_out}",
            file_name(&args.output),
            counted(frames, "frame"),
            counted(args.into, "part"),
            plural(used, "has", "have")
        ));
    }
    Ok(Status::Good)
}

struct PartFile {
    path: PathBuf,
    file: OutputFile,
}

impl PartFile {
    fn create(
        args: &SplitArgs,
        number: u16,
        access: Access,
        inputs: &Inputs,
    ) -> Result<PartFile, CliError> {
        let path = args.output.join(part_name(args, number));
        Ok(PartFile { file: files::create(&path, access, inputs)?, path })
    }
}

/// `part-00.pcapng`
fn part_name(args: &SplitArgs, number: u16) -> String {
    let width = args.into.saturating_sub(1).to_string().len().max(2);
    format!("part-{number:0width$}.pcapng")
}

/// Refuses a folder that has further parts: all parts together would then have some frames twice.
fn refuse_other_parts(args: &SplitArgs) -> Result<(), CliError> {
    let is_part = |name: &str| {
        let number = name
            .strip_prefix("part-")
            .and_then(|name| name.strip_suffix(".pcapng"))
            .unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut earlier = StaleFiles::within(&args.output, is_part);
    (0..args.into).for_each(|number| earlier.replaced(Path::new(&part_name(args, number))));
    let Some((names, _)) = earlier.listed() else { return Ok(()) };
    let folder = file_name(&args.output);
    Err(CliError::Typed(format!(
        "{folder}: {names} would stay beside the {} new parts; remove them, or name another folder",
        args.into
    )))
}

fn source(path: &Path) -> Source {
    if path.as_os_str() == "-" {
        Source::reader("standard input", Box::new(io::stdin()))
    } else {
        Source::path(path)
    }
}

fn networks(texts: &[String]) -> Result<Vec<HostPattern>, CliError> {
    let read = |text: &String| {
        HostPattern::parse(text).filter(|pattern| !pattern.has_port()).ok_or_else(|| {
            CliError::Typed(format!(
                "--servers {text}: expected an address or a network, such as 10.1.2.3 or \
                 10.0.0.0/8"
            ))
        })
    };
    texts.iter().map(read).collect()
}

/// A number for two hosts, the same in both directions and on every machine. Where exactly one of
/// them is a server, the other one alone counts.
fn place(a: IpAddr, b: IpAddr, servers: &[HostPattern]) -> u64 {
    let serves = |address: IpAddr| servers.iter().any(|network| network.contains(address));
    match (serves(a), serves(b)) {
        (true, false) => hash(&[b]),
        (false, true) => hash(&[a]),
        _ => hash(&[a.min(b), a.max(b)]),
    }
}

/// FNV-1a of 64 bits over the addresses, an IPv4 one as the IPv6 address it is mapped to, with a
/// last mix so that the lowest bits depend on all others.
fn hash(addresses: &[IpAddr]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for address in addresses {
        let bytes = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        for byte in bytes {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    state ^= state >> 32;
    state.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn both_directions_have_one_place() {
        let a = ip("10.0.0.1");
        let b = ip("192.168.7.9");
        assert_eq!(place(a, b, &[]), place(b, a, &[]));
        assert_ne!(place(a, b, &[]), place(a, ip("192.168.7.10"), &[]));
    }

    #[test]
    fn a_client_of_several_servers_has_one_place_where_servers_are_known() {
        let servers = networks(&["10.0.0.0/8".into()]).unwrap();
        let client = ip("192.168.7.9");
        assert_eq!(
            place(ip("10.0.0.1"), client, &servers),
            place(client, ip("10.9.9.9"), &servers)
        );
    }

    #[test]
    fn many_clients_fill_all_parts() {
        let mut counts = [0; 16];
        for n in 0..4096u32 {
            let client = IpAddr::from((0x0a00_0000 + n).to_be_bytes());
            counts[(place(client, ip("203.0.113.7"), &[]) % 16) as usize] += 1;
        }
        assert!(counts.iter().all(|n| (150..400).contains(n)), "{counts:?}");
    }
}
