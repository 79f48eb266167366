//! Filters keep the records that the same question, asked of the unfiltered JSON, keeps.

use std::collections::BTreeSet;
use std::process::Output;

use serde_json::Value;

const CAPTURE: [&str; 3] = ["captures/moul/kind_game.pcap", "--keys", "keys/dirtsand.ini"];

fn run(words: &[&str]) -> Output {
    let mut command = crate::common::program();
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(words).output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn json(filter: Option<&str>) -> Vec<Value> {
    let mut words = CAPTURE.to_vec();
    words.extend(["--json", "--quiet"]);
    words.extend(filter.map(|f| ["-Y", f]).into_iter().flatten());
    lines(&run(&words))
}

fn numbers(records: &[&Value]) -> Vec<u64> {
    records.iter().map(|r| r["record"].as_u64().unwrap()).collect()
}

/// All values of a key, at any depth (`[.. | objects | .key]`).
fn anywhere<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get(key));
            map.values().for_each(|v| anywhere(v, key, found));
        }
        Value::Array(list) => list.iter().for_each(|v| anywhere(v, key, found)),
        _ => {}
    }
}

/// The values at a path: `/` between keys, `*` for all elements, `**` before a key at any depth.
fn at<'a>(record: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut now = vec![record];
    let mut deep = false;
    for step in path.split('/') {
        if step == "**" {
            deep = true;
            continue;
        }
        let mut next = Vec::new();
        for value in now {
            match step {
                _ if deep => anywhere(value, step, &mut next),
                "*" if value.is_object() => {
                    next.extend(value.as_object().into_iter().flat_map(|map| map.values()))
                }
                "*" => next.extend(value.as_array().into_iter().flatten()),
                _ => match step.parse::<usize>() {
                    Ok(n) => next.extend(value.as_array().and_then(|l| l.get(n))),
                    Err(_) => next.extend(value.get(step)),
                },
            }
        }
        deep = false;
        now = next;
    }
    now
}

/// A number, of an enum or a flag set too, and of the decimal strings that 64-bit integers are.
fn number(v: &Value) -> Option<f64> {
    v.as_f64().or_else(|| v.get("value")?.as_f64())
}

fn name(v: &Value) -> Option<&str> {
    v.as_str().or_else(|| v.get("name")?.as_str())
}

fn is(r: &Value, path: &str, wanted: &str) -> bool {
    at(r, path).into_iter().any(|v| name(v) == Some(wanted))
}

fn num(r: &Value, path: &str, test: impl Fn(f64) -> bool) -> bool {
    at(r, path).into_iter().filter_map(number).any(test)
}

fn text(r: &Value, path: &str, test: impl Fn(&str) -> bool) -> bool {
    at(r, path).into_iter().filter_map(name).any(test)
}

/// Whether a text anywhere in a record passes a test.
fn any_text(value: &Value, test: fn(&str) -> bool) -> bool {
    match value {
        Value::Object(map) => map.values().any(|v| any_text(v, test)),
        Value::Array(list) => list.iter().any(|v| any_text(v, test)),
        Value::String(text) => test(text),
        _ => false,
    }
}

type Question = fn(&Value) -> bool;

