//! What people type: options where they mean nothing, commands behind files, help, and what is said
//! where nothing was recognised.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::scratch;

const GATE: &str = "captures/moul/kind_gate.pcap";
const KEYS: &str = "keys/dirtsand.ini";

fn program(words: &[&str]) -> Command {
    let mut command = crate::common::program();
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(words);
    command
}

fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = program(words).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A mistake: status 2, nothing on standard output, and one line that says `what`.
fn mistake(words: &[&str], what: &str) {
    let (status, out, said) = run(words);
    assert_eq!((status, out.as_str()), (Some(2), ""), "{words:?}: {said}");
    assert!(said.lines().count() == 1 && said.contains(what), "{words:?}: {said}");
}

#[test]
fn options_may_come_before_a_command_and_before_or_behind_captures() {
    let expected = run(&["stats", GATE, "--keys", KEYS, "--json", "-q", "-c", "5"]);
    assert_eq!(expected.0, Some(0), "{}", expected.2);
    for words in [
        &["--keys", KEYS, "--json", "-q", "-c", "5", "stats", GATE][..],
        &["-qc5", "--keys", KEYS, "stats", GATE, "--json"],
        &["-q", "stats", "--json", &format!("--keys={KEYS}"), "-c", "5", GATE],
    ] {
        assert!(run(words) == expected, "{words:?}");
    }
    let exported = run(&["export", "chat", "-q", GATE]);
    assert_eq!(run(&["-q", "export", "chat", GATE]), exported);
    assert_eq!(run(&["export", "-q", "chat", GATE]), exported);
    // A value may have the name of a command.
    mistake(&["-Y", "stats", "split", GATE, "--into", "2", "-o", "x"], "argument '-Y'");
    mistake(&["--columns", "stats", GATE], "columns: column 1: a record has no `stats`");
}

