//! Finds the next message after a gap, or after a message that the tables cannot read.
//!
//! It tries every place: it reads messages from there, one behind the other, and weighs their
//! fields as evidence. Resuming at a wrong place gives wrong messages, which is worse than a longer
//! gap, so places with little evidence are passed over. The work is linear in the bytes, and
//! bounded.

use super::evidence::{Against, weigh_message};
use crate::session::{Context, Side};
use crate::session::{Requests, transaction_key};
use crate::table::{Evaluator, HeaderRole, Outcome, Service, ServiceId, Tables};
use crate::tree::Tree;

/// Evidence that is enough anywhere: chance, or content that looks like messages, would give as
/// much once in 2^PROOF places.
const PROOF: i32 = 52;
/// Evidence that is enough at the place where the cut message ends by its own layout.
const PROOF_PREDICTED: i32 = 32;
/// Evidence that is enough at the start of a piece of the stream, if framing was lost at a message
/// that the tables cannot read.
const PROOF_PIECE: i32 = 28;
/// Evidence in a message that ends where a piece does: chance gives that at about one place in 256.
const ENDS_WITH_PIECE: i32 = 8;
/// Evidence that the first message must give by itself. Without this rule, the end of the message
/// before it, which is mostly zeros, would be taken for a message.
const PROOF_FIRST: i32 = 16;
/// How much more evidence a later place needs than an earlier one whose messages reach over it.
const PROOF_RIVAL: i32 = 30;
/// A first message that needs more bytes than this is rejected: waiting for it would delay all
/// others.
const PATIENCE: usize = 64 << 10;
/// Messages that are read from one place.
const CHAIN: usize = 6;
/// Places from which messages are read in one search.
const BUDGET: usize = 50_000;

/// What a search reads messages with.
pub(super) struct MessageReader<'a> {
    pub(super) tables: &'a Tables,
    pub(super) evaluator: &'a mut Evaluator,
    pub(super) tree: &'a mut Tree,
    pub(super) max_message: usize,
}

impl<'a> MessageReader<'a> {
    /// The tables, evaluator and tree that a session works with.
    pub(super) fn new(context: &'a mut Context<'_>) -> MessageReader<'a> {
        MessageReader {
            tables: context.tables,
            evaluator: context.evaluator,
            tree: context.tree,
            max_message: context.options.max_message,
        }
    }
}

/// The task of a search: the bytes, and what is known about them.
pub(super) struct Search<'a> {
    pub(super) service: ServiceId,
    pub(super) side: Side,
    pub(super) bytes: &'a [u8],
    /// The first place to try.
    pub(super) from: usize,
    /// Where the message that the gap cut ends, if its layout says so.
    pub(super) predicted: Option<usize>,
    /// Places at which a piece of the stream begins, ascending. Empty behind a gap, where pieces
    /// begin anywhere in a message and prove nothing.
    pub(super) starts: &'a [usize],
    /// Requests of the connection: a message that answers one of them is likely to be real.
    pub(super) asked: &'a Requests,
    /// The last transaction of this side.
    pub(super) last_transaction: Option<u64>,
    /// No more bytes will come.
    pub(super) last: bool,
}

impl<'a> Search<'a> {
    /// A search that knows nothing but the bytes, and expects no more of them.
    pub(super) fn anywhere(
        service: ServiceId,
        side: Side,
        bytes: &'a [u8],
        asked: &'a Requests,
    ) -> Search<'a> {
        Search {
            service,
            side,
            bytes,
            from: 0,
            predicted: None,
            starts: &[],
            asked,
            last_transaction: None,
            last: true,
        }
    }

    /// Whether a piece of the stream ends at `at`, where messages often end. `false` if `starts` is
    /// empty.
    fn ends_a_piece(&self, at: usize) -> bool {
        !self.starts.is_empty()
            && (at == self.bytes.len() || self.starts.binary_search(&at).is_ok())
    }
}

/// The result of a search.
pub(super) enum SearchResult {
    /// A message begins here.
    Join {
        /// The offset in the bytes.
        at: usize,
        /// How many messages parse from there.
        messages: usize,
        /// The evidence for it, in bits.
        bits: i32,
    },
    /// No message was found.
    Nothing {
        /// The offset at which a later search goes on: no message begins before it.
        from: usize,
    },
}

/// The messages that were read from one place, one behind the other.
struct Chain {
    bits: i32,
    messages: usize,
    /// How many of the messages end where a piece of the stream does.
    pieces: usize,
    end: ChainEnd,
}

