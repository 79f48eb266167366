//! Key files that were cut, mistyped, re-encoded or edited by hand: an error that says where, or
//! the keys that are whole and a note about the rest. Never a panic, never a wrong key without a
//! word.

use moulsniff::proto::moul::keys::{Format, KeyError, KeyFile, KeyService, PrivateKey, Report};
use std::path::{Path, PathBuf};

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("keys");
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.file_name().unwrap() != "README.md");
    all.sort();
    assert!(all.len() >= 15);
    all
}

fn sample(name: &str) -> String {
    let path = samples().into_iter().find(|path| path.ends_with(name)).unwrap();
    String::from_utf8(std::fs::read(path).unwrap()).unwrap()
}

fn parse(text: &str) -> Result<KeyFile, KeyError> {
    KeyFile::parse("f", text.as_bytes())
}

fn complaint(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn holds(keys: &[PrivateKey], key: &PrivateKey) -> bool {
    keys.iter().any(|known| known.same_numbers(key))
}

#[test]
fn cut_at_every_byte() {
    for path in samples() {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let whole = KeyFile::parse(&name, &bytes);
        let (keys, sessions) =
            whole.as_ref().map_or((0, 0), |file| (file.keys().len(), file.sessions().len()));
        for length in 0..bytes.len() {
            let cut = match KeyFile::parse(&name, &bytes[..length]) {
                Ok(cut) => cut,
                Err(error) => {
                    assert!(!error.to_string().contains('\n'));
                    continue;
                }
            };
            let whole =
                whole.as_ref().expect("a file that opens nothing does not open more when cut");
            let right = cut.keys().iter().all(|key| holds(whole.keys(), key))
                && cut.sessions().iter().all(|line| whole.sessions().contains(line));
            let complete = cut.keys().len() == keys && cut.sessions().len() == sessions;
            assert!(
                (right && complete) || !cut.notes().is_empty(),
                "{name} cut at {length}: taken without a word"
            );
            assert!(
                right || cut.format() == Format::MossWireshark || cut.format() == Format::MossText,
                "{name} at {length}"
            );
        }
    }
}

#[test]
fn every_byte_changed() {
    for path in samples() {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= [0x01, 0x80, 0xff][at % 3];
            if let Err(error) = KeyFile::parse(&name, &changed) {
                assert!(!error.to_string().contains('\n'));
            }
        }
    }
}

#[test]
fn bytes_of_no_meaning_are_refused() {
    let mut state = 1u32;
    let mut noise = |length: usize| -> Vec<u8> {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..length).map(|_| next()).collect()
    };
    for length in [1, 2, 3, 7, 64, 65, 100, 127, 128, 129, 139, 1000, 100_000] {
        let mut bytes = noise(length);
        assert!(KeyFile::parse("noise", &bytes).is_err(), "{length}");
        bytes[0] = 0x30;
        assert!(KeyFile::parse("noise", &bytes).is_err(), "{length}");
    }
    for bytes in [
        &[0u8; 128][..],
        &[0xff; 128],
        &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 2],
        &[0x30, 0x80, 2, 0, 0, 0],
    ] {
        assert!(KeyFile::parse("constant", bytes).is_err());
    }
}

#[test]
fn how_a_text_was_saved_does_not_matter() {
    let names = [
        "dirtsand.ini",
        "dirtsand-generate-keys.txt",
        "moulars.toml",
        "moulars-keygen.txt",
        "nagus.ini",
        "shard.keys",
    ];
    for name in names {
        let text = sample(name);
        let plain = parse(&text).unwrap();
        let crlf = text.replace('\n', "\r\n");
        let utf16 = |unit: fn(u16) -> [u8; 2]| {
            "\u{feff}".encode_utf16().chain(crlf.encode_utf16()).flat_map(unit).collect()
        };
        let forms: [Vec<u8>; 5] = [
            crlf.clone().into_bytes(),
            format!("\u{feff}{text}").into_bytes(),
            utf16(u16::to_le_bytes),
            utf16(u16::to_be_bytes),
            [text.as_bytes(), b"\n# caf\xe9\n"].concat(),
        ];
        for (number, form) in forms.iter().enumerate() {
            let file = KeyFile::parse("f", form)
                .unwrap_or_else(|error| panic!("{name}, form {number}: {error}"));
            assert_eq!(
                (file.format(), file.keys()),
                (plain.format(), plain.keys()),
                "{name}, form {number}"
            );
        }
    }
}

