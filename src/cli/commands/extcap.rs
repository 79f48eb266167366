//! `moulsniff extcap`: Wireshark's protocol for programs that capture (doc/extcap in its sources).
//! Wireshark asks for interfaces, their link type and their options, and then for packets:
//! decrypted messages, as `export messages` writes them, into a pipe.

use std::path::PathBuf;

use clap::Args;

use super::export::messages::write_messages;
use super::print;
use crate::capture::interfaces;
use crate::cli::error::{CliError, Status};
use crate::cli::options::{CountArgs, FilterArgs, LiveArgs, ReadArgs};
use crate::pdu::LINK_TYPE;
use crate::proto::PROTOCOLS;

/// The interface that reads a capture file while it grows.
const FILE_INTERFACE: &str = "moulsniff-file";
/// What stands before the name of a network interface.
const PREFIX: &str = "moulsniff-";

/// Wireshark's options. Those of the protocol's own words are the same for every such program.
#[derive(Args, Debug)]
#[command(mut_arg("captures", |arg| {
    arg.required_unless_present_any(["extcap_interfaces", "extcap_interface"]).hide(true)
}))]
pub struct ExtcapArgs {
    /// List the interfaces
    #[arg(long)]
    pub extcap_interfaces: bool,
    /// The version of Wireshark
    #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true, hide = true)]
    pub extcap_version: Option<Option<String>>,
    /// The interface that is meant
    #[arg(long, value_name = "NAME")]
    pub extcap_interface: Option<String>,
    /// List its link types
    #[arg(long, requires = "extcap_interface")]
    pub extcap_dlts: bool,
    /// List its options
    #[arg(long, requires = "extcap_interface")]
    pub extcap_config: bool,
    /// Wireshark's capture filter, of an interface of the network
    #[arg(long, value_name = "FILTER", requires = "extcap_interface")]
    pub extcap_capture_filter: Option<String>,
    /// Write messages into --fifo
    #[arg(long, requires_all = ["extcap_interface", "fifo"])]
    pub capture: bool,
    /// The pipe that Wireshark reads
    #[arg(long, value_name = "PIPE")]
    pub fifo: Option<PathBuf>,
    /// The capture that is read while it grows, for the interface moulsniff-file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// How it is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Which messages are shown.
    #[command(flatten)]
    pub filter: FilterArgs,
}

pub(super) fn run(args: &ExtcapArgs) -> Result<Status, CliError> {
    let name = args.extcap_interface.as_deref().unwrap_or_default();
    if args.extcap_interfaces {
        return print(list_interfaces().as_bytes());
    }
    if args.extcap_dlts {
        let text = format!(
            "dlt {{number={LINK_TYPE}}}{{name=WIRESHARK_UPPER_PDU}}{{display=Decrypted \
             messages}}\n"
        );
        return print(text.as_bytes());
    }
    if args.extcap_config {
        return print(list_options(name).as_bytes());
    }
    let (Some(fifo), true) = (&args.fifo, args.capture) else {
        let why = "extcap is started by Wireshark: --extcap-interfaces, --extcap-dlts, \
                   --extcap-config or --capture with --fifo";
        return Err(CliError::Typed(why.into()));
    };
    let mut read = args.read.clone();
    // Wireshark takes anything on standard error for a mistake.
    read.general.quiet = true;
    let live = match (name, name.strip_prefix(PREFIX)) {
        (FILE_INTERFACE, _) => {
            let Some(file) = &args.file else {
                let why = "--file: expected the capture that is read; in Wireshark it is an \
                           option of the interface";
                return Err(CliError::Typed(why.into()));
            };
            LiveArgs { tail: Some(file.clone()), ..LiveArgs::default() }
        }
        (_, Some(interface)) => LiveArgs {
            interface: Some(interface.to_owned()),
            capture_filter: args.extcap_capture_filter.clone(),
            ..LiveArgs::default()
        },
        _ => return Err(CliError::Typed("there is no such interface of extcap".into())),
    };
    write_messages(fifo, &read, &live, &args.filter, &CountArgs::default())
}

/// The interfaces: one of a file, and those of this machine, where the build captures live.
fn list_interfaces() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(
        "extcap {{version={version}}}{{display=moulsniff}}\ninterface \
         {{value={FILE_INTERFACE}}}{{display=moulsniff: a capture that grows}}\n"
    );
    for interface in interfaces().unwrap_or_default() {
        let name = plain(&interface.name);
        text.push_str(&format!(
            "interface {{value={PREFIX}{name}}}{{display=moulsniff: messages on {name}}}\n"
        ));
    }
    text
}

/// The options of an interface: key files and the like, and a filter.
fn list_options(interface: &str) -> String {
    let mut text = String::new();
    let mut number = 0;
    let mut add = |sentence: String| {
        text.push_str(&format!("arg {{number={number}}}{sentence}\n"));
        number += 1;
    };
    if interface == FILE_INTERFACE {
        add("{call=--file}{display=Capture}{tooltip=A capture that another program \
             writes}{type=fileselect}{required=true}{mustexist=false}"
            .into());
    }
    for secrets in PROTOCOLS.iter().filter_map(|protocol| protocol.secrets()) {
        let option = secrets.option();
        add(format!(
            "{{call=--{option}}}{{display=Key file \
             ({option})}}{{type=fileselect}}{{mustexist=true}}"
        ));
    }
    add("{call=--tables}{display=Table file}{tooltip=Further protocols and \
         messages}{type=fileselect}{mustexist=true}"
        .into());
    add("{call=--filter}{display=Filter}{tooltip=Which messages are shown, as moulsniff -Y takes \
         it}{type=string}"
        .into());
    add("{call=--decode-as}{display=Decode as}{tooltip=A port and a protocol, as in \
         tcp:14000=NAME}{type=string}"
        .into());
    text
}

/// A name without what would end a value.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '{' | '}') && !c.is_control()).collect()
}
