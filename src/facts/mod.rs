//! Facts beyond the fields of a message: what it is about, whether it refuses a request, the
//! client's account and player, and its place.
//!
//! Facts come from the marks in tables and from the trees of records. This module knows no protocol
//! and no output. Each file holds one kind of fact. A file that remembers earlier records states a
//! bound for them.

mod account;
mod bytes;
mod chat;
mod conclusions;
mod counters;
mod files;
#[cfg(feature = "answers")]
mod graph;
mod info;
mod last_replies;
mod latency;
mod marks;
mod names;
mod pace;
mod problems;
mod refusal;
mod replies;
mod requests;
mod sessions;
mod stats;
mod stream_map;
mod world;

pub use account::{Account, Share};
pub use bytes::{ByteCounts, StreamSummary};
pub use chat::{Chat, ChatLine, ChatParty};
pub use conclusions::{
    Blame, CaptureFacts, Conclusion, Conclusions, EndedStream, FileOverlap, FilesFacts, Kind,
    NotReadFrames, PassedPort, Weight,
};
pub use files::{FileTransfer, Files, ListEntry, ListedFile, PartOrder, Piece};
#[cfg(feature = "answers")]
pub use graph::{Graph, GraphEdge, GraphField, GraphKey, GraphNode};
pub use info::{InfoSource, write_info};
pub use last_replies::LastReplies;
pub use latency::Latencies;
pub use names::NameInference;
pub use pace::Pace;
pub use problems::{ProblemKind, Problems};
pub use refusal::{Refused, definition, refused};
pub use replies::{Replies, RequestKind};
pub use requests::{LastReply, RequestCounts, SlowestRequest, Waiting};
pub use sessions::{
    ClientSession, Identity, IdentityValue, LastMessage, Place, SessionMap, SessionStream,
    Sessions, StoryLine, StoryOutcome, TiedBy, TransportStream,
};
pub use stats::Stats;
pub use stream_map::StreamMap;
pub use world::World;
