//! What is known of a capture as a whole, for the file of its exported messages: written at the end
//! of an export, and put into the counts of a run that reads such a file.

use super::passed_over::PassedOver;
use super::{PassedOverPort, Pipeline, Summary};
use crate::capture::Time;
use crate::flow::FlowStats;
use crate::pdu::CarriedCapture;
use crate::session::Transport;

/// Ports that travel with a capture.
const MAX_PORTS: usize = 64;

/// The captures that were exported, together.
#[derive(Default)]
pub(super) struct CarriedCaptures {
    flow: FlowStats,
    pub(super) dropped: u64,
}

impl Pipeline {
    /// What is known of the captures as a whole. `dropped` is how many frames were dropped when
    /// they were captured.
    pub fn carried(&self, dropped: u64) -> CarriedCapture {
        let FlowStats {
            frames,
            bytes,
            times,
            wrong_times,
            cut,
            first_cut,
            cut_to,
            cut_bytes,
            back,
            back_by,
            fragments_dropped,
            wrong_sums,
            ..
        } = self.summary().flow;
        let passed = self.passed_over();
        let port = |at: &PassedOverPort| {
            (at.transport == Transport::Udp, at.port, at.conversations, at.bytes)
        };
        CarriedCapture {
            numbers: vec![
                frames,
                bytes,
                wrong_times,
                cut,
                first_cut,
                cut_to,
                cut_bytes,
                back.map_or(0, |frame| frame.saturating_add(1)),
                fragments_dropped,
                wrong_sums,
                dropped,
                passed.tcp,
                passed.udp,
                passed.one_sided,
                passed.joined_late,
                passed.with_gaps,
                passed.tls,
            ],
            times,
            back_by,
            ports: passed.ports().iter().take(MAX_PORTS).map(port).collect(),
        }
    }
}

impl CarriedCaptures {
    /// Adds a capture.
    pub(super) fn add(&mut self, capture: &CarriedCapture, passed: &mut PassedOver) {
        let mut numbers = capture.numbers.iter().copied();
        let mut next = || numbers.next().unwrap_or(0);
        let flow = &mut self.flow;
        flow.frames += next();
        flow.bytes += next();
        flow.wrong_times += next();
        let cut = next();
        let [first_cut, cut_to] = [next(), next()];
        if flow.cut == 0 {
            (flow.first_cut, flow.cut_to) = (first_cut, cut_to);
        }
        flow.cut += cut;
        flow.cut_bytes += next();
        flow.back = flow.back.or(next().checked_sub(1));
        flow.fragments_dropped += next();
        flow.wrong_sums += next();
        self.dropped += next();
        passed.tcp += next();
        passed.udp += next();
        passed.one_sided += next();
        passed.joined_late += next();
        passed.with_gaps += next();
        passed.tls += next();
        flow.back_by = flow.back_by.max(capture.back_by);
        flow.times = joined(flow.times, capture.times);
        for (udp, port, conversations, bytes) in capture.ports.iter().copied() {
            let transport = if udp { Transport::Udp } else { Transport::Tcp };
            passed.add_port(PassedOverPort { transport, port, conversations, bytes });
        }
    }

    /// Puts the counts of the captures in the place of those of the packets and bytes that brought
    /// them.
    pub(super) fn put_into(&self, packets: [u64; 2], summary: &mut Summary) {
        let [packets, bytes] = packets;
        let flow = &mut summary.flow;
        let own = &self.flow;
        flow.frames = flow.frames.saturating_sub(packets) + own.frames;
        flow.bytes = flow.bytes.saturating_sub(bytes) + own.bytes;
        flow.wrong_times += own.wrong_times;
        if flow.cut == 0 {
            (flow.first_cut, flow.cut_to) = (own.first_cut, own.cut_to);
        }
        flow.cut += own.cut;
        flow.cut_bytes += own.cut_bytes;
        flow.back = flow.back.or(own.back);
        flow.back_by = flow.back_by.max(own.back_by);
        flow.fragments_dropped += own.fragments_dropped;
        flow.wrong_sums += own.wrong_sums;
        flow.times = joined(flow.times, own.times);
    }
}

/// The earliest and the latest of two spans of time.
fn joined(one: Option<(Time, Time)>, other: Option<(Time, Time)>) -> Option<(Time, Time)> {
    match (one, other) {
        (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
        (one, other) => one.or(other),
    }
}
