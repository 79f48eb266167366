//! Captures of Second Life, Intermud-3 and City of Heroes that end behind a request: the request that hangs is named. And who their sessions are.

use std::collections::BTreeSet;

use serde_json::Value;

fn json(arguments: &[&str]) -> Vec<Value> {
    let mut program = crate::common::program();
    let output =
        program.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).args(["--json", "--quiet"]).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The first `frames` packets of a pcapng file, with the blocks between them.
fn cut(whole: &[u8], frames: u64) -> Vec<u8> {
    let (mut at, mut seen) = (0, 0);
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

/// What is named as unanswered, by record.
fn unanswered(records: &[Value]) -> BTreeSet<u64> {
    let events = records.iter().filter(|record| record["event"] == "unanswered");
    events.map(|event| event["request"].as_u64().unwrap()).collect()
}

/// Cuts a capture behind every request, at most `most` of them, and looks at what is named.
fn cut_at_requests(name: &str, most: usize) {
    let path = format!("captures/{name}");
    let whole = json(&[&path]);
    let mut bytes = std::fs::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(&path)).unwrap();
    if path.ends_with(".gz") {
        let mut plain = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut plain).unwrap();
        bytes = plain;
    }
    let requests: Vec<&Value> = whole.iter().filter(|record| record["expects_reply"] == true).collect();
    assert!(!requests.is_empty());
    let folder = std::env::temp_dir().join(format!("moulsniff-cut-{}-{}", std::process::id(), name.replace('/', "-")));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("cut.pcapng");
    for request in requests.iter().step_by(requests.len().div_ceil(most)) {
        let frame = request["frame"].as_u64().unwrap();
        std::fs::write(&file, cut(&bytes, frame)).unwrap();
        let part = json(&[file.to_str().unwrap()]);
        let named = unanswered(&part);
        let kept: BTreeSet<u64> =
            part.iter().filter(|r| r["expects_reply"] == true).map(|r| r["record"].as_u64().unwrap()).collect();
        let answered: BTreeSet<u64> = part.iter().filter_map(|r| r["reply_to"].as_u64()).collect();
        // A router's question to all muds needs no reply.
        let to_all = request["from"] == "server" && request["fields"]["target_mudname"] == 0;
        assert!(to_all || named.contains(&request["record"].as_u64().unwrap()), "{name}: {request}: {named:?}");
        for other in &named {
            // Or it was sent reliably, and never acknowledged.
            let record = &part[*other as usize - 1];
            let flags = record["fields"]["flags"]["names"].as_array();
            let reliable = flags.is_some_and(|names| names.iter().any(|name| name == "RELIABLE"));
            assert!(kept.contains(other) || reliable, "{name}, frame {frame}: {other} is no request");
            let acknowledged = part.iter().any(|r| r["reply_to"] == *other && r["message"] != "PacketAck");
            assert!(!acknowledged, "{name}, frame {frame}: {other} was answered ({answered:?})");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_request_behind_which_a_capture_ends_is_named() {
    cut_at_requests("intermud3/i3_coffeemud.pcapng", 12);
    cut_at_requests("ouro/coh_segs_udp.pcapng", 12);
    cut_at_requests("ouro/coh_seed_udp.pcapng", 12);
    cut_at_requests("secondlife/opensim.pcapng.gz", 8);
}

#[test]
fn two_viewers_of_one_host_are_two_sessions_with_their_regions() {
    let sessions = json(&["sessions", "captures/secondlife/opensim.pcapng.gz"]);
    let told = |session: &Value| {
        let places = session["places"].as_array().unwrap().iter().map(|place| place["name"].as_str().unwrap());
        (session["who"]["agent_name"].as_str().unwrap().to_string(), places.collect::<Vec<_>>().join(" "))
    };
    let all: Vec<(String, String)> = sessions.iter().map(told).collect();
    assert_eq!(all, [("Test User".into(), "LabOne LabTwo".into()), ("Bob Smith".into(), "LabOne".into())]);
    let [one, two] = [0, 1].map(|place: usize| &sessions[0]["places"][place]);
    assert_eq!(one["to"], two["from"], "a teleport leaves the region before");
    let circuit = &sessions[0]["streams"][0];
    assert_eq!((&circuit["sent_again"], &circuit["acknowledgements"]), (&430.into(), &1401.into()), "{circuit}");
}

#[test]
fn sessions_of_muds_have_their_out_of_band_connections_and_channels() {
    let sessions = json(&["sessions", "captures/intermud3/i3_coffeemud.pcapng"]);
    let names: Vec<&str> = sessions.iter().map(|session| session["who"]["mud_name"].as_str().unwrap()).collect();
    assert_eq!(names, ["MudAlpha", "MudBeta", "MudGamma", "*pypeer"]);
    let services = |session: &Value| {
        session["streams"].as_array().unwrap().iter().map(|s| s["service"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(services(&sessions[0]), ["router", "oob"]);
    let channels: Vec<&Value> = sessions[1]["places"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
    assert_eq!(channels, ["labchan", "imud_code", "nochan"]);
    let [left, stayed] = [0, 1].map(|place: usize| sessions[1]["places"][place]["to"].clone());
    assert_eq!(left, "2026-11-20T09:45:03.561252000Z");
    assert_ne!(left, stayed);
}

#[test]
fn links_of_city_of_heroes_have_their_handshakes_answered() {
    for session in json(&["sessions", "captures/ouro/coh_seed_udp.pcapng"]) {
        assert_eq!(session["requests"]["sent"], session["requests"]["answered"], "{session}");
        assert_eq!(session["requests"]["unanswered"], 0, "{session}");
    }
}
