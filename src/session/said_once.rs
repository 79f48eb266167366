//! Notes that the messages of a connection have once: the first stays, all others are left out and
//! counted.

use super::Side;
use crate::tree::Tree;

/// What is known of such a note in one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct SaidOnce {
    said: bool,
    /// How many were left out of the client's and of the server's messages.
    left_out: [u64; 2],
}

impl SaidOnce {
    /// Leaves the note out of a message that has it, but for the first one in the connection.
    /// Returns whether the first is in this message.
    pub fn in_tree(&mut self, text: &str, from: Side, tree: &mut Tree) -> bool {
        let first = !std::mem::replace(&mut self.said, true);
        *from.of(&mut self.left_out) += tree.leave_out(text, first);
        first
    }

    /// Notes of a side's message were left out.
    pub fn add_left_out(&mut self, from: Side, notes: u64) {
        *from.of(&mut self.left_out) += notes;
    }

    /// Whether a message has the note.
    pub fn is_said(&self) -> bool {
        self.said
    }

    /// How many notes of a side's messages were left out.
    pub fn left_out(&self, from: Side) -> u64 {
        let [client, server] = self.left_out;
        if from == Side::Client { client } else { server }
    }

    /// Adds what is known of later messages of the connection.
    pub fn add(&mut self, later: SaidOnce) {
        self.said |= later.said;
        for (sum, more) in self.left_out.iter_mut().zip(later.left_out) {
            *sum += more;
        }
    }

    /// As if an earlier message had the note.
    pub fn set_said(&mut self) {
        self.said = true;
    }
}
