//! How fast each part is for itself: reading files, putting streams together, RC4, the evaluator,
//! JSON, trees, and deriving a key.
//!
//! `cargo bench` runs all of it on captures of the repository; `cargo bench -- json` what has the
//! word in its name. What the parts come to together, and beside other programs, `compare.py`
//! measures.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod material;

use std::hint::black_box;
use std::io::Cursor;

use criterion::{BatchSize, Criterion, Throughput};
use material::{DIRTSAND, Sent};
use moulsniff::capture::{Capture, Moment, Source, Time};
use moulsniff::captured::Captured;
use moulsniff::flow::{
    Cause, Dir, End, Flow, FlowLimits, FlowSink, Stream, StreamId, TcpOpening, Totals,
};
use moulsniff::print::PrintedTime;
use moulsniff::print::json::{JsonOptions, JsonWriter};
use moulsniff::print::tree::TreeWriter;
use moulsniff::proto::moul::keys::{Rc4, derive_session_key};
use moulsniff::proto::{LazyTables, protocol_named};
use moulsniff::record::{Body, Names, Record, RoundTrips};
use moulsniff::session::{Message, Side, Transport};
use moulsniff::table::{Evaluator, Outcome, ServiceId, Tables};
use moulsniff::tree::Tree;

fn main() {
    let mut c = Criterion::default().configure_from_args();
    for part in [reading, flow, rc4, keys, messages] {
        part(&mut c);
    }
    c.final_summary();
}

/// Frames out of a pcapng.
fn reading(c: &mut Criterion) {
    let bytes = material::bytes(DIRTSAND.0);
    let mut group = c.benchmark_group("capture");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("reading a pcapng", |b| {
        let ready =
            || Capture::new([Source::reader("bench", Box::new(Cursor::new(bytes.clone())))]);
        b.iter_batched(
            ready,
            |mut capture| {
                while let Some(frame) = capture.next_frame().unwrap() {
                    black_box(frame.data.len());
                }
                capture
            },
            BatchSize::LargeInput,
        );
    });
}

/// Bytes of streams, counted.
#[derive(Default)]
struct Count(usize);

impl FlowSink for Count {
    fn tcp_open(&mut self, _: &Stream, _: TcpOpening, _: Moment) {}
    fn tcp_data(&mut self, _: StreamId, _: Dir, _: u64, bytes: &[u8], _: Moment) {
        self.0 += bytes.len();
    }
    fn tcp_gap(&mut self, _: StreamId, _: Dir, _: u64, _: u64, _: Cause, _: Moment) {}
    fn tcp_end(&mut self, _: StreamId, _: Dir, _: End, _: &Totals, _: Moment) {}
    fn udp(&mut self, _: &Stream, _: Dir, bytes: &[u8], _: u32, _: Moment) {
        self.0 += bytes.len();
    }
}

/// Streams out of frames: as they came, and with segments lost, doubled and out of order.
fn flow(c: &mut Criterion) {
    let mut group = c.benchmark_group("flow");
    for (name, capture) in
        [("in order", DIRTSAND.0), ("with gaps", "captures/moul/mangled_gaps.pcap.gz")]
    {
        let frames = material::frames(material::bytes(capture));
        group.throughput(Throughput::Bytes(frames.iter().map(|f| f.data.len() as u64).sum()));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut flow = Flow::new(FlowLimits::default());
                let mut count = Count::default();
                for frame in &frames {
                    flow.frame(&frame.frame(), &mut count);
                }
                flow.finish(&mut count);
                black_box(count.0)
            });
        });
    }
}

fn rc4(c: &mut Criterion) {
    let mut bytes = vec![0_u8; 64 << 10];
    let mut group = c.benchmark_group("rc4");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    let mut cipher = Rc4::new(&[1, 2, 3, 4, 5, 6, 7]);
    group.bench_function("64 KiB", |b| b.iter(|| cipher.apply(black_box(&mut bytes))));
}

