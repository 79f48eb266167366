//! Second Life over HTTP: written dialogues, and what becomes of them when they are cut, packed and
//! damaged. One of them is `captures/secondlife/http.pcap`.

use std::io::Write;

use serde_json::{Value, json};

use crate::common::file;
use crate::made::{ACK, End, FIN, Made, Talk, end, run};

const SEED: &str = "/CAPS/0f4a1f3c-5d0e-4b52-9d3a-1f2b3c4d5e6f0000/";
const QUEUE: &str = "/CE/11111111-2222-4333-8444-555555555555";

/// A request.
fn post(host: &str, path: &str, kind: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A reply.
fn reply(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn llsd(body: &str) -> String {
    format!("<llsd>{body}</llsd>")
}

fn ask(path: &str, body: &str) -> String {
    post("10.9.0.3:9000", path, "application/llsd+xml", &llsd(body))
}

fn answer(body: &str) -> String {
    reply("200 OK", "application/llsd+xml", &llsd(body))
}

fn login(first: &str) -> String {
    let member = |name: &str, value: &str| {
        format!("<member><name>{name}</name><value><string>{value}</string></value></member>")
    };
    let members = [
        member("first", first),
        member("last", "Example"),
        member("passwd", "$1$5f4dcc3b5aa765d61d8327deb882cf99"),
        member("start", "last"),
        member("channel", "Firestorm-Releasex64"),
        member("version", "7.1.9.74745"),
    ]
    .concat();
    let options = "<member><name>options</name><value><array><data><value><string>inventory-root</string></value><value><string>buddy-list</string></value></data></array></value></member>";
    let body = format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>login_to_simulator</methodName><params><param><value><struct>{members}{options}</struct></value></param></params></methodCall>"
    );
    post("10.9.0.2:8002", "/", "text/xml", &body)
}

fn let_in() -> String {
    let text = |name: &str, value: &str| {
        format!("<member><name>{name}</name><value><string>{value}</string></value></member>")
    };
    let number = |name: &str, value: u32| {
        format!("<member><name>{name}</name><value><i4>{value}</i4></value></member>")
    };
    let members = [
        text("login", "true"),
        text("first_name", "\"Ada\""),
        text("last_name", "Example"),
        text("agent_id", "aaaaaaaa-0000-4000-8000-000000000001"),
        text("session_id", "bbbbbbbb-0000-4000-8000-000000000002"),
        text("secure_session_id", "cccccccc-0000-4000-8000-000000000003"),
        number("circuit_code", 1_431_655_765),
        text("sim_ip", "10.9.0.3"),
        number("sim_port", 9000),
        number("region_x", 256_000),
        number("region_y", 256_256),
        text("seed_capability", &format!("http://10.9.0.3:9000{SEED}")),
        text("message", "Welcome &amp; enjoy"),
    ]
    .concat();
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><methodResponse><params><param><value><struct>{members}</struct></value></param></params></methodResponse>"
    );
    reply("200 OK", "text/xml", &body)
}

fn refusal() -> String {
    let body = "<?xml version=\"1.0\"?><methodResponse><params><param><value><struct><member><name>reason</name><value>key</value></member><member><name>message</name><value>Could not authenticate your avatar.</value></member><member><name>login</name><value>false</value></member></struct></value></param></params></methodResponse>";
    reply("200 OK", "text/xml", body)
}

fn capability(name: &str, path: &str) -> String {
    format!("<key>{name}</key><string>http://10.9.0.3:9000{path}</string>")
}

fn seeds() -> String {
    let all = [
        capability("EventQueueGet", QUEUE),
        capability("SimulatorFeatures", "/CAPS/22222222-2222-4333-8444-555555555555"),
        capability("GetTexture", "/CAPS/33333333-2222-4333-8444-555555555555/"),
    ];
    answer(&format!("<map>{}</map>", all.concat()))
}

fn poll(ack: &str, done: &str) -> String {
    ask(QUEUE, &format!("<map><key>ack</key>{ack}<key>done</key><boolean>{done}</boolean></map>"))
}

const EVENTS: &str = "<map><key>events</key><array><map><key>message</key><string>EnableSimulator</string><key>body</key><map><key>SimulatorInfo</key><array><map><key>Handle</key><binary>AAPpAAAD6AA=</binary><key>IP</key><binary>CgkAAw==</binary><key>Port</key><integer>9001</integer></map></array></map></map><map><key>body</key><map><key>Info</key><array><map><key>AgentID</key><uuid>aaaaaaaa-0000-4000-8000-000000000001</uuid><key>SimIP</key><binary>CgkAAw==</binary><key>SimPort</key><integer>9001</integer><key>SeedCapability</key><string>http://10.9.0.3:9001/CAPS/s</string></map></array></map><key>message</key><string>TeleportFinish</string></map></array><key>id</key><integer>5</integer></map>";