enum ChainEnd {
    /// The chain has as many messages or as much evidence as the search asks for.
    Enough,
    /// The bytes ended with a message.
    Exact,
    /// The bytes ended within a message.
    Pending,
    /// The bytes behind the last message are no message.
    Broken,
}

/// Looks for the next message.
pub(super) fn search(search: &Search<'_>, reader: &mut MessageReader<'_>) -> SearchResult {
    let tables = reader.tables;
    let Some(service) = tables.service(search.service) else {
        return SearchResult::Nothing { from: search.bytes.len() };
    };
    // Values that messages ask to remember are not kept during the search: a wrong place must not
    // change how later messages are read.
    reader.evaluator.memory.frozen = true;
    let found = try_places(search, service, reader);
    reader.evaluator.memory.frozen = false;
    found
}

fn try_places(
    search: &Search<'_>,
    service: &Service,
    reader: &mut MessageReader<'_>,
) -> SearchResult {
    let mut budget = BUDGET;
    let mut pending = None;
    // The highest evidence of an earlier place whose messages run to the end of the bytes. They
    // overlap every later place, so only one of the two can be right.
    let mut rival = 0;
    let start = search.predicted.unwrap_or(0).max(search.from);
    for at in start..search.bytes.len() {
        let rest = search.bytes.get(at..).unwrap_or(&[]);
        if !may_begin(service, search.side, rest, reader) {
            if rest.len() < header_length(service) && !search.last {
                pending = pending.or(Some(at));
            }
            continue;
        }
        // Text contains every number and count by chance, so a place within text is no candidate.
        if search.predicted != Some(at) && is_within_text(search.bytes, at) {
            continue;
        }
        budget -= 1;
        if budget == 0 {
            return SearchResult::Nothing { from: pending.unwrap_or(at) };
        }
        let expected = search.predicted == Some(at);
        let piece = !expected && search.starts.binary_search(&at).is_ok();
        // Messages often begin at the start of a piece, or right behind a gap. Elsewhere the first
        // message needs evidence of its own.
        let first = if at == 0 || expected || piece { 0 } else { PROOF_FIRST };
        let chain = read_chain(search, service, at, first, reader);
        let enough = match (expected, piece) {
            (true, _) => PROOF_PREDICTED,
            (_, true) => PROOF_PIECE,
            _ => PROOF,
        };
        let accepted = match chain.end {
            ChainEnd::Enough => chain.bits >= enough,
            // Messages rarely end exactly where the bytes end by chance. A piece was credited for
            // that already.
            ChainEnd::Exact => chain.bits + if piece { 0 } else { 10 } >= enough,
            ChainEnd::Pending => chain.bits >= enough,
            // Bytes that are no message count against the place. Not so behind a message that ends
            // with its piece: the next one may be another that the tables cannot read.
            ChainEnd::Broken => {
                chain.bits >= enough + if piece && chain.pieces > 0 { 0 } else { 30 }
            }
        };
        // A single message needs twice the evidence, unless it fills the bytes between two gaps or
        // ends with its piece.
        let alone =
            at == 0 && search.last && matches!(chain.end, ChainEnd::Exact) && chain.bits >= enough;
        let fills_pieces = piece && chain.pieces > 0;
        let accepted =
            accepted && (chain.messages > 1 || alone || fills_pieces || chain.bits >= 2 * enough);
        let unrivalled = fills_pieces || rival < PROOF_FIRST || chain.bits >= rival + PROOF_RIVAL;
        if accepted && chain.messages > 0 && unrivalled {
            return SearchResult::Join { at, messages: chain.messages, bits: chain.bits };
        }
        if matches!(chain.end, ChainEnd::Pending | ChainEnd::Exact) {
            if chain.messages > 0 {
                rival = rival.max(chain.bits);
            }
            if !search.last {
                pending = pending.or(Some(at));
            }
        }
    }
    SearchResult::Nothing { from: pending.unwrap_or(search.bytes.len()) }
}

fn header_length(service: &Service) -> usize {
    if service.header.len() > 1 { 8 } else { 2 }
}

