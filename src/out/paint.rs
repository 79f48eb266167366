//! Colours of trees: the escape codes of the terminal library, prepared once so that they only have to be copied.

#[cfg(feature = "cli")]
use colored::Colorize;

/// The codes before and after a text.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// Switches the colour on.
    pub on: String,
    /// Switches it off.
    pub off: String,
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

    /// The forms for a locale, as `LC_ALL`, `LC_CTYPE` or `LANG` name it: ASCII where it has another encoding than UTF-8 (`C`, `POSIX`).
    /// Without a locale, ASCII on a terminal alone, so that files are the same wherever they are written.
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
        Paint::coloured(marks)
    }

    /// Without the program there is no terminal.
    #[cfg(not(feature = "cli"))]
    fn coloured(marks: Marks) -> Paint {
        Paint::new(false, marks)
    }

    #[cfg(feature = "cli")]
    fn coloured(marks: Marks) -> Paint {
        colored::control::set_override(true);
        let paint = Paint {
            name: split(&MARK.bold().to_string()),
            dim: split(&MARK.dimmed().to_string()),
            field: split(&MARK.cyan().to_string()),
            meaning: split(&MARK.green().to_string()),
            bad: split(&MARK.red().to_string()),
            ties: [MARK.cyan(), MARK.yellow(), MARK.magenta(), MARK.blue(), MARK.green(), MARK.bright_red()]
                .iter()
                .map(|c| split(&c.to_string()))
                .collect(),
            marks,
        };
        colored::control::unset_override();
        paint
    }

    /// The colour of field `n`; colours repeat.
    pub fn tie(&self, n: usize) -> &Style {
        let plain = &self.dim;
        self.ties.get(n % self.ties.len().max(1)).unwrap_or(plain)
    }
}

#[cfg(feature = "cli")]
const MARK: &str = "\u{0}";

#[cfg(feature = "cli")]
fn split(painted: &str) -> Style {
    match painted.split_once('\u{0}') {
        Some((on, off)) => Style { on: on.to_string(), off: off.to_string() },
        None => Default::default(),
    }
}
