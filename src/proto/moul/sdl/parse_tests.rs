#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
use super::*;

fn one(text: &str) -> Descriptor {
    let mut parsed = parse("a.sdl", text);
    assert_eq!(parsed.error, None);
    assert_eq!(parsed.descriptors.len(), 1);
    parsed.descriptors.remove(0)
}

fn error(text: &str) -> String {
    parse("a.sdl", text).error.expect("a mistake").to_string()
}

fn variable(line: &str) -> Variable {
    let descriptor = one(&format!("STATEDESC a {{ VERSION 1\n{line}\n}}"));
    let [variable] = descriptor.variables() else { panic!() };
    variable.clone()
}

fn default(line: &str) -> Option<String> {
    variable(line).default.map(|text| text.to_string())
}

#[test]
fn a_file_as_the_game_has_them() {
    let text = "# State Description Language for SomeAge\r\n\r\nSTATEDESC SomeAge\r\n\
                {\r\n\tVERSION 2\r\n\r\n# Age Mechanics\r\n\
                \tVAR BOOL    someFlag[1]  DEFAULT=false DEFAULTOPTION=VAULT\r\n\
                \tVAR INT\tsomeState[2] DEFAULT = 0 DISPLAYOPTION=hidden DISPLAYOPTION=red # why\r\n\
                \tVAR $Inner  list[]\r\n}\r\n";
    let descriptor = one(text);
    assert_eq!((&*descriptor.name, descriptor.version), ("SomeAge", 2));
    let [flag, state, list] = descriptor.variables() else { panic!() };
    assert_eq!(
        (&*flag.name, flag.kind.clone(), flag.count),
        ("someFlag", VariableKind::Simple(SimpleType::Bool), Some(1))
    );
    assert_eq!(
        (flag.default.as_deref(), &flag.options[..]),
        (Some("false"), &[Arc::from("VAULT")][..])
    );
    assert_eq!(
        (state.count, state.default.as_deref(), state.options.len()),
        (Some(2), Some("0"), 2)
    );
    assert_eq!(
        list.kind,
        VariableKind::Nested(NestedType { name: Arc::from("Inner"), seen: None })
    );
    assert_eq!(list.count, None);
}

#[test]
fn an_empty_file_and_comments_alone_describe_nothing() {
    assert_eq!(parse("a.sdl", ""), Parsed::default());
    assert_eq!(parse("a.sdl", "# nothing"), Parsed::default());
    assert_eq!(parse("a.sdl", "\u{feff}\r\n # nothing \r\n"), Parsed::default());
}

#[test]
fn defaults_are_kept_as_written() {
    assert_eq!(default("VAR INT a[1]"), None);
    assert_eq!(default("VAR INT a[1] DEFAULT=-1"), Some("-1".into()));
    assert_eq!(default("VAR INT a[1] DEFAULT=0;"), Some("0".into()));
    assert_eq!(default("VAR INT a[1] DEFAULT=(0)"), Some("0".into()));
    assert_eq!(default("VAR POINT3 a[1] DEFAULT=(0.0,-5,12.34)"), Some("0.0,-5,12.34".into()));
    assert_eq!(default("VAR POINT3 a[1] DEFAULT=( 1, 2 , 3 )"), Some("1,2,3".into()));
    assert_eq!(
        default("VAR QUATERNION a[1] DEFAULT=0 0 0 1 DISPLAYOPTION=red"),
        Some("0,0,0,1".into())
    );
    assert_eq!(default("VAR STRING32 a[1] DEFAULT=\"\""), Some(String::new()));
    assert_eq!(default("VAR STRING32 a[1] DEFAULT=\"two words\""), Some("two words".into()));
    assert_eq!(default("VAR STRING32 a[1] DEFAULT=empty"), Some("empty".into()));
    assert_eq!(default("VAR PLKEY a[1] DEFAULT=nil"), Some("nil".into()));
    assert_eq!(default("VAR RGB a[1] DEFAULT=1.0"), Some("1.0".into()));
}

#[test]
fn old_and_odd_spellings_are_taken() {
    assert_eq!(variable("VAR INT a[1] INTERNAL PHASED").options.len(), 2);
    assert_eq!(variable("VAR INT a [ 3 ]").count, Some(3));
    assert_eq!(variable("VAR INT a[0]").count, None);
    assert_eq!(variable("VAR quat a[1]").kind, VariableKind::Simple(SimpleType::Quaternion));
    assert_eq!(one("STATEDESC a{VERSION 3}").version, 3);
    assert_eq!(one("STATEDESC a {\nVERSION 1.5\n};").version, 1);
}

#[test]
fn a_nested_variable_remembers_the_newest_version_before_it() {
    let text = "STATEDESC In { VERSION 2 } STATEDESC In { VERSION 1 } STATEDESC Out { VERSION 1 \
                VAR $in a[] }";
    let parsed = parse("a.sdl", text);
    let VariableKind::Nested(nested) = &parsed.descriptors[2].variables()[0].kind else { panic!() };
    assert_eq!(nested.seen, Some(2));
}

#[test]
fn mistakes_name_the_place() {
    assert_eq!(
        error("hello"),
        "a.sdl:1:1: expected `STATEDESC`, with which a state descriptor begins"
    );
    assert_eq!(error("STATEDESC a\n  VERSION 1"), "a.sdl:2:3: expected `{`, found `VERSION`");
    assert_eq!(
        error("STATEDESC a {\n VAR INT a[1] }"),
        "a.sdl:2:2: expected `VERSION`, which comes first in a descriptor, found `VAR`"
    );
    assert_eq!(
        error("STATEDESC a { VERSION -1 }"),
        "a.sdl:1:23: expected the version, a number from 0, found `-1`"
    );
    assert_eq!(
        error("STATEDESC a { VERSION 1\n\tVAR STRING x[1] }"),
        "a.sdl:2:6: no type is called `STRING`"
    );
    assert_eq!(error("STATEDESC a { VERSION 1 VAR INT x }"), "a.sdl:1:35: expected `[`, found `}`");
    assert_eq!(
        error("STATEDESC a { VERSION 1 VAR INT x[n] }"),
        "a.sdl:1:35: expected the number of elements, or `]`, found `n`"
    );
    assert_eq!(
        error("STATEDESC a { VERSION 1"),
        "a.sdl:1:24: expected `VAR`, an option of a variable, or `}`, found the end of the file"
    );
    assert_eq!(
        error("STATEDESC a { VERSION 1 VAR INT x[1] RED }"),
        "a.sdl:1:38: expected `VAR`, an option of a variable, or `}`, found `RED`"
    );
    assert_eq!(
        error("STATEDESC a { VERSION 1 VAR INT x[1] DEFAULT= }"),
        "a.sdl:1:47: expected a default value, found `}`"
    );
    assert_eq!(
        error("STATEDESC ä { VERSION ö }"),
        "a.sdl:1:23: expected the version, a number from 0, found `ö`"
    );
}

#[test]
fn a_text_cut_anywhere_ends_in_order() {
    let text = "STATEDESC ä { VERSION 1 VAR $B b[] VAR POINT3 p[2] DEFAULT=(1,2,\"3\") \
                DISPLAYOPTION=red INTERNAL; } # end";
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        let parsed = parse("a.sdl", &text[..end]);
        assert!(parsed.descriptors.len() <= 1);
    }
}
