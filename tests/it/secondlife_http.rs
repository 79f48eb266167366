//! Second Life over HTTP: written dialogues, and what becomes of them when they are cut, packed and
//! damaged. One of them is `captures/secondlife/http.pcap`.

use std::io::Write;

use serde_json::{Value, json};

use crate::common::{file, program, pseudonyms_key, scratch};
use crate::made::{ACK, End, FIN, Made, Talk, end, run};

const SEED: &str = "/CAPS/0f4a1f3c-5d0e-4b52-9d3a-1f2b3c4d5e6f0000/";
const QUEUE: &str = "/CE/11111111-2222-4333-8444-555555555555";

/// A request.
fn post(host: &str, path: &str, kind: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: \
         {}\r\n\r\n{body}",
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
    let options = "<member><name>options</name><value><array><data><value><string>inventory-root</\
                   string></value><value><string>buddy-list</string></value></data></array></\
                   value></member>";
    let body = format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>login_to_simulator</\
         methodName><params><param><value><struct>{members}{options}</struct></value></param></\
         params></methodCall>"
    );
    post("10.9.0.2:8002", "/", "text/xml", &body)
}

/// Whom a grid lets in.
#[derive(Clone, Copy)]
struct Client {
    agent: &'static str,
    session: &'static str,
    code: u32,
    seed: &'static str,
}

const ADA: Client = Client {
    agent: "aaaaaaaa-0000-4000-8000-000000000001",
    session: "bbbbbbbb-0000-4000-8000-000000000002",
    code: 1_431_655_765,
    seed: SEED,
};

fn let_in(client: Client) -> String {
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
        text("agent_id", client.agent),
        text("session_id", client.session),
        text("secure_session_id", "cccccccc-0000-4000-8000-000000000003"),
        number("circuit_code", client.code),
        text("sim_ip", "10.9.0.3"),
        number("sim_port", 9000),
        number("region_x", 256_000),
        number("region_y", 256_256),
        text("seed_capability", &format!("http://10.9.0.3:9000{}", client.seed)),
        text("message", "Welcome &amp; enjoy"),
    ]
    .concat();
    let body = format!(
        "<?xml version=\"1.0\" \
         encoding=\"utf-8\"?><methodResponse><params><param><value><struct>{members}</struct></\
         value></param></params></methodResponse>"
    );
    reply("200 OK", "text/xml", &body)
}