/// Several connections.
struct Web {
    made: Made,
    sent: Vec<[u32; 2]>,
}

impl Web {
    fn ends(connection: usize) -> (End, End) {
        let server = if connection == 0 { end(2, 8002) } else { end(3, 9000) };
        (end(1, 40_000 + connection as u16), server)
    }

    fn open(&mut self) -> usize {
        let connection = self.sent.len();
        let (client, server) = Web::ends(connection);
        self.made.open(client, server);
        self.sent.push([1, 1]);
        connection
    }

    /// A side of a connection sends a text, a packet after the other.
    fn says(&mut self, connection: usize, side: usize, text: &str) {
        for bytes in text.as_bytes().chunks(1400) {
            self.segment(connection, side, ACK, bytes);
            self.sent[connection][side] += bytes.len() as u32;
        }
    }

    fn segment(&mut self, connection: usize, side: usize, flags: u8, bytes: &[u8]) {
        let (client, server) = Web::ends(connection);
        let ends = if side == 0 { (client, server) } else { (server, client) };
        let sent = self.sent[connection];
        self.made.tcp(ends, (sent[side], sent[1 - side], flags), bytes);
    }
}

/// A viewer is refused, logs in, asks for capabilities, and waits for events.
fn session() -> Vec<u8> {
    let mut web = Web { made: Made::new(), sent: Vec::new() };
    let grid = web.open();
    web.says(grid, 0, &login("Adda"));
    web.says(grid, 1, &refusal());
    web.made.wait(3000);
    web.says(grid, 0, &login("Ada"));
    web.says(grid, 1, &let_in());
    let region = web.open();
    web.says(region, 0, &ask(SEED, "<array><string>EventQueueGet</string><string>SimulatorFeatures</string><string>GetTexture</string></array>"));
    web.says(region, 1, &seeds());
    let queue = web.open();
    web.says(queue, 0, &poll("<undef/>", "0"));
    web.says(region, 0, "GET /CAPS/22222222-2222-4333-8444-555555555555 HTTP/1.1\r\nHost: 10.9.0.3:9000\r\nAccept: application/llsd+xml\r\n\r\n");
    web.says(region, 1, &answer("<map><key>MeshRezEnabled</key><boolean>1</boolean><key>OpenSimExtras</key><map><key>say-range</key><integer>20</integer></map></map>"));
    web.says(region, 0, "GET /CAPS/33333333-2222-4333-8444-555555555555/?texture_id=00895567-4724-cb43-ed92-0b47caed1546 HTTP/1.1\r\nHost: 10.9.0.3:9000\r\n\r\n");
    web.says(region, 1, &reply("404 Not Found", "text/plain", "no such texture"));
    web.made.wait(1500);
    web.says(queue, 1, &answer(EVENTS));
    web.says(queue, 0, &poll("<integer>5</integer>", "0"));
    web.made.wait(25_000);
    web.says(queue, 1, &reply("502 Bad Gateway", "text/plain", "Upstream error: "));
    web.says(queue, 0, &poll("<integer>5</integer>", "0"));
    for connection in 0..3 {
        web.segment(connection, 0, FIN | ACK, b"");
        web.segment(connection, 1, FIN | ACK, b"");
    }
    web.made.bytes
}

/// `CAPTURES=write` writes the capture anew.
#[test]
fn the_capture_is_what_is_written_here() {
    let path = "captures/secondlife/http.pcap";
    if std::env::var_os("CAPTURES").is_some_and(|word| word == "write") {
        std::fs::write(file(path), session()).unwrap();
    }
    assert!(std::fs::read(file(path)).unwrap() == session(), "{path} is out of date");
}

fn names(records: &[Value]) -> Vec<String> {
    let messages = records.iter().filter_map(|record| record["message"].as_str());
    messages.map(str::to_string).collect()
}

fn one(side: usize, bytes: &[u8]) -> (Vec<Value>, Vec<Value>) {
    let mut talk = Talk::to(9000);
    talk.says(side, bytes);
    let records = talk.records();
    records.into_iter().partition(|record| record.get("message").is_some())
}

#[test]
fn a_session_is_named_tied_and_typed() {
    let (records, said) = run(&session(), &[]);
    assert_eq!(
        names(&records),
        [
            "login_to_simulator",
            "login_to_simulatorReply",
            "login_to_simulator",
            "login_to_simulatorReply",
            "Seed",
            "SeedReply",
            "EventQueueGet",
            "SimulatorFeatures",
            "SimulatorFeaturesReply",
            "GetTexture",
            "GetTextureReply",
            "EventQueueGetReply",
            "EventQueueGet",
            "EventQueueGetReply",
            "EventQueueGet",
        ],
        "{said}"
    );
    let unanswered = records.iter().filter(|record| record["event"] == "unanswered").count();
    assert_eq!(unanswered, 0, "a long poll is not unanswered");
    let message = |name: &str| records.iter().rfind(|record| record["message"] == name).unwrap();
    let events = records.iter().find(|r| r["message"] == "EventQueueGetReply").unwrap();
    assert_eq!(
        events["fields"]["body"]["events"][0]["body"]["SimulatorInfo"][0]["IP"],
        168_361_987
    );
    assert_eq!(
        events["fields"]["body"]["events"][1]["body"]["Info"][0]["SimIP"], 168_361_987,
        "the body may stand before the name"
    );
    assert_eq!(message("GetTextureReply")["fields"]["status"], 404);
    assert_eq!(message("login_to_simulatorReply")["fields"]["body"]["message"], "Welcome & enjoy");
    for record in records.iter().filter(|record| record["message"].as_str().is_some()) {
        let is_reply = record["message"].as_str().unwrap().ends_with("Reply");
        assert_eq!(record.get("reply_to").is_some(), is_reply, "{record}");
    }
}

