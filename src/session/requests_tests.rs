//! Tests of requests that wait for their replies.

#![allow(clippy::unwrap_used)]
use super::super::{ReplyShare, RequestKey};
use super::*;

const ASK: MessageId = MessageId(0);
const OTHER: MessageId = MessageId(1);
const REPLY: MessageId = MessageId(2);

/// The client asks, in the frame of the record's number.
fn ask(requests: &mut Requests, record: u64, key: RequestKey) {
    let request = Request {
        message: ASK,
        from: Side::Client,
        key,
        record,
        at: frame(record),
        answered: false,
        several: false,
    };
    requests.remember(request);
}

fn answered(requests: &mut Requests, key: RequestKey) -> Option<u64> {
    reply(requests, key, false)
}

fn reply(requests: &mut Requests, key: RequestKey, partial: bool) -> Option<u64> {
    let answer = Answer {
        message: REPLY,
        from: Side::Server,
        answers: &[ASK],
        key,
        at: frame(u64::MAX),
        partial,
        share: None,
    };
    requests.answer(&answer).map(|reply| reply.record)
}

fn frame(frame: u64) -> Moment {
    Moment { frame, ..Moment::default() }
}

fn room_for(limit: usize) -> Requests {
    Requests { limit, ..Requests::default() }
}

#[test]
fn the_latest_request_with_the_same_transaction_is_answered() {
    let mut requests = room_for(8);
    ask(&mut requests, 1, RequestKey::of(7));
    ask(&mut requests, 2, RequestKey::of(8));
    ask(&mut requests, 3, RequestKey::of(7));
    assert_eq!(answered(&mut requests, RequestKey::of(7)), Some(3));
    assert_eq!(answered(&mut requests, RequestKey::of(8)), Some(2));
    assert_eq!(answered(&mut requests, RequestKey::of(9)), None);
    assert_eq!(requests.unanswered(0).map(|r| r.record).collect::<Vec<_>>(), [1]);
}

#[test]
fn neither_another_message_nor_the_same_side_answers() {
    let mut requests = room_for(8);
    ask(&mut requests, 1, RequestKey::of(7));
    let answer = Answer {
        message: REPLY,
        from: Side::Server,
        answers: &[ASK],
        key: RequestKey::of(7),
        at: frame(2),
        partial: false,
        share: None,
    };
    assert!(requests.find(&answer).is_some());
    assert!(requests.find(&Answer { answers: &[OTHER], ..answer }).is_none());
    assert!(requests.find(&Answer { from: Side::Client, ..answer }).is_none());
}

#[test]
fn a_request_with_the_value_of_a_waiting_one_is_that_one_again() {
    let mut requests = room_for(8);
    let key = |echo| RequestKey { echo, ..RequestKey::of(7) };
    ask(&mut requests, 1, key(Some(0)));
    ask(&mut requests, 2, key(Some(1)));
    let again = |requests: &Requests, message, from, key| {
        requests.repeated(message, from, key).map(|request| request.record)
    };
    assert_eq!(again(&requests, ASK, Side::Client, key(Some(0))), Some(1));
    assert_eq!(again(&requests, ASK, Side::Client, key(Some(2))), None);
    assert_eq!(again(&requests, ASK, Side::Client, key(None)), None);
    assert_eq!(again(&requests, OTHER, Side::Client, key(Some(1))), None);
    assert_eq!(again(&requests, ASK, Side::Server, key(Some(1))), None);
    assert_eq!(answered(&mut requests, key(Some(0))), Some(1));
    assert_eq!(again(&requests, ASK, Side::Client, key(Some(0))), None, "it was answered");
}

#[test]
fn what_only_one_side_says_need_not_agree() {
    let mut requests = room_for(8);
    let key = |loose| RequestKey { exact: 1, loose, echo: None };
    ask(&mut requests, 1, key([Some(5), None]));
    assert_eq!(answered(&mut requests, key([None, Some(3)])), Some(1));
    assert_eq!(answered(&mut requests, key([Some(6), None])), None);
}

#[test]
fn a_removed_request_leaves_those_around_it() {
    for remove in 1..=3 {
        let mut requests = room_for(8);
        (1..=3).for_each(|record| ask(&mut requests, record, RequestKey::of(7)));
        requests.remove(remove - 1);
        let left: Vec<u64> = requests.with_key(7).map(|(_, r)| r.record).collect();
        assert_eq!(left, (1..=3).rev().filter(|r| *r != remove).collect::<Vec<_>>());
    }
}

#[test]
fn without_a_transaction_the_oldest_request_is_answered_and_only_once() {
    let mut requests = room_for(8);
    (1..=3).for_each(|record| ask(&mut requests, record, RequestKey::NONE));
    ask(&mut requests, 4, RequestKey::of(7));
    let mut next = || answered(&mut requests, RequestKey::NONE);
    assert_eq!([next(), next(), next(), next()], [Some(1), Some(2), Some(3), None]);
}

