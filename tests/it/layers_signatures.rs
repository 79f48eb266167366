//! What a function may ask its caller for: at most six parameters beside `self`, and no tuple, since a tuple's parts have no names.

use crate::layers::{program, sources};

#[test]
fn functions_take_few_parameters_and_no_tuples() {
    let (mut wrong, mut all) = (Vec::new(), 0);
    for (path, text) in sources() {
        let text = program(&text);
        for (line, name, parameters) in signatures(&text) {
            all += 1;
            let own = parameters.iter().filter(|p| !is_self(p)).count();
            if own > 6 {
                wrong.push(format!("{}:{line}: `{name}` has {own} parameters, 6 at most", path.display()));
            }
            for parameter in parameters.iter().filter(|p| is_tuple(p)) {
                wrong.push(format!("{}:{line}: `{name}` takes a tuple: {parameter}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all > 2000, "only {all} functions were found");
}

#[test]
fn tuples_are_recognised_and_calls_are_not() {
    let text = "fn a<T: Fn(u8) -> u8>(&self, f: impl Fn(u8, u8), (x, y): (u8, u8)) {}\nfn b(p: &mut Option<(u8, u8)>, q: ()) {}";
    let found: Vec<_> = signatures(text).collect();
    let tuples = |i: usize| found[i].2.iter().filter(|p| is_tuple(p)).count();
    assert_eq!((found[0].1, found[0].2.len(), tuples(0)), ("a", 3, 1));
    assert_eq!((found[1].1, found[1].2.len(), tuples(1)), ("b", 2, 1));
}

/// The line, name and parameters of each function.
fn signatures(text: &str) -> impl Iterator<Item = (usize, &str, Vec<&str>)> {
    text.match_indices("fn ").filter_map(move |(at, _)| {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        let rest = &text[at + 3..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        let (name, mut rest) = rest.split_at(end);
        if rest.starts_with('<') {
            rest = &rest[parts(&rest[1..]).iter().map(|part| part.len() + 1).sum::<usize>() + 1..];
        }
        let line = text[..at].matches('\n').count() + 1;
        Some((line, name, parts(rest.strip_prefix('(')?)))
    })
}

/// The parts between commas, up to the bracket that closes the text's level.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut before, mut found) = (0, 0, ' ', Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if before == '-' || before == '=' => {}
            ')' | ']' | '}' | '>' if depth == 0 => {
                found.push(&text[from..at]);
                return found.into_iter().filter(|part| !part.trim().is_empty()).collect();
            }
            ')' | ']' | '}' | '>' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    found
}

fn is_self(parameter: &str) -> bool {
    parameter.split(':').next().is_some_and(|name| name.trim_end().ends_with("self"))
}

/// Whether a parameter is taken apart where it is declared, or is a tuple, a reference to one, or perhaps one.
fn is_tuple(parameter: &str) -> bool {
    let Some((pattern, ty)) = parameter.split_once(':') else { return false };
    let mut ty = ty.trim();
    while let Some(rest) = ["&", "mut ", "Option<"].iter().find_map(|prefix| ty.strip_prefix(prefix)) {
        ty = rest.trim_start();
    }
    pattern.trim().starts_with('(') || ty.starts_with('(') && !ty.starts_with("()")
}