#[test]
fn secrets_are_hidden() {
    let (records, _) = run(&session(), &["--redact"]);
    let text = json!(records).to_string();
    for secret in ["5f4dcc3b", "bbbbbbbb", "cccccccc", "0f4a1f3c", "11111111-2222", "/CAPS/s"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[test]
fn bodies_come_in_chunks_and_compressed() {
    let body = llsd("<map><key>events</key><array/><key>id</key><integer>6</integer></map>");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(body.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let chunked = |bytes: &[u8], more: &str| {
        let mut out = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/llsd+xml\r\n{more}\r\n").into_bytes();
        for chunk in bytes.chunks(7) {
            out.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
            out.extend(chunk);
            out.extend(b"\r\n");
        }
        out.extend(b"0\r\n\r\n");
        out
    };
    for bytes in [chunked(body.as_bytes(), ""), chunked(&packed, "Content-Encoding: gzip\r\n")] {
        let (messages, events) = one(1, &bytes);
        assert_eq!(messages[0]["fields"]["body"], json!({"events": [], "id": 6}), "{messages:?}");
        assert_eq!(messages.len(), 1, "{events:?}");
    }
    let cut = &chunked(&packed, "Content-Encoding: gzip\r\n")[..150];
    let (messages, _) = one(1, cut);
    assert!(messages[0]["problems"].to_string().contains("damaged"), "{messages:?}");
}

#[test]
fn a_cut_body_is_shown_and_behind_it_framing_goes_on() {
    let all = [
        answer(EVENTS),
        answer("<map><key>events</key><array/><key>id</key><integer>6</integer></map>"),
    ]
    .concat();
    let mut talk = Talk::to(9000);
    talk.says(1, &all.as_bytes()[..300]);
    talk.loses(1, &all.as_bytes()[300..500]);
    talk.says(1, &all.as_bytes()[500..]);
    let records = talk.records();
    let messages: Vec<&Value> = records.iter().filter(|r| r.get("message").is_some()).collect();
    assert_eq!(messages.len(), 2, "{records:?}");
    assert!(
        messages[0]["problems"].to_string().contains("bytes of the body are there"),
        "{records:?}"
    );
    assert_eq!(messages[1]["fields"]["body"]["id"], 6);
}

#[test]
fn requests_may_be_sent_before_the_replies_to_earlier_ones() {
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nAccept: application/llsd+xml\r\n\r\n");
    let mut talk = Talk::to(9000);
    talk.says(0, (get("/a") + &get("/b")).as_bytes());
    talk.says(1, b"HTTP/1.1 100 Continue\r\n\r\n");
    talk.says(1, (answer("<integer>1</integer>") + &answer("<integer>2</integer>")).as_bytes());
    let records = talk.records();
    let replies: Vec<&Value> =
        records.iter().filter(|r| r["message"] == "HttpReply").map(|r| &r["reply_to"]).collect();
    assert_eq!(replies, [&json!(1), &json!(1), &json!(2)], "{records:?}");
}

#[test]
fn other_http_is_passed_over() {
    for (asked, replied) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ("POST /rpc HTTP/1.1\r\nContent-Length: 12\r\n\r\n<methodCall>", "HTTP/1.0 500 no\r\n\r\n"),
        ("GET /CAPS/list HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n\r\n"),
    ] {
        let mut talk = Talk::to(9000);
        talk.says(0, asked.as_bytes());
        talk.says(1, replied.as_bytes());
        assert!(names(&talk.records()).is_empty(), "{asked}");
    }
}

#[test]
fn every_cut_of_a_session_is_read_to_its_end() {
    let bytes = [login("Ada"), ask(SEED, "<array><string>EventQueueGet</string></array>")].concat();
    for cut in (1..bytes.len()).step_by(37) {
        let mut talk = Talk::to(9000);
        talk.says(0, &bytes.as_bytes()[..cut]);
        talk.loses(0, &bytes.as_bytes()[cut..cut + 1]);
        talk.says(0, &bytes.as_bytes()[cut + 1..]);
        talk.records();
    }
}
