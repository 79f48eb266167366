//! "Did you mean …?": the known name that is most like an unknown one.

/// `"; did you mean \`x\`?"` for the most similar known name, or an empty text where none differs
/// by less than a third of its letters. Words of more than 64 letters get no suggestion: comparing
/// them takes too long.
pub fn suggestion<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let letters = word.chars().count();
    if letters > 64 {
        return String::new();
    }
    let limit = (letters / 3).max(1);
    let lower = word.to_lowercase();
    let best = known
        .map(|k| (distance(&lower, &k.to_lowercase(), limit), k))
        .min_by_key(|(d, k)| (*d, k.len()));
    match best {
        Some((d, name)) if d <= limit => format!("; did you mean `{name}`?"),
        _ => String::new(),
    }
}

/// Up to three names that contain the word; else the most similar one; else names that contain the
/// part of the word behind its last `_`: `"; did you mean \`a\`, \`b\` or \`c\`?"`. Upper and lower
/// case are alike.
pub fn offer<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 3;
    const LEAST: usize = 4;
    let known: Vec<&str> = known.collect();
    let near = suggestion(word, known.iter().copied());
    let lower = word.to_lowercase();
    let parts = [Some(lower.as_str()), lower.rsplit_once('_').map(|(_, last)| last)];
    let mut parts =
        parts.into_iter().flatten().filter(|part| (LEAST..=64).contains(&part.chars().count()));
    let holding = |part: &str| {
        let mut names: Vec<&str> =
            known.iter().copied().filter(|name| name.to_lowercase().contains(part)).collect();
        names.sort_by_key(|name| (name.len(), *name));
        names.dedup();
        names.truncate(SHOWN);
        (!names.is_empty()).then_some(names)
    };
    let whole = parts.next().and_then(holding);
    if whole.is_none() && !near.is_empty() {
        return near;
    }
    let Some(names) = whole.or_else(|| parts.find_map(holding)) else { return near };
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, [])) => format!("; did you mean {last}?"),
        Some((last, first)) => format!("; did you mean {} or {last}?", first.join(", ")),
        None => near,
    }
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
    }

    #[test]
    fn the_nearest_name_is_offered() {
        let known = ["trans_id", "node_id", "result"];
        assert_eq!(suggestion("transid", known.into_iter()), "; did you mean `trans_id`?");
        assert_eq!(suggestion("resutl", known.into_iter()), "; did you mean `result`?");
        assert_eq!(suggestion("colour", known.into_iter()), "");
    }
}
