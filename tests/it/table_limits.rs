//! Table files may come from anywhere, the net included: whatever they hold, loading them ends
//! soon, within bounded memory, and an error says what is wrong without showing what should not be
//! seen.

use std::fmt::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use moulsniff::table::{MAX_TABLE_BYTES, TableError, TableSource, Tables};

use super::common::{file, scratch};

fn load(text: &str) -> Result<Tables, TableError> {
    Tables::load(
        "p",
        vec![TableSource { name: "t".into(), text: format!("protocol p\n{text}").into() }],
        &[],
    )
}

/// What is said about a text, which has to be wrong.
fn wrong(text: &str) -> String {
    load(text).err().map(|error| error.message).unwrap_or_else(|| "nothing is wrong".into())
}

/// How long a text takes to load, right or wrong: the time of this thread on a processor, where the
/// system tells. A busy machine makes everything else longer.
fn time(text: &str) -> Duration {
    let begun = Instant::now();
    let busy = busy();
    let _ = load(text);
    match (busy, self::busy()) {
        (Some(before), Some(after)) => after - before,
        _ => begun.elapsed(),
    }
}

/// How long this thread ran so far.
fn busy() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn repeated(n: usize, each: impl Fn(usize) -> String) -> String {
    (0..n).fold(String::new(), |mut all, i| {
        let _ = write!(all, "{}", each(i));
        all
    })
}

#[test]
fn long_expressions_end_with_an_error_and_not_with_the_stack() {
    for sign in ["+", "-", "*", "&", "and", "or"] {
        let terms = repeated(20_000, |_| format!(" {sign} a"));
        assert!(
            wrong(&format!("struct S {{ a: u8 b: u8[a{terms}] }}")).contains("more than 128 terms"),
            "{sign}"
        );
        assert!(
            wrong(&format!("struct S {{ a: u8 if a{terms} {{ b: u8 }} }}")).contains("128 terms"),
            "{sign}"
        );
    }
    assert!(
        load(&format!(
            "struct S {{ a: u8 if a in ({}) {{ b: u8 }} }}",
            repeated(20_000, |i| format!("{i},"))
        ))
        .is_ok()
    );
}

#[test]
fn types_of_many_lengths_end_with_an_error_and_not_with_the_stack() {
    assert!(
        wrong(&format!("struct S {{ a: u8{} }}", "[1]".repeat(20_000)))
            .contains("lengths and regions at most")
    );
    assert!(
        wrong(&format!("struct S {{ a: bytes[*]{} }}", " as bytes[*]".repeat(20_000)))
            .contains("nested more than")
    );
    assert!(
        wrong(&format!("struct S {{ a: bytes[*] as u8{} }}", " | u8".repeat(20_000)))
            .contains("forms at most")
    );
    assert!(load("struct S { a: utf8[to 32][z] b: u8[2][3] }").is_ok());
}

#[test]
fn aliases_may_be_many_and_circles_are_named() {
    let chain = |n: usize| repeated(n, |i| format!("type A{} = A{i}\n", i + 1));
    assert!(
        load(&format!("type A0 = u8\n{}", chain(40))).is_ok(),
        "a chain of 40 is none of itself"
    );
    assert_eq!(wrong(&format!("type A0 = A5\n{}", chain(5))), "`A0` is defined by itself");
    assert!(
        wrong(&format!("type A0 = u8\n{}", chain(100))).contains("more than 64 types are names")
    );
}