/// The power that a connection costs.
fn keys(c: &mut Criterion) {
    let ring = material::keys(DIRTSAND.1);
    let key = ring.keys().next().unwrap();
    let mut y = [0x5a_u8; 64];
    c.bench_function("session key", |b| {
        b.iter(|| {
            y[0] = y[0].wrapping_add(1);
            derive_session_key(key, black_box(&y), &[1, 2, 3, 4, 5, 6, 7])
        });
    });
}

/// A message with its tree, as an output gets it.
struct Read {
    sent: Sent,
    service: ServiceId,
    tree: Tree,
    number: u64,
}

/// Messages of a service that the evaluator reads as they stand.
fn read(all: Vec<Sent>, tables: &Tables, evaluator: &mut Evaluator) -> Vec<Read> {
    let mut found = Vec::new();
    for sent in all {
        let Some(service) = tables.service_named(&sent.service) else { continue };
        let mut tree = Tree::new();
        let outcome = evaluator.message(tables, service, sent.from.index(), &sent.bytes, &mut tree);
        let Outcome::Message(id, length) = outcome else { continue };
        if length == sent.bytes.len()
            && tables.message(id).is_some_and(|m| tables.name(m.name) == sent.name)
        {
            found.push(Read { sent, service, tree, number: found.len() as u64 + 1 });
        }
    }
    found
}

/// Reading, writing JSON and writing trees, message by message.
fn messages(c: &mut Criterion) {
    let setup = material::setup(material::keys(&[]));
    let moul = protocol_named("moul").unwrap();
    let tables = LazyTables::new(moul, Vec::new()).unwrap();
    let mut evaluator = Evaluator::default();
    moul.prepare(&mut evaluator, setup.settings.named("moul"));
    let tables = tables.get();
    for service in ["auth", "game"] {
        let all =
            material::messages(DIRTSAND).into_iter().filter(|m| m.service == service).collect();
        let all = read(all, tables, &mut evaluator);
        assert!(all.len() > 50, "{} messages of {service}", all.len());
        let mut group = c.benchmark_group(service);
        group.throughput(Throughput::Elements(all.len() as u64));
        let mut tree = Tree::new();
        group.bench_function("evaluator", |b| {
            b.iter(|| {
                for Read { sent, service, .. } in &all {
                    black_box(evaluator.message(
                        tables,
                        *service,
                        sent.from.index(),
                        &sent.bytes,
                        &mut tree,
                    ));
                }
            });
        });
        let mut out = Vec::new();
        let mut json = JsonWriter::new(JsonOptions::default());
        group.bench_function("json", |b| {
            b.iter(|| {
                all.iter().for_each(|read| {
                    out.clear();
                    with_record(read, tables, |record| json.record(record, &mut out));
                });
            });
        });
        let mut trees = TreeWriter::default();
        group.bench_function("tree", |b| {
            b.iter(|| {
                all.iter().for_each(|read| {
                    out.clear();
                    with_record(read, tables, |record| {
                        trees.record(record, PrintedTime::default(), &mut out)
                    });
                });
            });
        });
        group.finish();
    }
}

/// Hands a message on as a record.
fn with_record(read: &Read, tables: &Tables, give: impl FnOnce(&Record<'_>)) {
    let Read { sent, tree, number, .. } = read;
    let message = Message {
        name: Captured::new(&sent.name),
        number: Some(1),
        service: &sent.service,
        from: sent.from,
        offset: 0,
        bytes: &sent.bytes,
        reply: None,
        no_reply: false,
    };
    let client = ([127, 0, 0, 1], 50_000).into();
    let server = ([127, 0, 0, 1], 14_617).into();
    let (src, dst) = if sent.from == Side::Client { (client, server) } else { (server, client) };
    give(&Record {
        number: *number,
        at: Moment::default(),
        start: Time::default(),
        transport: Transport::Tcp,
        stream: sent.stream,
        src,
        dst,
        from: sent.from,
        protocol: "moul",
        service: &sent.service,
        round_trips: RoundTrips::default(),
        names: Names::default(),
        body: Body::Message { message: &message, tables, tree },
    });
}
