//! Parts that come in any order, twice, or not at all.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::transfer::{FilePart, FileTransfer};
use crate::session::Transport;

fn file(size: Option<u64>) -> FileTransfer {
    FileTransfer { size, kept: true, ..FileTransfer::new("p", (Transport::Tcp, 0), 1) }
}

/// A part of ten bytes whose message is twelve bytes long.
fn follows(file: &mut FileTransfer, begins: u64) {
    let part = FilePart {
        bytes: &[7; 10],
        offset: None,
        number: None,
        message: (begins, 12),
        last: false,
    };
    let mut end = 0;
    file.part(part, 1000, &mut |bytes| {
        end += bytes.len() as u64;
        Some(1_000_000 - end)
    });
}

#[test]
fn whole_messages_that_were_lost_leave_a_hole_of_their_size() {
    let mut file = file(Some(60));
    follows(&mut file, 100);
    file.sequence.gap = true;
    follows(&mut file, 136);
    assert_eq!(file.holes(), [(10, 30), (40, 60)]);
    follows(&mut file, 148);
    assert!(!file.is_over());
    follows(&mut file, 160);
    assert!(file.is_over(), "its last byte came");
    file.settle();
    assert_eq!((file.complete, file.holes()), (false, vec![(10, 30)]));
}

#[test]
fn behind_a_gap_of_an_odd_length_parts_end_where_the_file_does() {
    let mut file = file(Some(60));
    follows(&mut file, 100);
    file.sequence.gap = true;
    follows(&mut file, 141);
    file.settle();
    assert_eq!(file.holes(), [(10, 50)]);
    assert!(file.notes.iter().any(|note| note.contains("guess")));
}

#[test]
fn offsets_decide_and_twice_is_once() {
    let mut all = file(Some(30));
    for offset in [20, 0, 20, 10] {
        let part = FilePart {
            bytes: &[1; 10],
            offset: Some(offset),
            number: None,
            message: (0, 0),
            last: false,
        };
        assert!(!all.is_over());
        all.part(part, 1000, &mut |_| Some(offset * 7));
    }
    assert!(all.is_over());
    all.settle();
    assert!(all.complete);
    let beyond = FilePart {
        bytes: &[1; 10],
        offset: Some(u64::MAX - 3),
        number: None,
        message: (0, 0),
        last: false,
    };
    let mut beyond_all = file(None);
    beyond_all.part(beyond, 1000, &mut |_| Some(0));
    assert!(beyond_all.pieces.is_empty() && beyond_all.notes[0].contains("max-file-size"));
}
