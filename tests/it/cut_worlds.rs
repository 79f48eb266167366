//! Captures of Second Life, Intermud-3 and City of Heroes that end behind a request: the request
//! that hangs is named. And who their sessions are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::common::scratch;

fn json(arguments: &[&str]) -> Vec<Value> {
    let mut program = crate::common::program();
    let output = program
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .args(["--json", "--quiet"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The first `frames` packets of a pcapng file, with the blocks between them.
fn cut(whole: &[u8], frames: u64) -> Vec<u8> {
    let mut at = 0;
    let mut seen = 0;
    while at + 8 <= whole.len() {
        let kind = u32::from_le_bytes(whole[at..at + 4].try_into().unwrap());
        let length = u32::from_le_bytes(whole[at + 4..at + 8].try_into().unwrap()) as usize;
        seen += u64::from(matches!(kind, 2 | 3 | 6));
        if seen > frames {
            break;
        }
        at += length;
    }
    whole[..at].to_vec()
}

/// Requests of Second Life whose reply may come by HTTP: once they are acknowledged, they are not
/// called unanswered.
const BY_RECEIPT: [&str; 8] = [
    "UseCircuitCode",
    "ParcelPropertiesRequest",
    "ParcelPropertiesRequestByID",
    "MuteListRequest",
    "DeRezObject",
    "LandStatRequest",
    "GetScriptRunning",
    "TeleportLocationRequest",
];

/// What the whole capture shows of the requests in its first `frames` frames, by record.
#[derive(Default)]
struct Truth {
    /// Those that wait when the capture is cut there.
    waiting: BTreeSet<u64>,
    /// Those of which the whole capture does not say it: datagrams that may have been replies were
    /// not captured.
    doubtful: BTreeSet<u64>,
}

fn truth(whole: &[Value], frames: u64) -> Truth {
    let frame = |record: &Value| record["frame"].as_u64().unwrap();
    let mut replied: BTreeMap<u64, u64> = BTreeMap::new();
    let mut acknowledged: BTreeMap<u64, u64> = BTreeMap::new();
    for record in whole {
        if let (Some(request), true) =
            (record["reply_to"].as_u64(), record["message"] != "PacketAck")
        {
            replied.insert(request, frame(record));
        }
        for link in record["acknowledges"].as_array().into_iter().flatten() {
            acknowledged.entry(link["record"].as_u64().unwrap()).or_insert(frame(record));
        }
    }
    let never = unanswered(whole);
    let mut truth = Truth::default();
    for asked in
        whole.iter().filter(|record| record["expects_reply"] == true && frame(record) <= frames)
    {
        let record = asked["record"].as_u64().unwrap();
        let by_receipt = BY_RECEIPT.iter().any(|name| asked["message"] == *name);
        let received = by_receipt && acknowledged.get(&record).is_some_and(|at| *at <= frames);
        match replied.get(&record) {
            _ if received => {}
            Some(at) if *at <= frames => {}
            None if !by_receipt && !never.contains(&record) => _ = truth.doubtful.insert(record),
            _ => _ = truth.waiting.insert(record),
        }
    }
    truth
}

/// What is named as unanswered, by record.
fn unanswered(records: &[Value]) -> BTreeSet<u64> {
    let events = records.iter().filter(|record| record["event"] == "unanswered");
    events.map(|event| event["request"].as_u64().unwrap()).collect()
}

/// What the records are, without their numbers: where a stream is recognised only by its end, they
/// are others.
fn places(all: &[Value], records: &BTreeSet<u64>) -> BTreeSet<String> {
    let place = |record: &u64| {
        let own = &all[*record as usize - 1];
        ["message", "transport", "stream", "from", "offset", "frame"]
            .map(|key| own[key].to_string())
            .join(" ")
    };
    records.iter().map(place).collect()
}

/// Cuts a capture behind every request, at most `most` of them, and compares what is named with
/// what the whole capture shows.
fn cut_at_requests(name: &str, most: usize) {
    let path = format!("captures/{name}");
    let whole = json(&[&path]);
    let bytes = super::cut::read(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(&path).to_str().unwrap(),
    );
    let requests: BTreeSet<u64> = whole
        .iter()
        .filter(|record| record["expects_reply"] == true)
        .map(|record| record["frame"].as_u64().unwrap())
        .collect();
    assert!(!requests.is_empty());
    let folder = scratch(format!("cut-worlds-{}", name.replace('/', "-")));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("cut.pcapng");
    let step = requests.len().div_ceil(most);
    for frames in requests.into_iter().step_by(step) {
        std::fs::write(&file, cut(&bytes, frames)).unwrap();
        let part = json(&[file.to_str().unwrap()]);
        // What was sent reliably and never acknowledged is named too, and is no request.
        let asks = |record: &u64| part[*record as usize - 1]["expects_reply"] == true;
        let named: BTreeSet<u64> = unanswered(&part).into_iter().filter(asks).collect();
        let truth = truth(&whole, frames);
        let doubtful = places(&whole, &truth.doubtful);
        let named: BTreeSet<String> =
            places(&part, &named).difference(&doubtful).cloned().collect();
        assert_eq!(named, places(&whole, &truth.waiting), "{name}, cut behind frame {frames}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_request_behind_which_a_capture_ends_is_named() {
    cut_at_requests("intermud3/i3_coffeemud.pcapng", 40);
    cut_at_requests("ouro/coh_segs_udp.pcapng", 40);
    cut_at_requests("ouro/coh_seed_udp.pcapng", 25);
    cut_at_requests("secondlife/opensim.pcapng.gz", 20);
}

#[test]
fn two_viewers_of_one_host_are_two_sessions_with_their_regions() {
    let sessions = json(&["sessions", "captures/secondlife/opensim.pcapng.gz"]);
    let told = |session: &Value| {
        let places = session["places"]
            .as_array()
            .unwrap()
            .iter()
            .map(|place| place["name"].as_str().unwrap());
        (
            session["who"]["agent_name"].as_str().unwrap().to_string(),
            places.collect::<Vec<_>>().join(" "),
        )
    };
    let all: Vec<(String, String)> = sessions.iter().map(told).collect();
    assert_eq!(
        all,
        [("Test User".into(), "LabOne LabTwo".into()), ("Bob Smith".into(), "LabOne".into())]
    );
    let [one, two] = [0, 1].map(|place: usize| &sessions[0]["places"][place]);
    assert_eq!(one["to"], two["from"], "a teleport leaves the region before");
    let circuit = &sessions[0]["streams"][0];
    assert_eq!(
        (&circuit["sent_again"], &circuit["acknowledgements"]),
        (&430.into(), &1401.into()),
        "{circuit}"
    );
}

#[test]
fn sessions_of_muds_have_their_out_of_band_connections_and_channels() {
    let sessions = json(&["sessions", "captures/intermud3/i3_coffeemud.pcapng"]);
    let names: Vec<&str> =
        sessions.iter().map(|session| session["who"]["mud_name"].as_str().unwrap()).collect();
    assert_eq!(names, ["MudAlpha", "MudBeta", "MudGamma", "*pypeer"]);
    let services = |session: &Value| {
        session["streams"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["service"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(services(&sessions[0]), ["router", "oob"]);
    let channels: Vec<&Value> =
        sessions[1]["places"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
    assert_eq!(channels, ["labchan", "imud_code"], "the router refused the third one");
    let [left, stayed] = [0, 1].map(|place: usize| sessions[1]["places"][place]["to"].clone());
    assert_eq!(left, "2026-11-20T09:45:03.561252000Z");
    assert_ne!(left, stayed);
}

#[test]
fn what_a_router_refuses_and_which_muds_come_and_go_is_told() {
    let sessions = json(&["sessions", "captures/intermud3/i3_coffeemud.pcapng", "--story"]);
    let refusals = |session: &Value| {
        let lines = session["refusals"].as_array().into_iter().flatten();
        lines
            .map(|line| (line["record"].as_u64().unwrap(), line["refused"].clone()))
            .collect::<Vec<_>>()
    };
    let alpha = [
        (30, "unk-dst: Unknown mud 'NoSuchMud'"),
        (86, "unk-channel: Unknown channel 'nochan'."),
        (106, "not-allowed: Not allowed to send this packet."),
    ];
    assert_eq!(refusals(&sessions[0]), alpha.map(|(record, why)| (record, why.into())));
    assert_eq!(sessions[0]["requests"]["refused"], 3);
    let story = sessions[0]["story"].as_array().unwrap();
    let joins = story
        .iter()
        .find(|line| line["message"] == "startup-req-3" && line.get("answered_ms").is_some());
    assert_eq!(joins.unwrap()["text"], "MudAlpha joins: CoffeeMud v5.11-lab, CoffeeMud v5.11-lab");
    let muds = &sessions[0]["streams"][0]["learned"]["muds"];
    assert_eq!(
        (&muds["MudBeta"]["came"], &muds["MudBeta"]["went"]),
        (&"in frame 144".into(), &"in frame 2114".into())
    );
    assert!(muds["MudGamma"].get("went").is_none() && muds.get("MudAlpha").is_none(), "{muds}");
}

#[test]
fn circuits_have_their_losses_and_bytes() {
    let sessions = json(&["sessions", "captures/secondlife/opensim.pcapng.gz"]);
    let circuit = &sessions[0]["streams"][0];
    let learned = circuit["learned"]["circuits"].as_object().unwrap();
    let lost: u64 =
        learned.values().map(|side| side["lost"].as_str().unwrap().parse::<u64>().unwrap()).sum();
    assert!(lost > 0 && circuit["lost"] == lost, "{circuit}");
    assert!(circuit["bytes"]["payload"].as_u64().unwrap() > 100_000, "{circuit}");
    let mut program = crate::common::program();
    let csv = program.args(["sessions", "captures/secondlife/opensim.pcapng.gz", "--csv", "-q"]);
    let csv =
        String::from_utf8(csv.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap().stdout)
            .unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.rsplitn(5, ',').collect()).collect();
    assert_eq!(rows[0][..4], ["mean_ack_ms", "acknowledgements", "lost", "sent_again"]);
    assert_eq!(rows[1][2], lost.to_string());
}

#[test]
fn links_of_city_of_heroes_have_their_handshakes_answered() {
    for session in json(&["sessions", "captures/ouro/coh_seed_udp.pcapng"]) {
        assert_eq!(session["requests"]["sent"], session["requests"]["answered"], "{session}");
        assert_eq!(session["requests"]["unanswered"], 0, "{session}");
        assert_eq!(
            session["requests"]["refused"], 0,
            "a client that says goodbye is not refused: {session}"
        );
        let link = session["streams"][0]["learned"]["links"]
            .as_object()
            .unwrap()
            .values()
            .next()
            .unwrap()
            .clone();
        let closed = link["end"] == "closed by the client, acknowledged";
        assert_eq!(session["streams"][0]["how"] == "fin", closed, "{session}");
        assert_eq!(link["encryption"] == "on", !closed, "what follows is encrypted: {link}");
        assert!(link["version"].as_str().unwrap().parse::<u32>().is_ok(), "{link}");
    }
}
