//! Exit statuses 1 and 2 come with exactly one line on standard error, with --quiet and without, in
//! every command.
#![cfg(unix)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::scratch;

const GATE: &str = "captures/moul/kind_gate.pcap";

/// Commands that read captures. `IN` stands for the captures, `OUT` for a folder.
const COMMANDS: [&str; 16] = [
    "IN",
    "IN --json",
    "IN --oneline",
    "stats IN",
    "sessions IN",
    "sessions IN --story",
    "report IN -o OUT/page.html",
    "split IN --into 2 -o OUT/parts",
    "diff IN captures/moul/golden.pcap",
    "follow tcp:0 IN",
    "follow --all IN -o OUT/streams",
    "export files IN -o OUT/files",
    "export vault IN -o OUT/vault.json",
    "export chat IN",
    "export messages IN -o OUT/messages.pcapng",
    "keys strip IN -o OUT/without.pcapng",
];

/// Mistakes that every command meets.
const MISTAKES: [(i32, &str); 14] = [
    (1, "--keys keys/server.ini"),
    (1, "--keys README.md"),
    (1, "--keys nowhere.keys"),
    (2, "--tables tests/tables/unknown_structure.table"),
    (1, "--tables nowhere.table"),
    (1, "--sdl nowhere.sdl"),
    (2, "-Y (("),
    (2, "-Y @nobody"),
    (2, "-Y fields.transid==7"),
    (2, "--jsno"),
    (2, "--color blue"),
    (2, "-c many"),
    (2, "--decode-as tcp:1=nothing"),
    (1, "--pseudonyms README.md"),
];

/// Whole command lines, and their exit statuses.
const LINES: [(i32, &str); 38] = [
    (2, "-q"),
    (2, "keys"),
    (2, "tables"),
    (2, "export"),
    (2, "stat captures/moul/kind_gate.pcap"),
    (2, "captures/moul/kind_gate.pcap stats"),
    (2, "captures/moul/kind_gate.pcap --columns nothing"),
    (2, "captures/moul/kind_gate.pcap -Y *.object_nam==1"),
    (2, "captures/moul/kind_gate.pcap --session 9"),
    (2, "sessions captures/moul/kind_gate.pcap --session 9"),
    (2, "tables show nothing"),
    (2, "tables check tests/tables/no_colon.table"),
    (2, "tables check tests/transcripts/files/wrong-example.table"),
    (1, "tables check nowhere.table"),
    (2, "tables new moul"),
    (2, "decode"),
    (2, "decode moul.auth.client 1"),
    (2, "decode moul.auth.client xy"),
    (2, "decode nothing 00"),
    (1, "decode moul.auth.client 1a00"),
    (2, "decode --type plUoi 00"),
    (1, "keys check keys/server.ini"),
    (1, "keys check keys/server.ini README.md nowhere.ini"),
    (1, "keys check --json keys/moss_auth_key_public.bin"),
    (1, "keys inject captures/moul/kind_gate.pcap -o OUT/with.pcapng"),
    (2, "keys inject captures/moul/kind_gate.pcap --keys keys/dirtsand.ini -o -"),
    (2, "keys strip captures/moul/kind_gate.pcap -o captures/moul/kind_gate.pcap"),
    (2, "follow"),
    (2, "follow tcp:x captures/moul/kind_gate.pcap"),
    (2, "follow tcp:77 captures/moul/kind_gate.pcap"),
    (2, "split captures/moul/kind_gate.pcap --into 0 -o OUT/parts"),
    (2, "export vault captures/moul/kind_gate.pcap -o OUT/vault.txt"),
    (1, "report captures/moul/kind_gate.pcap -o OUT/no/such/page.html"),
    (2, "diff captures/moul/kind_gate.pcap"),
    (1, "captures/moul/kind_gate.pcap nowhere.pcap README.md"),
    (1, "split nowhere.pcap README.md --into 2 -o OUT/parts"),
    (2, "schema --sql nothing"),
    (2, "man nothing"),
];

