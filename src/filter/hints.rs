//! Hints for users of other programs: what they type there, and how it is written here.

/// Words at the beginning of a condition that are no key here, each with the hint to give.
const FOREIGN_KEYS: [(&[&str], &str); 8] = [
    (
        &["tcp", "udp"],
        "a stream's number is `stream`, its transport `transport`, and ports are in `src` and \
         `dst`",
    ),
    (
        &["ip", "ipv6", "addr", "host", "net"],
        "addresses are `src` and `dst`: src == 127.0.0.1, src in 10.0.0.0/8",
    ),
    (&["port", "srcport", "dstport"], "ports are in `src` and `dst`: dst == :14617"),
    (
        &["select", "test", "any", "all", "has", "len", "length_of", "lower", "upper"],
        "a condition has no functions: message == \"…\", fields.x contains \"…\"",
    ),
    (
        &["exists", "present", "defined", "isset", "empty"],
        "a name alone asks whether it is there: fields.x, or not fields.x",
    ),
    (&["severity"], "it is a part of problems: problems[*].severity == error"),
    (&["client", "server"], "who sent a record is `from`: from == client"),
    (&["true", "false"], "a condition compares something: record > 0 holds for every record"),
];

/// Fields of Wireshark whose first part is a key here.
const FOREIGN_PARTS: [(&str, &str, &str); 5] = [
    ("frame", "number", "the number of a frame is `frame`"),
    ("frame", "time", "the time of a frame is `time`"),
    ("frame", "time_epoch", "the time of a frame is `time`"),
    ("frame", "len", "the length of a message is `length`"),
    ("message", "name", "the name of a message is `message`"),
];

/// Operators that are written differently here. One that begins like another comes before it.
const FOREIGN_OPERATORS: [(&[&str], &str); 11] = [
    (
        &["startswith", "starts_with", "beginswith", "begins_with"],
        "a beginning is asked for with `matches \"^…\"`",
    ),
    (&["endswith", "ends_with"], "an end is asked for with `matches \"…$\"`"),
    (
        &["like", "ilike", "glob"],
        "a part of a text is asked for with `contains \"…\"`, a pattern with `matches \"…\"`",
    ),
    (
        &["regex", "regexp", "match", "=~", "~="],
        "a regular expression follows `matches` (or `~`): message matches \"…\"",
    ),
    (&["!~"], "the opposite of `matches` has `not` before the condition: not message ~ \"…\""),
    (
        &["exists", "present", "isset", "defined"],
        "a name alone asks whether it is there: fields.x, or not fields.x",
    ),
    (&["is", "equals", "equal"], "a comparison is written `==`"),
    (&["<>", "isnt"], "an inequality is written `!=`"),
    (&["between"], "a range is asked for with `in {1..5}`"),
    (&["&"], "flags are asked for with `has`, and conditions are joined by `and`"),
    (&["|"], "conditions are joined by `or`"),
];

/// The hint for a word at the beginning of a condition that another program knows.
pub(super) fn foreign_key(word: &str) -> Option<&'static str> {
    FOREIGN_KEYS.iter().find(|(words, _)| words.contains(&word)).map(|(_, hint)| *hint)
}

/// The hint for a part of a key that another program knows.
pub(super) fn foreign_part(key: &str, part: &str) -> Option<&'static str> {
    FOREIGN_PARTS
        .iter()
        .find(|(first, second, _)| (*first, *second) == (key, part))
        .map(|(.., hint)| *hint)
}

/// The hint for an operator of another program: `word` is the word after a path, `rest` the text
/// from there on.
pub(super) fn foreign_operator<'a>(word: &str, rest: &'a str) -> Option<(&'a str, &'static str)> {
    if rest.starts_with("&&") || rest.starts_with("||") {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    FOREIGN_OPERATORS.iter().find_map(|(spellings, hint)| {
        let spelled = spellings.iter().find(|spelled| {
            if spelled.starts_with(|c: char| c.is_ascii_alphabetic()) {
                lower == **spelled
            } else {
                rest.starts_with(**spelled)
            }
        })?;
        Some((rest.get(..spelled.len())?, *hint))
    })
}

/// The hint for a literal that no value of the kind can equal, although its meaning is clear.
pub(super) fn misread_literal(key: &str, raw: &str) -> Option<String> {
    if raw == "null" {
        return Some(format!("; that it is absent is asked with `not {key}`"));
    }
    if let Some((transport, number)) = raw.split_once(':')
        && key == "stream"
        && matches!(transport, "tcp" | "udp")
    {
        return Some(format!(
            "; a stream of one transport is `stream == {number} and transport == {transport}`"
        ));
    }
    let (from, to) = raw.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (digits(from) && digits(to))
        .then(|| format!("; a range is asked for with `in {{{from}..{to}}}`"))
}

/// The hint for a word with a wildcard.
pub(super) fn wildcard(word: &str) -> Option<&'static str> {
    word.contains(['*', '%'])
        .then_some("; a comparison knows no wildcards: use `contains \"…\"` or `matches \"^…\"`")
}

/// The hint for a truth value in the spelling of another language.
pub(super) fn foreign_constant(word: &str) -> Option<&'static str> {
    Some(match word {
        "True" | "TRUE" | "yes" => "; did you mean `true`?",
        "False" | "FALSE" | "no" => "; did you mean `false`?",
        "None" | "nil" | "NULL" | "Null" => "; did you mean `null`?",
        _ => return None,
    })
}