fn refusal() -> String {
    let body = "<?xml version=\"1.0\"?\
                ><methodResponse><params><param><value><struct><member><name>reason</\
                name><value>key</value></member><member><name>message</name><value>Could not \
                authenticate your \
                avatar.</value></member><member><name>login</name><value>false</value></member></\
                struct></value></param></params></methodResponse>";
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
    web.says(grid, 1, &let_in(ADA));
    let region = web.open();
    web.says(
        region,
        0,
        &ask(
            SEED,
            "<array><string>EventQueueGet</string><string>SimulatorFeatures</\
             string><string>GetTexture</string></array>",
        ),
    );
    web.says(region, 1, &seeds());
    let queue = web.open();
    web.says(queue, 0, &poll("<undef/>", "0"));
    web.says(
        region,
        0,
        "GET /CAPS/22222222-2222-4333-8444-555555555555 HTTP/1.1\r\nHost: \
         10.9.0.3:9000\r\nAccept: application/llsd+xml\r\n\r\n",
    );
    web.says(
        region,
        1,
        &answer(
            "<map><key>MeshRezEnabled</key><boolean>1</boolean><key>OpenSimExtras</\
             key><map><key>say-range</key><integer>20</integer></map></map>",
        ),
    );
    web.says(
        region,
        0,
        "GET /CAPS/33333333-2222-4333-8444-555555555555/?\
         texture_id=00895567-4724-cb43-ed92-0b47caed1546 HTTP/1.1\r\nHost: 10.9.0.3:9000\r\n\r\n",
    );
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

fn bytes_of(uuid: &str) -> Vec<u8> {
    moulsniff::table::parse_hex(&uuid.replace('-', "")).unwrap()
}

impl Client {
    /// The datagram that opens a circuit of its.
    fn circuit(self) -> Vec<u8> {
        let mut bytes = b"\x40\0\0\0\x01\0\xff\xff\0\x03".to_vec();
        bytes.extend(self.code.to_le_bytes());
        bytes.extend(bytes_of(self.session));
        bytes.extend(bytes_of(self.agent));
        bytes
    }
}

/// Two viewers run behind one address at the same time. One of them ends without a word, and its
/// agent logs in again on the connection to the grid that both use.
fn three_sessions() -> Vec<u8> {
    let bob = Client {
        agent: "aaaaaaaa-0000-4000-8000-000000000002",
        session: "dddddddd-0000-4000-8000-000000000003",
        code: 7,
        seed: "/CAPS/22222222-0000-4000-8000-0000000000000000/",
    };
    let again = Client {
        session: "eeeeeeee-0000-4000-8000-000000000004",
        code: 8,
        seed: "/CAPS/33333333-0000-4000-8000-0000000000000000/",
        ..ADA
    };
    let mut web = Web { made: Made::new(), sent: Vec::new() };
    let grid = web.open();
    let mut regions = Vec::new();
    for (name, client) in [("Ada", ADA), ("Bob", bob), ("Ada", again)] {
        web.says(grid, 0, &login(name));
        web.says(grid, 1, &let_in(client));
        web.made.wait(20_000);
    }
    for client in [bob, again, ADA] {
        regions.push(web.open());
        let queue = format!("/CE/{}", client.session);
        web.says(regions[regions.len() - 1], 0, &ask(client.seed, "<array/>"));
        let granted = capability("EventQueueGet", &queue);
        web.says(regions[regions.len() - 1], 1, &answer(&format!("<map>{granted}</map>")));
    }
    for (place, client) in [again, ADA, bob].into_iter().enumerate() {
        // A connection of its own waits for events, and a neighbour has a circuit, too.
        let queue = web.open();
        let path = format!("/CE/{}", client.session);
        web.says(queue, 0, &ask(&path, "<map><key>ack</key><undef/></map>"));
        let port = 50_000 + place as u16;
        web.made.udp((end(1, port), end(3, 9000)), &client.circuit());
        web.made.udp((end(1, port), end(3, 9001)), &client.circuit());
    }
    web.made.bytes
}

#[test]
fn a_session_has_its_circuits_and_capabilities_by_its_id() {
    let expected = [
        "aaaaaaaa-0000-4000-8000-000000000001: tcp 0, tcp 3, tcp 5, udp 2, udp 3",
        "aaaaaaaa-0000-4000-8000-000000000002: tcp 0, tcp 1, tcp 6, udp 4, udp 5",
        "aaaaaaaa-0000-4000-8000-000000000001: tcp 0, tcp 2, tcp 4, udp 0, udp 1",
    ];
    assert_eq!(sessions_of(&three_sessions(), &[]), expected);
}

#[test]
fn under_pseudonyms_sessions_are_the_same() {
    let shape = |sessions: Vec<String>| -> Vec<String> {
        sessions.iter().map(|line| line[36..].to_string()).collect()
    };
    let key = pseudonyms_key("http-sessions.key");
    let pseudonyms = ["--pseudonyms", key.as_str()];
    let hidden = sessions_of(&three_sessions(), &pseudonyms);
    assert!(!hidden.concat().contains("aaaaaaaa"), "{hidden:?}");
    assert_eq!(shape(hidden), shape(sessions_of(&three_sessions(), &[])));
    let mut web = Web { made: Made::new(), sent: Vec::new() };
    let grid = web.open();
    web.says(grid, 0, &login("Ada"));
    web.says(grid, 1, &let_in(ADA));
    web.made.udp((end(1, 50_000), end(3, 9000)), &ADA.circuit());
    let (records, _) = run(&web.made.bytes, &pseudonyms);
    let fields = |name: &str| &records.iter().find(|r| r["message"] == name).unwrap()["fields"];
    let reply = &fields("login_to_simulatorReply")["body"];
    let circuit = &fields("UseCircuitCode")["CircuitCode"];
    assert_eq!(reply["circuit_code"], circuit["Code"], "{records:?}");
    assert_eq!(reply["session_id"], circuit["SessionID"], "{records:?}");
    assert_eq!(reply["agent_id"], circuit["ID"], "{records:?}");
    assert!(circuit["Code"] != ADA.code && circuit["ID"] != ADA.agent, "{records:?}");
}

#[test]
fn under_pseudonyms_keys_of_maps_that_are_uuids_are_replaced() {
    let (group, member) =
        ("00000000-0000-4000-8000-0000000000f1", "aaaaaaaa-0000-4000-8000-000000000001");
    let mut talk = Talk::to(9000);
    let asked = format!("<map><key>group_id</key><uuid>{group}</uuid></map>");
    talk.says(0, ask("/CAPS/GroupMemberData/", &asked).as_bytes());
    let told = format!(
        "<map><key>titles</key><array><string>Gardener</string></array><key>members</key>\
         <map><key>{member}</key><map><key>title</key><integer>0</integer></map></map></map>"
    );
    talk.says(1, answer(&told).as_bytes());
    let key = pseudonyms_key("http-keys-of-maps.key");
    let bytes = talk.bytes();
    for (more, hidden) in [(&[][..], false), (&["--pseudonyms", &key], true)] {
        let (records, _) = run(&bytes, more);
        let text = serde_json::to_string(&records).unwrap();
        assert!(text.contains("GroupMemberDataReply"), "{text}");
        for word in [member, "Gardener"] {
            assert_eq!(text.contains(word), !hidden, "{text}");
        }
    }
}

/// Each session's agent and streams.
fn sessions_of(capture: &[u8], more: &[&str]) -> Vec<String> {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = scratch(format!("http-sessions-{number}.pcap"));
    std::fs::write(&path, capture).unwrap();
    let out = program().arg("sessions").arg(&path).arg("--json").args(more).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    for client in ["bbbbbbbb", "dddddddd", "eeeeeeee"] {
        assert!(!text.contains(client), "a session's ID is a secret: {text}");
    }
    let sessions = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let stream =
        |stream: &Value| format!("{} {}", stream["transport"].as_str().unwrap(), stream["stream"]);
    let line = |session: Value| {
        let streams: Vec<String> =
            session["streams"].as_array().unwrap().iter().map(stream).collect();
        format!("{}: {}", session["who"]["agent_id"].as_str().unwrap(), streams.join(", "))
    };
    sessions.map(line).collect()
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
        let mut out = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: \
             application/llsd+xml\r\n{more}\r\n"
        )
        .into_bytes();
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

#[test]
fn a_texture_is_fetched_in_parts() {
    let path = "/CAPS/GetTexture/?texture_id=00895567-4724-cb43-ed92-0b47caed1546";
    let get = format!("GET {path} HTTP/1.1\r\nAccept: image/x-j2c;x, application/llsd+xml\r\n\r\n");
    let part = |range: &str, body: &str| {
        let head = format!(
            "HTTP/1.1 206 Partial\r\nContent-Range: bytes {range}/8\r\nContent-Type: \
             image/x-j2c\r\n"
        );
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let mut talk = Talk::to(9000);
    for (range, body) in [("0-4", "abcde"), ("5-7", "fgh")] {
        talk.says(0, get.as_bytes());
        talk.says(1, part(range, body).as_bytes());
    }
    let folder = scratch("http-files");
    std::fs::create_dir_all(&folder).unwrap();
    let capture = folder.join("parts.pcap");
    std::fs::write(&capture, talk.bytes()).unwrap();
    let files = folder.join("files");
    let out = program().args(["export", "files", "-o"]).arg(&files).arg(&capture).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let texture = std::fs::read(files.join("00895567-4724-cb43-ed92-0b47caed1546.texture"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(texture.unwrap(), b"abcdefgh", "{said}");
}

/// Both sides of a connection, damaged at random: every byte is accounted for.
#[test]
fn damage_of_any_kind_is_noted_in_its_place() {
    let mut random = crate::common::random();
    let asked = [login("Ada"), ask(SEED, "<array><string>GetTexture</string></array>")].concat();
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n3\r\nfgh\r\n0\r\n\r\n";
    let replied =
        [let_in(ADA), seeds(), chunked.to_string(), answer(EVENTS), chunked.to_string()].concat();
    for round in 0..60 {
        let mut sides = [asked.clone().into_bytes(), replied.clone().into_bytes()];
        for _ in 0..1 + round % 4 {
            let bytes = &mut sides[random() % 2];
            let at = random() % bytes.len();
            match random() % 5 {
                0 => bytes[at] = random() as u8,
                1 => bytes.truncate(at + 1),
                2 => drop(bytes.drain(at..(at + random() % 40).min(bytes.len()))),
                3 => drop(bytes.splice(at..at, *b"\r\n\r\n")),
                _ => {
                    // A length or a chunk's size becomes another number.
                    let digit = bytes[at..].iter().position(u8::is_ascii_digit);
                    digit.into_iter().for_each(|digit| bytes[at + digit] = b'9');
                }
            }
        }
        let mut talk = Talk::to(9000);
        // What is recognised whatever the damage.
        talk.says(0, b"GET /a HTTP/1.1\r\nAccept: application/llsd+xml\r\n\r\n");
        talk.says(1, answer("<undef/>").as_bytes());
        let lost = random().is_multiple_of(2);
        for (side, bytes) in sides.iter().enumerate() {
            for (place, piece) in bytes.chunks(700).enumerate() {
                if lost && place == 1 { talk.loses(side, piece) } else { talk.says(side, piece) }
            }
        }
        let sent = talk.sent();
        let records = talk.records();
        let mut ends: Vec<&Value> =
            records.iter().filter(|record| record["event"] == "stream_end").collect();
        ends.sort_by_key(|end| end["from"] == "server");
        for (end, sent) in ends.iter().zip(sent) {
            let count = |key: &str| end["bytes"][key].as_u64().unwrap();
            let known = count("explained") + count("opaque") + count("undecoded");
            assert_eq!(known, count("payload"), "{round}: {end}");
            assert_eq!(count("payload") + count("lost"), u64::from(sent - 1), "{round}: {end}");
        }
    }
}

#[test]
fn of_a_long_body_the_first_bytes_are_kept() {
    let long = "x".repeat(300_000);
    let mut talk = Talk::to(9000);
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/llsd+xml\r\nContent-Length: 300000\r\n\r\n";
    for piece in
        [head.as_bytes(), long.as_bytes(), answer("<undef/>").as_bytes()].concat().chunks(1400)
    {
        talk.says(1, piece);
    }
    let (records, _) = run(&talk.bytes(), &["--max-message", "64KiB"]);
    assert_eq!(names(&records).len(), 2, "{records:?}");
    assert_eq!(records[0]["length"], 65_536);
    assert!(records[0]["problems"].to_string().contains("--max-message"), "{records:?}");
}

/// The records of what `encode` makes of JSON.
fn encoded(records: &[Value]) -> Vec<Value> {
    let folder = scratch("http-encoded");
    std::fs::create_dir_all(&folder).unwrap();
    let (from, to) = (folder.join("records.jsonl"), folder.join("made.pcapng"));
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(&from, lines).unwrap();
    let out = program().arg("encode").arg(&from).arg("--capture").arg(&to).output().unwrap();
    let made = std::fs::read(&to);
    std::fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    run(&made.unwrap_or_else(|_| panic!("{said}")), &[]).0
}

#[test]
fn what_is_written_reads_the_same_in_every_form_of_llsd() {
    let (mut records, _) = run(&session(), &[]);
    let bodies = |records: &[Value]| -> Vec<[Value; 2]> {
        let messages = records.iter().filter(|record| record.get("message").is_some());
        messages.map(|r| [r["message"].clone(), r["fields"]["body"].clone()]).collect()
    };
    for kind in ["application/llsd+xml", "application/llsd+binary", "application/llsd+notation"] {
        for record in &mut records {
            let headers = record["fields"]["headers"].as_array_mut().into_iter().flatten();
            for header in headers {
                if header["value"].as_str().unwrap().starts_with("application/llsd") {
                    header["value"] = json!(kind);
                }
            }
        }
        assert_eq!(bodies(&encoded(&records)), bodies(&records), "{kind}");
    }
}
