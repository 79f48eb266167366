//! "Did you mean …?": the known name that is most like an unknown one.

/// The most names that are offered.
const SHOWN: usize = 3;
/// A part of a name with fewer letters stands in too many names.
const LEAST: usize = 4;

/// `"; did you mean \`x\`?"` for the most similar known name, or an empty text where none differs
/// by less than a third of its letters. Words of more than 64 letters get no suggestion: comparing
/// them takes too long.
pub fn suggestion<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |(_, name)| asked(&[name]))
}

/// The most similar known name, and by how many letters it differs.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<(usize, &'a str)> {
    let letters = word.chars().count();
    if letters > 64 {
        return None;
    }
    let limit = (letters / 3).max(1);
    let lower = word.to_lowercase();
    known
        .map(|k| (distance(&lower, &k.to_lowercase(), limit), k))
        .min_by_key(|(d, k)| (*d, k.len()))
        .filter(|(d, _)| *d <= limit)
}

/// `"; did you mean \`a\`, \`b\` or \`c\`?"`; an empty text where there is no name.
fn asked(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, [])) => format!("; did you mean {last}?"),
        Some((last, first)) => format!("; did you mean {} or {last}?", first.join(", ")),
        None => String::new(),
    }
}

/// Up to three names that contain the word; else the most similar one, or those whose part behind
/// their last `_` is more like the word's own, or begins so; else names that contain that part of
/// the word: `"; did you mean \`a\`, \`b\` or \`c\`?"`. Upper and lower case are alike.
pub fn offer<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let lower = word.to_lowercase();
    let holding = |part: &str| {
        let mut names: Vec<&str> = Vec::new();
        if (LEAST..=64).contains(&part.chars().count()) {
            names.extend(known.iter().filter(|name| name.to_lowercase().contains(part)));
            names.sort_by_key(|name| (name.len(), *name));
            names.dedup();
            names.truncate(SHOWN);
        }
        names
    };
    let whole = holding(&lower);
    if !whole.is_empty() {
        return asked(&whole);
    }
    match (nearest(word, known.iter().copied()), similar(last_part(&lower), &known)) {
        (Some((near, name)), Some((by_part, _))) if near <= by_part => asked(&[name]),
        (_, Some((_, names))) => asked(&names),
        (Some((_, name)), None) => asked(&[name]),
        (None, None) => asked(&holding(last_part(&lower))),
    }
}

/// Of a name the part behind its last `_`.
fn last_part(name: &str) -> &str {
    name.rsplit_once('_').map_or(name, |(_, last)| last)
}

/// Names whose last part is most like the word, or begins most like it, and by how many letters
/// these differ.
fn similar<'a>(word: &str, known: &[&'a str]) -> Option<(usize, Vec<&'a str>)> {
    let letters = word.chars().count();
    if !(LEAST..=64).contains(&letters) {
        return None;
    }
    let limit = (letters / 4).max(1);
    let far = |name: &str| {
        let part = last_part(name).to_lowercase();
        let begins: String = part.chars().take(letters).collect();
        distance(word, &part, limit).min(distance(word, &begins, limit))
    };
    let mut names: Vec<(usize, &str)> =
        known.iter().map(|name| (far(name), *name)).filter(|(far, _)| *far <= limit).collect();
    names.sort_by_key(|(far, name)| (*far, name.len(), *name));
    names.dedup();
    let least = names.first()?.0;
    names.retain(|(far, _)| *far == least);
    Some((least, names.into_iter().map(|(_, name)| name).take(SHOWN).collect()))
}

/// Edit distance (insert, delete, change, swap neighbours), given up beyond `limit`.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, cb) in b.iter().enumerate() {
            let at = |r: &[usize], k: usize| r.get(k).copied().unwrap_or(usize::MAX / 2);
            let mut cost = (at(&row, j) + usize::from(ca != cb))
                .min(at(&row, j + 1) + 1)
                .min(at(&next, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(cb) && b.get(j - 1) == Some(ca);
            if swapped {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            next.push(cost);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(limit + 1)
}

#[cfg(test)]
mod tests {
    use super::{offer, suggestion};

    #[test]
    fn names_that_contain_the_word_are_offered_where_none_is_similar() {
        let known = ["Cli2Auth_AcctLoginRequest", "Auth2Cli_AcctLoginReply", "Auth2Cli_PingReply"];
        assert_eq!(
            offer("acctlogin", known.into_iter()),
            "; did you mean `Auth2Cli_AcctLoginReply` or `Cli2Auth_AcctLoginRequest`?"
        );
        assert_eq!(
            offer("AcctLoginRequest", known.into_iter()),
            "; did you mean `Cli2Auth_AcctLoginRequest`?"
        );
        assert_eq!(
            offer("Cli2Auth_PingReply", known.into_iter()),
            "; did you mean `Auth2Cli_PingReply`?"
        );
        assert_eq!(offer("Vault", known.into_iter()), "");
        assert_eq!(
            offer("PingRepyl", known.into_iter()),
            "; did you mean `Auth2Cli_PingReply`?",
            "what stands before the last `_` is left out, and two letters are exchanged"
        );
        assert_eq!(
            offer("AcctLogni", known.into_iter()),
            "; did you mean `Auth2Cli_AcctLoginReply` or `Cli2Auth_AcctLoginRequest`?"
        );
    }

    #[test]
    fn the_nearest_name_is_offered() {
        let known = ["trans_id", "node_id", "result"];
        assert_eq!(suggestion("transid", known.into_iter()), "; did you mean `trans_id`?");
        assert_eq!(suggestion("resutl", known.into_iter()), "; did you mean `result`?");
        assert_eq!(suggestion("colour", known.into_iter()), "");
    }
}