#[test]
fn an_error_points_at_the_value_and_does_not_quote_it() {
    let text = sample("dirtsand.ini");
    assert_eq!(
        complaint(&text.replacen("m1pyJQIw==", "", 1)),
        "f:2:14: expected base-64 of 64 bytes, found 58 bytes"
    );
    assert_eq!(
        complaint(&text.replacen("3G9i", "3G9i!", 1)),
        "f:3:14: expected base-64 of 64 bytes, found something that is no base-64"
    );
    let toml = sample("moulars.toml").replacen("auth.k = \"uBH6", "auth.k = \"uBH6uBH6", 1);
    assert_eq!(complaint(&toml), "f:13:10: expected base-64 of 64 bytes, found 67 bytes");
    let nagus = sample("nagus.ini").replacen("key_a = yYWa", "key_a = ", 1);
    assert_eq!(complaint(&nagus), "f:29:9: expected base-64 of 64 bytes, found 61 bytes");
}

#[test]
fn numbers_that_cannot_be_a_modulus_are_named() {
    let text = sample("dirtsand.ini");
    // The last letters before the padding hold the lowest bits.
    assert_eq!(
        complaint(&text.replacen("favvkw==", "favvkA==", 1)),
        "f:1:14: expected a prime modulus N, found an even number"
    );
    let zero = format!("{}==", "A".repeat(86));
    let one = format!("{}==", "A".repeat(85) + "Q");
    let key = |n: &str, k: &str| format!("Key.Auth.N = {n}\nKey.Auth.K = {k}\n");
    let good =
        "08r66inqpHi3ZKEhxUSRrp7pCpY3danJfMRsmXPaqQLLeryi+7xJw1Ob0xa3LBRQ9cgU+NJg9gzDv1x0favvkw==";
    assert_eq!(complaint(&key(&zero, good)), "f:1:14: the modulus N is 0");
    assert_eq!(
        complaint(&key(&one, good)),
        "f:1:14: expected a modulus N of 512 bits, found 1 bit"
    );
    assert_eq!(complaint(&key(good, &zero)), "f:2:14: the private exponent is 0");
    // A wrong letter in the middle is still a number, but no prime: keys check says so.
    let mistyped = text.replacen("08r66inq", "08r66inr", 1);
    let report = Report::new("f", mistyped.as_bytes()).unwrap();
    assert_eq!(report.notes, ["auth: N is not a prime: mistyped or damaged?"]);
    assert!(!report.keys[0].prime && report.keys[1].safe_prime);
}

#[test]
fn halves_without_their_other_half_are_noted_and_the_rest_is_used() {
    let text = sample("dirtsand.ini")
        .replace("Key.Game.K", "#Key.Game.K")
        .replace("Key.Gate.N", "Key.Gate.n2");
    let file = parse(&text).unwrap();
    assert_eq!(file.keys().len(), 1);
    assert_eq!(
        file.notes(),
        [
            "game: N without its private exponent",
            "gatekeeper: a private exponent without its N",
            "gatekeeper: no key in this file",
            "game: no key in this file"
        ]
    );
    let none = text.replace("Key.Auth.K", "Key.Auth.Q");
    assert_eq!(
        complaint(&none),
        "f: no whole key: expected Key.Auth.N and Key.Auth.K, or Game, or Gate"
    );
}

#[test]
fn a_key_given_twice_is_kept_twice() {
    let text = sample("dirtsand.ini");
    let other = sample("dirtsand.ini").replace("wM0X9y", "wM0X9z");
    let file = parse(&format!("{text}{other}")).unwrap();
    assert_eq!(file.keys().len(), 6);
    assert!(
        file.notes().contains(&"auth: 2 keys, all of them are tried".to_owned()),
        "{:?}",
        file.notes()
    );
    let twice = text.replacen("Key.Auth.N", "Key.Auth.N = AAAA\nKey.Auth.N", 1);
    assert!(complaint(&twice).contains("found 3 bytes"));
}

#[test]
fn blanks_quotes_and_comments_are_as_the_programs_take_them() {
    let text = sample("dirtsand.ini");
    let spaced =
        text.replace("Key.", "  Key.").replace(" = ", "\t=  ").replace("==\n", "==   # remark\n");
    assert_eq!(parse(&spaced).unwrap().keys(), parse(&text).unwrap().keys());
    let quoted = text.replace("= 08r6", "= \"08r6").replace("favvkw==", "favvkw==\"");
    assert_eq!(parse(&quoted).unwrap().keys().len(), 3);
    // configparser: an indented line goes on with the value before it.
    let nagus = sample("nagus.ini");
    let folded = nagus.replace("key_n = ", "KEY_N =\n    ").replace("OZP01d37", "\n    OZP01d37");
    assert_eq!(parse(&folded).unwrap().keys(), parse(&nagus).unwrap().keys());
}

#[test]
fn generators_are_held_against_their_own_client_lines() {
    let text = sample("moulars-keygen.txt").replace("\"htMOydbC", "\"htMOydbD");
    assert_eq!(
        parse(&text).unwrap().notes(),
        ["auth: the public key X does not belong to N and K"]
    );
    let text = sample("dirtsand-generate-keys.txt").replace("N \"08r6", "N \"18r6");
    assert_eq!(
        parse(&text).unwrap().notes(),
        ["auth: the N for clients is another than the server's"]
    );
}

