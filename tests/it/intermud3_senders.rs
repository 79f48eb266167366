//! Intermud-3 as further routers, libraries and drivers write it: written dialogues, one case for
//! each.
//!
//! Each dialogue has the bytes that a sender's source writes; `docs/intermud3.md` names the
//! sources. Nothing here knows how a packet is read.

use serde_json::{Value, json};

use super::made::{Talk, run};

use crate::common::{pseudonyms_key, scratch};

/// A connection between a mud and its router, or between two muds.
struct Dialogue(Talk);

impl Dialogue {
    fn new() -> Dialogue {
        Dialogue(Talk::to(8787))
    }

    /// Bytes of the client (0) or the server (1).
    fn bytes(mut self, side: usize, bytes: &[u8]) -> Dialogue {
        self.0.says(side, bytes);
        self
    }

    /// A packet of the client.
    fn client(self, text: &str) -> Dialogue {
        self.bytes(0, &framed(text))
    }

    /// A packet of the server.
    fn server(self, text: &str) -> Dialogue {
        self.bytes(1, &framed(text))
    }

    /// The capture: both sides end.
    fn capture(self) -> Vec<u8> {
        self.0.bytes()
    }

    /// What the program prints for it.
    fn records(self) -> Vec<Value> {
        self.0.records()
    }
}

/// The length and the text, without a NUL.
fn framed(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// The record of the message with a name: the `place`th one.
fn named<'a>(records: &'a [Value], name: &str, place: usize) -> &'a Value {
    let mut found =
        records.iter().filter(|record| record["message"] == name && record["event"].is_null());
    found.nth(place).unwrap_or_else(|| panic!("no {name} {place} in {records:#?}"))
}

/// The problems of a record, but for the missing NUL.
fn problems(record: &Value) -> Vec<&str> {
    let all = record["problems"].as_array().into_iter().flatten();
    all.map(|problem| problem["text"].as_str().unwrap())
        .filter(|text| !text.contains("NUL"))
        .collect()
}

/// The requests that are said never to have got their reply.
fn unanswered(records: &[Value]) -> Vec<&str> {
    let all = records.iter().filter(|record| record["event"] == "unanswered");
    all.map(|record| record["text"].as_str().unwrap()).collect()
}

// ---- What a router passes on, and what it says of it

