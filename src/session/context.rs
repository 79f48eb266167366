//! What a session works with during one call.

use super::{Emit, Options, Settings};
use crate::table::{Evaluator, Tables};
use crate::tree::Tree;

/// What a session works with during one call. The pipeline makes it anew for each.
pub struct Context<'a> {
    /// The protocol's tables.
    pub tables: &'a Tables,
    /// The evaluator of the protocol, with the memory of the protocol's own types.
    pub evaluator: &'a mut Evaluator,
    /// The tree every message is read into. It is cleared by the evaluator before each message.
    pub tree: &'a mut Tree,
    /// The settings that the user gave to this protocol.
    pub settings: &'a Settings,
    /// The TCP sequence numbers of offset 0 of client and server, where they are known.
    pub sequences: [Option<u32>; 2],
    /// The options of the run.
    pub options: &'a Options,
    /// Where messages and events go.
    pub emit: &'a mut dyn Emit,
}
