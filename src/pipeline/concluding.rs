//! An output that collects what is wrong in the captures, beside another one that gets the same
//! records.

use super::{Output, PassedOverPort, Pipeline, StreamKey, StreamOver};
use crate::facts::{
    Account, CaptureFacts, ClientSession, Conclusion, Conclusions, EndedStream, FilesFacts,
    NotReadFrames, PassedPort, Sessions,
};
use crate::flow::NotRead;
use crate::proto::PROTOCOLS;
use crate::record::Record;
use crate::session::Side;
use crate::tree::Tree;

/// The most ports of conversations that no protocol recognised.
const MAX_PORTS: usize = 16;

/// Collects what is wrong, and the sessions that it is about if somebody wants these.
#[derive(Default)]
pub struct Diagnosis {
    conclusions: Conclusions,
    sessions: Option<Sessions>,
}

impl Diagnosis {
    /// A diagnosis that says of whom its conclusions are. To know the sessions takes about as long
    /// as to read the records.
    pub fn with_sessions(account: &Account) -> Diagnosis {
        Diagnosis { sessions: Some(Sessions::new(account)), ..Diagnosis::default() }
    }

    /// Takes the next record. Returns the sessions that are over with it.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>) -> Vec<ClientSession> {
        self.conclusions.record(record);
        let Some(sessions) = &mut self.sessions else { return Vec::new() };
        sessions.record(record);
        let over = sessions.take_finished();
        over.iter().for_each(|session| self.conclusions.session(session));
        over
    }

    /// A stream ended.
    pub fn stream_over(&mut self, over: &StreamOver<'_>) {
        let id = (over.key.transport, over.key.number);
        self.conclusions.stream_over(&EndedStream {
            id,
            ends: over.ends,
            protocol: over.protocol,
            service: over.service,
            counts: over.counts,
            round_trips: over.round_trips,
            traffic: over.traffic,
            learned: &over.learned,
        });
        if let Some(sessions) = &mut self.sessions {
            sessions.stream_over(id, over.counts, &over.learned);
        }
    }

    /// The captures are over, and so is every session. `each` gets those that were not handed out
    /// before, one by one.
    pub fn finish(&mut self, mut each: impl FnMut(&Conclusions, ClientSession)) {
        let Some(mut sessions) = self.sessions.take() else { return };
        for session in sessions.finish() {
            self.conclusions.session(&session);
            each(&self.conclusions, session);
        }
    }

    /// What was collected so far.
    pub fn conclusions(&self) -> &Conclusions {
        &self.conclusions
    }

    /// All conclusions about what a pipeline read, the heaviest first.
    pub fn conclude(&mut self, pipeline: &Pipeline, files: FilesFacts) -> Vec<Conclusion> {
        self.finish(|_, _| {});
        let facts = pipeline.capture_facts(files);
        self.conclusions.all(&facts, &|protocol| pipeline.tables(protocol))
    }
}

/// An output beside which a [`Diagnosis`] is made.
pub struct Concluding<'a> {
    out: &'a mut dyn Output,
    diagnosis: &'a mut Diagnosis,
}

impl<'a> Concluding<'a> {
    /// Hands `out` all that `diagnosis` is made of.
    pub fn new(out: &'a mut dyn Output, diagnosis: &'a mut Diagnosis) -> Concluding<'a> {
        Concluding { out, diagnosis }
    }
}

impl Output for Concluding<'_> {
    fn record(&mut self, record: &Record<'_>) {
        self.diagnosis.record(record);
        self.out.record(record);
    }

    fn take_tree(&mut self, tree: &mut Tree) {
        self.out.take_tree(tree);
    }

    fn dropped(&mut self, record: &Record<'_>) {
        self.out.dropped(record);
    }

    fn plaintext(&mut self, stream: &StreamKey, from: Side, offset: u64, bytes: &[u8]) {
        self.out.plaintext(stream, from, offset, bytes);
    }

    fn stream_over(&mut self, stream: &StreamOver<'_>) {
        self.diagnosis.stream_over(stream);
        self.out.stream_over(stream);
    }

    fn wants_more(&mut self, may_block: bool) -> bool {
        self.out.wants_more(may_block)
    }
}

impl Pipeline {
    /// What is known of the captures as a whole.
    fn capture_facts(&self, files: FilesFacts) -> CaptureFacts {
        let summary = self.summary();
        let flow = summary.flow;
        let passed = self.passed_over();
        let port = |at: &PassedOverPort| {
            let PassedOverPort { transport, port, conversations, bytes } = *at;
            let usual = PROTOCOLS
                .iter()
                .find(|protocol| protocol.usual_ports().contains(&(transport, port)))
                .map(|protocol| protocol.name());
            PassedPort { transport, port, conversations, bytes, usual }
        };
        let not_read = |(reason, count): (NotRead, u64)| NotReadFrames {
            what: reason.to_string(),
            count,
            may_hide_packets: reason.may_hide_packets(),
            is_convertible: reason.is_convertible(),
        };
        CaptureFacts {
            frames: flow.frames,
            cut: flow.cut,
            first_cut: flow.first_cut,
            cut_to: flow.cut_to,
            cut_bytes: flow.cut_bytes,
            dropped: files.dropped + self.exported.dropped(),
            not_read: self.not_read().reasons().into_iter().map(not_read).collect(),
            back: flow.back,
            back_by: flow.back_by,
            payload: summary.bytes.payload,
            foreign: [passed.tcp, passed.udp],
            one_sided: passed.one_sided,
            tls: passed.tls,
            joined_late: passed.joined_late,
            ports: passed.ports().iter().take(MAX_PORTS).map(port).collect(),
            files,
        }
    }
}