#[rustfmt::skip]
const QUESTIONS: &[(&str, Question)] = &[
    ("message", |r| r.get("event").is_none()),
    ("event", |r| r.get("event").is_some()),
    ("not event", |r| r.get("event").is_none()),
    ("event == stream_end", |r| is(r, "event", "stream_end")),
    ("message == \"Cli2Game_PropagateBuffer\"", |r| is(r, "message", "Cli2Game_PropagateBuffer")),
    ("message != Cli2Game_PropagateBuffer", |r| text(r, "message", |m| m != "Cli2Game_PropagateBuffer")),
    ("not message == Cli2Game_PropagateBuffer", |r| !is(r, "message", "Cli2Game_PropagateBuffer")),
    ("service in {auth, game} and from == client", |r| (is(r, "service", "auth") || is(r, "service", "game")) && is(r, "from", "client")),
    ("from == server or record <= 3", |r| is(r, "from", "server") || num(r, "record", |n| n <= 3.0)),
    ("stream == 0 and frame >= 10 and frame < 40", |r| num(r, "stream", |n| n == 0.0) && num(r, "frame", |n| (10.0..40.0).contains(&n))),
    ("(record == 1 or record == 2) and not (record != 2)", |r| num(r, "record", |n| n == 2.0)),
    ("record in {1, 3, 0x5}", |r| num(r, "record", |n| [1.0, 3.0, 5.0].contains(&n))),
    // A number in quotes is one where the value is.
    ("record == \"3\"", |r| num(r, "record", |n| n == 3.0)),
    ("record != \"3\"", |r| num(r, "record", |n| n != 3.0)),
    ("elapsed_ms > \"0.5\"", |r| num(r, "elapsed_ms", |n| n > 0.5)),
    ("record in {2..5, 9}", |r| num(r, "record", |n| (2.0..=5.0).contains(&n) || n == 9.0)),
    ("length > 100", |r| num(r, "length", |n| n > 100.0)),
    ("reply_to", |r| r.get("reply_to").is_some()),
    ("elapsed_ms > 0.5", |r| num(r, "elapsed_ms", |n| n > 0.5)),
    ("expects_reply", |r| r.get("expects_reply").is_some()),
    ("expects_reply == true and from == server", |r| r.get("expects_reply").is_some() && is(r, "from", "server")),
    ("refused", |r| r.get("refused").is_some()),
    ("refused.name == \"kNetErrAuthenticationFailed\"", |r| is(r, "refused/name", "kNetErrAuthenticationFailed")),
    ("refused.name == kNetErrPlayerNotFound", |r| is(r, "refused/name", "kNetErrPlayerNotFound")),
    ("refused.value == 7 and refused.field == \"fields.result\"", |r| num(r, "refused/value", |n| n == 7.0)),
    ("info contains \"Nexus\"", |r| text(r, "info", |t| t.contains("Nexus"))),
    ("info matches \"^play as .\"", |r| text(r, "info", |t| t.starts_with("play as ") && t.len() > 8)),
    ("info <= \"join\"", |r| text(r, "info", |t| t <= "join")),
    ("carries == plNotifyMsg", |r| is(r, "carries", "plNotifyMsg")),
    ("carries contains \"NetMsg\"", |r| text(r, "carries", |t| t.contains("NetMsg"))),
    ("* contains \"Nexus\"", |r| any_text(r, |t| t.contains("Nexus"))),
    ("* == \"Ávätar Øne\"", |r| any_text(r, |t| t == "Ávätar Øne")),
    ("* matches '(?i)ÁVÄTAR'", |r| any_text(r, |t| t.to_lowercase().contains("ávätar"))),
    ("*.string matches 'П\\w+т'", |r| text(r, "**/string", |t| t.contains("Привет"))),
    ("names", |r| r.get("names").is_some()),
    ("names[*].name == \"Ávätar Øne\"", |r| is(r, "names/*/name", "Ávätar Øne")),
    ("names[\"fields.player_id\"].name == \"Ávätar Øne\"", |r| is(r, "names/fields.player_id/name", "Ávätar Øne")),
    ("names[*].record < 110", |r| num(r, "names/*/record", |n| n < 110.0)),
    ("*.name == \"Ávätar Øne\"", |r| is(r, "**/name", "Ávätar Øne")),
    ("problems", |r| r.get("problems").is_some()),
    ("problems[*].severity == \"warning\"", |r| is(r, "problems/*/severity", "warning")),
    ("problems[0].text contains \"UTF-8\"", |r| text(r, "problems/0/text", |t| t.contains("UTF-8"))),
    ("bytes.payload > 0", |r| num(r, "bytes/payload", |n| n > 0.0)),
    ("message matches \"^Game2Cli_\"", |r| text(r, "message", |t| t.starts_with("Game2Cli_"))),
    ("src == 127.0.0.1", |r| text(r, "src", |t| t.starts_with("127.0.0.1:"))),
    ("dst contains \":14617\"", |r| text(r, "dst", |t| t.contains(":14617"))),
    ("src == \"127.0.0.1\"", |r| text(r, "src", |t| t.starts_with("127.0.0.1:"))),
    ("dst == :14617", |r| text(r, "dst", |t| t.ends_with(":14617"))),
    ("dst == 127.0.0.1:14617", |r| is(r, "dst", "127.0.0.1:14617")),
    ("dst < 14618 and src > 14617", |r| text(r, "dst", |t| t.ends_with(":14617"))),
    ("src in 127.0.0.0/8", |_| true),
    ("src in {10.0.0.0/8, 192.168.0.0/16}", |_| false),
    ("src != 10.0.0.0/8", |_| true),
    // Longer than the literal: later within its second.
    ("time > 10:17:48", |r| text(r, "time", |t| t[11..] > *"10:17:48")),
    ("time <= \"10:17:48\"", |r| text(r, "time", |t| t[11..] < *"10:17:48")),
    ("time in {2026-11-20T10:17:47..2026-11-20T10:17:48}", |r| text(r, "time", |t| t[11..] < *"10:17:48")),
    ("*.time_sent >= 2020-07-15", |r| num(r, "**/time_sent/seconds", |n| n >= 1_594_771_200.0)),
    ("*.seconds < 2020-07-15", |r| num(r, "**/seconds", |n| n < 1_594_771_200.0)),
    ("fields.buffer.flags contains \"Player\"", |r| at(r, "fields/buffer/flags/names/*").iter().any(|v| v.as_str().unwrap().contains("Player"))),
    ("fields.buffer.flags contains kHasTimeSent", |r| at(r, "fields/buffer/flags/names/*").iter().any(|v| *v == "kHasTimeSent")),
    ("fields.buffer.flags matches 'PlayerID$'", |r| at(r, "fields/buffer/flags/names/*").iter().any(|v| *v == "kHasPlayerID")),
    ("time >= 2000-01-01", |_| true),
    ("fields.trans_id > 0", |r| num(r, "fields/trans_id", |n| n > 0.0)),
    ("fields.result != kNetSuccess", |r| at(r, "fields/result").iter().any(|v| name(v) != Some("kNetSuccess"))),
    ("fields.class == plNetMsgGameMessage", |r| is(r, "fields/class", "plNetMsgGameMessage")),
    ("fields.class.value > 600", |r| num(r, "fields/class", |n| n > 600.0)),
    ("fields.class.name matches 'SDL|Load'", |r| text(r, "fields/class", |t| t.contains("SDL") || t.contains("Load"))),
    ("fields.buffer.flags has kHasPlayerID", |r| at(r, "fields/buffer/flags/names/*").iter().any(|v| *v == "kHasPlayerID")),
    ("fields.buffer.flags.names[*] == \"kHasTimeSent\"", |r| is(r, "fields/buffer/flags/names/*", "kHasTimeSent")),
    ("fields.buffer.flags.names[0]", |r| !at(r, "fields/buffer/flags/names/0").is_empty()),
    ("fields.buffer.stream.message.receivers[*].object_name contains \"a\"", |r| text(r, "fields/buffer/stream/message/receivers/*/object_name", |t| t.contains('a'))),
    ("fields.buffer.stream.message.receivers[1]", |r| !at(r, "fields/buffer/stream/message/receivers/1").is_empty()),
    ("*.object_name", |r| !at(r, "**/object_name").is_empty()),
    ("*.object_name contains \"e\"", |r| text(r, "**/object_name", |t| t.contains('e'))),
    ("*.name == \"plNotifyMsg\"", |r| is(r, "**/name", "plNotifyMsg")),
    ("*.value == 0", |r| at(r, "**/value").iter().any(|v| v.as_f64() == Some(0.0))),
    ("*.player_id != 0", |r| at(r, "**/player_id").iter().any(|v| number(v) != Some(0.0))),
    ("*.text", |r| !at(r, "**/text").is_empty()),
    ("*.sender.object_id >= 1", |r| num(r, "**/sender/object_id", |n| n >= 1.0)),
    ("*.undecoded", |r| !at(r, "**/undecoded").is_empty()),
];

