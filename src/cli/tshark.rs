//! What users of tshark type out of habit: each option that has an equal here is replaced by it,
//! each other one is answered with what there is instead.
//!
//! It only sees words, and only those of the main command, which prints captures as tshark does.

use std::ffi::OsString;

/// Fields of tshark's frames and columns, and the keys of records that say the same.
const FIELDS: [(&str, &str); 20] = [
    ("frame.number", "frame"),
    ("frame.time", "time"),
    ("frame.time_epoch", "time"),
    ("ip.src", "src"),
    ("ip.dst", "dst"),
    ("ipv6.src", "src"),
    ("ipv6.dst", "dst"),
    ("tcp.srcport", "src"),
    ("tcp.dstport", "dst"),
    ("udp.srcport", "src"),
    ("udp.dstport", "dst"),
    ("tcp.stream", "stream"),
    ("udp.stream", "stream"),
    ("tcp.len", "length"),
    ("frame.len", "length"),
    ("_ws.col.Time", "time"),
    ("_ws.col.Source", "src"),
    ("_ws.col.Destination", "dst"),
    ("_ws.col.Protocol", "protocol"),
    ("_ws.col.Info", "info"),
];

/// tshark's options that take a value, beside those that this program has, too.
const WITH_VALUE: [char; 16] =
    ['T', 'e', 'E', 'z', 'd', 'O', 'o', 'G', 'R', 'N', 'a', 'b', 's', 'C', 'X', 'K'];

/// Replaces tshark's options. `takes_value` tells of this program's own options, each a letter or a
/// long name, whether they take a value.
///
/// # Errors
/// What there is instead of an option that has no equal, in one line.
pub(super) fn translate(
    typed: &[OsString],
    takes_value: &dyn Fn(&str) -> bool,
) -> Result<Vec<OsString>, String> {
    let mut translation = Translation::default();
    let mut words = typed.iter();
    translation.words.extend(words.next().cloned());
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if text == "--" {
            translation.words.push(word.clone());
            translation.words.extend(words.by_ref().cloned());
            break;
        }
        let letters = match text.strip_prefix('-') {
            Some(letters) if !letters.is_empty() && !letters.starts_with('-') => letters,
            _ => {
                translation.has_input |= !text.starts_with("--");
                translation.words.push(word.clone());
                if text.starts_with("--") && !text.contains('=') && takes_value(&text) {
                    translation.words.extend(words.next().cloned());
                }
                continue;
            }
        };
        for (place, letter) in letters.char_indices() {
            let rest = letters.get(place + letter.len_utf8()..).unwrap_or("");
            let own = takes_value(&format!("-{letter}"));
            if !own && !WITH_VALUE.contains(&letter) {
                translation.flag(letter);
                continue;
            }
            if own && !matches!(letter, 't' | 'w') {
                translation.has_input |= matches!(letter, 'r' | 'i');
                translation.words.push(format!("-{letter}{rest}").into());
                if rest.is_empty() {
                    translation.words.extend(words.next().cloned());
                }
                break;
            }
            let value = if rest.is_empty() {
                words.next().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
            } else {
                rest.to_owned()
            };
            translation.option(letter, &value)?;
            break;
        }
    }
    translation.finish()
}

/// What becomes of the words.
#[derive(Default)]
struct Translation {
    words: Vec<OsString>,
    /// What `-e` named.
    columns: Vec<String>,
    /// `-T fields`.
    fields: bool,
    /// `-V`.
    details: bool,
    /// Whether something is read.
    has_input: bool,
    /// The file of `-w`.
    write: Option<String>,
    /// `-i`.
    live: bool,
}

impl Translation {
    fn push(&mut self, words: &[&str]) {
        self.words.extend(words.iter().map(OsString::from));
    }

    fn flag(&mut self, letter: char) {
        match letter {
            // Trees have all details; without a capture it asks for the version.
            'V' => self.details = true,
            // No name is resolved, files are read as often as necessary, and what goes into a pipe
            // is written at once.
            'n' | '2' | 'l' | 'P' => {}
            'v' => self.push(&["-V"]),
            letter => self.words.push(format!("-{letter}").into()),
        }
    }

