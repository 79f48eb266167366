//! Values whose type only a protocol knows: the user's settings for it, and the secrets that its
//! sessions emit.
//!
//! This module knows no protocol. Code between the command line and a session carries these values
//! without looking inside.

use std::any::Any;
use std::fmt;

/// The user's settings for one protocol: its keys, files and switches.
///
/// The protocol makes the value from its options before the first frame is read. Each of the
/// protocol's sessions gets it in the [`Context`](super::Context). It may grow while a capture is
/// read, by the secrets that the capture carries. A session that finds no value of its type goes on
/// as if no option had been given.
///
/// ```
/// use moulsniff::session::Settings;
///
/// struct Cookies(bool);
/// let mut settings = Settings::new(Cookies(true));
/// assert!(settings.get::<Cookies>().is_some_and(|cookies| cookies.0));
/// assert!(settings.get::<u32>().is_none());
/// ```
#[derive(Default)]
pub struct Settings(Option<Box<dyn Any + Send + Sync>>);

impl Settings {
    /// Settings that hold nothing.
    pub const NONE: Settings = Settings(None);

    /// Settings that hold a protocol's own value.
    pub fn new<T: Any + Send + Sync>(value: T) -> Settings {
        Settings(Some(Box::new(value)))
    }

    /// The value, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }

    /// The value, to be changed. If there is none of this type, a default value is put in first.
    pub fn get_or_default<T: Any + Send + Sync + Default>(&mut self) -> Option<&mut T> {
        if self.get::<T>().is_none() {
            self.0 = Some(Box::new(T::default()));
        }
        self.0.as_mut()?.downcast_mut()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Settings(…)" } else { "Settings(none)" })
    }
}

/// The secret of one connection, such as its session key, in the protocol's own notation.
///
/// A session emits it in an event of the kind [`EventKind::Key`](super::EventKind::Key), once it is
/// proved. It is meant only for files that the user asked to hold secrets, so `Debug` does not show
/// it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret as text, in the form that the protocol's own reader accepts.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The text, for files that the user asked to hold secrets.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