/// Whether bytes begin with the number of a known message and, if messages state their length, a
/// possible length.
fn may_begin(service: &Service, side: Side, rest: &[u8], reader: &MessageReader<'_>) -> bool {
    let framed = service.header.iter().any(|h| h.0 != HeaderRole::Number);
    let number = if framed {
        let (Some(length), Some(number)) =
            (rest.first_chunk::<4>(), rest.get(4..8).and_then(|n| n.first_chunk::<4>()))
        else {
            return false;
        };
        let length = u32::from_le_bytes(*length) as usize;
        if !(8..=reader.max_message).contains(&length) {
            return false;
        }
        u64::from(u32::from_le_bytes(*number))
    } else {
        let Some(number) = rest.first_chunk::<2>() else { return false };
        u64::from(u16::from_le_bytes(*number))
    };
    let id = reader.tables.message_id(service, side.index(), number);
    id.and_then(|id| reader.tables.message(id)).is_some_and(|m| m.layout.is_some())
}

/// Whether a place lies within wide text: the 16 bytes around it are Latin letters of two bytes
/// each. Letters look like any number or count, and the rest of the text is long enough for that
/// count.
fn is_within_text(bytes: &[u8], at: usize) -> bool {
    let around =
        bytes.get(at.saturating_sub(8)..bytes.len().min(at.saturating_sub(8) + 16)).unwrap_or(&[]);
    let (units, _) = around.as_chunks::<2>();
    let letters = units
        .iter()
        .filter(|[low, high]| *high == 0 && (*low >= 0x20 || matches!(low, b'\n' | b'\r' | b'\t')));
    units.len() == 8 && letters.count() >= 7
}

/// Reads messages from one place on, as long as they are flawless.
fn read_chain(
    search: &Search<'_>,
    service: &Service,
    from: usize,
    first: i32,
    reader: &mut MessageReader<'_>,
) -> Chain {
    let bytes = search.bytes.get(from..).unwrap_or(&[]);
    let mut chain = Chain { bits: 0, messages: 0, pieces: 0, end: ChainEnd::Enough };
    let mut at = 0;
    let mut last = search.last_transaction;
    while chain.messages < CHAIN && chain.bits < 3 * PROOF {
        let rest = bytes.get(at..).unwrap_or(&[]);
        if rest.is_empty() {
            chain.end = ChainEnd::Exact;
            return chain;
        }
        let tables = reader.tables;
        match reader.evaluator.message(
            tables,
            search.service,
            search.side.index(),
            rest,
            reader.tree,
        ) {
            Outcome::Message(id, length) => {
                let whole = rest.get(..length).unwrap_or(rest);
                let bits = weigh_message(
                    tables,
                    service,
                    search.side.index(),
                    reader.tree,
                    whole,
                    Against::Content,
                );
                if bits < 0 {
                    chain.end = ChainEnd::Broken;
                    return chain;
                }
                let answers = tables.message(id).map_or(&[][..], |m| m.answers.as_slice());
                let known = transaction_key(tables, reader.tree, whole).map(|key| key.exact);
                chain.bits += bits + weigh_transaction(search, known, last, answers);
                // Two zero bytes are everywhere, so a message with the number 0 needs more
                // evidence.
                let zero = whole.first_chunk::<2>() == Some(&[0, 0]);
                if chain.messages == 0
                    && first > 0
                    && bits < first + if zero { PROOF_FIRST } else { 0 }
                {
                    chain.end = ChainEnd::Broken;
                    return chain;
                }
                last = known.or(last);
                chain.messages += 1;
                at += length.max(1);
                if search.ends_a_piece(from + at) {
                    chain.pieces += 1;
                    chain.bits += ENDS_WITH_PIECE;
                }
            }
            Outcome::Need(n) => {
                let far = n > PATIENCE && chain.messages == 0;
                chain.end = if far { ChainEnd::Broken } else { ChainEnd::Pending };
                return chain;
            }
            Outcome::NoLayout(..) if chain.bits >= PROOF => return chain,
            _ => {
                chain.end = ChainEnd::Broken;
                return chain;
            }
        }
    }
    chain
}

/// Evidence in a transaction number: a reply repeats the number of a request, and the numbers of
/// requests count upwards.
fn weigh_transaction(
    search: &Search<'_>,
    known: Option<u64>,
    last: Option<u64>,
    answers: &[crate::table::MessageId],
) -> i32 {
    let Some(t) = known else { return 0 };
    let mut asked = search.asked.with_key(t);
    if asked.any(|(_, request)| request.from != search.side && answers.contains(&request.message)) {
        return 20;
    }
    match last {
        Some(last) if t > last && t - last < 256 => 12,
        Some(last) if t == last => 6,
        _ => 0,
    }
}