#[test]
fn a_filter_keeps_what_the_json_would() {
    let all = json(None);
    assert!(all.len() > 20, "{} records", all.len());
    for (filter, question) in QUESTIONS {
        let kept = json(Some(filter));
        let expected: Vec<&Value> = all.iter().filter(|r| question(r)).collect();
        assert_eq!(numbers(&kept.iter().collect::<Vec<_>>()), numbers(&expected), "{filter}");
        assert!(
            kept.iter().zip(expected).all(|(a, b)| a == b),
            "{filter}: records are as without a filter"
        );
    }
}

#[test]
fn the_questions_are_telling() {
    let all = json(None);
    let split = QUESTIONS
        .iter()
        .filter(|(_, q)| (1..all.len()).contains(&all.iter().filter(|r| q(r)).count()));
    assert!(split.count() >= 25, "most questions keep some records and drop others");
}

#[test]
fn every_number_and_text_of_every_record_is_found_by_a_filter() {
    // Each value at the top of some messages' fields, asked for as the JSON shows it.
    let all = json(None);
    for record in all.iter().filter(|r| r.get("fields").is_some()).step_by(7).take(12) {
        for (key, value) in record["fields"].as_object().unwrap() {
            let literal = match value {
                Value::Object(map) if map.get("name").is_some() => {
                    map["name"].as_str().unwrap().to_string()
                }
                Value::Object(map) if map.get("value").is_some() => map["value"].to_string(),
                Value::Object(_) | Value::Array(_) => continue,
                other => other.to_string(),
            };
            let filter = format!("record == {} and fields.{key} == {literal}", record["record"]);
            assert_eq!(json(Some(&filter)).len(), 1, "{filter}");
        }
    }
}

