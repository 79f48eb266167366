//! Which segment belongs to which stream, and how streams begin and end.

use super::*;

#[test]
fn joined_in_the_middle() {
    dialogue(
        "
        > 1000 ack 7000 'world'     | open 0 Middle
        < 7000 ack 1005             | > 0 'world' @1
        < 7000 ack 1005 'yes'       | < 0 'yes'
        > 1005 ack 7003 '!'         | > 5 '!'
        ",
    );
}

#[test]
fn joined_in_the_middle_with_the_first_segments_out_of_order() {
    dialogue(
        "
        > 1005 ack 7000 'world'     | open 0 Middle
        > 1000 ack 7000 'hello'     |
        < 7000 ack 1010             | > 0 'hello' @2; > 5 'world' @2
        ",
    );
}

#[test]
fn joined_in_the_middle_without_the_receiver() {
    dialogue(
        "
        > 1000 ack 7000 'a'         | open 0 Middle
        > 1001 ack 7000 'b'         |
        wait 1s                     |
        > 1002 ack 7000 'c'         | > 0 'a' @1; > 1 'b' @2; > 2 'c'
        > 1003 ack 7000 'd'         | > 3 'd'
        ",
    );
}

#[test]
fn a_keep_alive_does_not_begin_a_stream_joined_in_the_middle() {
    dialogue(
        "
        < 7000 ack 1000             | open 0 Middle
        < 6999 ack 1000 'x'         |
        > 1000 ack 7000             |
        > 999 ack 7000 'x'          |
        < 7000 ack 1000             |
        > 1000 ack 7000 'hello'     | < 0 'hello'
        ",
    );
}

#[test]
fn the_answer_to_the_syn_is_captured_first() {
    dialogue(
        "
        < 499 syn ack 100           | open 0 SynAck
        > 99 syn                    |
        > 100 ack 500 'hello'       | > 0 'hello'
        < 500 ack 105 'hi'          | < 0 'hi'
        ",
    );
}

#[test]
fn the_answer_to_the_syn_was_not_captured() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        > 100 ack 500               |
        < 505 ack 100 'world'       |
        < 500 ack 100 'hello'       | < 0 'hello'; < 5 'world'
        ",
    );
}

#[test]
fn a_reset_leaves_time_for_what_was_under_way() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 100 ack 500 'hello'       | > 0 'hello'
        > 105 rst ack 500           | > end Rst
        < 500 ack 105 'hi'          | < 0 'hi'
        wait 2s                     |
        < 502 ack 105               | < end Rst
        ",
    );
}

#[test]
fn a_reset_may_say_why() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        < 500 rst ack 100 'go away' | < note ResetReason([103, 111, 32, 97, 119, 97, 121]); < 0 \
         'go away'; < end Rst
        < 507 rst ack 100 'go'      | < note ResetReason([103, 111])
        > 200 rst ack 507 'no'      | > note ResetReason([110, 111])
        > 100 ack 500 'hello'       | > 0 'hello'
        end                         | > end Rst
        ",
    );
}

#[test]
fn a_reset_captured_before_the_last_bytes() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 105 rst ack 500           |
        > 100 ack 500 'hello'       | > 0 'hello'
        end                         | > end Rst; < end Rst
        ",
    );
}

#[test]
fn a_refused_connection() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 0 rst ack 100             | < end Rst
        > 99 syn                    | > end Rst; open 1 Syn
        < 0 rst ack 100             | < end Rst
        ",
    );
}

#[test]
fn a_port_used_again_is_a_new_stream() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 100 ack 500 'one'         | > 0 'one'
        > 7000 syn                  | > end Replaced; < end Replaced; open 1 Syn
        < 9000 syn ack 7001         |
        > 7001 ack 9001 'two'       | > 0 'two'
        > 7004 fin ack 9001         | > end Fin
        < 9001 fin ack 7005         | < end Fin
        > 7005 ack 9002             |
        > 7000 syn                  | open 2 Syn
        > 7000 syn                  |
        ",
    );
}

#[test]
fn the_server_may_be_the_next_client() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        < 8000 syn                  | > end Replaced; < end Replaced; open 1 Syn
        > 3000 syn ack 8001         |
        < 8001 ack 3001 'turned'    | > 0 'turned'
        ",
    );
}

