//! `moulsniff export vault`: nodes, what they are below, and how they changed, as JSON or for
//! Graphviz.

use std::path::PathBuf;

use crate::captured::file_name;
use crate::cli::error::{CliError, Status};
use crate::cli::files;
use crate::cli::options::{CountArgs, FilterArgs, LiveArgs, ReadArgs};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::summary::before_commit;
use crate::digits::{counted, plural};
use crate::facts::{Account, Graph};
use crate::output_file::Access;
use crate::pipeline::{Filtered, Output};
use crate::print::graph::{write_graph_dot, write_graph_json};
use crate::print::json::{JsonOptions, JsonWriter};
use crate::record::{Body, MessageView, Record};
use crate::remark::say;
use crate::run::CaptureRun;
use clap::Args;

/// The vault.
#[derive(Args, Debug)]
pub struct ExportVaultArgs {
    /// Write to this file: JSON if its name ends in .json, Graphviz if it ends in .dot; an existing
    /// file is replaced
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The captures.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Captures that still grow.
    #[command(flatten)]
    pub live: LiveArgs,
    /// Which messages are looked at.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// How many.
    #[command(flatten)]
    pub count: CountArgs,
}

pub(super) fn run(args: &ExportVaultArgs) -> Result<Status, CliError> {
    let extension = args.output.extension().map(|end| end.to_string_lossy().to_lowercase());
    let dot = match extension.as_deref() {
        Some("json") => false,
        Some("dot" | "gv") => true,
        _ => {
            let name = file_name(&args.output);
            return Err(CliError::Typed(format!(
                "-o {name}: expected a name that ends in .json or .dot"
            )));
        }
    };
    let Plan { reading, setup, filter, redact, limit, ending, .. } = Plan::new(PlanArgs {
        live: Some(&args.live),
        filter: Some(&args.filter),
        count: args.count.count,
        output: Some(&args.output),
        ..PlanArgs::new(&args.read)
    })?;
    let run = CaptureRun::new(&reading, setup)?;
    let mut file = files::create(&args.output, Access::Owner, &reading.inputs)?;
    let json = JsonWriter::new(JsonOptions { spans: false, redact });
    let graph = Graph::new(&Account::default());
    let collector = VaultCollector { graph, json, text: Vec::new() };
    let mut filtered = Filtered::new(collector, filter.clone(), limit);
    let mut outcome = run.into_output(&mut filtered);
    before_commit(&mut outcome, filter.as_deref(), &args.output)?;
    let graph = &filtered.into_inner().graph;
    let written =
        if dot { write_graph_dot(graph, &mut file) } else { write_graph_json(graph, &mut file) };
    written
        .and_then(|()| file.commit())
        .map_err(|error| CliError::File(file_name(&args.output), error))?;
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let status = ending.status(&outcome, filter.as_deref())?;
    if !ending.quiet {
        let seen = graph.nodes.values().filter(|node| node.seen).count();
        let nodes = graph.nodes.len();
        let edges = graph.edges.len();
        let name = file_name(&args.output);
        say(format_args!(
            "{} ({seen} of them with their fields) and {} in {name}",
            counted(nodes, "node"),
            counted(edges, "reference")
        ));
        if graph.left_out > 0 {
            say(format_args!(
                "{} more {} left out because there are too many",
                graph.left_out,
                plural(graph.left_out, "is", "are")
            ));
        }
    }
    ending.say_summary(&mut outcome);
    Ok(status)
}

/// Hands records to the graph.
struct VaultCollector {
    graph: Graph,
    json: JsonWriter,
    text: Vec<u8>,
}

impl Output for VaultCollector {
    fn record(&mut self, record: &Record<'_>) {
        let Body::Message { message, tables, tree } = &record.body else { return };
        let VaultCollector { graph, json, text, .. } = self;
        graph.record(record, &mut |node| {
            text.clear();
            json.value(MessageView { tables, tree, bytes: message.bytes }, node, text);
            serde_json::from_slice(text).unwrap_or_else(|_| String::from_utf8_lossy(text).into())
        });
    }
}