/// Captures of all protocols with the words that read them, filters, and what jq would ask of their
/// JSON.
type Elsewhere = (&'static [&'static str], &'static [(&'static str, Question)]);

#[rustfmt::skip]
const ELSEWHERE: &[Elsewhere] = &[
    (&["captures/secondlife/opensim.pcapng.gz"], &[
        // A colour in hex is no number, whatever its digits are.
        ("*.value > 700", |r| num(r, "**/value", |n| n > 700.0)),
        ("*.RegionHandle == 1099511628032000", |r| at(r, "**/RegionHandle").iter().any(|v| *v == "1099511628032000")),
        ("*.RegionHandle < 0x100000000000", |r| text(r, "**/RegionHandle", |t| t.parse::<u64>().is_ok_and(|n| n < 1 << 44))),
        ("fields.flags has RELIABLE and not acknowledges", |r| at(r, "fields/flags/names/*").iter().any(|v| *v == "RELIABLE") && r.get("acknowledges").is_none()),
        ("acknowledges[*].record > 5", |r| num(r, "acknowledges/*/record", |n| n > 5.0)),
        ("*.AgentID != 00000000-0000-0000-0000-000000000000", |r| text(r, "**/AgentID", |t| t != "00000000-0000-0000-0000-000000000000")),
        ("fields.ObjectData[1]", |r| !at(r, "fields/ObjectData/1").is_empty()),
        ("type > 0xffff0000", |r| num(r, "type", |n| n > 4_294_901_760.0)),
    ]),
    (&["captures/intermud3/i3_edge_small.pcapng"], &[
        // What was not understood within a list is an element of it and has no key.
        ("*.undecoded", |r| !at(r, "**/undecoded").is_empty()),
        ("*.target_username == 0", |r| num(r, "**/target_username", |n| n == 0.0)),
        ("*.target_username != 0", |r| at(r, "**/target_username").iter().any(|v| v.as_f64() != Some(0.0))),
        ("event in {undecoded, gap}", |r| is(r, "event", "undecoded") || is(r, "event", "gap")),
        ("problems[*].severity == error", |r| is(r, "problems/*/severity", "error")),
        ("fields[\"ttl\"] < 200", |r| at(r, "fields/ttl").iter().any(|v| v.as_f64().is_some_and(|n| n < 200.0))),
    ]),
    (&["captures/intermud3/i3_coffeemud.pcapng"], &[
        // Names that come with the traffic need no quotes, even where a table's name is near.
        ("*.services.channel == 1", |r| num(r, "**/services/channel", |n| n == 1.0)),
        ("*.services.\"tell\"", |r| !at(r, "**/services/tell").is_empty()),
    ]),
    (&["captures/ouro/coh_seed_udp.pcapng"], &[
        ("*.value == 0", |r| num(r, "**/value", |n| n == 0.0)),
        ("*.record", |_| true),
        ("protocol == ouro and *.length > 10", |r| num(r, "**/length", |n| n > 10.0)),
        // Names that no table declares.
        ("message in {UserCommand, ControlCommand, Undescribed, Encrypted}", |r| {
            ["UserCommand", "ControlCommand", "Undescribed", "Encrypted"].iter().any(|name| is(r, "message", name))
        }),
    ]),
    (&["captures/moul/moss_full.pcapng", "--keys", "keys/moss_auth_key.der", "--keys", "keys/moss_game_key.der"], &[
        ("*.localTime", |r| !at(r, "**/localTime").is_empty()),
        ("problems[*].bytes contains \"9C:BB\"", |r| text(r, "problems/*/bytes", |t| t.contains("9cbb"))),
        ("problems[*].bytes == 9c:bb:90:90:8d:81:23:91:10:9c:90:9b:9a", |r| is(r, "problems/*/bytes", "9cbb90908d812391109c909b9a")),
        ("*.create_time >= 2000-01-01", |r| num(r, "**/create_time", |n| n >= 946_684_800.0)),
        ("*.account_id == 00000000-0000-0000-0000-000000000000", |r| is(r, "**/account_id", "00000000-0000-0000-0000-000000000000")),
        ("*.sender == null", |r| at(r, "**/sender").iter().any(|v| v.is_null())),
        ("*.object_name > \"Ma\"", |r| text(r, "**/object_name", |t| t > "Ma")),
        ("fields.buffer.flags has 0x1001", |r| num(r, "fields/buffer/flags/value", |n| n as u64 & 0x1001 == 0x1001)),
    ]),
];

