//! `--keys`, `--sdl` and `keys check` as people type them: folders, the environment, pipes,
//! devices, and files that hold none.

use std::path::PathBuf;
use std::process::{Command, Output};

use super::common::{file, scratch};

const CAPTURE: &str = "captures/moul/kind_gate.pcap";

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = scratch(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn moulsniff(arguments: &[&str]) -> Command {
    let mut program = crate::common::program();
    program.current_dir(file("")).args(arguments).env_remove("MOULSNIFF_KEYS");
    program
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_folder_stands_for_the_key_files_in_it() {
    let keys = folder("key-folder");
    for name in ["nagus.ini", "dirtsand.ini", "server.ini", "README.md"] {
        std::fs::copy(file("keys").join(name), keys.join(name)).unwrap();
    }
    let output = moulsniff(&[CAPTURE, "--quiet", "--keys"]).arg(&keys).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    assert!(printed(&output).contains("dirtsand.ini opens this connection"));
    // A file that opens nothing is named, one of another kind is not.
    assert!(
        errors(&output).contains("server.ini: a client's server.ini")
            && !errors(&output).contains("README")
    );

    let none = folder("no-keys");
    std::fs::write(none.join("diary.txt"), "dear diary").unwrap();
    let output = moulsniff(&[CAPTURE, "--keys"]).arg(&none).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains("none of the files in this folder is a key file"),
        "{}",
        errors(&output)
    );
}

#[test]
fn the_environment_stands_in_for_the_option_and_the_option_wins() {
    let with = |arguments: &[&str]| {
        moulsniff(arguments)
            .env("MOULSNIFF_KEYS", "keys/nagus.ini:keys/dirtsand.ini")
            .output()
            .unwrap()
    };
    assert!(printed(&with(&[CAPTURE, "-q"])).contains("keys/dirtsand.ini opens this connection"));
    let typed = printed(&with(&[CAPTURE, "-q", "--keys", "keys/nagus.ini"]));
    assert!(typed.contains("does not open") || typed.contains("none of the 3 keys"), "{typed}");
}

#[test]
fn a_server_that_does_not_encrypt_needs_no_keys() {
    let config = folder("nagus").join("nagus.ini");
    for text in [
        "[server]\nport = 14617\nencryption = none\n",
        "[server.auth]\nsend_server_caps = always\n",
    ] {
        std::fs::write(&config, text).unwrap();
        let output = moulsniff(&[CAPTURE, "--quiet", "--keys"]).arg(&config).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        assert!(
            errors(&output).contains("a NAGUS configuration without keys"),
            "{}",
            errors(&output)
        );
        assert!(printed(&output).contains("ConnectPacket"));
    }
    // Half a key is a mistake.
    std::fs::write(&config, "[server.auth]\nkey_g = 41\n").unwrap();
    assert_eq!(
        moulsniff(&[CAPTURE, "--keys"]).arg(&config).output().unwrap().status.code(),
        Some(1)
    );
}

#[test]
fn keys_check_reads_what_keys_inject_wrote() {
    let out = folder("injected").join("out.pcapng");
    let inject = moulsniff(&["keys", "inject", CAPTURE, "--keys", "keys/dirtsand.ini", "-o"])
        .arg(&out)
        .output()
        .unwrap();
    assert!(inject.status.success(), "{}", errors(&inject));
    let check = moulsniff(&["keys", "check"]).arg(&out).output().unwrap();
    assert!(check.status.success(), "{}", errors(&check));
    let text = printed(&check);
    assert!(
        text.contains("keys in the capture: moulsniff shard.keys") && text.contains("one session"),
        "{text}"
    );
    let check = moulsniff(&["keys", "check", CAPTURE]).output().unwrap();
    assert_eq!(check.status.code(), Some(1));
    assert!(errors(&check).contains("a capture without keys in it"));
}

#[test]
fn a_check_goes_on_behind_a_file_that_is_wrong() {
    let keys = folder("check-all");
    std::fs::copy(file(CAPTURE), keys.join("a.pcap")).unwrap();
    std::fs::write(keys.join("b.pcap"), &std::fs::read(file(CAPTURE)).unwrap()[..1001]).unwrap();
    let whole = std::fs::read_to_string(file("keys/dirtsand.ini")).unwrap();
    std::fs::write(keys.join("c.ini"), whole.replacen("Key.Auth.N = ", "Key.Auth.N = !", 1))
        .unwrap();
    std::fs::write(keys.join("d.ini"), &whole).unwrap();
    let check = moulsniff(&["keys", "check", "nowhere.ini"]).arg(&keys).output().unwrap();
    let said = errors(&check);
    assert_eq!((check.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(["nowhere.ini", "b.pcap", "c.ini"].iter().all(|wrong| said.contains(wrong)), "{said}");
    assert!(
        printed(&check).contains("d.ini") && !said.contains("d.ini") && !said.contains("a.pcap"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
fn pipes_by_name_and_devices_are_refused_and_standard_input_is_read() {
    let pipe = folder("pipe").join("keys.fifo");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for option in ["--keys", "--sdl"] {
        for path in [pipe.as_path(), "/dev/zero".as_ref()] {
            let output = moulsniff(&[CAPTURE, option]).arg(path).output().unwrap();
            assert_eq!(output.status.code(), Some(1));
            assert!(errors(&output).contains("a named pipe or a device"), "{}", errors(&output));
        }
    }
    let keys = std::fs::File::open(file("keys/dirtsand.ini")).unwrap();
    let output = moulsniff(&[CAPTURE, "-q", "--keys", "-"]).stdin(keys).output().unwrap();
    assert!(
        printed(&output).contains("a key of standard input opens this connection"),
        "{}",
        errors(&output)
    );
    let endless = std::fs::File::open("/dev/zero").unwrap();
    let output = moulsniff(&[CAPTURE, "-q", "--keys", "-"]).stdin(endless).output().unwrap();
    assert!(
        errors(&output).contains("expected a key file, found more than 16 MiB"),
        "{}",
        errors(&output)
    );
}

/// Reading one may wait for ever: the kernel's messages are there once.
#[cfg(target_os = "linux")]
#[test]
fn files_of_the_kernel_are_not_read() {
    for path in ["/proc/cpuinfo", "/proc/kmsg"] {
        for words in [
            &[CAPTURE, "--keys", path][..],
            &[CAPTURE, "--sdl", path],
            &[CAPTURE, "--tables", path],
            &[CAPTURE, "--pseudonyms", path],
            &["keys", "check", path],
            &["tables", "check", path],
            &["diff", CAPTURE, CAPTURE, "--ignore-file", path],
        ] {
            let output = moulsniff(words).output().unwrap();
            let said = errors(&output);
            assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
            assert!(
                said.contains(", which is not read") && said.lines().count() == 1,
                "{words:?}: {said}"
            );
        }
        let output = moulsniff(&["--tail", path]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
        assert!(
            errors(&output)
                .contains("expected a capture file that another program writes, found a ")
        );
    }
    // In a folder they are passed over.
    let output = moulsniff(&[CAPTURE, "--sdl", "/proc"]).output().unwrap();
    assert!(
        errors(&output).contains("/proc: expected a state descriptor file in this folder"),
        "{}",
        errors(&output)
    );
    // What a shell passes by number is read.
    let line = "exec \"$0\" \"$1\" -q --keys /dev/fd/3 3<keys/dirtsand.ini";
    let mut shell = crate::common::shell();
    shell.args(["-c", line, env!("CARGO_BIN_EXE_moulsniff"), CAPTURE]).current_dir(file(""));
    let output = shell.output().unwrap();
    assert!(printed(&output).contains("opens this connection"), "{}", errors(&output));
    let line = "cat keys/dirtsand.ini | \"$0\" \"$1\" -q --keys /dev/stdin";
    let mut shell = crate::common::shell();
    shell.args(["-c", line, env!("CARGO_BIN_EXE_moulsniff"), CAPTURE]).current_dir(file(""));
    let output = shell.output().unwrap();
    assert!(printed(&output).contains("opens this connection"), "{}", errors(&output));
}

#[test]
fn errors_quote_nothing_of_a_key_file() {
    let path = folder("secret").join("secret.ini");
    let secret = "hunter2hunter2hunter2hunter2";
    for text in [
        format!("Key.Auth.N = {secret}\nKey.Auth.K = {secret}\n"),
        format!("[crypt_keys]\nauth.n = \"{secret}\"\nauth.k = {secret}\n"),
        format!("[server.auth]\nkey_n = {secret}\nkey_a = {secret}\n"),
        format!("private auth n={secret} k={secret}\n"),
        format!("session {secret} rc4={secret}\n"),
        format!("{secret}\n"),
    ] {
        std::fs::write(&path, text).unwrap();
        for command in [
            &[CAPTURE, "--keys"][..],
            &["keys", "check"],
            &["tables", "check"],
            &[CAPTURE, "--tables"],
            &[CAPTURE, "--sdl"],
        ] {
            let output = moulsniff(command).arg(&path).output().unwrap();
            assert!(!output.status.success());
            assert!(
                !errors(&output).contains("hunter2") && !printed(&output).contains("hunter2"),
                "{command:?}: {}",
                errors(&output)
            );
        }
    }
}

/// A key where a name or a number is expected: the error may end in a bug report.
#[test]
fn errors_quote_no_key_that_was_typed() {
    let hex = "8a4f0d2b9c3e5d7f8a4f0d2b9c3e5d7f";
    let base64 = "ik8NK5w+XX+KTw0rnD5df4pPDSucPl1/ik8NK5w+XX8=";
    let url = "ik8NK5w-XX_KTw0rnD5df4pPDSucPl1_ik8NK5w".repeat(2);
    let list = "0x8a, 0x4f, 0x0d, 0x2b, 0x9c, 0x3e, 0x5d, 0x7f";
    let numbers = ["138"; 64].join(",");
    for key in [
        hex,
        base64,
        &format!("{hex}g"),
        &url,
        list,
        "1c2d 3e4f 5a6b 7c8d 9eaf b0c1 d2e3 f405",
        &numbers,
        &format!("{}L", "87654321".repeat(19)),
    ] {
        for command in [
            &["decode", key][..],
            &["decode", "8a4f", "0d2b"],
            &["decode", "moul.auth.client", &format!("{key}zz")],
            &["decode", "--type", key, "00"],
            &[CAPTURE, "--keys", key],
            &[CAPTURE, "--tables", key],
            &[CAPTURE, "-Y", key],
            &[CAPTURE, "--columns", key],
            &[CAPTURE, "--decode-as", key],
            &[CAPTURE, "--decode-as", &format!("tcp:{key}=moul")],
            &[CAPTURE, "--keys", &format!("/nowhere/{key}/shard.keys")],
            &[CAPTURE, "-c", key],
            &["keys", "check", key],
            &["keys", key],
            &["tables", "show", key],
            &["follow", key, CAPTURE],
            &[key],
            &[&format!("--key={key}")],
            &["--session", key],
        ] {
            let output = moulsniff(command).output().unwrap();
            let said = errors(&output) + &printed(&output);
            assert!(!output.status.success() && !said.contains(&key[..8]), "{command:?}: {said}");
            assert!(!said.contains("8a4f"), "{command:?}: {said}");
        }
    }
}