    fn option(&mut self, letter: char, value: &str) -> Result<(), String> {
        let instead = |what: &str| Err(format!("-{letter} is tshark's: {what}"));
        match letter {
            'T' => match value {
                "json" | "jsonraw" | "ek" => self.push(&["--json"]),
                "fields" => self.fields = true,
                "text" => {}
                "tabs" => self.push(&["--oneline"]),
                _ => {
                    return instead(
                        "--json is for programs, --oneline and --columns are for tables",
                    );
                }
            },
            'e' => {
                let known = FIELDS.iter().find(|(field, _)| field.eq_ignore_ascii_case(value));
                let column = known.map_or(value, |(_, key)| key).to_owned();
                if !self.columns.contains(&column) {
                    self.columns.push(column);
                }
            }
            'E' => match value.split_once('=') {
                Some(("separator", ",")) => self.push(&["--csv"]),
                Some((
                    "header" | "occurrence" | "bom" | "quote" | "aggregator" | "separator",
                    _,
                )) => {}
                _ => return instead("--columns prints tabs and a header, --csv commas"),
            },
            'd' => {
                let rule = value.split_once("==").and_then(|(place, protocol)| {
                    let transport = place.trim().strip_suffix(".port")?;
                    let (port, protocol) = protocol.split_once(',')?;
                    Some(format!("{transport}:{}={}", port.trim(), protocol.trim()))
                });
                match rule {
                    Some(rule) => self.push(&["--decode-as", &rule]),
                    None => {
                        return instead(
                            "--decode-as takes a port and a protocol, as in tcp:14000=NAME",
                        );
                    }
                }
            }
            't' => match value {
                "a" => self.push(&["-t", "local"]),
                "u" => self.push(&["-t", "absolute"]),
                "r" => self.push(&["-t", "relative"]),
                "d" | "dd" => self.push(&["-t", "delta"]),
                "ad" | "ud" | "adoy" | "udoy" | "e" => {
                    return Err(format!(
                        "-t {value} is tshark's: --json and --columns time,message print times \
                         with their date"
                    ));
                }
                other => self.push(&["-t", other]),
            },
            'w' => self.write = Some(value.to_owned()),
            'R' => self.push(&["-Y", value]),
            'N' => {}
            'O' => {
                return instead(
                    "trees have the details of every protocol; -Y 'protocol == NAME' prints one \
                     alone",
                );
            }
            'z' => {
                let stream = value.strip_prefix("follow,").map(|rest| rest.split(',').collect());
                return match stream {
                    Some::<Vec<&str>>(parts) => {
                        let transport = parts.first().copied().unwrap_or("tcp");
                        let number = parts.last().copied().unwrap_or("0");
                        instead(&format!(
                            "`moulsniff follow {transport}:{number} CAPTURE` prints a stream"
                        ))
                    }
                    None => instead(
                        "`moulsniff stats CAPTURE` has statistics, `moulsniff diagnose` what is \
                         wrong",
                    ),
                };
            }
            'G' => {
                return instead(
                    "`moulsniff tables list` lists the messages, `moulsniff schema` the keys of \
                     records",
                );
            }
            'o' => {
                return instead(
                    "there are no preferences; `moulsniff config` shows the settings and where \
                     they come from",
                );
            }
            'K' => return instead("--keys takes key files"),
            'a' | 'b' => {
                return instead("-c ends after so many records, --tail reads dumpcap's ring files");
            }
            's' => return instead("live frames are captured whole"),
            'X' | 'C' => {
                return instead("--tables takes descriptions of further protocols and messages");
            }
            other => self.words.push(format!("-{other}{value}").into()),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<OsString>, String> {
        self.live |= self.words.iter().any(|word| {
            let word = word.to_string_lossy();
            word.starts_with("-i") || word.starts_with("--interface")
        });
        if self.details && !self.has_input {
            self.push(&["-V"]);
        }
        if let Some(file) = self.write.take() {
            if !self.live && self.has_input {
                return Err(format!(
                    "-w keeps what is captured live (-i); `moulsniff export frames CAPTURE -Y … \
                     -o {file}` writes frames of a capture, `export messages` what was decoded"
                ));
            }
            self.push(&["-w", &file]);
        }
        if !self.columns.is_empty() {
            let columns = self.columns.join(",");
            self.push(&["--columns", &columns]);
        } else if self.fields {
            return Err("-T fields needs -e FIELD; --columns A,B,C is the same".into());
        }
        Ok(self.words)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn translated(typed: &str) -> Result<String, String> {
        let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
        let takes =
            |word: &str| ["-r", "-Y", "-c", "-i", "-w", "-t", "-f", "--keys"].contains(&word);
        let words = translate(&words, &takes)?;
        Ok(words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(" "))
    }

    #[test]
    fn what_has_an_equal_is_replaced() {
        for (typed, expected) in [
            ("p -r a -T json", "p -r a --json"),
            ("p -nVr a -Tfields -e frame.number -e fields.x", "p -r a --columns frame,fields.x"),
            ("p -V a", "p a"),
            ("p -V", "p -V"),
            ("p -2 -R x -l -n a", "p -Y x a"),
            ("p -d tcp.port==14000,abc a", "p --decode-as tcp:14000=abc a"),
            ("p -t u -ta a", "p -t absolute -t local a"),
            ("p --keys -T a", "p --keys -T a"),
            ("p -qxc 5 a -- -T", "p -q -x -c 5 a -- -T"),
            ("p -i lo -w f", "p -i lo -w f"),
        ] {
            assert_eq!(translated(typed).as_deref(), Ok(expected), "{typed}");
        }
    }

    #[test]
    fn what_has_none_is_answered() {
        for (typed, said) in [
            ("p a -z conv,tcp", "moulsniff stats"),
            ("p a -z follow,tcp,ascii,3", "moulsniff follow tcp:3"),
            ("p -G fields", "tables list"),
            ("p a -o tcp.x:y", "moulsniff config"),
            ("p a -O abc", "protocol == NAME"),
            ("p a -w f", "export frames"),
            ("p a -t ad", "--columns time"),
            ("p a -T pdml", "--json"),
            ("p a -T fields", "-e FIELD"),
        ] {
            let text = translated(typed).unwrap_err();
            assert!(text.contains(said) && !text.contains('\n'), "{typed}: {text}");
        }
    }
}