#[test]
fn a_command_has_the_options_that_it_can_use() {
    let unknown = |words: &[&str], option: &str| {
        mistake(words, &format!("moulsniff: unexpected argument '{option}' found"));
    };
    for (before, option) in [("--strict", "--strict"), ("-tlocal", "-t")] {
        unknown(&[before, "split", GATE, "--into", "2", "-o", "never-made"], option);
    }
    unknown(&["--oneline", "stats", GATE], "--oneline");
    unknown(&["stats", GATE, "-t", "local"], "-t");
    unknown(&["stats", GATE, "--csv"], "--csv");
    unknown(&["stats", GATE, "--json", "--spans"], "--spans");
    unknown(&["follow", "tcp:0", GATE, "--json", "--spans"], "--spans");
    unknown(&["keys", "inject", GATE, "-o", "x.pcapng", "--json"], "--json");
    unknown(&["tables", "lua", "--json"], "--json");
    unknown(&["diff", GATE, GATE, "-c", "1"], "-c");
    unknown(&["follow", "tcp:0", GATE, "-c", "1"], "-c");
    unknown(&["sessions", GATE, "-Y", "refused"], "-Y");
    unknown(&["export", "files", GATE, "-c", "1", "-o", "never-made"], "-c");
    unknown(&["report", "--tail", GATE, "-o", "never-made"], "--tail");
    unknown(&["--keys", KEYS, "schema"], "--keys");
    assert!(!std::path::Path::new("never-made").exists());
    let out = scratch("usage-no-use");
    let out = out.to_str().unwrap();
    let split = ["split", GATE, "--into", "2", "-o", out];
    let strip = ["keys", "strip", GATE, "-o", out];
    for (option, value) in
        [("--keys", KEYS), ("--sdl", "captures"), ("--tables", "examples/protocols")]
    {
        for command in [
            &split[..],
            &strip,
            &["keys", "check", KEYS],
            &["tables", "check", "examples/protocols"],
            &["man"],
        ] {
            unknown(&[command, &[option, value]].concat(), option);
        }
    }
    let inject = ["keys", "inject", GATE, "--keys", KEYS, "-o", out];
    for command in [&split[..], &strip, &inject] {
        unknown(&[command, &["--redact"]].concat(), "--redact");
    }
    assert!(!std::path::Path::new(out).exists());
    // The environment is the same for all commands.
    let done = program(&split).env("MOULSNIFF_KEYS", KEYS).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn options_that_exclude_or_need_each_other_are_named() {
    let excluded = |words: &[&str], one: &str, other: &str| {
        mistake(words, &format!("the argument '{one}' cannot be used with '{other}'"));
    };
    excluded(&[GATE, "--json", "--columns", "record"], "--json", "--columns <A,B,C>");
    excluded(&[GATE, "--json", "-x"], "--json", "--bytes");
    excluded(&[GATE, "-x", "--csv"], "--bytes", "--csv");
    excluded(&[GATE, "--oneline", "-x"], "--oneline", "--bytes");
    excluded(&[GATE, "--json", "-t", "relative"], "--json", "--time <FORM>");
    excluded(&["follow", "tcp:0", GATE, "--json", "--raw"], "--json", "--raw");
    excluded(&["diff", GATE, GATE, "--json", "--oneline"], "--json", "--oneline");
    excluded(&["sessions", GATE, "--json", "--csv"], "--json", "--csv");
    mistake(&[GATE, "--spans"], "required arguments were not provided: --json");
    mistake(&["follow", "--all", GATE], "required arguments were not provided: -o <DIR>");
    mistake(&["follow", "tcp:0", GATE, "-o", "x"], "required arguments were not provided: --all");
    // A pseudonym file that is not there yet is no place for the output either.
    let key = scratch("future");
    let key = key.to_str().unwrap();
    for words in [&["report", GATE][..], &["export", "messages", GATE], &["export", "files", GATE]]
    {
        let more = ["--pseudonyms", key, "-o", key];
        mistake(&[words, &more].concat(), "this is the file of --pseudonyms");
    }
    assert!(!std::path::Path::new(key).exists());
}

#[test]
fn the_help_of_a_command_lists_no_option_that_does_nothing_with_it() {
    for (command, with, without) in [
        (&["split"][..], "--servers", "--keys"),
        (&["keys", "strip"], "-o <OUT>", "--redact"),
        (&["keys", "inject"], "--keys", "--redact"),
        (&["stats"], "--json", "--spans"),
        (&["stats"], "--filter", "--columns"),
        (&["sessions"], "--csv", "--filter"),
        (&["diff"], "--oneline", "--bytes"),
        (&["diff"], "--oneline", "-c"),
        (&["export", "vault"], "-c <N>", "--columns"),
        (&["config"], "--time", "--json"),
        (&["tables", "list"], "--tables", "--sdl"),
    ] {
        let (status, help, said) = run(&[command, &["--help"]].concat());
        assert_eq!(status, Some(0), "{said}");
        assert!(
            help.contains(with) && !help.contains(&format!("{without} ")),
            "{command:?}: {help}"
        );
        assert!(!help.contains(&format!("      {without}\n")), "{command:?}: {help}");
    }
}

#[test]
fn captures_are_read_in_the_order_in_which_they_were_typed() {
    let other = "captures/moul/golden.pcap";
    let read =
        |words: &[&str]| run(&[words, &["--keys", KEYS, "--json", "-q", "--as-given"]].concat());
    for command in [&[][..], &["diff"]] {
        let all = |captures: &[&str]| read(&[command, captures].concat());
        let expected = all(&[GATE, other]);
        for captures in [&["-r", GATE, other][..], &[GATE, "-r", other], &["-r", GATE, "-r", other]]
        {
            assert!(all(captures) == expected, "{command:?} {captures:?}");
        }
        assert!(all(&["-r", other, GATE]) != expected, "{command:?}");
    }
    assert!(read(&["sessions", "1", "-r", GATE]) == read(&["sessions", GATE, "--session", "1"]));
    let follow = |words: &[&str]| run(&[&["follow"], words, &["--keys", KEYS, "-q"]].concat());
    assert!(follow(&["-r", GATE, "tcp:0"]) == follow(&["tcp:0", GATE]));
}

#[test]
fn a_page_and_a_vault_have_no_more_records_than_asked_for() {
    let dir = scratch("usage-count");
    fs::create_dir_all(&dir).unwrap();
    let size = |command: &[&str], name: &str, more: &[&str]| {
        let out = dir.join(name);
        let words = [
            "captures/moul/full_dirtsand.pcapng",
            "--keys",
            KEYS,
            "-q",
            "-o",
            out.to_str().unwrap(),
        ];
        assert_eq!(run(&[command, &words, more].concat()), (Some(0), String::new(), String::new()));
        fs::metadata(out).unwrap().len()
    };
    for (command, name) in [(&["report"][..], "page.html"), (&["export", "vault"], "v.json")] {
        let [whole, much, little] =
            [&[][..], &["-c", "100000"], &["-c", "3"]].map(|more| size(command, name, more));
        assert!(
            much.abs_diff(whole) < 200 && little < whole / 2,
            "{name}: {whole} {much} {little}"
        );
    }
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn tables_list_has_json() {
    let (status, out, _) = run(&["tables", "list", "VaultNodeFetch", "--json"]);
    assert_eq!(status, Some(0));
    let first: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["message"], &first["from"], &first["type"]),
        (&"Cli2Auth_VaultNodeFetch".into(), &"client".into(), &26.into())
    );
}