#[test]
fn a_request_is_answered_by_its_last_part() {
    for key in [RequestKey::NONE, RequestKey::of(7)] {
        let mut requests = room_for(8);
        ask(&mut requests, 1, key);
        assert_eq!(
            [reply(&mut requests, key, true), reply(&mut requests, key, true)],
            [Some(1); 2]
        );
        assert_eq!(requests.unanswered(0).count(), 1, "only parts came");
        assert_eq!(reply(&mut requests, key, false), Some(1));
        assert_eq!(requests.unanswered(0).count(), 0);
    }
}

#[test]
fn lost_bytes_of_the_other_side_may_have_been_replies() {
    let mut requests = room_for(8);
    ask(&mut requests, 1, RequestKey::NONE);
    requests.lose_replies(Side::Client, frame(1));
    assert_eq!(
        answered(&mut requests, RequestKey::NONE),
        Some(1),
        "the side that asked lost bytes"
    );
    ask(&mut requests, 2, RequestKey::NONE);
    requests.lose_replies(Side::Server, frame(3));
    ask(&mut requests, 3, RequestKey::NONE);
    assert_eq!(answered(&mut requests, RequestKey::NONE), Some(3));
}

#[test]
fn a_request_that_is_read_behind_its_reply_is_not_unanswered() {
    let mut requests = room_for(8);
    let answer = |key, at| Answer {
        message: REPLY,
        from: Side::Server,
        answers: &[ASK],
        key: RequestKey::of(key),
        at,
        partial: false,
        share: None,
    };
    assert!(requests.answer(&answer(7, frame(5))).is_none(), "the request was not read yet");
    ask(&mut requests, 60, RequestKey::of(7));
    assert_eq!(requests.unanswered(0).count(), 1, "the reply came long before this request");
    ask(&mut requests, 4, RequestKey::of(8));
    assert_eq!(requests.unanswered(0).count(), 2, "the reply was for another request");
    ask(&mut requests, 4, RequestKey::of(7));
    assert_eq!(requests.unanswered(0).count(), 2);
    ask(&mut requests, 4, RequestKey::of(7));
    assert_eq!(requests.unanswered(0).count(), 3, "one reply answers one request");
    for frames in 0..100_000 {
        let _ = requests.answer(&answer(frames + 100, frame(frames)));
    }
    assert!(requests.held() < 64 << 10, "{} bytes", requests.held());
}

#[test]
fn memory_is_bounded_whatever_is_asked_and_answered() {
    let mut requests = room_for(64);
    ask(&mut requests, 0, RequestKey::of(u64::MAX));
    for record in 1..100_000 {
        ask(&mut requests, record, RequestKey::of(record));
        let key = RequestKey::of(record);
        let answer = Answer {
            message: REPLY,
            from: Side::Server,
            answers: &[ASK],
            key,
            at: frame(record),
            partial: false,
            share: None,
        };
        let (serial, _) = requests.find(&answer).unwrap();
        requests.remove(serial);
    }
    assert!(requests.held() < 144 << 10, "{} bytes", requests.held());
    for record in 0..100_000 {
        ask(&mut requests, record, RequestKey::of(record % 3));
    }
    assert!(requests.held() < 144 << 10, "{} bytes", requests.held());
    assert_eq!(requests.unanswered(0).count(), 64);
}

/// Asks and answers with a value that replies repeat.
fn echo(transaction: RequestKey, value: u64) -> RequestKey {
    RequestKey { echo: Some(value), ..transaction }
}

fn answered_at(requests: &mut Requests, key: RequestKey, at: u64) -> Option<u64> {
    let answer = Answer {
        message: REPLY,
        from: Side::Server,
        answers: &[ASK],
        key,
        at: frame(at),
        partial: false,
        share: None,
    };
    requests.answer(&answer).map(|reply| reply.record)
}

#[test]
fn a_reply_belongs_to_no_later_request() {
    for key in [RequestKey::of(7), RequestKey::NONE] {
        let mut requests = room_for(8);
        ask(&mut requests, 5, key);
        assert_eq!(answered_at(&mut requests, key, 4), None);
        ask(&mut requests, 6, key);
        assert_eq!(answered_at(&mut requests, key, 5), Some(5));
        assert_eq!(requests.unanswered(0).map(|request| request.record).collect::<Vec<_>>(), [6]);
    }
}

#[test]
fn a_request_that_waits_comes_before_one_that_was_answered() {
    let mut requests = room_for(8);
    let key = RequestKey::of(7);
    (1..=3).for_each(|record| ask(&mut requests, record, key));
    let mut next = || answered(&mut requests, key);
    assert_eq!([next(), next(), next(), next()], [Some(3), Some(2), Some(1), Some(3)]);
    let mut requests = room_for(8);
    for record in 4..=5 {
        ask(&mut requests, record, key);
    }
    let first = Answer {
        message: REPLY,
        from: Side::Server,
        answers: &[ASK],
        key,
        at: frame(6),
        partial: false,
        share: None,
    };
    let mut next =
        |message| requests.answer(&Answer { message, ..first }).map(|reply| reply.record);
    assert_eq!([next(REPLY), next(OTHER)], [Some(5); 2], "another message goes on with the reply");
    assert_eq!([next(REPLY), next(OTHER)], [Some(4); 2]);
    assert_eq!(requests.unanswered(0).count(), 0);
    ask(&mut requests, 7, key);
    requests.lose_replies(Side::Server, frame(8));
    ask(&mut requests, 8, key);
    assert_eq!(
        [answered_at(&mut requests, key, 9), answered_at(&mut requests, key, 9)],
        [Some(8); 2],
        "that of 7 may be lost"
    );
}

