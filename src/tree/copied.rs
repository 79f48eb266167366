//! Copies of nodes: what was read in some bytes, to be added wherever the same bytes are met again.
//! Who decides that they are the same is not known here.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Buffer, Checkpoint, Node, Problem, ProblemText, Tree};

/// How many were made.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Nodes as they would be in an empty tree, if their bytes were the first of a buffer.
#[derive(Debug)]
pub struct CopiedNodes {
    /// From 1; no others have it in this run.
    number: u64,
    nodes: Box<[Node]>,
    /// Which of them begin fields that are told of ([`Tree::telling`]).
    telling: Box<[u32]>,
    problems: Box<[Problem]>,
    /// Those whose value is a place in their buffer.
    placed: Box<[u32]>,
    /// The marks of all of them.
    marks: u8,
}

impl CopiedNodes {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// How many bytes they take.
    pub fn size(&self) -> usize {
        size_of_val(&*self.nodes)
            + size_of_val(&*self.telling)
            + size_of_val(&*self.problems)
            + size_of_val(&*self.placed)
    }
}

/// A structure whose content was copied.
#[derive(Clone, Copy, Debug)]
pub struct StructureCopy {
    /// The structure's node.
    pub node: u32,
    /// The number of what it is a copy of: structures with the same number have the same content.
    pub number: u64,
}

impl Tree {
    /// The structures whose content was copied, in ascending order. The list is empty once somebody
    /// may have changed a node.
    pub fn copies(&self) -> &[StructureCopy] {
        &self.copies
    }

    /// Copies the nodes since a checkpoint, the first of whose bytes is byte `start` of their
    /// buffer, and their problems. `None` if there is something that cannot be copied: a buffer, a
    /// text or a name that was made, a problem with numbers, or more problems than are kept.
    pub fn copy_since(&self, since: &Checkpoint, start: usize) -> Option<CopiedNodes> {
        let now = self.checkpoint();
        if (Checkpoint { nodes: since.nodes, problems: since.problems, ..now }) != *since
            || self.problems().len() >= Self::MAX_PROBLEMS
        {
            return None;
        }
        let first = since.node();
        let problems = self.problems().get(since.problems..)?.iter().map(|problem| {
            let copy = Problem {
                node: problem.node.checked_sub(first)?,
                bytes: problem.bytes.map(|(_, at, length)| {
                    (Buffer::CAPTURED, at.wrapping_sub(start as u32), length)
                }),
                ..*problem
            };
            // Numbers may be places.
            (matches!(copy.text, ProblemText::Fixed(_)) && (copy.a, copy.b) == (0, 0))
                .then_some(copy)
        });
        let problems = problems.collect::<Option<_>>()?;
        let nodes = self.nodes().get(since.nodes..)?.iter().map(|node| Node {
            start: node.start.wrapping_sub(start as u32 * 8),
            end: node.end.wrapping_sub(first),
            value: node.value.wrapping_sub(if node.kind.is_place() {
                Node::place(start, 0)
            } else {
                0
            }),
            ..*node
        });
        let nodes: Box<[Node]> = nodes.collect();
        let placed =
            (0..).zip(&nodes).filter(|(_, node)| node.kind.is_place()).map(|(at, _)| at).collect();
        let telling = self.telling.since(first).map(|index| index - first).collect();
        let marks = nodes.iter().fold(0, |all, node| all | node.marks);
        let number = MADE.fetch_add(1, Ordering::Relaxed) + 1;
        Some(CopiedNodes { number, nodes, telling, problems, placed, marks })
    }

    /// Adds copies of nodes as the content of an open structure. Their bytes begin at byte `start`
    /// of a buffer.
    pub fn add_copy(&mut self, structure: u32, copied: &CopiedNodes, start: usize, buffer: Buffer) {
        let first = self.len();
        self.copies.push(StructureCopy { node: structure, number: copied.number });
        let bits = start as u32 * 8;
        let place = Node::place(start, 0);
        let nodes = &copied.nodes;
        let Some(room) = self.room(copied.marks, nodes.len()).get_mut(..nodes.len()) else {
            return;
        };
        room.copy_from_slice(nodes);
        for node in &mut *room {
            node.start = node.start.wrapping_add(bits);
            node.end = node.end.wrapping_add(first);
            node.buffer = buffer;
        }
        for at in &copied.placed {
            if let Some(node) = room.get_mut(*at as usize) {
                node.value = node.value.wrapping_add(place);
            }
        }
        for index in &copied.telling {
            self.add_telling(first + index);
        }
        for problem in &copied.problems {
            let bytes = problem
                .bytes
                .map(|(_, at, length)| (buffer, at.wrapping_add(start as u32), length));
            self.problem(Problem { node: first + problem.node, bytes, ..*problem });
        }
    }
}
