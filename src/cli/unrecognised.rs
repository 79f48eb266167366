//! Explains why nothing was recognised: what the capture contains instead, and what the user can
//! try.

use super::not_read;
use crate::digits::{counted, plural};
use crate::flow::NotReadCounts;
use crate::pipeline::{PassedOver, PassedOverPort, Summary};
use crate::proto::PROTOCOLS;

/// Ports that are listed.
const PORTS: usize = 5;

/// The lines to print where a capture had frames and no stream of a known protocol.
pub(super) fn explain(
    summary: &Summary,
    passed_over: &PassedOver,
    not_read: &NotReadCounts,
) -> String {
    let mut lines = vec![first_line(summary, passed_over)];
    let ports = passed_over.ports();
    for p in ports.iter().take(PORTS) {
        let PassedOverPort { transport, port, conversations, bytes } = p;
        lines.push(format!(
            "  {} port {port}: {}, {}",
            transport.word(),
            counted(*conversations, "conversation"),
            counted(*bytes, "byte")
        ));
    }
    if ports.len() > PORTS {
        lines.push(format!("  and {}", counted((ports.len() - PORTS) as u64, "more port")));
    }
    let cut = summary.flow.cut;
    if cut > 0 {
        let frames = summary.flow.frames;
        lines.push(format!(
            "  {cut} of {} {} captured; tcpdump -s 0 keeps them whole",
            counted(frames, "frame"),
            plural(cut, "was cut when it was", "were cut when they were")
        ));
    }
    lines.extend(not_read::explain(not_read));
    let reasons = [
        (
            passed_over.joined_late,
            "began before the capture: start capturing before the client connects",
        ),
        (passed_over.one_sided, "heard in one direction only: capture where both directions pass"),
    ];
    for (n, reason) in reasons.into_iter().filter(|(n, _)| *n > 0) {
        lines.push(format!("  {}, {reason}", counted(n, "conversation")));
    }
    lines.extend(ports.iter().filter_map(suggestion));
    lines.join("\n")
}

fn first_line(summary: &Summary, passed_over: &PassedOver) -> String {
    let tcp = passed_over.tcp;
    let udp = passed_over.udp;
    if tcp + udp == 0 {
        return format!(
            "nothing was recognised: no TCP or UDP payload in {}",
            counted(summary.flow.frames, "frame")
        );
    }
    format!("nothing was recognised; {tcp} TCP and {udp} UDP conversations were passed over:")
}

/// The option that decodes a port as the protocol whose servers are usually there.
fn suggestion(at: &PassedOverPort) -> Option<String> {
    let transport = at.transport.word();
    let port = at.port;
    let usual = |p: &&&dyn crate::proto::Protocol| p.usual_ports().contains(&(at.transport, port));
    let protocol = PROTOCOLS.iter().find(usual)?.name();
    Some(format!("  if port {port} is {protocol}: --decode-as {transport}:{port}={protocol}"))
}