#[test]
fn a_reply_belongs_to_the_request_whose_value_it_repeats() {
    for key in [RequestKey::of(0), RequestKey::NONE] {
        let mut requests = room_for(8);
        (1..=3).for_each(|record| ask(&mut requests, record, echo(key, record * 100)));
        requests.lose_replies(Side::Server, frame(4));
        assert_eq!(answered_at(&mut requests, echo(key, 200), 5), Some(2), "it says so itself");
        ask(&mut requests, 6, echo(key, 600));
        assert_eq!(
            answered_at(&mut requests, echo(key, 500), 7),
            None,
            "that request was not read"
        );
        assert_eq!(answered_at(&mut requests, echo(key, 600), 8), Some(6));
        assert_eq!(answered_at(&mut requests, echo(key, 900), 10), None);
        ask(&mut requests, 8, echo(key, 800));
        ask(&mut requests, 9, echo(key, 900));
        let open: Vec<_> = requests.unanswered(0).map(|request| request.record).collect();
        assert_eq!(open, [1, 3, 8], "the early reply belongs to the last request");
    }
}

#[test]
fn a_side_that_repeats_no_value_answers_all_the_same() {
    for key in [RequestKey::of(0), RequestKey::NONE] {
        let mut requests = room_for(8);
        assert_eq!(answered_at(&mut requests, echo(key, 0), 2), None);
        ask(&mut requests, 1, echo(key, 100));
        ask(&mut requests, 3, echo(key, 300));
        assert_eq!(answered_at(&mut requests, echo(key, 0), 4), Some(3));
        assert_eq!(answered_at(&mut requests, echo(key, 0), 5), None, "nobody waits");
        assert_eq!(requests.unanswered(0).count(), 0);
    }
}

#[test]
fn a_request_without_a_transaction_that_is_read_behind_its_reply_is_not_unanswered() {
    let mut requests = room_for(8);
    assert_eq!(answered_at(&mut requests, RequestKey::NONE, 5), None);
    assert_eq!(answered_at(&mut requests, RequestKey::NONE, 8), None);
    ask(&mut requests, 4, RequestKey::NONE);
    ask(&mut requests, 6, RequestKey::NONE);
    ask(&mut requests, 7, RequestKey::NONE);
    assert_eq!(requests.unanswered(0).map(|request| request.record).collect::<Vec<_>>(), [7]);
    assert_eq!(
        answered_at(&mut requests, RequestKey::NONE, 9),
        Some(7),
        "the others have their replies"
    );
}

#[test]
fn a_second_reply_may_belong_to_a_request_that_is_read_later() {
    for once in [false, true] {
        let mut requests = Requests { once, ..room_for(8) };
        let key = RequestKey::of(7);
        ask(&mut requests, 1, key);
        assert_eq!(answered_at(&mut requests, key, 2), Some(1));
        assert_eq!(answered_at(&mut requests, key, 4), if once { None } else { Some(1) });
        ask(&mut requests, 3, key);
        assert_eq!(requests.unanswered(0).count(), 0);
    }
}

#[test]
fn a_reply_in_parts_is_complete_when_all_parts_have_come() {
    for key in [RequestKey::NONE, RequestKey::of(7)] {
        let mut requests = room_for(8);
        ask(&mut requests, 1, key);
        ask(&mut requests, 2, RequestKey::of(8));
        let mut part = |part, whole| {
            let share = Some(ReplyShare { part, whole: Some(whole) });
            let answer = Answer {
                message: REPLY,
                from: Side::Server,
                answers: &[ASK],
                key,
                at: frame(3),
                partial: false,
                share,
            };
            let record = requests.answer(&answer).map(|reply| reply.record);
            (record, requests.unanswered(0).any(|request| request.record == 1))
        };
        assert_eq!(
            [part(4, 10), part(4, 10), part(2, 10)],
            [(Some(1), true), (Some(1), true), (Some(1), false)]
        );
        ask(&mut requests, 3, key);
        let share = Some(ReplyShare { part: 0, whole: Some(10) });
        let nothing = Answer {
            message: REPLY,
            from: Side::Server,
            answers: &[ASK],
            key,
            at: frame(3),
            partial: false,
            share,
        };
        assert_eq!(requests.answer(&nothing).map(|reply| reply.record), Some(3), "nothing follows");
        assert!(requests.unanswered(0).all(|request| request.record == 2));
    }
}