/// Runs a command line and holds its exit status and one line on standard error.
fn hold(line: &str, status: i32, full: bool) {
    for quiet in [false, true] {
        let mut command = crate::common::program();
        command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(line.split_whitespace())
            .stdin(Stdio::null());
        if quiet {
            command.arg("-q");
        }
        if full {
            command.stdout(File::options().write(true).open("/dev/full").unwrap());
        }
        let done = command.output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(status), "{line}, quiet {quiet}: {said}");
        assert!(
            said.ends_with('\n') && said.lines().count() == 1,
            "{line}, quiet {quiet}: {said:?}"
        );
        assert!(said.starts_with("moulsniff: ") && said.len() > 20, "{line}: {said}");
        assert!(!full || said.contains("standard output: no space left"), "{line}: {said}");
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = scratch(format!("one-line-{name}"));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn with(command: &str, input: &str, output: &Path) -> String {
    command.replace("IN", input).replace("OUT", output.to_str().unwrap())
}

#[test]
fn captures_that_cannot_be_read_or_not_to_their_end() {
    let out = folder("captures");
    let cut = out.join("cut.pcap");
    let empty = out.join("empty.pcap");
    let whole = fs::read("captures/moul/golden.pcap").unwrap();
    fs::write(&cut, &whole[..whole.len() - 7]).unwrap();
    fs::write(&empty, "").unwrap();
    for command in COMMANDS {
        for capture in
            [cut.to_str().unwrap(), empty.to_str().unwrap(), "nowhere.pcap", "README.md", "src"]
        {
            hold(&with(command, capture, &out), 1, false);
        }
    }
    let several = format!("{} {} nowhere.pcap", cut.display(), empty.display());
    for command in [
        "IN",
        "stats IN",
        "sessions IN",
        "follow --all IN -o OUT/streams",
        "split IN --into 2 -o OUT/parts",
    ] {
        hold(&with(command, &several, &out), 1, false);
    }
    fs::remove_dir_all(out).unwrap();
}

/// Files of a folder of keys that open nothing are remarked on before the captures are read.
#[test]
fn remarks_and_an_error_are_one_line() {
    let out = folder("remarks");
    let keys = out.join("keys");
    fs::create_dir_all(&keys).unwrap();
    for name in ["dirtsand.ini", "server.ini", "moss_auth_key_public.bin"] {
        fs::copy(format!("keys/{name}"), keys.join(name)).unwrap();
    }
    let cut = out.join("cut.pcap");
    let whole = fs::read("captures/moul/golden.pcap").unwrap();
    fs::write(&cut, &whole[..whole.len() - 7]).unwrap();
    let keys = keys.to_str().unwrap();
    for command in COMMANDS
        .into_iter()
        .filter(|command| !command.starts_with("keys") && !command.starts_with("split"))
    {
        hold(&format!("{} --keys {keys}", with(command, cut.to_str().unwrap(), &out)), 1, false);
        hold(
            &format!("{} --keys {keys} --tables nowhere.table", with(command, GATE, &out)),
            1,
            false,
        );
        if !command.starts_with("sessions") {
            hold(&format!("{} --keys {keys} -Y ((", with(command, GATE, &out)), 2, false);
        }
    }
    hold(&format!("decode moul.auth.client 1a00 --keys {keys}"), 1, false);
    hold(&format!("{GATE} --keys {keys} --session 9"), 2, false);
    let said = |capture: &str| {
        let mut command = crate::common::program();
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args([capture, "--keys", keys]);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    // The error says what the remarks say; without an error they are lines of their own, before the
    // summary.
    let error = said(cut.to_str().unwrap());
    let (before, after) = error.split_once("the file is cut; ").unwrap();
    assert!(
        before.starts_with("moulsniff: ")
            && after.contains("server.ini: a client's server.ini holds"),
        "{error}"
    );
    let said = said(GATE);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[..2].iter().all(|line| line.starts_with("moulsniff: ")), "{said}");
    assert!(lines[2].starts_with("23 frames"), "{said}");
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn mistakes_that_every_command_meets() {
    let out = folder("mistakes");
    for command in COMMANDS
        .into_iter()
        .filter(|command| !command.starts_with("keys") && !command.starts_with("split"))
    {
        for (status, mistake) in MISTAKES {
            // An option that does nothing with the command is another mistake of one line.
            let no_filter = command.starts_with("sessions") && mistake.starts_with("-Y");
            hold(
                &format!("{} {mistake}", with(command, GATE, &out)),
                if no_filter { 2 } else { status },
                false,
            );
        }
    }
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn mistakes_of_single_commands() {
    let out = folder("lines");
    for (status, line) in LINES {
        hold(&with(line, GATE, &out), status, false);
    }
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn standard_output_that_is_full() {
    for line in [
        "IN",
        "IN --json",
        "stats IN",
        "sessions IN",
        "follow tcp:0 IN",
        "--help",
        "tables list",
        "schema",
        "config",
        "man",
        "completions bash",
        "keys check keys/dirtsand.ini",
        "decode moul.auth.client 1a0007000000e9030000",
    ] {
        hold(&with(line, GATE, Path::new("")), 1, true);
    }
}