/// DER of three INTEGERs.
fn der(integers: &[&[u8]]) -> Vec<u8> {
    let body: Vec<u8> =
        integers.iter().flat_map(|digits| [&[2, digits.len() as u8], *digits].concat()).collect();
    [&[0x30, 0x81, body.len() as u8], &body[..]].concat()
}

fn auth_p() -> Vec<u8> {
    let path =
        samples().into_iter().find(|path| path.ends_with("moss_auth_key.wireshark")).unwrap();
    std::fs::read(path).unwrap()[..64].to_vec()
}

#[test]
fn moss_keys_of_unusual_lengths() {
    let p = [&[0], &auth_p()[..]].concat();
    let service =
        |name: &str, bytes: &[u8]| KeyFile::parse(name, bytes).unwrap().keys()[0].service();
    assert_eq!(service("x", &der(&[&p, &[97], &[5; 61]])), Some(KeyService::Csr));
    assert_eq!(service("x", &der(&[&p, &[2], &[5; 64]])), None);
    assert_eq!(service("keys/my_game.der", &der(&[&p, &[2], &[5; 64]])), Some(KeyService::Game));
    // make_cyan_dh's own default generator is the gatekeeper's.
    let clash = KeyFile::parse("auth.der", &der(&[&p, &[4], &[5; 64]])).unwrap();
    assert_eq!(clash.keys()[0].service(), None);
    assert!(clash.notes()[0].contains("tried for every server"));
    // Without the zero in front OpenSSL reads the same number.
    assert!(KeyFile::parse("x", &der(&[&p[1..], &[41], &[0xf5; 64]])).is_ok());
    let says = |bytes: &[u8]| KeyFile::parse("x", bytes).unwrap_err().to_string();
    assert!(says(&der(&[&p, &[41]])).contains("parameters without a key"));
    assert!(says(&der(&[&p, &[41], &[5; 40], &[5]])).contains("expected the SEQUENCE to end"));
    assert!(says(&der(&[&p, &[41], &[5; 65]])).contains("at most 512 bits, found 515"));
    assert!(says(&der(&[&p, &[41], &[]])).contains("found an empty one"));
    let trailing = [der(&[&p, &[41], &[5; 64]]), vec![0; 3]].concat();
    assert_eq!(
        KeyFile::parse("x", &trailing).unwrap().notes(),
        ["3 bytes after the key are passed over"]
    );
}

#[test]
fn a_short_exponent_in_the_wireshark_file_is_taken_with_a_remark() {
    let short = [&auth_p()[..], &[5; 62]].concat();
    let file = KeyFile::parse("game", &short).unwrap();
    assert_eq!(file.format(), Format::MossWireshark);
    assert_eq!(file.keys()[0].service(), Some(KeyService::Game));
    assert_eq!(
        file.notes(),
        ["a private exponent of 62 bytes: right if the key is so short, wrong if the file was cut"]
    );
    assert!(
        KeyFile::parse("x", &auth_p()).unwrap_err().to_string().contains("the file is cut off")
    );
}

#[test]
fn other_files_are_told_what_they_are() {
    for (text, expected) in [
        ("", "f: the file is empty"),
        ("hello", "f: not a key file: expected dirtsand.ini"),
        ("-----BEGIN DH PARAMETERS-----\n", "f: PEM is none of the key formats"),
        (
            "static const byte kDhNData[] = {\n0x01",
            "f: source code for clients holds only public halves",
        ),
        ("whatdoyousee0000", "f: an encrypted file of a client's"),
        ("# Key.Auth.N = ...\nKey.Droid = 31", "f: a DIRTSAND configuration without keys"),
        ("[server.auth]\nport = 1\n", "f: a NAGUS configuration without keys"),
        ("[crypt_keys]\n", "f: no whole key: expected auth.n and auth.k"),
        ("moulsniff-keys 1\n", "f: no key in this file"),
        ("Server.Auth.Host \"x\"\n", "f: a client's server.ini opens nothing"),
    ] {
        let found = complaint(text);
        assert!(found.starts_with(expected), "{text:?}: {found}");
    }
}

#[test]
fn a_file_of_endless_keys_is_refused() {
    let text = sample("dirtsand.ini");
    let keys: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
    assert_eq!(complaint(&keys.repeat(1001)), "f: expected at most 1000 private keys");
    let own = sample("shard.keys")
        .lines()
        .filter(|line| line.starts_with("private"))
        .map(|line| format!("{line}\n"))
        .collect::<String>();
    assert_eq!(complaint(&own.repeat(1001)), "f:1001:1: expected at most 1000 private keys");
    assert!(parse(&keys.repeat(1000)).is_ok());
}
