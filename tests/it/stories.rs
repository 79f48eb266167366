//! What `sessions` tells of captures with lost bytes, closed connections and changes of place.

use serde_json::Value;

use crate::common::scratch;

fn printed(arguments: &[&str]) -> String {
    let mut program = crate::common::program();
    let output = program
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .arg("--quiet")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn lines(arguments: &[&str]) -> Vec<Value> {
    printed(arguments).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const DAMAGED: [&str; 3] = ["captures/moul/mangled_gaps.pcap.gz", "--keys", "keys/dirtsand.ini"];
const NAGUS: [&str; 3] = ["captures/moul/nagus.pcapng", "--keys", "keys/nagus.ini"];
const OPENSIM: &str = "captures/secondlife/opensim.pcapng.gz";

#[test]
fn a_request_that_is_read_behind_its_reply_is_not_unanswered() {
    let records = lines(&[&["--json"][..], &DAMAGED].concat());
    let age = records
        .iter()
        .filter(|record| record["message"] == "Cli2Auth_AgeRequest" && record["stream"] == 3);
    let reply = records
        .iter()
        .find(|record| record["message"] == "Auth2Cli_AgeReply" && record["stream"] == 3);
    let late = age.max_by_key(|record| record["record"].as_u64()).unwrap();
    assert!(late["record"].as_u64() > reply.unwrap()["record"].as_u64(), "it was read late");
    assert!(
        records.iter().all(|record| record["event"] != "unanswered"),
        "all requests before gaps, or answered"
    );
}

#[test]
fn a_login_whose_reply_was_lost_belongs_to_the_account_that_it_names() {
    let sessions = lines(&[&["sessions", "--json"][..], &DAMAGED].concat());
    let plain =
        sessions.iter().find(|session| session["who"]["account_name"] == "plainuser").unwrap();
    let streams: Vec<_> =
        plain["streams"].as_array().unwrap().iter().map(|stream| &stream["stream"]).collect();
    assert_eq!(streams, [6, 7]);
    assert!(plain["streams"][1].get("by").is_none(), "no guess: it names the account");
    assert!(sessions.iter().all(|session| session["earlier"].as_array().is_none_or(Vec::is_empty)));
}

#[test]
fn stories_go_by_time() {
    for capture in [&DAMAGED[..], &NAGUS, &[OPENSIM], &["captures/intermud3/i3_coffeemud.pcapng"]] {
        for session in lines(&[&["sessions", "--story", "--json"][..], capture].concat()) {
            let times: Vec<&str> = session["story"]
                .as_array()
                .unwrap()
                .iter()
                .map(|line| line["time"].as_str().unwrap())
                .collect();
            assert!(times.is_sorted(), "{capture:?}: {times:?}");
        }
    }
}

#[test]
fn who_closed_a_connection_is_told_and_what_waited_for_it() {
    let text = printed(&[&["sessions"][..], &NAGUS].concat());
    for told in [
        "Score Ü of Ávätar Øne: 100: NEVER ANSWERED, closed by the server after 1.167 ms",
        "ping: NEVER ANSWERED, reset by the server after 0.992 ms",
        "tcp 7  auth  127.0.0.1:14627  6 + 8 messages, closed by the client",
        "slowest   #51 Cli2Auth_PlayerCreateRequest  create player",
    ] {
        assert!(text.contains(told), "{told}\n{text}");
    }
    let damaged = printed(&[&["sessions"][..], &DAMAGED].concat());
    assert!(damaged.contains("bytes never captured"), "{damaged}");
}

/// The frames of a pcapng file from one number to another.
fn frames(whole: &[u8], range: std::ops::RangeInclusive<u64>) -> Vec<u8> {
    let mut at = 0;
    let mut seen = 0;
    let mut kept = Vec::new();
    while at + 8 <= whole.len() {
        let word = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().unwrap());
        let end = at + word(at + 4) as usize;
        let packet = matches!(word(at), 2 | 3 | 6);
        seen += u64::from(packet);
        if !packet || range.contains(&seen) {
            kept.extend_from_slice(&whole[at..end]);
        }
        at = end;
    }
    kept
}

#[test]
fn circuits_that_were_joined_late_have_their_agents_and_their_clients() {
    let whole = crate::cut::read(&format!("{}/{OPENSIM}", env!("CARGO_MANIFEST_DIR")));
    let file = scratch("late-circuits.pcapng");
    for (range, streams) in [(2500..=3400, 2), (3800..=4393, 3)] {
        std::fs::write(&file, frames(&whole, range)).unwrap();
        let sessions = lines(&["sessions", "--json", file.to_str().unwrap()]);
        let agents: Vec<&Value> =
            sessions.iter().map(|session| &session["who"]["agent_id"]).collect();
        let ends = ["00000000-0000-0000-0000-0000000000aa", "00000000-0000-0000-0000-0000000000bb"];
        assert_eq!(agents.len(), 2, "{agents:?}");
        assert!(ends.iter().all(|end| agents.iter().any(|agent| *agent == end)), "{agents:?}");
        let all: Vec<&Value> =
            sessions.iter().flat_map(|session| session["streams"].as_array().unwrap()).collect();
        assert_eq!(all.len(), streams);
        for stream in all {
            let server = stream["server"].as_str().unwrap();
            assert!(server.ends_with(":9000") || server.ends_with(":9001"), "{server}");
        }
    }
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn regions_have_the_names_of_their_circuits_and_of_the_map() {
    let text = printed(&["sessions", OPENSIM, "--story"]);
    for told in
        ["teleport to region LabOne: answered after", "teleport to region LabTwo", "say \"hello\""]
    {
        assert!(text.contains(told), "{told}\n{text}");
    }
    // A message that was sent again is no further step.
    assert_eq!(text.matches("teleport to region").count(), 2, "{text}");
    let entered = lines(&[OPENSIM, "--json", "-Y", "message == AgentMovementComplete"]);
    let names: Vec<&Value> =
        entered.iter().map(|record| &record["names"]["fields.Data.RegionHandle"]["name"]).collect();
    assert_eq!(names, ["LabOne", "LabOne", "LabTwo"]);
}
