//! The configuration file: where it is found, what it says, what wins over it, and mistakes in it.
#![cfg(unix)]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::common::{file, hold, program, scratch, shell};
use crate::transcripts::{played, printed_by};

const CAPTURE: &str = "captures/moul/kind_gate.pcap";

/// A folder for configurations, with a file in it; it goes away with the test.
struct ConfigFolder(PathBuf);

impl ConfigFolder {
    fn new(test: &str, text: &[u8]) -> ConfigFolder {
        let folder = scratch(format!("config-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("moulsniff")).unwrap();
        let made = ConfigFolder(folder);
        fs::write(made.file(), text).unwrap();
        made
    }

    fn file(&self) -> PathBuf {
        self.0.join("moulsniff/config.toml")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = program();
        command
            .current_dir(file(""))
            .env("XDG_CONFIG_HOME", &self.0)
            .env_remove("MOULSNIFF_KEYS")
            .args(words);
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        said(&self.command(words).output().unwrap())
    }
}

impl Drop for ConfigFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The commands of docs/settings.md, with the file that stands on the page.
#[test]
fn page_of_settings() {
    let path = file("docs/settings.md");
    let page = fs::read_to_string(&path).unwrap();
    let config = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let home = ConfigFolder::new("page", b"");
    let folder = home.0.join(".config/moulsniff");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), config).unwrap();
    for name in ["captures", "keys"] {
        std::os::unix::fs::symlink(file(name), home.0.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(file("keys"), folder.join("keys")).unwrap();
    let run = |command: &str| {
        let mut shell = shell();
        shell
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("MOULSNIFF_KEYS")
            .env("HOME", &home.0)
            .current_dir(&home.0);
        Some(printed_by(shell, command).replace(home.0.to_str().unwrap(), "/home/admin"))
    };
    hold(&path, &played(&page, &run), "TRANSCRIPTS");
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let config = ConfigFolder::new("wins", b"keys = 'one.ini'\ntime = 'delta'\n");
    fs::copy(file("keys/dirtsand.ini"), config.0.join("moulsniff/one.ini")).unwrap();
    let opened = |text: &str| text.contains("opens this connection");
    assert!(opened(&config.run(&[CAPTURE, "-q"]).1));
    assert!(!opened(&config.run(&[CAPTURE, "-q", "--no-config"]).1));
    assert!(!opened(&config.run(&["--no-config", CAPTURE, "-q"]).1));
    assert!(!opened(&config.run(&[CAPTURE, "-q", "--keys", "keys/nagus.ini"]).1));
    let environment = |words: &[&str]| {
        said(&config.command(words).env("MOULSNIFF_KEYS", "keys/nagus.ini").output().unwrap())
    };
    assert!(!opened(&environment(&[CAPTURE, "-q"]).1));
    assert!(opened(&environment(&[CAPTURE, "-q", "--keys", "keys/dirtsand.ini"]).1));

    let first = |words: &[&str]| config.run(words).1.lines().next().unwrap_or_default().to_owned();
    assert!(first(&[CAPTURE, "-q", "--oneline"]).contains(" 0.000000 "));
    assert!(first(&[CAPTURE, "-q", "--oneline", "-t", "absolute"]).contains(':'));
    // The form of times is none of these outputs' business, and no mistake there.
    for words in [[CAPTURE, "-q", "--json"], [CAPTURE, "-q", "--csv"], ["stats", CAPTURE, "-q"]] {
        assert_eq!(config.run(&words).0, Some(0), "{words:?}");
    }

    let shown = environment(&["config", "-t", "local", "--sdl", "nowhere"]).1;
    let line = |what: &str| {
        shown.lines().find(|line| line.starts_with(what)).unwrap_or_default().to_owned()
    };
    assert!(line("keys").ends_with("  MOULSNIFF_KEYS  keys/nagus.ini"), "{shown}");
    assert!(line("time").contains("command line") && line("time").ends_with("local"), "{shown}");
    assert!(
        line("sdl").contains("command line")
            && line("sdl").ends_with("nowhere (there is no such file)"),
        "{shown}"
    );
    assert!(line("tables").contains("default") && line("tables").ends_with("none"), "{shown}");
}

#[test]
fn tables_and_descriptors_of_the_file_are_read() {
    let table = "protocol moul\nmessage auth client 9000 Cli2Auth_AgePopulationRequest {\n    \
                 trans_id: u32 transaction\n}\n";
    let config = ConfigFolder::new("tables", b"tables = ['more']\nsdl = 'states'\n");
    let folder = config.0.join("moulsniff");
    for (name, text) in [
        ("more/own.table", table),
        ("states/city.sdl", "STATEDESC city { VERSION 1 VAR INT count[1] DEFAULT=0 }\n"),
    ] {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), text).unwrap();
    }
    let own = |words: &[&str]| config.run(words).1.contains("AgePopulationRequest");
    assert!(own(&["tables", "list", "AgePopulation"]));
    assert!(own(&["decode", "moul.auth.client", "2823 07000000"]));
    assert!(own(&["schema"]));
    assert!(!own(&["tables", "list", "AgePopulation", "--no-config"]));
    assert!(!own(&["tables", "list", "AgePopulation", "--tables", "examples/protocols/dns.table"]));

