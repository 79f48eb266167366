//! The page of `moulsniff report`: nothing captured is markup, and its policy fits its script.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::Read;

use crate::common::{self, scratch};

fn page(name: &str, arguments: &[&str]) -> String {
    let path = scratch(name);
    let mut program = crate::common::program();
    program
        .current_dir(common::file(""))
        .arg("report")
        .args(arguments)
        .args(["--quiet", "-o"])
        .arg(&path);
    let output = program.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(path).unwrap()
}

/// A data block of the page, opened.
pub fn block(page: &str, id: &str) -> Vec<u8> {
    let deflated = written_block(page, id).unwrap_or_else(|| panic!("no block {id}"));
    let mut bytes = Vec::new();
    DeflateDecoder::new(&deflated[..]).read_to_end(&mut bytes).unwrap();
    bytes
}

/// All data blocks of a page, opened where they are deflated, one behind the other.
pub fn blocks(page: &str) -> Vec<u8> {
    let ids = page.split("<script type=\"application/octet-stream\" id=\"").skip(1);
    let each = ids.filter_map(|from| from.split_once('"')).map(|(id, _)| match id {
        id if id.starts_with("data-stored-") => written_block(page, id).unwrap(),
        id => block(page, id),
    });
    each.collect::<Vec<_>>().concat()
}

/// A block's bytes as they are written, if the page has it.
fn written_block(page: &str, id: &str) -> Option<Vec<u8>> {
    let (_, from) =
        page.split_once(&format!("<script type=\"application/octet-stream\" id=\"{id}\">"))?;
    Some(STANDARD.decode(from.split_once("</script>").unwrap().0).unwrap())
}

#[test]
fn the_page_counts_what_the_capture_holds() {
    let page =
        page("report.html", &["captures/moul/full_dirtsand.pcapng", "--keys", "keys/dirtsand.ini"]);
    let meta: Value = serde_json::from_slice(&block(&page, "data-meta")).unwrap();
    let records =
        common::records("captures/moul/full_dirtsand.pcapng", &["keys/dirtsand.ini"], &[]);
    assert_eq!(meta["rows"].as_u64().unwrap() as usize, records.len());
    assert_eq!(meta["keys"], serde_json::json!(["dirtsand.ini"]));
    let info = String::from_utf8(block(&page, "data-info")).unwrap();
    assert_eq!(info.lines().count(), records.len());
    let columns = meta["columns"].as_array().unwrap();
    let width = |kind: &str| match kind {
        "f64" => 8,
        "u32" => 4,
        "u16" => 2,
        _ => 1,
    };
    let bytes: usize = columns
        .iter()
        .map(|c| width(c[1].as_str().unwrap()) * c[2].as_u64().unwrap() as usize)
        .sum();
    assert!(block(&page, "data-columns").len() >= bytes);
}

#[test]
fn times_are_those_of_the_records_to_the_microsecond() {
    let page = page(
        "report-times.html",
        &["captures/moul/full_dirtsand.pcapng", "--keys", "keys/dirtsand.ini"],
    );
    let meta: Value = serde_json::from_slice(&block(&page, "data-meta")).unwrap();
    let records =
        common::records("captures/moul/full_dirtsand.pcapng", &["keys/dirtsand.ini"], &[]);
    assert_eq!(
        (meta["start"].as_str(), &meta["columns"][0][0]),
        (Some("2026-11-20T10:16:21.826Z"), &"time".into())
    );
    assert_eq!(records[0]["time"], "2026-11-20T10:16:21.826382215Z");
    let columns = block(&page, "data-columns");
    let first = f64::from_le_bytes(*columns.first_chunk().unwrap());
    assert!((first - 0.382_215).abs() < 1e-6, "{first} ms after the start");
}

#[test]
fn the_policy_allows_this_script_and_no_other() {
    let page = page(
        "report-policy.html",
        &["captures/moul/kind_gate.pcap", "--keys", "keys/dirtsand.ini"],
    );
    let script = page.rsplit_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
    let hash = STANDARD.encode(Sha256::digest(script.as_bytes()));
    assert!(
        page.contains(&format!("script-src 'sha256-{hash}'")),
        "the script's hash is another one"
    );
    assert!(
        !page.contains("innerHTML") && !page.contains("http://")
            || page.contains("http://www.w3.org/2000/svg")
    );
    for outside in ["https://", "//cdn", "import(", "eval("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn random_bytes_are_stored_and_not_deflated() {
    let page = page(
        "report-stored.html",
        &["captures/moul/full_dirtsand.pcapng", "--keys", "keys/dirtsand.ini"],
    );
    let stored = written_block(&page, "data-stored-0").unwrap();
    let deflated = block(&page, "data-chunk-0");
    // The capture has downloads of compressed files.
    assert!(stored.len() > 100_000, "{}", stored.len());
    let start = &stored[..64];
    assert!(!deflated.windows(start.len()).any(|window| window == start), "they are in both");
    // Texts are small enough to be worth deflating.
    assert!(!String::from_utf8_lossy(&stored).contains("NoSuchManifest"));
}

#[test]
fn secrets_stay_out_of_a_redacted_page() {
    let arguments =
        ["captures/moul/full_dirtsand.pcapng", "--keys", "keys/dirtsand.ini", "--redact"];
    let page = page("report-redacted.html", &arguments);
    let records =
        common::records("captures/moul/full_dirtsand.pcapng", &["keys/dirtsand.ini"], &[]);
    let hashes: Vec<String> = records
        .iter()
        .filter(|record| record["message"] == "Cli2Auth_AcctLoginRequest")
        .filter_map(|record| Some(record["fields"]["challenge_hash"].as_str()?.to_string()))
        .collect();
    let meta: Value = serde_json::from_slice(&block(&page, "data-meta")).unwrap();
    let chunks = meta["chunks"].as_array().unwrap().len();
    let mut all: Vec<u8> =
        (0..chunks).flat_map(|chunk| block(&page, &format!("data-chunk-{chunk}"))).collect();
    all.extend(
        (0..chunks)
            .filter_map(|chunk| written_block(&page, &format!("data-stored-{chunk}")))
            .flatten(),
    );
    for hash in hashes.iter().filter(|hash| hash.len() >= 16) {
        let bytes: Vec<u8> = (0..hash.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hash[at..at + 2], 16).unwrap())
            .collect();
        assert!(
            !all.windows(bytes.len()).any(|window| window == bytes),
            "a login's hash is in the page"
        );
    }
    assert!(String::from_utf8_lossy(&all).contains("<redacted, "));
}
