//! Says which frames were not read and why, and which command makes a capture of those that may hold
//! packets all the same.

use crate::digits::{counted, plural};
use crate::flow::NotReadCounts;

/// Reasons that are listed.
const LISTED: usize = 8;

/// The lines about all frames that were not read. `None` if there are none.
pub(super) fn explain(counts: &NotReadCounts) -> Option<String> {
    lines(counts, false)
}

/// The lines about those frames in which there may be packets.
pub(super) fn explain_hidden(counts: &NotReadCounts) -> Option<String> {
    lines(counts, true)
}

fn lines(counts: &NotReadCounts, hidden_only: bool) -> Option<String> {
    let mut reasons = counts.reasons();
    reasons.retain(|(reason, _)| !hidden_only || reason.may_hide_packets());
    let total: u64 = reasons.iter().map(|(_, count)| count).sum();
    let total = total + if hidden_only { 0 } else { counts.others() };
    if total == 0 {
        return None;
    }
    let mut names: Vec<String> =
        reasons.iter().take(LISTED).map(|(reason, count)| format!("{count} {reason}")).collect();
    let listed: u64 = reasons.iter().take(LISTED).map(|(_, count)| count).sum();
    if listed < total {
        names.push(format!("{} of other kinds", total - listed));
    }
    let frames = counted(total, "frame");
    let was = plural(total, "was", "were");
    let mut text = format!("  {frames} {was} not read: {}", names.join(", "));
    if reasons.iter().any(|(reason, _)| reason.is_convertible()) {
        text.push_str(
            "\n  what Wireshark finds in them can be read after: \
             tshark -r CAPTURE -U IP -w OUT.pcapng",
        );
    }
    Some(text)
}
