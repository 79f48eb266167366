//! `moulsniff completions`: scripts with which shells complete what is typed.
//!
//! clap writes them. For fish, Elvish and PowerShell it leaves out the words that may stand where a
//! command takes any text; these are added.

use clap_complete::Shell;

use crate::cli::options::CompletionWords;

/// The commands whose first word is one of those offered.
const COMMANDS: [(&[&str], CompletionWords); 3] = [
    (&["decode"], CompletionWords::SENDERS),
    (&["encode"], CompletionWords::SENDERS),
    (&["tables", "list"], CompletionWords::SERVICES),
];

/// The script for a shell.
pub(super) fn script(shell: Shell, mut command: clap::Command) -> String {
    // Into memory first: the crate would panic on a closed pipe.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "moulsniff", &mut text);
    let mut text = String::from_utf8_lossy(&text).into_owned();
    for (words, offered) in COMMANDS {
        add(shell, words, &offered.words(), &mut text);
    }
    text
}

/// Adds what is offered after the command `words`, where clap did not.
fn add(shell: Shell, words: &[&str], offered: &[String], text: &mut String) {
    let path = words.join(";");
    match shell {
        Shell::Fish => {
            let condition = words.join("; and __fish_seen_subcommand_from ");
            text.push_str(&format!(
                "complete -c moulsniff -n \"__fish_moulsniff_using_subcommand {condition}\" -f -a \
                 \"{}\"\n",
                offered.join(" ")
            ));
        }
        Shell::Elvish => {
            let lines = offered.iter().map(|word| format!("            cand {word} '{word}'\n"));
            put_behind(&format!("&'moulsniff;{path}'= {{\n"), &lines.collect::<String>(), text);
        }
        Shell::PowerShell => {
            let line = |word: &String| {
                format!(
                    "            [CompletionResult]::new('{word}', '{word}', \
                     [CompletionResultType]::ParameterValue, '{word}')\n"
                )
            };
            let lines: String = offered.iter().map(line).collect();
            put_behind(&format!("'moulsniff;{path}' {{\n"), &lines, text);
        }
        _ => {}
    }
}

/// Puts lines behind the place where the candidates of a command begin.
fn put_behind(start: &str, lines: &str, text: &mut String) {
    if let Some(at) = text.find(start) {
        text.insert_str(at + start.len(), lines);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_shell_knows_options_commands_and_services() {
        for shell in Shell::value_variants() {
            let script = script(*shell, crate::cli::command());
            for option in crate::cli::command()
                .get_arguments()
                .filter_map(|arg| arg.get_long().map(str::to_owned))
            {
                assert!(script.contains(&option), "{shell}: {option}");
            }
            for word in [
                "no-config",
                "config",
                "moul.auth.client",
                "secondlife.circuit",
                "intermud3.router.server",
            ] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            for word in
                CompletionWords::SENDERS.words().iter().chain(&CompletionWords::SERVICES.words())
            {
                assert!(script.contains(word.as_str()), "{shell}: {word}");
            }
        }
    }
}
