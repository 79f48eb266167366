//! `--oneline`, times, marks of other locales, and names that filters do not take away.

use std::process::Command;

const CAPTURE: [&str; 3] = ["captures/moul/nagus.pcapng", "--keys", "keys/nagus.ini"];

fn printed(more: &[&str], environment: &[(&str, &str)]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_moulsniff"));
    program.current_dir(env!("CARGO_MANIFEST_DIR")).args(CAPTURE).args(more).arg("--quiet");
    let output = program.envs(environment.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_record_is_one_line() {
    let lines = printed(&["--oneline"], &[]);
    assert_eq!(lines.lines().count(), printed(&["--json"], &[]).lines().count());
    let first = lines.lines().next().unwrap();
    assert!(first.starts_with("     1 "), "{first}");
    assert!(lines.lines().all(|line| !line.ends_with(' ')), "{lines}");
}

#[test]
fn lines_do_not_depend_on_threads() {
    for more in [&["--oneline"][..], &["--oneline", "-t", "delta"], &["-t", "relative"], &["-Y", "from == server"]] {
        let with = |threads| printed(&[more, &["--threads", threads]].concat(), &[]);
        assert_eq!(with("1"), with("3"), "{more:?}");
    }
}

#[test]
fn relative_times_begin_with_0_and_deltas_add_up_to_them() {
    let times = |form| -> Vec<f64> {
        let lines = printed(&["--oneline", "-t", form], &[]);
        lines.lines().map(|line| line.split_whitespace().nth(1).unwrap().parse().unwrap()).collect()
    };
    let (relative, delta) = (times("relative"), times("delta"));
    assert_eq!((relative[0], delta[0]), (0.0, 0.0));
    assert!((delta.iter().sum::<f64>() - relative.last().unwrap()).abs() < 1e-3);
}

#[test]
fn a_filter_takes_no_names_away() {
    for threads in ["1", "2"] {
        let whole = printed(&["--threads", threads], &[]);
        let inferred =
            |text: &str| text.lines().filter(|l| l.contains("(inferred, ")).map(str::to_string).collect::<Vec<_>>();
        let some = printed(&["--threads", threads, "-Y", "from == server and message"], &[]);
        let kept: Vec<String> = some.split("\n#").map(|record| record.trim_start_matches('#').to_string()).collect();
        for record in &kept {
            let number = record.split_whitespace().next().unwrap();
            let same = whole.split("\n#").find(|r| r.trim_start_matches('#').split_whitespace().next() == Some(number));
            if let Some(same) = same {
                assert_eq!(inferred(record), inferred(same), "{threads} threads, record {number}");
            }
        }
        assert!(!inferred(&some).is_empty(), "{some}");
    }
}

#[test]
fn a_locale_without_unicode_has_ascii_marks() {
    for locale in ["C", "POSIX", "de_DE.ISO-8859-1"] {
        let text = printed(&[], &[("LC_ALL", locale)]);
        assert!(!text.contains(['▸', '─', '·']) && text.contains(" > "), "{locale}");
    }
    for locale in ["C.UTF-8", "de_DE.utf8"] {
        assert!(printed(&[], &[("LC_ALL", locale)]).contains(" ▸ "), "{locale}");
    }
}