    // A mistake in a file that is named there is told with the line that names it; the command line
    // makes it go away.
    fs::write(folder.join("states/city.sdl"), "STATEDESC {").unwrap();
    let (status, _, error) = config.run(&[CAPTURE, "-q"]);
    assert!(status == Some(2) && error.contains("city.sdl"), "{error}");
    fs::remove_dir_all(folder.join("states")).unwrap();
    let (status, _, error) = config.run(&[CAPTURE, "-q"]);
    assert_eq!(status, Some(1));
    assert!(error.lines().count() == 1 && error.contains("config.toml, line 2"), "{error}");
    assert_eq!(
        config.run(&[CAPTURE, "-q", "--sdl", "captures"]).0,
        config.run(&[CAPTURE, "-q", "--no-config", "--sdl", "captures"]).0
    );
    // These read nothing of it.
    assert_eq!(config.run(&["keys", "check", "keys/dirtsand.ini"]).0, Some(0));
}

#[test]
fn mistakes_are_one_line_with_their_place() {
    let cases: &[(&[u8], &str)] = &[
        (
            b"kees = ['a']",
            ":1:1: expected one of keys, sdl, tables, time, filters, columns, found `kees`; did \
             you mean `keys`?",
        ),
        (b"\n[filter]\na = 'b'", ":2:2: expected one of"),
        (b"[crypt_keys]\nauth.n = 'U0VDUkVU'", "found `crypt_keys`"),
        (b"keys = 5", ":1:8: expected the path of a file"),
        (b"keys = ['a', '']", ":1:14: expected the path of a file"),
        (b"keys = ['a'", ":1:12: no TOML: unclosed array"),
        (b"keys = 'a'\nkeys = 'b'", ":2:1: no TOML: duplicate key"),
        (
            b"# \xc3\xa9\ntime = 'lokal'",
            ":2:8: expected one of absolute, local, relative, delta in quotes; did you mean \
             `local`?",
        ),
        (b"time = 1979-05-27", ":1:8: expected one of absolute"),
        (b"[filters]\nr = ['refused']", ":2:5: expected NAME = a filter in quotes"),
        (b"[filters]\n'a b' = 'refused'", ":2:1: the name of a filter has ASCII letters"),
        (b"columns = 'record'", ":1:11: expected NAME = a list of columns in quotes"),
        (b"time = 'local'\n\xff", ":2:1: expected text in UTF-8"),
        (b"x", ":1:2: no TOML"),
    ];
    for (text, right) in cases {
        let config = ConfigFolder::new("mistakes", text);
        for words in [&[CAPTURE, "-q"][..], &["config"]] {
            let (status, out, error) = config.run(words);
            assert_eq!((status, out.as_str()), (Some(2), ""), "{right}: {error}");
            assert!(
                error.lines().count() == 1
                    && error.contains(right)
                    && error.contains("config.toml"),
                "{right}: {error}"
            );
            assert!(!error.contains("U0VDUkVU"));
        }
        // Help, completions and the like do not depend on it.
        for words in
            [&["--help"][..], &["completions", "bash"], &["man"], &["config", "--no-config"]]
        {
            assert_eq!(config.run(words).0, Some(0), "{words:?}");
        }
    }
}

#[test]
fn deep_long_and_odd_files_are_refused() {
    let config = ConfigFolder::new(
        "odd",
        "x = ".bytes().chain(std::iter::repeat_n(b'[', 300_000)).collect::<Vec<_>>().as_slice(),
    );
    assert_eq!(config.run(&[CAPTURE]).0, Some(2));
    let refused = |right: &str| {
        for words in [&[CAPTURE, "-q"][..], &["config"]] {
            let (status, out, error) = config.run(words);
            assert_eq!((status, out.as_str()), (Some(1), ""), "{right}: {error}");
            assert!(error.lines().count() == 1 && error.contains(right), "{right}: {error}");
        }
    };
    fs::write(config.file(), "#".repeat((1 << 20) + 1)).unwrap();
    refused("expected a configuration file, found more than 1 MiB");
    fs::remove_file(config.file()).unwrap();
    assert!(Command::new("mkfifo").arg(config.file()).status().unwrap().success());
    refused("found a folder, a named pipe or a device");
    fs::remove_file(config.file()).unwrap();
    std::os::unix::fs::symlink("/dev/zero", config.file()).unwrap();
    refused("found a folder, a named pipe or a device");
    fs::remove_file(config.file()).unwrap();
    fs::create_dir(config.file()).unwrap();
    refused("found a folder, a named pipe or a device");
}

