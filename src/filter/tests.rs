//! Mistakes that users of other programs make, and what the filter says of them.
//!
//! Whether filters keep the right records is tested in `tests/it/filters.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::{Filter, Paths};
use crate::proto::{LazyTables, PROTOCOLS};

fn tables() -> Vec<LazyTables> {
    PROTOCOLS.iter().map(|protocol| LazyTables::new(*protocol, Vec::new()).unwrap()).collect()
}

#[test]
fn what_can_never_hold_is_a_mistake_that_says_what_to_write() {
    let tables = tables();
    for (expression, hint) in [
        ("message == \"Cli2Auth_*\"", "knows no wildcards"),
        ("message == Cli2Auth_*", "knows no wildcards"),
        ("service == \"%auth%\"", "knows no wildcards"),
        ("reply_to == null", "`not reply_to`"),
        ("stream == tcp:3", "`stream == 3 and transport == tcp`"),
        ("record == 5-10", "`in {5..10}`"),
        ("frame in 1..5", "frame in {1..5}"),
        ("service == auth, game", "service in {auth, game}"),
        ("service == auth or game", "service == game"),
        ("*.a.*.b.*.c.*.d == 1", "3 times"),
        ("transport == \"TCP\"", "did you mean `tcp`"),
        ("fields.x == nil", "did you mean `null`"),
        ("event == \"gaps\"", "did you mean `gap`"),
        ("problems[*].severity == \"Error\"", "did you mean `error`"),
        ("src has kName", "which flags are set"),
        ("bytes > 3", "bytes.payload"),
        ("sent_again == 3", "sent_again[*].record"),
        ("record in {5..1}", "this range ends before it begins"),
        ("fields.x in {1, 2.5..-1}", "this range ends before it begins"),
        ("time in {11:00..10:00}", "this range ends before it begins"),
        ("record == -1", "`record` is never below 0"),
        ("frame < 0", "`frame` is never below 0"),
        ("length in {-5..-1}", "`length` is never below 0"),
        ("time > 2026-02-30", "`2026-02-30` is no time"),
        ("time > 2026-01-01T10:00+99:99", "is no time"),
    ] {
        let mistake =
            Filter::compile(expression, &tables, false).err().map(|mistake| mistake.to_string());
        let mistake = mistake.unwrap_or_else(|| panic!("{expression} is accepted"));
        assert!(mistake.contains(hint), "{expression}: {mistake}");
        assert_eq!(mistake.lines().count(), 1, "{mistake}");
    }
}

#[test]
fn what_can_hold_is_accepted_without_a_word() {
    let tables = tables();
    for expression in [
        "message == UserCommand or message == Encrypted or message == ConnectPacket",
        "message == \"a name of their own\"",
        "src in 10.0.0.0/8 or dst == [::1]:14617 or src == :14617 or dst > 1024",
        "time > 10:17 and time in {2026-11-20..2026-11-21}",
        "*.create_time >= 2026-11-20 and elapsed_ms > \"200\"",
        "not reply_to && fields.buffer.flags contains \"Player\"",
        "problems[*].bytes contains \"9C:BB\"",
        "fields[\"a name\"] == 'x' and fields.extra_3 == 0",
        "record >= -1 and stream != -1 and elapsed_ms < 0 and frame in {-1..5} and record in \
         {3..3}",
        "event == unanswered and waited_ms > 1000 and request < 100",
    ] {
        let filter = Filter::compile(expression, &tables, false)
            .unwrap_or_else(|mistake| panic!("{mistake}"));
        assert!(filter.doubts().is_empty(), "{expression}");
    }
}

#[test]
fn names_that_only_traffic_can_bring_are_doubts() {
    let tables = tables();
    let doubts =
        |expression: &str| Filter::compile(expression, &tables, false).unwrap().doubts().len();
    assert_eq!(doubts("*.nod_id == 1"), 1);
    assert_eq!(doubts("*.nosuchfield == 1"), 1);
    assert_eq!(doubts("fields.buffer.nosuchfield == 1"), 1);
    assert_eq!(doubts("*.\"nosuchfield\" == 1 and fields.buffer[\"nosuchfield\"]"), 0);
    assert_eq!(doubts("service == nosuch"), 1);
    assert_eq!(doubts("message == \"AcctLogin\""), 1);
    assert_eq!(doubts("message == \"AnythingThatSomebodyNamed\""), 0);
    assert_eq!(doubts("fields.result == \"kNetSucess\""), 1);
    assert_eq!(doubts("fields.result == \"kNetSuccess\""), 0);
}

#[test]
fn columns_that_no_record_can_have_are_mistakes() {
    let tables = tables();
    assert!(Paths::compile("record,fields.nosuch", &tables, false).is_err());
    assert!(
        Paths::compile("record,fields.trans_id,*.object_name,bytes.lost", &tables, false).is_ok()
    );
}
