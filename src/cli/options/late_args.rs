//! The options of a command, which clap learns only if the command's name was typed: to learn those
//! of all commands takes a seventh of the instructions of a start.

use std::cell::RefCell;
use std::ffi::OsString;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

thread_local! {
    /// What was typed, while clap learns the commands; none where it learns all options.
    static TYPED: RefCell<Option<Vec<OsString>>> = const { RefCell::new(None) };
}

/// A command's options.
#[derive(Debug)]
pub struct LateArgs<T>(pub T);

/// What `make` makes, where the options of a command are left out unless its name is among the
/// words typed.
pub(in crate::cli) fn only_typed<R>(typed: &[OsString], make: impl FnOnce() -> R) -> R {
    TYPED.set(Some(typed.to_vec()));
    let made = make();
    TYPED.set(None);
    made
}

impl<T: Args> Args for LateArgs<T> {
    fn augment_args(command: Command) -> Command {
        let is_typed = |typed: &Vec<OsString>| typed.iter().any(|word| word == command.get_name());
        if TYPED.with_borrow(|typed| typed.as_ref().is_none_or(is_typed)) {
            T::augment_args(command)
        } else {
            command
        }
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for LateArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LateArgs<T>, Error> {
        T::from_arg_matches(matches).map(LateArgs)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
