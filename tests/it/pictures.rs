//! The picture of a tree in the README: what the program prints in colour, as SVG.
//! `TRANSCRIPTS=write cargo test --test it pictures` writes it anew. The picture of a report is
//! made in a browser, by `tests/browser/picture.js`.

use std::fmt::Write;

use crate::common::{file, hold};

/// Two messages of one exchange, with their bytes.
const TREE: [&str; 10] = [
    "captures/moul/evening.pcapng",
    "--keys",
    "keys/evening.keys",
    "-q",
    "-x",
    "-t",
    "relative",
    "--color",
    "always",
    "-Yrecord in {213, 214}",
];

/// The size of a character, and the distance between lines, in pixels.
const WIDTH: f64 = 7.8;
const HEIGHT: usize = 18;
const MARGIN: usize = 14;

#[test]
fn the_tree_in_the_readme_is_what_the_program_prints() {
    let mut program = crate::common::program();
    let output = program.current_dir(file("")).args(TREE).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    hold(&file("docs/tree.svg"), &svg(&text), "TRANSCRIPTS");
}

/// Text with the colours of a terminal as a picture.
fn svg(text: &str) -> String {
    let lines: Vec<Vec<(String, String)>> = text.lines().map(parts).collect();
    let columns =
        lines.iter().map(|line| line.iter().map(|(_, t)| t.chars().count()).sum::<usize>());
    let width = (columns.max().unwrap_or(0) as f64 * WIDTH) as usize + 2 * MARGIN;
    let height = lines.len() * HEIGHT + 2 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <style>text {{ font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #d5dbe2; white-space: pre }}\n\
         .bold {{ font-weight: bold; fill: #ffffff }} .dim {{ fill: #8b95a1 }} .red {{ fill: #ff7b72 }} .green {{ fill: #7ee787 }}\n\
         .yellow {{ fill: #e3b341 }} .blue {{ fill: #79b8ff }} .magenta {{ fill: #d2a8ff }} .cyan {{ fill: #56d4dd }} .bright {{ fill: #ffa198 }}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#0d1117\"/>\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = MARGIN + (number + 1) * HEIGHT - 5;
        let mut column = 0;
        for (class, text) in line {
            let length = text.chars().count();
            if !text.trim().is_empty() {
                // Where a browser has another font, the columns stay where they are.
                let x = MARGIN as f64 + column as f64 * WIDTH;
                let wide = length as f64 * WIDTH;
                let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                let class =
                    if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
                writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y}\" textLength=\"{wide:.1}\" \
                     xml:space=\"preserve\"{class}>{text}</text>"
                )
                .unwrap();
            }
            column += length;
        }
    }
    out.push_str("</svg>\n");
    out
}

/// A line as texts, each with the name of its colour. Neighbours of one colour are one text.
fn parts(line: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut class = "";
    for (place, part) in line.split("\u{1b}[").enumerate() {
        let text = if place == 0 {
            part
        } else {
            let (code, text) = part.split_once('m').unwrap();
            class = match code {
                "0" => "",
                "1" => "bold",
                "2" => "dim",
                "31" => "red",
                "32" => "green",
                "33" => "yellow",
                "34" => "blue",
                "35" => "magenta",
                "36" => "cyan",
                "91" => "bright",
                other => panic!("the picture has no colour for {other}"),
            };
            text
        };
        match all.last_mut() {
            _ if text.is_empty() => {}
            Some((last, before)) if last == class => before.push_str(text),
            // A blank has no colour: bytes of one field are one text.
            Some((_, before)) if text == " " => before.push(' '),
            _ => all.push((class.to_string(), text.to_string())),
        }
    }
    all
}
