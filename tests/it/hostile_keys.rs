//! Captures that bring keys along which open nothing: many private keys for connections whose
//! agreement is never proved, and session keys for connections that were joined late. Each key is
//! tried on each connection, so there is a budget for the whole run.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::hostile_cases::{KEY_FILE, Line, as_pcapng, noise};
use crate::made::{Made, run};

use crate::common::scratch;

/// The number of private keys that a capture may bring.
const PRIVATE_KEYS: u32 = 64;

/// Connections with a complete agreement that no key fits, and the most private keys that a capture
/// may bring.
pub fn private_keys(n: u32) -> Vec<u8> {
    let numbers = noise(64 * 2 * PRIVATE_KEYS as usize);
    let mut text = String::new();
    for pair in numbers.chunks(128) {
        let mut modulus = pair[..64].to_vec();
        let mut exponent = pair[64..].to_vec();
        modulus[0] |= 0x80;
        modulus[63] |= 1;
        exponent[0] |= 1;
        text += &format!(
            "private auth g=41 n={} k={}\n",
            STANDARD.encode(&modulus),
            STANDARD.encode(&exponent)
        );
    }
    let mut made = Made::new();
    for number in 0..n {
        let mut line = Line::agreed(&mut made, number, 10);
        line.send(&mut made, 1, &noise(100));
    }
    as_pcapng(&[text], &made)
}

/// Connections in whose middle the capture begins, and eight session keys that open none of them.
/// The first few use the budget up, so this is no case whose instructions are counted.
fn session_keys(n: u32) -> Vec<u8> {
    let text: String =
        (0..8_u8).map(|i| format!("session any rc4={i:02x}445566778899\n")).collect();
    let mut made = Made::new();
    for number in 0..n {
        let mut line = Line::joined(number);
        line.send(&mut made, 0, &noise(3000));
        line.send(&mut made, 1, &noise(3000));
    }
    as_pcapng(&[text], &made)
}

fn told(capture: &[u8], more: &[&str]) -> usize {
    let (records, said) = run(capture, more);
    let limits = records
        .iter()
        .filter(|record| record["event"] == "limit" && record["limit"] == "carried keys")
        .count();
    assert!(!records.is_empty(), "{said}");
    limits
}

#[test]
fn what_carried_keys_may_cost_is_bounded_and_told_once() {
    assert_eq!(told(&private_keys(3), &[]), 0);
    assert_eq!(told(&private_keys(80), &[]), 1);
    let late = ["--decode-as", "tcp:14617=moul"];
    assert_eq!(told(&session_keys(1), &late), 1);
}

/// The budget is for keys that the capture brings, not for those that the user names.
#[test]
fn the_users_own_keys_come_first_and_have_no_budget() {
    let keys = scratch("hostile-own.keys").display().to_string();
    std::fs::write(&keys, KEY_FILE).unwrap();
    let (records, said) = run(&private_keys(80), &["--keys", &keys]);
    let opened = records
        .iter()
        .filter(|record| record["event"] == "key" && record["key_file"] == keys.as_str())
        .count();
    assert_eq!(opened, 80, "{said}");
    assert!(records.iter().all(|record| record["limit"] != "carried keys"));
}