/// Ten times the text takes about ten times as long: at most thirty times, since other programs run
/// beside the tests.
#[test]
fn large_tables_take_time_in_proportion() {
    type Shape = (&'static str, fn(usize) -> String);
    let shapes: [Shape; 8] = [
        ("fields", |n| format!("struct S {{ {} }}", repeated(n, |i| format!("f{i}: u8 ")))),
        ("arms", |n| {
            format!(
                "struct S {{ a: u32 match a {{ {} }} }}",
                repeated(n, |i| format!("{i} => note \"x\" "))
            )
        }),
        ("values", |n| {
            let values = repeated(n, |i| format!("v{i} = {i} "));
            format!(
                "enum E : u32 {{ {values} }} struct S {{ a: E {} }}",
                repeated(n, |i| format!("if a == v{i} {{ }} "))
            )
        }),
        ("messages", |n| {
            format!(
                "service s {{ number: u32 }} {}",
                repeated(n, |i| format!("message s both {i} M{i} {{ }} "))
            )
        }),
        ("classes", |n| {
            let values = repeated(n, |i| format!("C{i} = {i} "));
            let classes = repeated(n, |i| format!("class C{i} of F {{ }} "));
            format!("enum E : u32 {{ {values} }} family F {{ class: E }} {classes}")
        }),
        ("parameters", |n| {
            let names = repeated(n, |i| format!("p{i}, "));
            let values = repeated(n, |_| "1, ".into());
            format!("struct S({names}) {{ a: u8 }} struct T {{ b: S({values}) }}")
        }),
        ("parameters of a parent", |n| {
            let names = repeated(n, |i| format!("p{i}, "));
            format!("struct S({names}) {{ a: u8 }} struct T({names}) extends S {{ b: u8 }}")
        }),
        ("the same name in many enums", |n| {
            repeated(n, |i| format!("enum E{i} : u8 {{ same = 1 }} "))
        }),
    ];
    for (name, shape) in shapes {
        assert!(load(&shape(100)).is_ok(), "{name}: {}", wrong(&shape(100)));
        let small = time(&shape(2_000));
        let large = time(&shape(20_000));
        let allowed = small * 30 + Duration::from_millis(300);
        assert!(large < allowed, "{name}: {small:?} became {large:?}");
    }
}

#[test]
fn values_that_a_structure_keeps_are_bounded() {
    let params = |n| format!("struct S({}) {{ a: u8 }}", repeated(n, |i| format!("p{i}, ")));
    assert!(load(&params(65_000)).is_ok());
    assert!(wrong(&params(70_000)).contains("more than 65535 parameters and values"));
    let fields = repeated(70_000, |i| format!("f{i}: u8 if f{i} == 1 {{ }} "));
    assert!(
        wrong(&format!("struct S {{ {fields} }}"))
            .contains("more than 64 fields of this structure")
    );
}

#[test]
fn structures_that_double_each_time_are_bounded() {
    let doubled = repeated(40, |i| format!("struct S{} {{ a: S{i} b: S{i} c: S{i} }} ", i + 1));
    let begun = Instant::now();
    assert!(load(&format!("struct S0 {{ a: u32 }} {doubled}")).is_ok());
    let aliases = repeated(60, |i| format!("type A{} = bytes[*] as A{i} | A{i}\n", i + 1));
    assert!(wrong(&format!("type A0 = bytes[*] as u8 | u16\n{aliases}")).contains("more than"));
    let fields = repeated(1_000, |i| format!("f{i}: u8 "));
    let many = repeated(5_000, |i| format!("struct S{i} extends P {{ }} "));
    assert!(
        wrong(&format!("struct P {{ {fields} }} {many}"))
            .contains("more than 400000 types or fields")
    );
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn names_and_files_have_a_largest_size() {
    assert!(
        wrong(&format!("struct {} {{ }}", "x".repeat(300)))
            .contains("a name has 255 bytes at most")
    );
    assert!(wrong(&" ".repeat(MAX_TABLE_BYTES)).contains("16 MiB at most"));
    assert!(
        wrong(&format!("struct S {{ {} }}", "a: u8 ".repeat(250_001)))
            .contains("250000 declarations")
    );
}

#[test]
fn a_folder_with_too_many_tables_is_refused() {
    let folder = scratch("many-tables");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for i in 0..1024 {
        std::fs::write(
            folder.join(format!("{i}.table")),
            format!("protocol p{i} {{ transport tcp ports 7 }}\n"),
        )
        .unwrap();
    }
    let check = || {
        let output =
            crate::common::program().args(["tables", "check"]).arg(&folder).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(!check().1.contains("more than 1024 files"));
    std::fs::write(folder.join("one-more.table"), "").unwrap();
    let (status, said) = check();
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("more than 1024 files in this folder end in .table; name those to be read"),
        "{said}"
    );
}

#[test]
#[cfg(unix)]
fn pipes_by_name_and_endless_tables_are_not_read() {
    let pipe = scratch("pipe.table");
    let _ = std::fs::remove_file(&pipe);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    let golden = "captures/moul/golden.pcap";
    for words in [
        &["tables", "check", "/dev/zero"][..],
        &["tables", "check", pipe],
        &["stats", golden, "--tables", pipe],
        &["decode", "intermud3", "00", "--tables", pipe],
        &["diff", golden, golden, "--ignore-file", pipe],
    ] {
        let output = crate::common::program().args(words).current_dir(file("")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("a named pipe or a device, which is not read"), "{words:?}: {said}");
    }
}

#[test]
fn a_list_of_what_is_ignored_that_is_none_is_not_quoted() {
    let path = scratch("keys.ignore");
    let golden = "captures/moul/golden.pcap";
    for text in [
        "Key.Auth.K = 5f3759dfsecret",
        "[s]\nkey = 5f3759dfsecret",
        "{ \"5f3759dfsecret\" }",
        "\u{0} 5f3759dfsecret =",
    ] {
        std::fs::write(&path, text).unwrap();
        let words = ["-q", "diff", golden, golden, "--ignore-file", path.to_str().unwrap()];
        let output = crate::common::program().args(words).current_dir(file("")).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}: {said}");
        assert!(!said.contains("5f3759df") && said.lines().count() == 1, "{text}: {said}");
        assert!(said.contains("keys.ignore, line "), "{said}");
    }
}

#[test]
fn an_error_about_another_kind_of_file_shows_nothing_of_it() {
    for text in [
        "Key.Auth.K = 5f3759dfsecret",
        "[section]\nkey = 5f3759dfsecret",
        "# 5f3759dfsecret",
        "\"5f3759dfsecret",
        "5f3759dfsecret",
        "protocol = 5f3759dfsecret",
    ] {
        let source = TableSource { name: "dirtsand.ini".into(), text: text.into() };
        let error = Tables::load("p", vec![source], &[]).err().unwrap().to_string();
        assert!(!error.contains("secret"), "{error}");
        assert!(error.contains("no table file"), "{error}");
    }
    let program = crate::common::program()
        .args(["tables", "check", "keys/dirtsand.ini"])
        .current_dir(file(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&program.stderr).into_owned();
    assert_eq!(
        said,
        "moulsniff: keys/dirtsand.ini:1:1: this is no table file: those begin with `protocol \
         NAME`\n"
    );
}

#[test]
fn an_error_shows_a_line_a_terminal_can_bear() {
    let error = load(&format!("struct S {{ a: \u{1b}[31m{} }}", "x".repeat(10_000)))
        .err()
        .unwrap()
        .to_string();
    assert!(!error.contains('\u{1b}') && error.len() < 2_000, "{error}");
}

#[test]
fn a_misspelt_integer_type_in_a_length_is_recognised() {
    assert!(
        wrong("struct S { a: u8[u17] }").ends_with("did you mean `u16`?"),
        "{}",
        wrong("struct S { a: u8[u17] }")
    );
}

#[test]
fn a_later_file_cannot_change_declarations_that_code_uses() {
    let both = |later: &str| {
        let source = |name: &str, text: &str| TableSource {
            name: name.into(),
            text: format!("protocol p\n{text}").into(),
        };
        let all = vec![source("embedded", "struct Header { size: u8 }"), source("own", later)];
        Tables::load("p", all, &[])
    };
    let error = both("enum Header : u8 { a = 1 }").err().unwrap().message;
    assert!(error.contains("`Header` is declared already, as a struct"), "{error}");
    assert!(both("struct Header(wide) { size: u8 }").is_err());
    let tables = both("struct Header { length: u16 }").unwrap();
    assert!(tables.sym("size").is_some(), "a name that code asks for is still there");
}

#[test]
fn remarks_name_messages_that_nothing_tests_or_that_take_a_number() {
    let source = |name: &str, text: &str| TableSource {
        name: name.into(),
        text: format!("protocol p\n{text}").into(),
    };
    let embedded = source("embedded", "service s { number: u8 }\nmessage s both 1 Old { }");
    let own = source(
        "own",
        "message s both 1 New { a: u8 }\nmessage s both 2 Good { example \"02\" {} }",
    );
    let tables = Tables::load("p", vec![embedded, own], &[]).unwrap();
    let said: Vec<String> =
        tables.remarks(1).iter().map(|r| format!("{}:{} {}", r.file, r.line, r.message)).collect();
    assert_eq!(
        said,
        [
            "own:2 `New` has no example: nothing tests it",
            "own:2 `New` takes the number or text of `Old`, which cannot be recognised any more"
        ]
    );
}

/// What `tables check` says of a text. The message about each of thousands of mistakes has its
/// line, which must not take the whole file each time.
fn checked(name: &str, text: &str) -> String {
    let path = scratch(name);
    std::fs::write(&path, text).unwrap();
    let output = crate::common::program().args(["tables", "check"]).arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn remarks_and_failed_examples_are_bounded() {
    let of = |n: usize, declared: &str, each: &dyn Fn(usize) -> String| {
        format!(
            "protocol p2 {{ transport tcp ports 7 {declared} }}\nservice c {{ whole }}\n{}",
            repeated(n, each)
        )
    };
    let messages = of(3000, "", &|i| format!("message c client any M{i} {{ a: bytes[*] }}\n"));
    let said = checked("one_number.table", &messages);
    assert_eq!(said, "", "one number, many messages: an error on the other output");
    let services = of(3000, "service c", &|i| format!("service s{i} {{ whole }}\n"));
    let said = checked("services.table", &services);
    assert_eq!(said.matches("no connection offers").count(), 1000, "{}", said.lines().count());
    assert!(said.contains(": 2000 more remarks from here on\n"), "{}", said.lines().count());
    let example = " example \"00\" { \"a\": \"01\" }";
    let examples = format!(
        "{}message c client any M {{ a: bytes[*]{} }}\n",
        of(0, "", &|_| String::new()),
        example.repeat(3000)
    );
    let said = checked("examples.table", &examples);
    assert!(
        said.ends_with("3000 examples, 1000 failed; after these no more were run\n"),
        "{}",
        said.lines().count()
    );
    let said = checked("few.table", &examples.replacen(example, "", 2998));
    assert!(said.ends_with("2 examples, 2 failed\n"), "{said}");
}