#[test]
fn a_mail_through_a_router_leaves_its_connection_a_routers() {
    let mail = r#"({"mail",7,"",([]),([]),({}),0,"","",})"#;
    let records = Dialogue::new()
        .client(r#"({"tell",5,"A","alice","B","bob","Alice","hello",})"#)
        .client(mail)
        .client(r#"({"tell",5,"A","alice","B","bob","Alice","again",})"#)
        .records();
    assert!(records.iter().all(|record| record["service"] == "router"), "{records:#?}");
    assert_eq!(named(&records, "mail", 0)["info"], "mail");
    // The first packet of a connection that was joined late does not decide either.
    let records = Dialogue::new()
        .client(mail)
        .client(r#"({"tell",5,"A","alice","B","bob","Alice","hello",})"#)
        .records();
    assert_eq!(named(&records, "mail", 0)["service"], "oob");
    assert_eq!(named(&records, "tell", 0)["service"], "router");
    let records = Dialogue::new()
        .client(r#"({"oob-begin","A",0,0,})"#)
        .client(r#"({"tell",5,"A","alice","B","bob","Alice","hello",})"#)
        .records();
    assert!(records.iter().all(|record| record["service"] == "oob"), "{records:#?}");
}

#[test]
fn a_warning_refuses_nothing_and_answers_nothing() {
    let records = Dialogue::new()
        .client(r#"({"startup-req-3",5,"A",0,"*i4",0,0,0,0,4000,0,0,"a","b","c","d","e","f",([]),([]),})"#)
        .server(r#"({"error",5,"*i4",0,"A",0,"warning","wrong password, but the same address",0,})"#)
        .server(r#"({"startup-reply",5,"*i4",0,"A",0,({({"*i4","10.9.0.2 8787",}),}),4711,})"#)
        .client(r#"({"who-req",5,"A","alice","C",0,})"#)
        .server(r#"({"error",5,"*i4",0,"A","alice","unk-dst","no such mud",({"who-req",5,"A","alice","C",0,}),})"#)
        .records();
    let warning = named(&records, "error", 0);
    assert_eq!((&warning["refused"], &warning["reply_to"]), (&Value::Null, &Value::Null));
    assert_eq!(named(&records, "startup-reply", 0)["reply_to"], 1);
    let error = named(&records, "error", 1);
    let refused = json!({ "field": "fields.error_code", "value": "unk-dst" });
    assert_eq!((&error["refused"], &error["reply_to"]), (&refused, &json!(4)));
    assert!(unanswered(&records).is_empty(), "{records:#?}");
}

#[test]
fn a_user_who_is_not_here_is_no_missing_reply() {
    let records = Dialogue::new()
        .client(r#"({"locate-req",5,"A","alice",0,0,"bob",})"#)
        .client(r#"({"locate-req",5,"A","alice",0,0,"eve",})"#)
        .server(r#"({"locate-reply",5,"B",0,"A","alice","B","Bob",17,"exact",})"#)
        .records();
    assert!(unanswered(&records).is_empty(), "{records:#?}");
    assert_eq!(named(&records, "locate-req", 1)["expects_reply"], Value::Null);
    assert!(named(&records, "locate-reply", 0)["reply_to"].is_u64());
}

// ---- Several packets behind one length

#[test]
fn samsons_router_writes_several_packets_behind_one_length() {
    let reply = r#"({"startup-reply",5,"*lab",0,"A",0,({({"*lab","10.9.0.2 8787",}),}),4711,})"#;
    let list = r#"({"chanlist-reply",5,"*lab",0,"A",0,1,(["code":({"A",0,}),]),})"#;
    let said = r#"({"chan-ack",5,"*lab",0,"A","alice","Channel code was made.",})"#;
    let text = format!("{reply}\r{list}\r{said}\r");
    let dialogue = Dialogue::new()
        .client(r#"({"startup-req-3",5,"A",0,"*lab",0,0,0,0,4000,0,0,"a","b","c","d","e","f",([]),([]),})"#)
        .client(r#"({"channel-add",5,"A","alice","*lab",0,"code",0,})"#)
        .server(&text)
        .server(r#"({"who-req",5,"B","bob","A",0,})"#);
    let records = dialogue.records();
    let server: Vec<&Value> =
        records.iter().filter(|r| r["from"] == "server" && r["event"].is_null()).collect();
    let names: Vec<&Value> = server.iter().map(|record| &record["message"]).collect();
    assert_eq!(names, ["startup-reply", "chanlist-reply", "chan-ack", "who-req"]);
    let mut at = 0;
    for (record, length) in server.iter().zip([reply.len() + 5, list.len() + 1, said.len() + 1]) {
        assert_eq!(
            (record["offset"].as_u64(), record["length"].as_u64()),
            (Some(at), Some(length as u64)),
            "{record}"
        );
        at += length as u64;
    }
    assert_eq!(at, text.len() as u64 + 4);
    assert_eq!(server[3]["offset"].as_u64(), Some(at));
    // Each answers its own request.
    assert_eq!((&server[0]["reply_to"], &server[2]["reply_to"]), (&json!(1), &json!(2)));
    assert_eq!(problems(server[0]).len(), 2, "{}", server[0]);
    assert!(problems(server[0])[1].contains("another packet begins at byte"), "{}", server[0]);
    assert!(
        problems(server[1]).iter().any(|p| p.contains("a packet without a length")),
        "{}",
        server[1]
    );
    assert!(problems(server[3]).is_empty(), "{}", server[3]);
    let asked = unanswered(&records);
    assert!(asked.len() == 1 && asked[0].contains("who-req"), "{asked:?}");
}

#[test]
fn what_stands_behind_a_packet_and_is_none_stays_undecoded() {
    let records =
        Dialogue::new().client("({\"ping\",5,\"A\",0,\"*lab\",0,})\r({\"x\",})5 rest").records();
    assert_eq!(named(&records, "ping", 0)["length"], 33);
    let last = named(&records, "x", 0);
    assert_eq!((last["offset"].as_u64(), last["length"].as_u64()), (Some(33), Some(14)));
    assert!(problems(last).iter().any(|p| p.contains("6 bytes behind the value")), "{last}");
    // A value that is no packet is not told from what follows it.
    let records = Dialogue::new()
        .client("({\"ping\",5,\"A\",0,\"*lab\",0,})")
        .client("({1,})({\"x\",})")
        .records();
    assert!(
        problems(named(&records, "value", 0)).iter().any(|p| p.contains("bytes behind the value"))
    );
}

#[test]
fn spans_of_several_packets_behind_one_length_tile_all_of_it() {
    let text =
        "({\"ping\",5,\"A\",0,\"*lab\",0,})\r({\"ping\",5,\"A\",0,\"*lab\",0,})\r\r({\"x\",})\0";
    let capture = Dialogue::new().client(text).capture();
    let (records, _) = run(&capture, &["--quiet", "--spans"]);
    let mut at = 0;
    for record in records.iter().filter(|record| record["fields"].is_array()) {
        assert_eq!(record["offset"].as_u64(), Some(at), "{record}");
        let mut inner = 0;
        for span in record["fields"].as_array().unwrap() {
            assert_eq!(span["offset"].as_u64(), Some(inner), "{record}");
            inner += span["length"].as_u64().unwrap();
        }
        assert_eq!(Some(inner), record["length"].as_u64(), "{record}");
        at += inner;
    }
    assert_eq!(at, text.len() as u64 + 4);
}

// ---- LDMud's numbered values

#[test]
fn ldmud_writes_a_value_once_and_then_its_number() {
    let text = concat!(
        r#"({"who-reply",5,"A",0,"B","bob",({<1>=({"Ann",3,"a \"title\"",}),<1>,({"Bea",0,"x",}),<1>,}),})"#,
        "\n"
    );
    let records =
        Dialogue::new().client(r#"({"who-req",5,"B","bob","A",0,})"#).server(text).records();
    let reply = named(&records, "who-reply", 0);
    let ann = json!({ "user_visname": "Ann", "idle_time": 3, "xtra_info": "a \"title\"" });
    let bea = json!({ "user_visname": "Bea", "idle_time": 0, "xtra_info": "x" });
    assert_eq!(reply["fields"]["who_data"], json!([ann, ann, bea, ann]));
    let said = problems(reply).join("; ");
    assert!(
        said.contains("a number for the value at byte") && said.contains("is repeated here"),
        "{said}"
    );
    assert_eq!(
        problems(reply).iter().filter(|p| p.contains("is repeated here")).count(),
        2,
        "{said}"
    );
}

#[test]
fn mappings_texts_and_keys_may_have_numbers() {
    let text = r#"({"x",5,"A",0,"B",0,<1>=(["to":<2>=({"bob",}),"cc":<2>,]),<1>,<3>="late",<3>,([<2>:1,]),<4>=(["a":1,2:3,]),<4>,})"#;
    let records = Dialogue::new().client(text).records();
    let fields = &named(&records, "x", 0)["fields"];
    let both = json!({ "to": ["bob"], "cc": ["bob"] });
    assert_eq!((&fields["extra_6"], &fields["extra_7"]), (&both, &both));
    assert_eq!((&fields["extra_8"], &fields["extra_9"]), (&json!("late"), &json!("late")));
    assert_eq!(fields["extra_10"], json!([[["bob"], 1]]));
    let pairs = json!([["a", 1], [2, 3]]);
    assert_eq!((&fields["extra_11"], &fields["extra_12"]), (&pairs, &pairs));
}

#[test]
fn ldmud_writes_the_width_of_an_empty_mapping() {
    let records = Dialogue::new().client(r#"({"x",5,"A",0,"B",0,([:2]),([:1,]),([]),})"#).records();
    let record = named(&records, "x", 0);
    assert_eq!(
        (&record["fields"]["extra_6"], &record["fields"]["extra_8"]),
        (&json!({}), &json!({}))
    );
    assert!(problems(record).iter().any(|p| p.contains("how many values a key has")), "{record}");
    // With anything else before the bracket it is what FluffOS writes for an object.
    assert_eq!(record["fields"]["extra_7"], json!([[null, 1]]));
}

#[test]
fn a_number_that_stands_for_nothing_is_shown_as_it_is_written() {
    // Of no value, of the value around it, and one that does not count on.
    let text = r#"({"x",5,"A",0,"B",0,<1>,<1>=({<1>,7,}),<7>=({8,}),<7>,<2>,<OBJECT /a#1>,<12,})"#;
    let records = Dialogue::new().client(text).records();
    let record = named(&records, "x", 0);
    let fields = &record["fields"];
    assert_eq!(fields["extra_6"], "<1>");
    assert_eq!(fields["extra_7"], json!(["<1>", 7]));
    assert_eq!((&fields["extra_8"], &fields["extra_9"]), (&json!([8]), &json!("<7>")));
    assert_eq!(
        (&fields["extra_10"], &fields["extra_11"]),
        (&json!("<2>"), &json!("<OBJECT /a#1>"))
    );
    let said = problems(record).join("; ");
    assert!(
        said.contains("of no value before it") && said.contains("of the value around it"),
        "{said}"
    );
    assert!(
        said.contains("not the next one") && said.contains("a reference to an object"),
        "{said}"
    );
}

#[test]
fn numbers_that_repeat_numbers_stay_small() {
    // Each value holds the one before it twice: 40 of them would be a million million.
    let mut text = String::from("({\"x\",5,\"A\",0,\"B\",0,<1>=({1,2,})");
    for number in 2..=40 {
        text.push_str(&format!(",<{number}>=({{<{0}>,<{0}>,}})", number - 1));
    }
    text.push_str(",})");
    let capture = Dialogue::new().client(&text).capture();
    let (records, _) = run(&capture, &["--quiet"]);
    let record = named(&records, "x", 0);
    let printed = record["fields"].to_string().len();
    assert!(printed < 20 * text.len(), "{printed} bytes for {}", text.len());
    assert!(problems(record).iter().any(|p| p.contains("too large to be repeated")), "{record}");
    // A long key and a long text are as dear as many values.
    let long = "k".repeat(50_000);
    let text =
        format!("({{\"x\",5,\"A\",0,\"B\",0,<1>=([\"{long}\":1,]),{}}})", "<1>,".repeat(1000));
    let (records, _) = run(&Dialogue::new().client(&text).capture(), &["--quiet"]);
    let printed = named(&records, "x", 0)["fields"].to_string().len();
    assert!(printed < 8 * text.len(), "{printed} bytes for {}", text.len());
}

#[test]
fn spans_of_numbered_values_tile_the_packet() {
    let text = r#"({"who-reply",5,"A",0,"B","bob",({<1>=({"Ann",3,"x",}),<1> ,<1>}),<2>=(["a":1,2:3,]),<2>,<9>,([:2]),<3>=,})"#;
    let (records, _) = run(&Dialogue::new().client(text).capture(), &["--quiet", "--spans"]);
    let record = named(&records, "who-reply", 0);
    tiles(record["fields"].as_array().unwrap(), 0, text.len() as u64 + 4);
}

/// Spans lie one behind the other, from `start` to `end`, at every depth. What is repeated takes no
/// bytes.
fn tiles(spans: &[Value], start: u64, end: u64) {
    let mut at = start;
    for span in spans {
        assert_eq!(span["offset"].as_u64(), Some(at), "{span}");
        let next = at + span["length"].as_u64().unwrap();
        if let Some(inner) = span["fields"].as_array().filter(|inner| !inner.is_empty()) {
            tiles(inner, at, next);
        }
        at = next;
    }
    assert_eq!(at, end);
}

#[test]
fn what_is_repeated_has_the_same_pseudonym_and_stays_hidden() {
    let text = r#"({"who-reply",5,"A",0,"B","bob",({<1>=({"Annabel",3,"words",}),<1>,}),})"#;
    let key = pseudonyms_key("intermud3-senders-pseudonyms");
    let with = ["--quiet", "--pseudonyms", &key];
    let (records, _) = run(&Dialogue::new().client(text).capture(), &with);
    let who = &named(&records, "who-reply", 0)["fields"]["who_data"];
    assert!(!who.to_string().contains("Annabel"), "{who}");
    assert_eq!(who[0]["user_visname"], who[1]["user_visname"]);
    let text = r#"({"auth-mud-reply",5,"A",0,"B",0,<1>=({"secret",}),<1>,})"#;
    let (records, _) = run(&Dialogue::new().client(text).capture(), &["--quiet", "--redact"]);
    assert!(!named(&records, "auth-mud-reply", 0).to_string().contains("secret"), "{records:?}");
}

// ---- Further packets, and other numbers of elements

#[test]
fn samsons_router_says_what_it_did_of_a_channel() {
    let ack = |user: &str, text: &str| {
        format!("({{\"chan-ack\",5,\"*lab\",0,\"A\",\"{user}\",\"{text}\",}})\r")
    };
    let records = Dialogue::new()
        .client("({\"channel-add\",5,\"A\",\"alice\",\"*lab\",0,\"code\",1,})\r")
        .server(&ack("alice", "made"))
        .client("({\"channel-remove\",5,\"A\",\"carl\",\"*lab\",0,\"code\",})\r")
        .server("({\"router-shutdown\",5,\"*lab\",0,\"A\",0,5,})\r")
        .records();
    assert_eq!(named(&records, "chan-ack", 0)["reply_to"], 1);
    assert_eq!(named(&records, "chan-ack", 0)["info"], "made");
    assert_eq!(named(&records, "router-shutdown", 0)["info"], "*lab closes, back in 5 s");
    // Other routers say nothing.
    assert!(unanswered(&records).is_empty(), "{records:?}");
}

#[test]
fn an_old_library_of_discworld_asks_for_lists_with_their_numbers() {
    let records = Dialogue::new()
        .client("({\"mudlist-request\",5,\"A\",0,\"*lab\",0,-1,})\0")
        .client("({\"chanlist-req\",5,\"A\",0,\"*lab\",0,-1,})\0")
        .server("({\"chanlist-reply\",5,\"*lab\",0,\"A\",0,1,([]),})\0")
        .records();
    assert_eq!(named(&records, "mudlist-request", 0)["fields"]["mudlist_id"], -1);
    assert_eq!(named(&records, "chanlist-req", 0)["fields"]["chanlist_id"], -1);
    assert_eq!(named(&records, "chanlist-reply", 0)["reply_to"], 2);
    assert!(records.iter().all(|record| problems(record).is_empty()), "{records:?}");
    assert!(unanswered(&records).is_empty());
}

#[test]
fn a_request_of_version_1_may_have_other_data() {
    let text = r#"({"startup-req-1",5,"A",0,"*lab",0,0,0,0,4000,0,0,"a","b","c","d","e",(["tell":1,]),(["url":"u",]),})"#;
    let records = Dialogue::new().client(text).records();
    let record = named(&records, "startup-req-1", 0);
    assert_eq!(
        (&record["fields"]["services"], &record["fields"]["other_data"]),
        (&json!({ "tell": 1 }), &json!({ "url": "u" }))
    );
    assert!(problems(record).is_empty(), "{record}");
}

#[test]
fn two_routers_write_a_mud_with_twelve_elements() {
    let list = |mud: &str| format!(r#"({{"mudlist",5,"*lab",0,"A",0,4,(["M":({{{mud}}}),]),}})"#);
    let samson = list(r#"-1,"1.2.3.4",4000,0,0,"a","b","c","LP","open",(["tell":1,]),0,"#);
    let dead_souls = list(r#"0,-1,"1.2.3.4",4000,0,0,"a","b","c","LP","open",(["tell":1,]),"#);
    let records = Dialogue::new().server(&samson).server(&dead_souls).records();
    for place in 0..2 {
        let record = named(&records, "mudlist", place);
        let mud = &record["fields"]["info_mapping"]["M"];
        assert_eq!(
            (&mud["ip_addr"], &mud["mudlib"], &mud["services"]),
            (&json!("1.2.3.4"), &json!("a"), &json!({ "tell": 1 }))
        );
        assert!(problems(record).is_empty(), "{record}");
    }
    assert_eq!(named(&records, "mudlist", 0)["fields"]["info_mapping"]["M"]["other_data"], 0);
    assert_eq!(
        named(&records, "mudlist", 1)["fields"]["info_mapping"]["M"]["restart_delay"]["name"],
        "up"
    );
}

#[test]
fn other_programs_give_a_known_packet_another_form() {
    let worlds = r#"({"startup-req",5,"east",0,"west",0,"secret",({"ann",}),"A",})"#;
    let (records, _) = run(&Dialogue::new().client(worlds).capture(), &["--quiet", "--redact"]);
    let record = named(&records, "startup-req", 0);
    assert_eq!(
        (&record["fields"]["users"], &record["fields"]["mudname"]),
        (&json!(["ann"]), &json!("A"))
    );
    assert!(!record.to_string().contains("\"secret\""), "{record}");
    let reply = r#"({"chan-user-req",5,"B",0,"A",0,"bob","Bob",0,})"#;
    let records = Dialogue::new().server(reply).records();
    assert_eq!(named(&records, "chan-user-req", 0)["fields"]["visname"], "Bob");
    assert!(problems(named(&records, "chan-user-req", 0)).is_empty());
}

// ---- Info lines

#[test]
fn an_info_line_names_no_user_and_no_mud_that_is_0() {
    let lines = [
        (r#"({"tell",5,"A",0,"B",0,"A","hello",})"#, "A to B: hello"),
        (r#"({"tell",5,"A","ann",0,0,"Ann","hello",})"#, "ann@A to all muds: hello"),
        (r#"({"emoteto",5,"A","ann","B","bob","Ann","$N waves",})"#, "ann@A to bob@B: $N waves"),
        (r#"({"who-req",5,"A","ann",0,0,})"#, "who is on all muds?"),
        (r#"({"who-req",5,"A","ann","B",0,})"#, "who is on B?"),
        (r#"({"finger-req",5,"A","ann",0,0,"bob",})"#, "finger bob"),
        (r#"({"channel-m",5,"A",0,0,0,"code",0,"ready",})"#, "[code] A: ready"),
        (r#"({"channel-m",5,"A","ann",0,0,"code","Ann","ready",})"#, "[code] Ann@A: ready"),
        (r#"({"ping-req",5,"A",0,0,0,})"#, "A to all muds"),
    ];
    let dialogue = lines.iter().fold(Dialogue::new(), |dialogue, (text, _)| dialogue.client(text));
    let records = dialogue.records();
    let found: Vec<&str> = records.iter().filter_map(|record| record["info"].as_str()).collect();
    let wanted: Vec<&str> = lines.iter().map(|(_, info)| *info).collect();
    assert_eq!(found, wanted);
}

// ---- Answers

#[test]
fn a_mud_that_asks_itself_is_not_left_without_an_answer() {
    // Gurba's library keeps its connection open so: the question comes back, and is not answered.
    let own = "({\"auth-mud-req\",5,\"A\",0,\"A\",0,0,})\0";
    let records = Dialogue::new().client(own).server(own).records();
    assert!(unanswered(&records).is_empty(), "{records:?}");
    assert!(records.iter().all(|record| record["expects_reply"] != true), "{records:?}");
    assert_eq!(named(&records, "auth-mud-req", 0)["fields"]["data"], 0);
    // Another mud's silence is reported as before, and an answer is tied also where the mud asked
    // itself.
    let records = Dialogue::new().client("({\"auth-mud-req\",5,\"A\",0,\"B\",0,})").records();
    assert_eq!(unanswered(&records).len(), 1);
    let reply = "({\"auth-mud-reply\",5,\"A\",0,\"A\",0,77,})";
    let records = Dialogue::new().client(own).server(own).client(reply).server(reply).records();
    assert_eq!(named(&records, "auth-mud-reply", 0)["reply_to"], 2);
    assert_eq!(named(&records, "auth-mud-reply", 1)["reply_to"], 1);
}

#[test]
fn the_begin_of_a_connection_between_muds_needs_no_begin_in_return() {
    let begin = r#"({"oob-begin","A",1,77,})"#;
    let records = Dialogue::new()
        .client(begin)
        .client(r#"({"mail",5,"ann",(["B":({"bob",}),]),([]),({}),1700000000,"Hi","text",})"#)
        .server(r#"({"mail-ack",([5:({}),]),})"#)
        .client(r#"({"oob-end","A",})"#)
        .records();
    assert!(unanswered(&records).is_empty(), "{records:?}");
    assert_eq!(named(&records, "mail-ack", 0)["reply_to"], 2);
    // Where there is an answer, it is tied.
    let records = Dialogue::new().client(begin).server(r#"({"oob-begin","B",0,0,})"#).records();
    assert_eq!(named(&records, "oob-begin", 1)["reply_to"], 1);
    assert!(unanswered(&records).is_empty(), "{records:?}");
}

#[test]
fn a_file_may_come_in_several_replies() {
    let ask = r#"({"file-get-req",9,"A","ann","/pub/a.txt",})"#;
    let first = r#"({"file-get-reply",9,1,"one ",3,})"#;
    let next = |text: &str| format!(r#"({{"file-get-reply",9,1,"{text}",}})"#);
    // The third reply is the last one: nothing is missing.
    let whole =
        Dialogue::new().client(ask).server(first).server(&next("two ")).server(&next("three"));
    let records = whole.records();
    for place in 0..3 {
        assert_eq!(named(&records, "file-get-reply", place)["reply_to"], 1, "{records:?}");
    }
    assert!(unanswered(&records).is_empty(), "{records:?}");
    // A reply that stops is said to have come in part; a further request with the number has a
    // reply of its own.
    let records = Dialogue::new().client(ask).server(first).server(&next("two ")).records();
    assert!(unanswered(&records)[0].contains("all of its reply"), "{records:?}");
    let again = Dialogue::new().client(ask).server(&next("all")).client(ask).server(&next("all"));
    let records = again.records();
    assert_eq!(named(&records, "file-get-reply", 1)["reply_to"], 3);
    assert!(unanswered(&records).is_empty(), "{records:?}");
}

#[test]
fn a_file_in_several_replies_is_put_together() {
    let ask = r#"({"file-get-req",9,"A","ann","/pub/a.txt",})"#;
    let capture = Dialogue::new()
        .client(ask)
        .server(r#"({"file-get-reply",9,1,"one ",3,})"#)
        .server(r#"({"file-get-reply",9,1,"two ",})"#)
        .server(r#"({"file-get-reply",9,1,"three",})"#)
        .capture();
    let folder = scratch("intermud3-parts");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("in.pcap"), &capture).unwrap();
    let out = folder.join("files");
    let output = super::common::program()
        .args([
            "export",
            "files",
            folder.join("in.pcap").to_str().unwrap(),
            "-o",
            out.to_str().unwrap(),
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = files(&out);
    assert!(found.iter().any(|bytes| bytes == b"one two three"), "{found:?}");
}

/// The contents of all files below a folder.
fn files(folder: &std::path::Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => found.extend(files(&entry)),
            false => found.push(std::fs::read(entry).unwrap()),
        }
    }
    found
}

#[test]
fn a_file_may_be_sent_in_several_packets_each_with_its_receipt() {
    let put = |text: &str, more: &str| {
        format!(r#"({{"file-put",9,"A","ann","/pub/a.txt","{text}",{more}}})"#)
    };
    let records = Dialogue::new()
        .client(&put("one ", "2,"))
        .server(r#"({"file-put-ack",9,1,2,})"#)
        .client(&put("two", ""))
        .server(r#"({"file-put-ack",9,1,})"#)
        .records();
    assert_eq!(named(&records, "file-put", 0)["fields"]["packets"], 2);
    assert_eq!(named(&records, "file-put-ack", 0)["reply_to"], 1);
    assert_eq!(named(&records, "file-put-ack", 1)["reply_to"], 3);
    assert!(records.iter().all(|record| problems(record).is_empty()), "{records:?}");
    assert!(unanswered(&records).is_empty());
}
