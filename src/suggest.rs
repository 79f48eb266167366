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
    use super::suggestion;

    #[test]
    fn the_nearest_name_is_offered() {
        let known = ["trans_id", "node_id", "result"];
        assert_eq!(suggestion("transid", known.into_iter()), "; did you mean `trans_id`?");
        assert_eq!(suggestion("resutl", known.into_iter()), "; did you mean `result`?");
        assert_eq!(suggestion("colour", known.into_iter()), "");
    }
}