#[test]
fn a_command_comes_first_and_near_names_are_suggested() {
    mistake(
        &[GATE, "stats"],
        "`stats` is a command and comes first: moulsniff stats captures/moul/kind_gate.pcap",
    );
    mistake(&["stat", GATE], "did you mean `stats`?");
}

#[test]
fn a_capture_may_be_given_with_r() {
    assert_eq!(
        run(&["-r", GATE, "--json", "-q", "--keys", KEYS]),
        run(&[GATE, "--json", "-q", "--keys", KEYS])
    );
}

#[test]
fn a_group_of_commands_alone_is_a_mistake_that_lists_them() {
    mistake(
        &["keys"],
        "'moulsniff keys' requires a subcommand but one was not provided [subcommands: check, \
         inject, strip, help] (--help",
    );
    mistake(&["tables", "-q"], "[subcommands: list, show, html, vectors, lua, new, check, help] (");
    mistake(&["export"], "[subcommands: files, vault, chat, messages, frames, help] (");
}

#[test]
fn help_lists_man_and_pages_of_commands_can_be_made() {
    assert!(run(&["--help"]).1.lines().any(|line| line.trim_start().starts_with("man ")));
    let (status, page, _) = run(&["man", "keys", "inject"]);
    assert!(
        status == Some(0)
            && page.contains("moulsniff\\-keys\\-inject")
            && page.contains("\\-\\-private"),
        "{page}"
    );
    mistake(&["man", "stat"], "did you mean `stats`?");
}

#[test]
fn the_command_help_takes_the_option_help() {
    for (words, plain) in [
        (&["help", "--help"][..], &["help", "help"][..]),
        (&["help", "-h"], &["help", "help"]),
        (&["help", "help", "--help"], &["help", "help"]),
        (&["help", "follow", "--help"], &["help", "follow"]),
        (&["help", "export", "vault", "-h"], &["export", "vault", "--help"]),
        (&["export", "help", "--help"], &["export", "help", "help"]),
        (&["keys", "help", "strip", "--help"], &["keys", "strip", "--help"]),
    ] {
        let (status, help, said) = run(words);
        assert_eq!((status, said.as_str()), (Some(0), ""), "{words:?}");
        assert!(help.contains("Usage: moulsniff"), "{words:?}: {help}");
        assert_eq!(help, run(plain).1, "{words:?}");
    }
    mistake(&["help", "folow", "--help"], "unrecognized subcommand 'folow'");
    mistake(&["help", "--json"], "unrecognized subcommand '--json'");
}

#[test]
fn a_number_for_an_option_is_shown_and_a_key_is_not() {
    let number = "9".repeat(20);
    let hidden = "<40 characters that may be a key>";
    for option in ["-c", "--threads", "--max-message"] {
        mistake(&[GATE, option, &number], &format!("invalid value '{number}' for '{option} <"));
        for key in ["8a4f0d2b9c".repeat(4), number.repeat(2)] {
            mistake(&[GATE, option, &key], &format!("invalid value '{hidden}'"));
        }
    }
    mistake(&["follow", &number.repeat(2), GATE], hidden);
}