#[test]
fn filters_keep_what_the_json_would_in_every_protocol() {
    for (capture, questions) in ELSEWHERE {
        let records = |filter: Option<&str>| {
            let mut words = capture.to_vec();
            words.extend(["--json", "--quiet"]);
            words.extend(filter.map(|f| ["-Y", f]).into_iter().flatten());
            let output = run(&words);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let text = String::from_utf8(output.stdout).unwrap();
            // One of the edge cases is nested deeper than this parser goes.
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<Value>>()
        };
        let all = records(None);
        assert!(all.len() > 20, "{} records", all.len());
        for (filter, question) in *questions {
            let kept = records(Some(filter));
            let expected: Vec<&Value> = all.iter().filter(|r| question(r)).collect();
            assert_eq!(
                numbers(&kept.iter().collect::<Vec<_>>()),
                numbers(&expected),
                "{}: {filter}",
                capture[0]
            );
        }
    }
}

#[test]
fn a_doubtful_name_that_kept_nothing_was_a_mistake() {
    let ask = |filter, quiet: &[&str]| {
        let mut words = CAPTURE.to_vec();
        words.extend(["--json", "-Y", filter]);
        words.extend(quiet);
        run(&words)
    };
    // What is within a message may come with the traffic itself: it is told of, and looked for all
    // the same.
    let loud = ask("*.object_nam == \"x\"", &[]);
    let said = String::from_utf8_lossy(&loud.stderr).into_owned();
    assert_eq!(loud.status.code(), Some(2), "{said}");
    assert!(said.contains("did you mean `object_name`") && said.lines().count() == 1, "{said}");
    assert_eq!(said.matches("object_nam`").count(), 1, "said once: {said}");
    let quiet = ask("*.object_nam == \"x\"", &["-q"]);
    assert_eq!(
        (quiet.status.code(), String::from_utf8_lossy(&quiet.stderr).lines().count()),
        (Some(2), 1)
    );
    for unknown in ["*.nosuchfield == 1", "fields.buffer.nosuchfield == 1"] {
        let done = ask(unknown, &["-q"]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!((done.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(
            said.contains("no table has a field `nosuchfield`") && said.contains("\"nosuchfield\""),
            "{said}"
        );
    }
    // A name in quotes comes with the traffic.
    let quoted = ask("*.\"nosuchfield\" == 1", &["-q"]);
    assert!(quoted.status.success() && quoted.stderr.is_empty() && quoted.stdout.is_empty());
    // Where the filter keeps something all the same, it is no mistake.
    let kept = ask("not *.object_nam", &["-q"]);
    assert!(kept.status.success() && kept.stderr.is_empty());
    assert_eq!(lines(&kept).len(), json(None).len());
}

/// Connections that no table describes have a service, too.
#[test]
fn the_service_of_every_record_is_a_word_of_filters() {
    let captures = ["captures/ouro/coh_tcp.pcap", "captures/moul/clear.pcapng.gz", CAPTURE[0]];
    let mut services = BTreeSet::new();
    for capture in captures {
        let records = crate::common::records(capture, &["keys"], &[]);
        services.extend(records.iter().filter_map(|r| r["service"].as_str().map(str::to_owned)));
    }
    assert!(services.contains("auth_server") && services.len() > 3, "{services:?}");
    for service in services {
        let asked = run(&[captures[0], "-q", "-Y", &format!("service == {service}")]);
        assert!(
            asked.status.success() && asked.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&asked.stderr)
        );
    }
}

fn mistake(filter: &str) -> String {
    let mut words = CAPTURE.to_vec();
    words.extend(["-Y", filter]);
    let output = run(&words);
    assert_eq!(output.status.code(), Some(2), "{filter}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_mistake_is_shown_in_its_place() {
    assert!(
        mistake("fields.transid == 7")
            .starts_with("moulsniff: filter: column 8: no table has a field `transid`")
    );
    assert!(
        mistake("record == 1 and 2 == 3 or stream == 4")
            .ends_with("(at `2 == 3 or stream == 4`)\n")
    );
    let told = [
        ("fields.transid == 7", "did you mean `trans_id`"),
        ("trans_id == 7", "`fields.trans_id`"),
        ("mesage == \"x\"", "did you mean `message`"),
        ("message == Cli2Game_PropagateBufer", "did you mean `Cli2Game_PropagateBuffer`"),
        ("message = \"x\"", "`==`"),
        ("fields.result == kNetSucces", "did you mean `kNetSuccess`"),
        ("fields.flags == kHasTimeSent", "has kHasTimeSent"),
        ("fields.buffer.flags has kHasTimeSen", "did you mean `kHasTimeSent`"),
        ("message == \"x", "a quote is missing"),
        ("(record == 1", "never closed"),
        ("record == 1)", "never opened"),
        ("record ==", "a value is missing"),
        ("record == tcp", "is a number"),
        ("service in auth", "in braces"),
        ("service in {auth game}", "comma"),
        ("from == cliemt", "did you mean `client`"),
        ("message matches \"(\"", "regular expression"),
        ("message matches \"\\p{Script=Klingon}\"", "Unicode property value not found"),
        ("message matches '\\w{1,1000}\\d'", "too large"),
        ("message == AcctLoginRequest", "did you mean `Cli2Auth_AcctLoginRequest`"),
        ("carries == plNotfyMsg", "did you mean `plNotifyMsg`"),
        ("message contain \"x\"", "did you mean `contains`"),
        ("record == 1 adn frame == 2", "did you mean `and`"),
        ("time > yesterday", "no time"),
        ("fields.a[x]", "[*]"),
        ("*", "* contains"),
        ("* and record == 1", "* contains"),
        ("and record == 1", "missing"),
        ("\"Cli2Auth\" == message", "begins with a name"),
        ("", "empty"),
        ("fields.trans_id == fields.result", "two fields"),
        ("message =~ \"x\"", "`matches`"),
        ("Auth2Cli_AcctLoginReply", "message == Auth2Cli_AcctLoginReply"),
        ("auth", "service == auth"),
        ("gap", "event == gap"),
        ("error", "problems[*].severity == error"),
        ("moul", "protocol == moul"),
        ("kNetSuccess", "fields.x == kNetSuccess"),
        ("service == moul", "protocol == moul"),
        ("message == ConnectPaket", "did you mean `ConnectPacket`"),
        ("fields.result == True", "did you mean `true`"),
        ("message startswith \"x\"", "`matches \"^…\"`"),
        ("message like \"x\"", "`contains \"…\"`"),
        ("message !~ \"x\"", "`not` before"),
        ("fields.trans_id exists", "a name alone"),
        ("exists fields.trans_id", "a name alone"),
        ("message & event", "joined by `and`"),
        ("message == \"x\" | event", "joined by `or`"),
        ("frame.number == 3", "`frame`"),
        ("service == \"atuh\"", "did you mean `auth`"),
        ("from == \"Client\"", "did you mean `client`"),
        ("fields.nosuch == 1", "no table has a field `nosuch`"),
        ("frame == \"five\"", "is a number"),
        ("frame contains \"5\"", "is a number"),
        ("fields == 3", "name a part"),
        ("src == localhost", "127.0.0.1"),
        ("src == 127.0.0", "10.0.0.0/8"),
        ("src < 10.0.0.0/8", "no order"),
        ("src == 70000", "is no address"),
        ("time > \"10:61\"", "no time"),
        ("fields.flags has 0", "`== 0`"),
        ("message has kHasTimeSent", "which flags are set"),
        ("tcp.stream == 3", "`stream`"),
        ("ip.addr == 127.0.0.1", "`src` and `dst`"),
        ("port == 14617", "`src` and `dst`"),
        ("select(.message == \"x\")", "no functions"),
        ("message.name == \"x\"", "nothing in it"),
        ("problems.severity == error", "problems[*].severity"),
        ("problems[*].severety == error", "has severity"),
        ("problems[*].severity == eror", "did you mean `error`"),
        ("bytes.paylod > 3", "did you mean `payload`"),
    ];
    for (filter, word) in told {
        let text = mistake(filter);
        assert!(text.contains(word), "{filter}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    mistake(&"(".repeat(5000));
    mistake(&"not ".repeat(5000));
}

#[test]
fn every_beginning_of_an_expression_is_read_or_refused() {
    let whole = "not (a.b[*].\"c\\\"\" contains \"x\\u0041\" and *.n in {1, 2}) or message ~ 'é' \
                 && time < 2026-11-20T";
    let moul = moulsniff::proto::protocol_named("moul").unwrap();
    let tables = [moulsniff::proto::LazyTables::new(moul, Vec::new()).unwrap()];
    for end in (0..whole.len()).filter(|i| whole.is_char_boundary(*i)) {
        let found = moulsniff::filter::Filter::compile(&whole[..end], &tables, false);
        if let Err(error) = found {
            assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}

#[test]
fn columns_that_no_record_can_have_are_a_mistake() {
    let output = run(&["captures/moul/kind_game.pcap", "--columns", "record,fields.nosuch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no table has a field `nosuch`"));
}

#[test]
fn a_quoted_name_that_nearly_is_one_of_an_enum_was_a_mistake_if_nothing_was_kept() {
    let mut words = CAPTURE.to_vec();
    words.extend([
        "--json",
        "-q",
        "-Y",
        "fields.class == \"plNetMsgGameMesage\" or fields.result == \"kNetSucess\"",
    ]);
    let output = run(&words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("did you mean `kNetSuccess`"), "{said}");
}

#[test]
fn statistics_of_what_a_filter_keeps() {
    let filter = "message == Cli2Game_PropagateBuffer";
    let mut words = vec!["stats"];
    words.extend(CAPTURE);
    words.extend(["--json", "--quiet", "-Y", filter]);
    let stats = lines(&run(&words)).remove(0);
    let kept = json(Some(filter));
    assert_eq!(stats["messages"]["Cli2Game_PropagateBuffer"], kept.len());
    let length: u64 = kept.iter().map(|r| r["length"].as_u64().unwrap()).sum();
    assert_eq!(stats["bytes"]["payload"], length);
}

#[test]
fn statistics_add_up_and_agree_with_the_json() {
    let mut words = vec!["stats"];
    words.extend(CAPTURE);
    words.extend(["--json", "--quiet"]);
    let stats = lines(&run(&words)).remove(0);
    let all = json(None);
    let messages = all.iter().filter(|r| r.get("event").is_none()).count() as u64;
    let sum = |v: &Value| v.as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum(&stats["messages"]), messages);
    assert_eq!(
        sum(&stats["problems"]),
        all.iter().map(|r| at(r, "problems/*").len() as u64).sum::<u64>()
    );
    let n = |v: &Value, key: &str| v[key].as_u64().unwrap();
    let mut whole = vec![stats["bytes"].clone()];
    for by in ["by_protocol", "by_service", "by_stream"] {
        let parts: Vec<Value> = stats["bytes"][by].as_object().unwrap().values().cloned().collect();
        assert_eq!(
            parts.iter().map(|p| n(p, "payload")).sum::<u64>(),
            n(&stats["bytes"], "payload"),
            "{by}"
        );
        whole.extend(parts);
    }
    for c in &whole {
        assert_eq!(
            n(c, "payload"),
            n(c, "explained") + n(c, "opaque") + n(c, "undecoded") + n(c, "closed"),
            "{c}"
        );
    }
}

#[test]
fn columns_hold_what_the_json_holds() {
    let mut words = CAPTURE.to_vec();
    words.extend(["--quiet", "--columns", "record,message,fields.trans_id, *.object_name"]);
    let output = run(&words);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut rows = text.lines();
    assert_eq!(rows.next(), Some("record\tmessage\tfields.trans_id\t*.object_name"));
    let all = json(None);
    assert_eq!(rows.clone().count(), all.len());
    for (row, record) in rows.zip(&all) {
        let cells: Vec<&str> = row.split('\t').collect();
        assert_eq!(cells.len(), 4, "{row}");
        assert_eq!(cells[0], record["record"].to_string());
        assert_eq!(cells[1], record["message"].as_str().unwrap_or(""));
        assert_eq!(
            cells[2],
            at(record, "fields/trans_id").first().map_or(String::new(), |v| v.to_string())
        );
        let names: Vec<&str> =
            at(record, "**/object_name").into_iter().filter_map(Value::as_str).collect();
        assert_eq!(cells[3], names.join(","));
    }
}

#[test]
fn bytes_of_events_are_filtered_and_columns_as_json_has_them() {
    let capture = [
        "captures/moul/mangled_gaps.pcap.gz",
        "--keys",
        "keys/dirtsand.ini",
        "-q",
        "--max-undecoded",
        "4",
    ];
    let all = lines(&run(&[&capture[..], &["--json"]].concat()));
    let shown = |r: &&Value| r["bytes"].is_string();
    let wanted: Vec<String> = all
        .iter()
        .filter(shown)
        .map(|r| {
            format!(
                "{}\t{}\t{}",
                r["record"],
                r["bytes"].as_str().unwrap(),
                r.get("bytes_cut").map_or(String::new(), Value::to_string)
            )
        })
        .collect();
    assert!(wanted.len() > 2, "{wanted:?}");
    let printed = run(&[
        &capture[..],
        &["-Y", "bytes and event in {undecoded, resync}", "--columns", "record,bytes,bytes_cut"],
    ]
    .concat());
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(printed.lines().skip(1).collect::<Vec<_>>(), wanted);
    let first = all.iter().find(shown).unwrap();
    let text = format!("bytes contains \"{}\"", first["bytes"].as_str().unwrap());
    let found = lines(&run(&[&capture[..], &["--json", "-Y", &text]].concat()));
    assert_eq!(found[0]["record"], first["record"]);
    let cut = lines(&run(&[&capture[..], &["--json", "-Y", "bytes_cut > 0"]].concat()));
    assert_eq!(cut.len(), all.iter().filter(|r| r["bytes_cut"].is_number()).count());
    let hidden =
        run(&[&capture[..], &["--redact", "-Y", "bytes_cut > 0", "--columns", "bytes"]].concat());
    let hidden = String::from_utf8(hidden.stdout).unwrap();
    assert!(hidden.lines().skip(1).all(|line| line == "<redacted, 4 bytes>"), "{hidden}");
    // The counts of a direction's end keep their parts.
    assert!(
        !lines(&run(&[&capture[..], &["--json", "-Y", "bytes.payload > 0"]].concat())).is_empty()
    );
}
