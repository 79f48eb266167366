//! Bytes come out in order, once, whatever order and however often they were captured.

use super::*;

#[test]
fn a_plain_connection() {
    let talk = dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 100 ack 500               |
        > 100 ack 500 'hello'       | > 0 'hello'
        < 500 ack 105 'hi'          | < 0 'hi'
        > 105 ack 502 ', you'       | > 5 ', you'
        > 110 fin ack 502           | > end Fin
        < 502 fin ack 111 ' too'    | < 2 ' too'; < end Fin
        > 111 ack 507               |
        end                         |
        ",
    );
    // ', you' lacks its acknowledgement when the FIN comes, one frame later.
    let sent = Totals { segments: 2, delivered: 10, heard: true, ..Totals::default() };
    let forward = Totals { unacknowledged: 1000, ..sent };
    assert_eq!(talk.log.totals[0], forward);
    assert_eq!(talk.flow.stats().tcp_streams, 1);
}

#[test]
fn two_segments_swapped() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 105 ack 500 'world'       |
        > 100 ack 500 'hello'       | > 0 'hello'; > 5 'world'
        > 110 ack 500 '!'           | > 10 '!'
        ",
    );
}

#[test]
fn the_answer_is_captured_before_what_it_answers() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 105 ack 500 'world'       |
        < 500 ack 110 'yes'         | < 0 'yes'
        20 x < 503 ack 110          |
        > 100 ack 500 'hello'       | > 0 'hello'; > 5 'world'
        ",
    );
}

#[test]
fn many_segments_in_reverse() {
    let mut talk = Talk::new(FlowLimits::default());
    talk.play("> 99 syn");
    talk.play("< 499 syn ack 100");
    for n in (0..1000).rev() {
        talk.play(&format!("> {} ack 500 'abcdefghij'", 100 + n * 10));
    }
    let bytes: usize = talk.log.lines.iter().filter(|line| line.ends_with("'abcdefghij'")).count();
    assert_eq!(bytes, 1000);
    assert!(talk.log.lines.iter().all(|line| !line.contains("gap")));
}

#[test]
fn retransmissions_and_double_captures() {
    let talk = dialogue(
        "
        > 99 syn                    | open 0 Syn
        > 99 syn                    |
        < 499 syn ack 100           |
        < 499 syn ack 100           |
        > 100 ack 500 'hello'       | > 0 'hello'
        > 100 ack 500 'hello'       |
        > 110 ack 500 '!'           |
        > 110 ack 500 '!'           |
        > 105 ack 500 'world'       | > 5 'world'; > 10 '!'
        > 105 ack 500 'world'       |
        > 111 fin ack 500           | > end Fin
        > 111 fin ack 500           |
        < 500 fin ack 112           | < end Fin
        < 500 fin ack 112           |
        > 112 ack 501               |
        > 112 ack 501               |
        end                         |
        ",
    );
    assert_eq!((talk.log.totals[0].delivered, talk.log.totals[0].repeated), (11, 11));
    assert_eq!(talk.flow.stats().after_end, 0);
}

#[test]
fn a_retransmission_that_is_longer_than_the_first_try() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        > 100 ack 500 'hel'         | > 0 'hel'
        > 100 ack 500 'hello'       | > 3 'lo'
        > 108 ack 500 'ld'          |
        > 103 ack 500 'lo worldly'  | > 5 ' wo'; > note Conflict { offset: 8 }; > 8 'ld'; > 10 'dly'
        ",
    );
}

#[test]
fn overlaps_with_equal_bytes_pass_in_silence() {
    let talk = dialogue(
        "
        > 99 syn                    | open 0 Syn
        > 104 ack 500 'o wor'       |
        > 110 ack 500 'd'           |
        > 102 ack 500 'llo world'   |
        > 100 ack 500 'hello'       | > 0 'he'; > 2 'll'; > 4 'o wor'; > 9 'l'; > 10 'd'
        end                         | > end CaptureEnd; < end CaptureEnd
        ",
    );
    assert_eq!(
        (talk.log.totals[0].delivered, talk.log.totals[0].repeated, talk.log.totals[0].conflicting),
        (11, 9, 0)
    );
}

#[test]
fn overlaps_with_different_bytes_keep_the_first_and_say_so() {
    let talk = dialogue(
        "
        > 99 syn                    | open 0 Syn
        > 103 ack 500 'AAA'         |
        > 102 ack 500 'BBBBB'       | > note Conflict { offset: 3 }
        > 100 ack 500 'CCCCCCC'     | > 0 'CC'; > 2 'B'; > 3 'AAA'; > 6 'B'
        end                         | > end CaptureEnd; < end CaptureEnd
        ",
    );
    assert_eq!(talk.log.totals[0].conflicting, 3 + 1 + 3 + 1);
}

#[test]
fn sequence_numbers_wrap() {
    dialogue(
        "
        > 4294967290 syn                | open 0 Syn
        < 4294967295 syn ack 4294967291 |
        > 4294967291 ack 0 'hello'      | > 0 'hello'
        > 4 ack 0 'world'               |
        < 0 ack 9 'hi'                  | < 0 'hi'
        > 0 ack 0 'big '                | > 5 'big '; > 9 'world'
        > 9 fin ack 2                   | > end Fin
        ",
    );
}

#[test]
fn keep_alives_and_window_probes() {
    let talk = dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 99 ack 500 'x'            |
        > 100 ack 500 'hello'       | > 0 'hello'
        < 500 ack 105               |
        > 104 ack 500 '\0'          |
        < 500 ack 105               |
        > 104 ack 500               |
        > 105 ack 500 'w'           | > 5 'w'
        < 500 ack 105               |
        > 105 ack 500 'w'           |
        > 105 ack 500 'world'       | > 6 'orld'
        end                         | > end CaptureEnd; < end CaptureEnd
        ",
    );
    assert_eq!(talk.log.totals[0].repeated, 4);
}

#[test]
fn data_in_the_syn() {
    dialogue(
        "
        > 99 syn 'GET'              | open 0 Syn; > 0 'GET'
        < 499 syn ack 103 'OK'      | < 0 'OK'
        > 103 ack 502 ' /'          | > 3 ' /'
        ",
    );
    dialogue(
        "
        > 99 syn 'GET'              | open 0 Syn; > 0 'GET'
        < 499 syn ack 100           |
        > 100 ack 500 'GET /'       | > 3 ' /'
        ",
    );
}

#[test]
fn simultaneous_open() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn                   |
        > 99 syn ack 500            |
        < 499 syn ack 100           |
        < 500 ack 100 'b'           | < 0 'b'
        > 100 ack 501 'a'           | > 0 'a'
        ",
    );
}

#[test]
fn a_fin_out_of_order() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 110 fin ack 500           |
        > 105 ack 500 'world'       |
        > 100 ack 500 'hello'       | > 0 'hello'; > 5 'world'; > end Fin
        < 500 ack 111               |
        ",
    );
}

#[test]
fn half_closed_the_other_half_goes_on() {
    dialogue(
        "
        > 99 syn                    | open 0 Syn
        < 499 syn ack 100           |
        > 100 fin ack 500 'ask'     | > 0 'ask'; > end Fin
        < 500 ack 104 'an'          | < 0 'an'
        wait 100s                   |
        < 502 ack 104 'swer'        | < 2 'swer'
        < 506 fin ack 104           | < end Fin
        ",
    );
}
