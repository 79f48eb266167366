//! Colours of trees: the escape codes of terminals (ECMA-48, SGR) around texts.

/// The codes before and after a text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Switches the colour on.
    pub on: &'static str,
    /// Switches it off.
    pub off: &'static str,
}

/// The style of each kind of text; all codes are empty without colour.
#[derive(Clone, Debug, Default)]
pub struct Paint {
    /// A message's name.
    pub name: Style,
    /// Less important text: numbers, times, directions.
    pub dim: Style,
    /// A field's name.
    pub field: Style,
    /// What a value means.
    pub meaning: Style,
    /// A warning, an error, an event that reports a fault.
    pub bad: Style,
    /// The colours in which `-x` shows a field's name and its bytes.
    pub ties: Vec<Style>,
    /// Arrow, rule and dot.
    pub marks: Marks,
}

/// The characters beside the text, beyond ASCII or not, as the locale allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Between sender and receiver, with spaces around it.
    pub arrow: &'static str,
    /// Before an event, with a space behind it.
    pub rule: &'static str,
    /// Before a problem, with a space behind it.
    pub dot: &'static str,
}

impl Default for Marks {
    fn default() -> Self {
        Marks { arrow: " ▸ ", rule: "── ", dot: "· " }
    }
}

impl Marks {
    /// The forms in ASCII.
    pub const ASCII: Marks = Marks { arrow: " > ", rule: "-- ", dot: "- " };

    /// The forms for a locale, as `LC_ALL`, `LC_CTYPE` or `LANG` name it: ASCII where it has
    /// another encoding than UTF-8 (`C`, `POSIX`). Without a locale, ASCII on a terminal alone, so
    /// that files are the same wherever they are written.
    pub fn of_locale(locale: Option<&str>, terminal: bool) -> Marks {
        let unicode = match locale {
            Some(name) => {
                let name = name.to_ascii_lowercase();
                name.contains("utf-8") || name.contains("utf8")
            }
            None => !terminal,
        };
        if unicode { Marks::default() } else { Marks::ASCII }
    }
}

impl Paint {
    /// Colours, or none.
    pub fn new(colour: bool, marks: Marks) -> Paint {
        if !colour {
            return Paint { ties: vec![Default::default()], marks, ..Paint::default() };
        }
        let style = |on| Style { on, off: "\u{1b}[0m" };
        let [red, green, yellow, blue, magenta, cyan] =
            ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[34m", "\u{1b}[35m", "\u{1b}[36m"]
                .map(style);
        Paint {
            name: style("\u{1b}[1m"),
            dim: style("\u{1b}[2m"),
            field: cyan,
            meaning: green,
            bad: red,
            ties: vec![cyan, yellow, magenta, blue, green, style("\u{1b}[91m")],
            marks,
        }
    }

    /// The colour of field `n`; colours repeat.
    pub fn tie(&self, n: usize) -> &Style {
        let plain = &self.dim;
        self.ties.get(n % self.ties.len().max(1)).unwrap_or(plain)
    }
}
