//! `--oneline`, times, marks of other locales, and names that filters do not take away.

#[cfg(unix)]
use crate::common::on_a_terminal;

const CAPTURE: [&str; 3] = ["captures/moul/nagus.pcapng", "--keys", "keys/nagus.ini"];

fn printed(more: &[&str], environment: &[(&str, &str)]) -> String {
    let mut program = crate::common::program();
    program.current_dir(env!("CARGO_MANIFEST_DIR")).args(CAPTURE).args(more).arg("--quiet");
    let output = program.envs(environment.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_record_is_one_line() {
    let lines = printed(&["--oneline"], &[]);
    assert_eq!(lines.lines().count(), printed(&["--json"], &[]).lines().count());
    let first = lines.lines().next().unwrap();
    assert!(first.starts_with("     1 "), "{first}");
    assert!(lines.lines().all(|line| !line.ends_with(' ')), "{lines}");
}

#[test]
fn lines_do_not_depend_on_threads() {
    for more in [
        &["--oneline"][..],
        &["--oneline", "-t", "delta"],
        &["-t", "relative"],
        &["-Y", "from == server"],
    ] {
        let with = |threads| printed(&[more, &["--threads", threads]].concat(), &[]);
        assert_eq!(with("1"), with("3"), "{more:?}");
    }
}

#[test]
fn relative_times_begin_with_0_and_deltas_add_up_to_them() {
    let times = |form| -> Vec<f64> {
        let lines = printed(&["--oneline", "-t", form], &[]);
        lines.lines().map(|line| line.split_whitespace().nth(1).unwrap().parse().unwrap()).collect()
    };
    let relative = times("relative");
    let delta = times("delta");
    assert_eq!((relative[0], delta[0]), (0.0, 0.0));
    assert!((delta.iter().sum::<f64>() - relative.last().unwrap()).abs() < 1e-3);
}

#[test]
fn a_filter_takes_no_names_away() {
    for threads in ["1", "2"] {
        let whole = printed(&["--threads", threads], &[]);
        let inferred = |text: &str| {
            text.lines()
                .filter(|l| l.contains("(inferred, "))
                .map(str::to_string)
                .collect::<Vec<_>>()
        };
        let some = printed(&["--threads", threads, "-Y", "from == server and message"], &[]);
        let kept: Vec<String> =
            some.split("\n#").map(|record| record.trim_start_matches('#').to_string()).collect();
        for record in &kept {
            let number = record.split_whitespace().next().unwrap();
            let same = whole
                .split("\n#")
                .find(|r| r.trim_start_matches('#').split_whitespace().next() == Some(number));
            if let Some(same) = same {
                assert_eq!(inferred(record), inferred(same), "{threads} threads, record {number}");
            }
        }
        assert!(!inferred(&some).is_empty(), "{some}");
    }
}

#[test]
fn a_locale_without_unicode_has_ascii_marks() {
    for locale in ["C", "POSIX", "de_DE.ISO-8859-1"] {
        let text = printed(&[], &[("LC_ALL", locale)]);
        assert!(!text.contains(['▸', '─', '·']) && text.contains(" > "), "{locale}");
    }
    for locale in ["C.UTF-8", "de_DE.utf8"] {
        assert!(printed(&[], &[("LC_ALL", locale)]).contains(" ▸ "), "{locale}");
    }
}

#[cfg(unix)]
#[test]
fn columns_stay_under_each_other_at_every_width() {
    let (program, [capture, _, keys]) = (env!("CARGO_BIN_EXE_moulsniff"), CAPTURE);
    let folder = env!("CARGO_MANIFEST_DIR");
    for (width, least) in [(80, 26), (100, 20), (120, 40), (200, 90)] {
        let command = format!(
            "cd {folder}; LC_ALL=C.UTF-8 COLUMNS={width} {program} {capture} --keys {keys} \
             --oneline -q --color never"
        );
        let Some(text) = on_a_terminal(&command) else { return };
        let lines: Vec<Vec<char>> =
            text.lines().map(|line| line.trim_end().chars().collect()).collect();
        assert_eq!(lines.len(), printed(&["--oneline"], &[]).lines().count());
        // Where the message's name begins, and what it is about.
        let place = |line: &[char], word: &str| {
            line.iter()
                .collect::<String>()
                .find(word)
                .map(|at| line.iter().collect::<String>()[..at].chars().count())
        };
        let name = lines.iter().find_map(|line| place(line, "ConnectPacket")).unwrap();
        let info = lines.iter().find_map(|line| place(line, "key agreement")).unwrap();
        for line in &lines {
            let whole: String = line.iter().collect();
            assert!(line.len() <= width, "{width}: {whole}");
            assert!(line[name - 1] == ' ' && line[name] != ' ', "{width}: {whole}");
            assert!(
                line.len() < info || line[info - 1] == ' ' && line[info] != ' ',
                "{width}: {whole}"
            );
        }
        assert!(
            width - info >= least,
            "{width}: {} characters say what a message is about",
            width - info
        );
        assert!(
            lines.iter().any(|line| line.len() == width && line.last() == Some(&'~')),
            "{width}: nothing is cut"
        );
    }
}

#[test]
fn lines_in_a_pipe_are_whole() {
    let text = printed(&["--oneline"], &[("COLUMNS", "40")]);
    assert!(
        !text.lines().any(|line| line.ends_with('~'))
            && text.lines().any(|line| line.chars().count() > 150),
        "{text}"
    );
}

#[test]
fn local_times_are_those_of_the_zone() {
    let at = |zone: &str| printed(&["-t", "local", "-c", "1"], &[("TZ", zone)]);
    assert_eq!(at("UTC0"), printed(&["-c", "1"], &[]));
    let utc = at("UTC0");
    let far = at("XXX-14");
    let hour = |text: &str| {
        text.split_once("  ").unwrap().1.split_once("  ").unwrap().1[..2].parse::<u32>().unwrap()
    };
    assert_eq!(hour(&far), (hour(&utc) + 14) % 24);
    assert!(far.lines().next().unwrap().ends_with(" (XXX, UTC+14:00)"), "{far}");
    let lines = printed(&["-t", "local", "-c", "1", "--oneline"], &[("TZ", "XXX-14")]);
    assert!(lines.contains(&format!(" {:02}:", hour(&far))), "{lines}");
    let mut program = crate::common::program();
    let output = program
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(CAPTURE)
        .args(["-t", "local"])
        .env("TZ", "No/Where");
    let output = output.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`No/Where`"));
    // A device has no end.
    let output = program.env("TZ", "/dev/zero").output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn what_is_said_of_many_fields_is_said_once() {
    let mut program = crate::common::program();
    let program = program
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["captures/moul/moss_full.pcapng", "-q"]);
    let output = program
        .args(["--keys", "keys/moss_auth_key.der", "--keys", "keys/moss_game_key.der"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let note = "  · note, 48 times: a boolean of 204: in refs[0].seen, refs[1].seen, refs[2].seen \
                and others\n";
    assert_eq!(text.matches(note).count(), 1, "{text}");
    assert_eq!(text.matches("a boolean of 204").count(), 1);
    assert!(text.contains("  · note: "), "what is said once has no number");
}

#[test]
fn without_an_info_line_a_message_shows_its_own_first_fields() {
    let table = crate::exported_messages::folder("own-fields").join("own.table");
    let blocks = "Sender: { Agent: uuidbe Session: uuidbe secret } Said: { Text: utf8[u16] \
                  trimmed Kind: u8 Channel: u32 }";
    let secondlife = format!("protocol secondlife\nmessage circuit both low 80 Own {{ {blocks} }}");
    let fields = "Sender.Agent=00000000-0000-0000-0000-0000000000aa Said.Text=hello Said.Kind=1";
    let ouro = "protocol ouro\nmessage user client 2 Own { first: bits(5) second: bits(2) }";
    for (text, capture, fields) in [
        (&*secondlife, "captures/secondlife/opensim.pcapng.gz", fields),
        (ouro, "captures/ouro/coh_seed_udp.pcapng", "first=2 second=2"),
    ] {
        std::fs::write(&table, text).unwrap();
        let filter = "message == Own";
        let told = crate::exported_messages::run(&[
            "--oneline",
            "--quiet",
            "-Y",
            filter,
            "--tables",
            table.to_str().unwrap(),
            capture,
        ]);
        let told = String::from_utf8(told.stdout).unwrap();
        assert!(
            told.lines().next().is_some_and(|line| line.ends_with(&format!(" {fields}"))),
            "{told}"
        );
    }
}