#[test]
fn without_a_file_nothing_is_missing() {
    for folder in ["/dev/null", "relative", "/nowhere"] {
        let output = program()
            .current_dir(file(""))
            .env("XDG_CONFIG_HOME", folder)
            .env("HOME", "/nowhere")
            .args(["config"])
            .output()
            .unwrap();
        let (status, out, error) = said(&output);
        assert_eq!((status, error.as_str()), (Some(0), ""));
        let below = if folder == "relative" { "/nowhere/.config" } else { folder };
        assert_eq!(
            out.lines().next().unwrap(),
            format!("file    none     {below}/moulsniff/config.toml")
        );
    }
}

#[test]
fn no_output_replaces_the_file() {
    let config = ConfigFolder::new("input", b"time = 'local'\n");
    let folder = config.0.clone();
    let named = config.file();
    let path = named.to_str().unwrap();
    let part = folder.join("part-00.pcapng");
    std::os::unix::fs::symlink(path, &part).unwrap();
    let link = folder.join("hard.pcapng");
    fs::hard_link(path, &link).unwrap();
    let commands: &[&[&str]] = &[
        &["keys", "strip", CAPTURE, "-o", path],
        &["keys", "strip", CAPTURE, "-o", link.to_str().unwrap()],
        &["keys", "inject", CAPTURE, "--keys", "keys/dirtsand.ini", "-o", path],
        &["export", "messages", CAPTURE, "-o", path],
        &["report", CAPTURE, "-o", path],
        &["split", CAPTURE, "--into", "2", "-o", folder.to_str().unwrap()],
    ];
    for words in commands {
        let (status, _, error) = config.run(words);
        assert!(
            status == Some(2) && error.contains("it is not written over"),
            "{words:?}: {error}"
        );
        assert_eq!(fs::read(&named).unwrap(), b"time = 'local'\n", "{words:?}");
    }
}

#[test]
fn names_stand_for_whole_conditions_and_columns() {
    let text = b"[filters]\neither = \"message == ConnectPacket or message == Cli2Srv_Connect\"\nwrong = \"fields.transid == 7\"\n\
                 loop = \"not @loop2\"\nloop2 = \"@loop\"\nhalf = \"message == ConnectPacket) or (record > 0\"\n\
                 [columns]\nbrief = \"record , message\"\nself = \"record,@self\"\n";
    let config = ConfigFolder::new("names", text);
    let kept = |filter: &str| config.run(&[CAPTURE, "-q", "--columns", "@brief", "-Y", filter]).1;
    let written =
        |filter: &str| config.run(&[CAPTURE, "-q", "--columns", "record,message", "-Y", filter]).1;
    let either = "(message == ConnectPacket or message == Cli2Srv_Connect)";
    assert_eq!(kept("@either and record > 1"), written(&format!("{either} and record > 1")));
    assert_eq!(kept("not @either"), written(&format!("not {either}")));
    assert!(written("not @either").lines().count() > 2 && written("@either").lines().count() == 3);
    for (words, right) in [
        (["-Y", "@wrong"], "@wrong in "),
        (["-Y", "@wrong"], "did you mean `trans_id`?"),
        (["-Y", "@loop"], "uses itself"),
        (["-Y", "@half"], "this parenthesis was never opened"),
        (["-Y", "@eiter"], "no filter has the name `eiter`; did you mean `either`?"),
        (["-Y", "@brief"], "these are columns"),
        (["-Y", "@"], "no filter has the name ``"),
        (["-Y", "@either.x"], "expected an operator"),
        (["-Y", "record == @either"], "column 11: `record` is a number, not `@either`"),
        (["--columns", "@self"], "uses itself"),
        (["--columns", "@either"], "this is a filter"),
    ] {
        let (status, out, error) = config.run(&[CAPTURE, words[0], words[1]]);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{words:?}");
        assert!(error.contains(right), "{words:?}: {error}");
    }
    let (status, out, error) = config.run(&["config"]);
    assert!(
        status == Some(2) && out.contains("@wrong") && error.contains("filter: @half in "),
        "{error}"
    );

    // A page is read by people who do not have the file.
    let page = config.0.join("page.html");
    let done =
        config.run(&["report", CAPTURE, "-q", "-Y", "@either", "-o", page.to_str().unwrap()]);
    assert_eq!(done.0, Some(0), "{}", done.2);
    let meta = crate::report::block(&fs::read_to_string(&page).unwrap(), "data-meta");
    let meta: serde_json::Value = serde_json::from_slice(&meta).unwrap();
    let limit = "Only the records that this filter keeps: @either; @either is message == \
                 ConnectPacket or message == Cli2Srv_Connect";
    assert_eq!(meta["limits"], serde_json::json!([limit]));
}

#[test]
fn names_are_used_a_bounded_number_of_times() {
    let mut text = String::from("[filters]\na0 = 'refused'\n");
    for n in 1..40 {
        text.push_str(&format!("a{n} = '@a{0} or @a{0}'\n", n - 1));
    }
    let config = ConfigFolder::new("bounded", text.as_bytes());
    let (status, _, error) = config.run(&[CAPTURE, "-Y", "@a39"]);
    assert!(status == Some(2) && error.contains("names are used more than 200 times"), "{error}");
}
