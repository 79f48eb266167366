//! No file needs a file that needs the first one, except a module and the modules inside it. What a
//! file needs is what its paths name, followed through `pub use` to the file that declares it.

use std::collections::{BTreeMap, BTreeSet};

use crate::layers::{program, sources};

/// A module's path from the crate's root.
type Place = Vec<String>;

#[test]
fn files_need_each_other_in_one_direction() {
    let files = Files::read();
    let needs = files.needs();
    assert!(needs.values().map(BTreeSet::len).sum::<usize>() > 500, "hardly any path was followed");
    let cycles: Vec<String> = needs.keys().filter_map(|start| cycle(&needs, start)).collect();
    assert!(cycles.is_empty(), "{}", cycles.join("\n"));
}

/// The names that a module's `use` brings, and all paths in its text.
struct Files {
    names: BTreeMap<Place, BTreeMap<String, Place>>,
    paths: BTreeMap<Place, Vec<Place>>,
}

impl Files {
    fn read() -> Files {
        let mut files = Files { names: BTreeMap::new(), paths: BTreeMap::new() };
        for (path, text) in sources() {
            let mut place: Place = path
                .with_extension("")
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            let root = place.iter().position(|part| part == "src").unwrap();
            place.drain(..=root);
            if matches!(place.last().map(String::as_str), Some("mod" | "lib" | "main")) {
                place.pop();
            }
            let text = program(&text);
            let code: String = text
                .lines()
                .map(|line| line.split("//").next().unwrap_or(""))
                .collect::<Vec<_>>()
                .join("\n");
            files.names.entry(place.clone()).or_default();
            let paths = files.paths.entry(place).or_default();
            let mut rest = code.as_str();
            while let Some(at) = rest.find("use ") {
                let whole = rest[..at].chars().next_back().is_none_or(char::is_whitespace);
                rest = &rest[at + 4..];
                if let (true, Some(end)) = (whole, rest.find(';')) {
                    expand(&rest[..end], "", paths);
                }
            }
            for root in ["crate::", "super::"] {
                for (at, _) in code.match_indices(root) {
                    let path: String = code[at..]
                        .chars()
                        .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':'))
                        .collect();
                    paths.push(path.split("::").map(str::to_string).collect());
                }
            }
        }
        files.name();
        files
    }

    /// Makes every path one from the crate's root, and remembers the name that it ends in.
    fn name(&mut self) {
        for (place, paths) in &mut self.paths {
            for path in paths.iter_mut() {
                let first = path.first().cloned().unwrap_or_default();
                let mut child = place.clone();
                child.push(first.clone());
                let mut from = match first.as_str() {
                    "crate" => Vec::new(),
                    "super" | "self" => place.clone(),
                    _ if self.names.contains_key(&child) => place.clone(),
                    _ => {
                        path.clear();
                        continue;
                    }
                };
                for part in std::mem::take(path) {
                    match part.as_str() {
                        "crate" | "self" | "" => {}
                        "super" => drop(from.pop()),
                        _ => from.push(part),
                    }
                }
                *path = from;
            }
        }
        for (place, paths) in &self.paths {
            let names = self.names.entry(place.clone()).or_default();
            for path in paths.iter().filter(|path| !path.is_empty()) {
                names.entry(path.last().unwrap().clone()).or_insert_with(|| path.clone());
            }
        }
    }

    /// The module that declares what a path names.
    fn declares(&self, path: &[String], depth: usize) -> Place {
        let mut at = Vec::new();
        for (i, part) in path.iter().enumerate() {
            let mut inner: Place = at.clone();
            inner.push(part.clone());
            if self.names.contains_key(&inner) {
                at = inner;
                continue;
            }
            return match self.names.get(&at).and_then(|names| names.get(part)) {
                Some(target) if *target != inner && depth < 8 => {
                    self.declares(&[target, &path[i + 1..]].concat(), depth + 1)
                }
                _ => at,
            };
        }
        at
    }

    fn needs(&self) -> BTreeMap<Place, BTreeSet<Place>> {
        let target = |place: &Place, path: &Place| {
            let target = self.declares(path, 0);
            (!target.starts_with(place) && !place.starts_with(&target)).then_some(target)
        };
        let of = |(place, paths): (&Place, &Vec<Place>)| {
            (
                place.clone(),
                paths
                    .iter()
                    .filter(|path| !path.is_empty())
                    .filter_map(|path| target(place, path))
                    .collect(),
            )
        };
        self.paths.iter().map(of).collect()
    }
}

/// Appends each path of a `use` with braces.
fn expand(text: &str, before: &str, paths: &mut Vec<Place>) {
    let text = text.trim();
    let Some((head, body)) = text.split_once('{') else {
        let path = format!("{before}{}", text.split(" as ").next().unwrap_or(text));
        return paths.push(path.split("::").map(|part| part.trim().to_string()).collect());
    };
    let before = format!("{before}{}", head.trim());
    let body = body.trim().trim_end_matches([',', '\n', ' ']);
    let body = body.strip_suffix('}').unwrap_or(body);
    let mut depth = 0;
    let mut from = 0;
    for (at, c) in body.char_indices().chain([(body.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = body[from..at].trim();
                if !part.is_empty() {
                    expand(part, &before, paths);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

/// A way from a module back to itself, if there is one; told at its first module.
fn cycle(needs: &BTreeMap<Place, BTreeSet<Place>>, start: &Place) -> Option<String> {
    let mut came_from = BTreeMap::new();
    let mut open = vec![start];
    while let Some(place) = open.pop() {
        for next in needs.get(place).into_iter().flatten() {
            if came_from.contains_key(next) || next < start {
                continue;
            }
            came_from.insert(next, place);
            open.push(next);
        }
    }
    let mut way = vec![start.join("/")];
    let mut at = *came_from.get(start)?;
    while at != start {
        way.push(at.join("/"));
        at = came_from.get(at)?;
    }
    way.push(start.join("/"));
    way.reverse();
    Some(way.join(" needs "))
}

#[test]
fn paths_in_braces_are_taken_apart() {
    let mut paths = Vec::new();
    expand("super::{a::{B, c::D as E}, f, }", "", &mut paths);
    let paths: Vec<String> = paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(paths, ["super::a::B", "super::a::c::D", "super::f"]);
}