#[test]
fn a_new_connection_of_which_the_syn_was_not_captured_keeps_the_number() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        < 500 ack 100 'one'         | < 0 'one'
        > 100 fin ack 503           | > end Fin
        < 503 fin ack 101           | < end Fin
        < 90000 syn ack 7001        | open 0 SynAck
        > 7001 ack 90001 'two'      | > 0 'two'
        < 90001 ack 7004 'three'    | < 0 'three'
        ",
    );
}

#[test]
fn late_copies_do_not_open_a_closed_stream_but_other_numbers_do() {
    let talk = dialogue(
        "
        > 99 syn                        | open 0 Syn
        < 499 syn ack 100               |
        > 100 ack 500 'hello'           | > 0 'hello'
        > 105 fin ack 500               | > end Fin
        < 500 fin ack 106               | < end Fin
        > 100 ack 500 'hello'           |
        > 106 ack 501 'after'           |
        > 3000000000 ack 77 'new'       | open 0 Middle
        < 77 ack 3000000003             | > 0 'new' @8
        ",
    );
    assert_eq!(talk.flow.stats().after_end, 5);
}

#[test]
fn streams_are_numbered_in_order_of_their_first_frame() {
    let talk = dialogue(
        "
        > 1 ack 1                   | open 0 Middle
        port 5000                   |
        > 1 ack 1                   | open 1 Middle
        port 4000                   |
        > 1 ack 1                   |
        port 6000                   |
        < 1 ack 1                   | open 2 Middle
        end                         | #0 > end CaptureEnd; #0 < end CaptureEnd; #1 > end \
         CaptureEnd; #1 < end CaptureEnd; > end CaptureEnd; < end CaptureEnd
        ",
    );
    assert_eq!(talk.flow.stats().tcp_streams, 3);
}

#[test]
fn the_longest_idle_stream_makes_room_and_may_go_on() {
    let limits = FlowLimits { tcp_streams: 2, ..FlowLimits::default() };
    let talk = dialogue_with(
        limits,
        "
        > 99 syn                    | open 0 Syn
        > 100 ack 1 'a'             | > 0 'a'
        port 5000                   |
        > 99 syn                    | open 1 Syn
        port 4000                   |
        > 101 ack 1 'b'             | #0 > 1 'b'
        port 6000                   |
        > 99 syn                    | open 2 Syn; #1 > end Evicted; #1 < end Evicted
        port 5000                   |
        > 100 ack 1 'c'             | open 1 Middle; > 0 'c'; #0 > end Evicted; #0 < end Evicted
        port 4000                   |
        > 103 ack 1 'd'             | open 0 Middle; #2 > end Evicted; #2 < end Evicted
        > 102 ack 1 '!'             | > 2 '!'; > 3 'd'
        ",
    );
    assert_eq!(talk.flow.stats().evicted, 3);
}

#[test]
fn closed_streams_are_forgotten_in_time() {
    let limits = FlowLimits { tcp_closed: 1, ..FlowLimits::default() };
    let mut talk = Talk::new(limits);
    for port in 5000..5010 {
        talk.play(&format!("port {port}"));
        talk.play("> 99 syn");
        talk.play("< 499 syn ack 100");
        talk.play("> 100 fin ack 500");
        talk.play("< 500 fin ack 101");
    }
    assert_eq!(talk.log.totals.len(), 20);
    assert_eq!(
        talk.flow.transports.tcp.remembered(),
        2,
        "the one that ended last, and the one before"
    );
}

#[test]
fn an_icmp_error_numbers_what_it_quotes() {
    let mut talk = Talk::new(FlowLimits::default());
    let quote = ipv4(17, [10, 0, 0, 1], [10, 0, 0, 9], &udp(1, 2, b"never captured"));
    let mut icmp = vec![3, 3, 0, 0, 0, 0, 0, 0];
    icmp.extend(&quote[..28]);
    talk.frame(101, &ipv4(1, [10, 0, 0, 9], [10, 0, 0, 1], &icmp));
    talk.frame(101, &ipv4(17, [10, 0, 0, 1], [10, 0, 0, 9], &udp(3, 4, b"x")));
    talk.frame(101, &ipv4(17, [10, 0, 0, 9], [10, 0, 0, 1], &udp(2, 1, b"y")));
    assert_eq!(
        talk.take_log(),
        "#1 udp 1 > 'x'; #0 udp 0 > 'y'".replace("#1 ", "").replace("#0 ", "")
    );
}
