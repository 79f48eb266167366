//! Records are in the order of the capture: the frames that completed them never go back, over all
//! connections together. `docs/json.md` says where they may: behind lost bytes, and where a
//! connection was joined late.

use crate::common::records;

#[test]
fn frames_of_records_never_go_back() {
    let captures = [
        "moul/any_sll2.pcap",
        "moul/clear.pcapng.gz",
        "moul/full_dirtsand.pcapng",
        "moul/kind_game.pcap",
        "moul/kind_gate.pcap",
        "moul/moss_full.pcapng",
        "moul/nagus.pcapng",
        "moul/synthetic_all.pcap.gz",
        "intermud3/i3_coffeemud.pcapng",
        "ouro/coh_seed_udp.pcapng",
        "ouro/coh_segs_udp.pcapng",
        "secondlife/every_message.pcapng.gz",
        "secondlife/opensim.pcapng.gz",
    ];
    let keys =
        ["dirtsand.ini", "moulars.toml", "nagus.ini", "moss_auth_key.der", "moss_game_key.der"];
    let keys = keys.map(|key| format!("keys/{key}"));
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    for capture in captures {
        let all = records(&format!("captures/{capture}"), &keys, &[]);
        let frames: Vec<u64> = all.iter().map(|r| r["frame"].as_u64().unwrap()).collect();
        let back = frames.windows(2).position(|pair| pair[1] < pair[0]);
        assert!(
            back.is_none(),
            "{capture}: {} behind {}",
            all[back.unwrap() + 1],
            all[back.unwrap()]
        );
        assert!(all.len() > 5, "{capture}");
    }
}
