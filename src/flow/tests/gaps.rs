//! Bytes that were never captured become gaps of exact length, and only these.

use super::*;

#[test]
fn a_lost_segment_is_reported_after_its_acknowledgement_and_a_timeout() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 100 ack 500 'hello'       | > 0 'hello'
        > 110 ack 500 'again'       |
        < 500 ack 115               |
        26 x < 500 ack 115          |
        30 x > 115 ack 500          |
        10 x > 115 ack 500          | > gap 5+5 Acknowledged @4; > 10 'again' @4
        > 115 ack 500 '!'           | > 15 '!'
        ",
    );
}

#[test]
fn or_a_second_went_by() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 110 ack 500 'again'       |
        < 500 ack 115               |
        wait 900ms                  |
        < 500 ack 115               |
        wait 1s                     |
        < 500 ack 115               |
        wait 1s                     |
        < 500 ack 115               | > gap 0+10 Acknowledged @3; > 10 'again' @3
        ",
    );
}

#[test]
fn a_silent_stream_is_looked_at_while_others_go_on() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 110 ack 500 'again'       |
        < 500 ack 115               |
        port 5000                   |
        wait 1100ms                 |
        > 1 ack 1                   | open 1 Middle
        wait 1100ms                 |
        > 1 ack 1                   | #0 > gap 0+10 Acknowledged @3; #0 > 10 'again' @3
        ",
    );
}

#[test]
fn a_hole_that_the_receiver_has_not_is_waited_for() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 105 ack 500 'world'       |
        < 500 ack 100               |
        wait 3s                     |
        2000 x < 500 ack 100        |
        wait 30s                    |
        < 500 ack 100               |
        > 100 ack 500 'hello'       | > 0 'hello'; > 5 'world'
        ",
    );
}

#[test]
fn several_holes_acknowledged_long_ago_are_told_together() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 101 ack 500 'b'           |
        > 103 ack 500 'd'           |
        > 105 ack 500 'f'           |
        < 500 ack 106               |
        wait 2s                     |
        < 500 ack 106               |
        wait 2s                     |
        < 500 ack 106               | > gap 0+1 Acknowledged @3; > 1 'b' @3; > gap 2+1 \
         Acknowledged @4; > 3 'd' @4; > gap 4+1 Acknowledged @5; > 5 'f' @5
        ",
    );
}

#[test]
fn late_bytes_of_a_gap_are_counted_and_left_out() {
    let talk = dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 105 ack 500 'world'       |
        < 500 ack 110               |
        wait 2s                     |
        < 500 ack 110               |
        wait 2s                     |
        < 500 ack 110               | > gap 0+5 Acknowledged @3; > 5 'world' @3
        > 100 ack 500 'hello'       | > note Late { offset: 0, len: 5 }
        > 100 ack 500 'hello'       |
        end                         | > end CaptureEnd; < end CaptureEnd
        ",
    );
    assert_eq!((talk.log.totals[0].lost, talk.log.totals[0].late), (5, 10));
}

#[test]
fn acknowledged_bytes_with_nothing_after_them_become_a_gap_at_the_end() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 100 ack 500 'hello'       | > 0 'hello'
        < 500 ack 125               |
        wait 60s                    |
        100 x < 500 ack 125         |
        end                         | > gap 5+20 Ended; > end CaptureEnd; < end CaptureEnd
        ",
    );
}

#[test]
fn unacknowledged_bytes_behind_a_hole_come_out_at_the_end() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 105 ack 500 'world'       |
        > 115 ack 500 '!'           |
        end                         | > gap 0+5 Ended @3; > 5 'world' @3; > gap 10+5 Ended; > 15 \
         '!'; > end CaptureEnd; < end CaptureEnd
        ",
    );
}

#[test]
fn a_hole_before_the_fin() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 105 fin ack 500           |
        < 500 fin ack 106           | < end Fin
        > 106 ack 501               |
        wait 2s                     |
        > 106 ack 501               |
        wait 2s                     |
        > 106 ack 501               | > gap 0+5 Acknowledged; > end Fin
        ",
    );
}

#[test]
fn one_number_more_at_the_end_is_a_fin_that_was_not_captured() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 100 ack 500 'hello'       | > 0 'hello'
        < 500 fin ack 106           | < end Fin
        > 106 ack 501               |
        end                         | > note FinAssumed; > end CaptureEnd
        ",
    );
}

#[test]
fn frames_cut_by_a_snap_length() {
    let talk = dialogue(
        "
        > 99 syn                        | open 0 Syn
        < 499 syn ack 100               |
        > 100 ack 500 'hello' cut 3     | > 0 'hel'; > gap 3+2 Cut
        > 110 ack 500 'again' cut 0     |
        > 115 ack 500 '!'               |
        > 105 ack 500 'world'           | > 5 'world'; > gap 10+5 Cut; > 15 '!'
        end                             | > end CaptureEnd; < end CaptureEnd
        ",
    );
    assert_eq!(talk.flow.stats().cut, 2);
    assert_eq!((talk.log.totals[0].delivered, talk.log.totals[0].lost), (9, 7));
}

#[test]
fn one_direction_alone() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        > 100 ack 500 'hello'       | > 0 'hello'
        > 110 ack 501 'again'       |
        wait 11s                    |
        > 115 ack 502 '!'           |
        wait 11s                    |
        > 116 ack 503 '?'           | > gap 5+5 Unanswered @3; > 10 'again' @3; > 15 '!' @4; > 16 \
         '?'
        > 117 fin ack 510           | > end Fin
        end                         | < gap 0+10 Ended; < end CaptureEnd
        ",
    );
}

#[test]
fn more_waits_than_one_stream_may_hold() {
    let limits = FlowLimits { stream_buffer: 400, ..FlowLimits::default() };
    dialogue_with(
        limits,
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 101 ack 500 'aaaaa'       |
        > 111 ack 500 'bbbbb'       |
        > 121 ack 500 'ccccc'       |
        > 131 ack 500 'ddddd'       | > note StreamLimit; > gap 0+1 Limit @3; > 1 'aaaaa' @3
        > 141 ack 500 'eeeee'       | > gap 6+5 Limit @4; > 11 'bbbbb' @4
        ",
    );
}

#[test]
fn more_waits_than_all_streams_together_may_hold() {
    let limits = FlowLimits { total_buffer: 250, ..FlowLimits::default() };
    dialogue_with(
        limits,
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 101 ack 500 'aaaaa'       |
        port 5000                   |
        > 99 syn                    | open 1 Syn
        < 499 syn ack 100           |
        > 101 ack 500 'bbbbb'       |
        > 111 ack 500 'ccccc'       | #0 > note TotalLimit; #0 > gap 0+1 Limit @3; #0 > 1 'aaaaa' \
         @3
        ",
    );
}