#[test]
fn a_stream_or_session_that_is_not_there_was_mistyped() {
    mistake(&["follow", "tcp:99", GATE], "there is no stream tcp:99");
    mistake(&["follow", "udp:0", GATE], "there is no stream udp:0");
    mistake(&["sessions", "99", GATE], "there is no session 99");
    mistake(&[GATE, "--session", "99"], "there is no session 99");
    mistake(&["stats", GATE, "--session", "99"], "there is no session 99");
    // Where a capture is damaged, what is looked for may be in its rest.
    let path = scratch("cut.pcap");
    let whole = fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(GATE)).unwrap();
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    for words in [["follow", "tcp:99"], ["sessions", "99"]] {
        let (status, _, said) = run(&[&words[..], &[path.to_str().unwrap()]].concat());
        assert!(status == Some(1) && said.contains("the file is cut"), "{words:?}: {said}");
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn hidden_files_of_a_folder_are_left_out() {
    let folder = scratch("hidden");
    fs::create_dir_all(&folder).unwrap();
    let hidden = folder.join("._x.table");
    fs::write(folder.join("x.table"), "protocol moul\nmessage auth client 9000 X { a: u8 }\n")
        .unwrap();
    fs::write(&hidden, [0, 5, 0x16, 7]).unwrap();
    let tables =
        |path: &std::path::Path| run(&["--tables", path.to_str().unwrap(), "tables", "show", "X"]);
    let (status, out, said) = tables(&folder);
    assert!(status == Some(0) && out.contains("9000"), "{said}");
    assert!(tables(&hidden).0 != Some(0), "a file that is named is read");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn tunnels_that_are_not_read_are_named() {
    let inner = [[0, 0, 0x88, 0xbe].to_vec(), vec![0x45; 40]].concat();
    let header =
        [0x45, 0, 0, 20 + inner.len() as u8, 0, 0, 0, 0, 64, 47, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let packet = [&header[..], &inner].concat();
    let path = scratch("gre.pcap");
    let mut capture =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
    capture.extend([
        1,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        packet.len() as u8,
        0,
        0,
        0,
        packet.len() as u8,
        0,
        0,
        0,
    ]);
    capture.extend(packet);
    fs::write(&path, capture).unwrap();
    let name = path.to_str().unwrap();
    let said = "stop: 1 of 1 frame was not read, in which there may be packets: 1 ERSPAN in GRE\n";
    assert!(run(&[name]).2.contains(said), "{}", run(&[name]).2);
    let (_, tables, _) = run(&["stats", name]);
    assert!(tables.contains("stop     1 of 1 frame was not read"), "{tables}");
    assert!(tables.contains("frames that were not read\n         1  ERSPAN in GRE\n"), "{tables}");
    let (_, counts, _) = run(&["stats", "--json", name]);
    assert!(counts.contains(r#""not_read":{"ERSPAN in GRE":1}"#), "{counts}");
    fs::remove_file(path).unwrap();
}

#[test]
fn help_lists_what_can_be_used() {
    let (_, help, _) = run(&["completions", "--help"]);
    assert!(!help.contains("--json") && !help.contains("--keys"), "{help}");
    let (_, help, _) = run(&["--help"]);
    assert_eq!(help.contains("--interface"), cfg!(feature = "live"), "{help}");
    assert_eq!(help.contains("--features live"), !cfg!(feature = "live"), "{help}");
}

#[test]
fn nothing_typed_gives_ten_lines_with_three_examples() {
    let (status, out, said) = run(&[]);
    assert_eq!((status, said.as_str()), (Some(0), ""));
    assert!(out.lines().count() <= 10 && out.lines().all(|line| line.len() <= 80), "{out}");
    assert_eq!(out.lines().filter(|line| line.starts_with("  moulsniff ")).count(), 3, "{out}");
}

#[test]
fn short_help_has_what_people_use_and_long_help_has_all() {
    let options = |help: &str| -> Vec<String> {
        let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
        let names = lines.filter_map(|line| line.split([' ', ',']).next());
        names.map(str::to_string).collect()
    };
    let (_, short, _) = run(&["-h"]);
    let (_, long, _) = run(&["--help"]);
    // Beside them there are -h and -V.
    assert!((18..=22).contains(&options(&short).len()), "{short}");
    assert!(options(&short).iter().all(|option| options(&long).contains(option)), "{long}");
    for rare in ["--max-message", "--max-output", "--checksums", "--ouro-cookies", "--threads"] {
        assert!(!short.contains(rare) && long.contains(rare), "{rare}");
    }
    // One line each, as far as the values of an option allow.
    let commands = short.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands.take_while(|line| !line.is_empty()).collect();
    assert!(
        commands.iter().all(|line| line.starts_with("  ") && !line.starts_with("   ")),
        "{short}"
    );
}

#[test]
fn an_option_of_another_command_is_named_with_it() {
    mistake(&[GATE, "--story"], "'--story' found; `moulsniff sessions` has it (");
    mistake(
        &["stats", GATE, "--spans"],
        "; `moulsniff` without a command, `moulsniff decode` have it (",
    );
    mistake(&[GATE, "--jsno"], "; tip: a similar argument exists: '--json' (");
}

#[test]
fn help_onto_a_full_disk_is_an_error() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    assert_eq!(program(&["--help"]).stdout(full).status().unwrap().code(), Some(1));
}

/// A capture of one UDP datagram from port 40000 to `port`, cut by `cut` bytes.
fn stranger(port: u16, cut: usize) -> PathBuf {
    let payload = [0x5a_u8; 40];
    let mut packet = vec![0x45, 0, 0, 68, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend(40_000_u16.to_be_bytes());
    packet.extend(port.to_be_bytes());
    packet.extend([0, 48, 0, 0]);
    packet.extend(payload);
    let mut file =
        vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
    for number in [1, 0, (packet.len() - cut) as u32, packet.len() as u32] {
        file.extend(number.to_le_bytes());
    }
    file.extend(&packet[..packet.len() - cut]);
    let path = scratch(format!("stranger-{port}-{cut}.pcap"));
    fs::write(&path, file).unwrap();
    path
}

#[test]
fn where_nothing_was_recognised_it_says_why() {
    let path = stranger(7002, 8);
    let name = path.to_str().unwrap();
    let (status, out, said) = run(&[name]);
    assert_eq!((status, out.as_str()), (Some(0), ""));
    for part in [
        "nothing was recognised: one direction alone was captured of the one conversation",
        "udp port 7002 (1 conversation, 32 bytes)",
        "1 of 1 frame was cut when it was captured, to 60 bytes",
    ] {
        assert!(said.contains(part), "`{part}` in:\n{said}");
    }
    assert_eq!(run(&[name, "--strict"]).0, Some(3));
    assert!(run(&["stats", name]).1.contains("udp port 7002"));
    assert_eq!(run(&[name, "--quiet"]).2, "");
    fs::remove_file(path).unwrap();
}

#[test]
fn ctrl_c_on_standard_input_is_the_normal_end_and_everything_collected_is_printed() {
    let time = time_of_a_run();
    for words in [&["-", "--json", "--keys", KEYS][..], &["stats", "-", "--json", "--keys", KEYS]] {
        let mut child = program(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let capture = fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(GATE)).unwrap();
        // The last packet is only begun: after a signal that is no error.
        input.write_all(&capture[..capture.len() - 3]).unwrap();
        input.flush().unwrap();
        thread::sleep(Duration::from_millis(500) + time * 4);
        assert!(
            Command::new("kill")
                .args(["-INT", &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let mut out = String::new();
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
        assert!(out.contains("stream_end"), "{out}");
        assert!(said.contains("1 stream recognised"), "{said}");
        drop(input);
    }
}

/// How long this machine takes at the moment to read the capture.
fn time_of_a_run() -> Duration {
    let begun = Instant::now();
    assert_eq!(run(&["stats", GATE, "--keys", KEYS]).0, Some(0));
    begun.elapsed()
}

#[test]
fn ctrl_c_ends_the_wait_for_the_writer_of_a_pipe() {
    let pipe = scratch("no-writer");
    let _ = fs::remove_file(&pipe);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = program(&["stats", pipe.to_str().unwrap(), "--json"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(500) + time_of_a_run() * 4);
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    fs::remove_file(pipe).unwrap();
}

#[test]
fn statistics_of_a_filter_list_the_streams_it_kept() {
    let kept = ["stats", GATE, "--keys", KEYS, "-Y", "message == ConnectPacket", "--json"];
    let stats: serde_json::Value = serde_json::from_str(&run(&kept).1).unwrap();
    assert_eq!(stats["streams"], 1, "{stats}");
    assert_eq!(stats["bytes"]["by_stream"]["tcp:0"]["payload"], 51, "{stats}");
    assert_eq!(stats["bytes"]["payload"], 51, "{stats}");
}

#[test]
#[cfg(unix)]
fn errors_show_no_number_of_the_operating_system() {
    let path = "README.md/capture";
    for words in
        [&[path][..], &[GATE, "--keys", path], &[GATE, "--tables", path], &[GATE, "--sdl", path]]
    {
        let output = program(words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.ends_with(": not a directory\n") && said.lines().count() == 1, "{said}");
    }
    let output = program(&[GATE, "--pseudonyms", "captures"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "moulsniff: captures: expected a file for --pseudonyms, found a folder\n");
    let output = program(&[GATE, "--pseudonyms", "README.md"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with(
            "moulsniff: README.md: expected a file for --pseudonyms, found more than "
        ) && said.ends_with(" bytes\n"),
        "{said}"
    );
}

#[test]
fn of_an_option_that_is_repeated_the_last_one_counts() {
    let once = run(&[GATE, "-q", "--oneline", "-c", "1"]);
    let twice = [
        "-q",
        GATE,
        "-q",
        "--oneline",
        "--oneline",
        "-c",
        "9",
        "-c",
        "1",
        "--color",
        "always",
        "--color",
        "never",
    ];
    assert_eq!(run(&twice), once);
    // The first of two conditions would be lost.
    mistake(&[GATE, "-Y", "frame > 1", "-Y", "frame > 2"], "--filter (-Y) may be given once");
    mistake(
        &["stats", GATE, "-Y", "frame > 1", "-Y", "frame > 2"],
        "--filter (-Y) may be given once",
    );
}

#[test]
fn a_port_is_decoded_as_one_protocol_that_runs_over_its_transport() {
    mistake(&[GATE, "--decode-as", "udp:14000=moul"], "moul runs over tcp, not over udp");
    mistake(&[GATE, "--decode-as", "udp:9000=intermud3"], "intermud3 runs over tcp, not over udp");
    mistake(
        &[GATE, "--decode-as", "tcp:1=moul", "--decode-as", "1=ouro"],
        "tcp:1 cannot be both moul and ouro",
    );
    let (status, ..) = run(&[
        GATE,
        "-q",
        "--decode-as",
        "tcp:1=ouro",
        "--decode-as",
        "udp:1=ouro",
        "--decode-as",
        "1=ouro",
    ]);
    assert_eq!(status, Some(0));
}

#[test]
fn mistakes_are_told_in_words_for_people() {
    mistake(&[GATE, "-c", "x"], "expected a whole number");
    mistake(&[GATE, "--threads", "0"], "expected a number from 1 to 65535");
    mistake(&["split", GATE, "--into", "x", "-o", "never-made"], "expected a number from 1 to 256");
    mistake(&[GATE, "--columns", ""], "a column is missing here");
    mistake(&[GATE, "--columns", "record,"], "a column is missing here");
    mistake(&["decode", "--type", "u8[", "00"], "found the end\n");
    mistake(&["decode", "--bit", "3", "moul.auth.client", "1a00"], "--type <TYPE>");
    for words in [
        &["follow", "--all", GATE, "-o", "/dev/null"][..],
        &["split", GATE, "--into", "2", "-o", "/dev/null"],
        &["export", "files", GATE, "-o", "/dev/null"],
    ] {
        let (status, _, said) = run(words);
        assert_eq!(
            (status, said.as_str()),
            (Some(1), "moulsniff: /dev/null: expected a folder, found a file\n")
        );
    }
    let (_, _, said) = run(&[GATE, "--pseudonyms", "/dev/null"]);
    assert!(
        said.contains("a device, which is not read") && !said.contains("standard input"),
        "{said}"
    );
}

#[test]
fn where_no_record_is_asked_for_nothing_is_said_of_what_was_recognised() {
    let (status, out, said) = run(&[GATE, "-c", "0", "--strict"]);
    assert_eq!((status, out.as_str()), (Some(0), ""), "{said}");
    assert!(!said.contains("nothing was recognised"), "{said}");
}

#[test]
fn messages_before_bytes_that_cannot_be_read_are_printed() {
    let (status, out, said) =
        run(&["decode", "moul.gatekeeper.client", "01000000000000", "ffff", "--json"]);
    assert_eq!((status, out.lines().count()), (Some(1), 1), "{out}{said}");
    assert!(
        out.contains("Cli2GateKeeper_FileSrvIpAddressRequest") && said.contains("at byte 7: "),
        "{out}{said}"
    );
}

#[test]
fn bytes_to_decode_have_a_bound_that_is_told() {
    let zeros = Stdio::from(File::open("/dev/zero").unwrap());
    let Output { status, stderr, .. } =
        program(&["decode", "moul.auth.client"]).stdin(zeros).output().unwrap();
    let said = "moulsniff: standard input: expected bytes to decode, found more than 16 MiB\n";
    assert_eq!((status.code(), String::from_utf8_lossy(&stderr).as_ref()), (Some(1), said));
}

#[test]
fn the_help_of_an_option_fits_its_command() {
    let help = |command: &str| run(&[command, "--help"]).1;
    assert!(
        !help("report").contains("--tail")
            && !help("diff").contains("--tail")
            && help("stats").contains("--tail")
    );
    assert!(
        help("sessions").contains("one line a session")
            && help("diff").contains("one line for each difference")
    );
    // Where the words before the options are not simply captures that are read as one.
    let words = |command: &str| help(command).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words("diff").contains("Compare these two captures")
            && !words("diff").contains("standard input")
    );
    assert!(
        words("sessions").contains("is the session to print")
            && words("follow").contains("Print this stream (tcp:3")
    );
    assert!(words("split").contains("at most 256"));
}

#[test]
fn a_message_that_is_replaced_is_listed_once() {
    let (_, shown, _) = run(&["tables", "show", "Cli2Auth_VaultNodeFetch"]);
    let file = scratch("replaced.table");
    fs::write(&file, format!("protocol moul\n{shown}")).unwrap();
    let words = ["tables", "list", "Cli2Auth_VaultNodeFetch", "--tables", file.to_str().unwrap()];
    assert_eq!(run(&words).1, "moul.auth.client\t26\tCli2Auth_VaultNodeFetch\n");
    // What is no text has a place, too.
    fs::write(&file, b"protocol moul\nx\xff").unwrap();
    mistake(&words, ".table:2:2: expected text in UTF-8\n");
    fs::remove_file(&file).unwrap();
}

#[test]
fn keys_are_taken_out_of_a_capture_on_standard_input() {
    let out = scratch("strip");
    let from_file = out.with_extension("file");
    let from_pipe = out.with_extension("pipe");
    let strip = |from: &str, to: &PathBuf| {
        program(&["keys", "strip", from, "-q", "-o", to.to_str().unwrap()])
    };
    assert!(strip(GATE, &from_file).status().unwrap().success());
    let input = File::open(crate::common::file(GATE)).unwrap();
    assert!(strip("-", &from_pipe).stdin(input).status().unwrap().success());
    assert_eq!(fs::read(&from_pipe).unwrap(), fs::read(&from_file).unwrap());
    [from_file, from_pipe].iter().for_each(|file| fs::remove_file(file).unwrap());
}

#[test]
fn a_damaged_clock_has_a_time_that_can_be_written() {
    let block = |kind: u32, body: &[u8]| {
        let length = u32::to_le_bytes(body.len() as u32 + 12);
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let section = block(
        0x0a0d_0d0a,
        &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat(),
    );
    let offset = [&[14, 0, 8, 0][..], &i64::MIN.to_le_bytes(), &[0; 4]].concat();
    let interface = block(1, &[&[1, 0, 0, 0, 0, 0, 0, 0][..], &offset].concat());
    let packet = block(6, &[0; 20]);
    let file = scratch("clock.pcapng");
    fs::write(&file, [section, interface, packet].concat()).unwrap();
    let (status, _, said) = run(&[file.to_str().unwrap()]);
    fs::remove_file(&file).unwrap();
    assert!(status == Some(0) && said.contains("; 1 frame of a damaged clock"), "{said}");
}
