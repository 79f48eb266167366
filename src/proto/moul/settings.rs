//! The user's settings for MOUL: key files and state descriptors.

use std::sync::LazyLock;

use super::keys::{KeyFile, KeyRing, MAX_KEY_FILE};
use super::sdl::store::{MAX_FILE, Store};
use crate::proto::{FileRule, OptionFile, OptionKind, OptionSpec, OptionValues, SettingsError};
use crate::session::Settings;

pub(super) const KEYS: &str = "keys";
const SDL: &str = "sdl";

/// The options.
pub(super) const OPTIONS: [OptionSpec; 2] = [
    OptionSpec {
        name: KEYS,
        value_name: "FILE",
        help: "Decrypt with these keys of a shard: a file, or a folder of them",
        more_help: "It takes dirtsand.ini, moulars.toml, NAGUS's configuration, MOSS's key files, \
                    and shard.keys. May be given several times.",
        kind: OptionKind::Files(FileRule {
            what: "a key file",
            most_bytes: MAX_KEY_FILE,
            most_in_all: 4 * MAX_KEY_FILE,
            extension: None,
        }),
        variable: Some("MOULSNIFF_KEYS"),
        everywhere: true,
    },
    OptionSpec {
        name: SDL,
        value_name: "PATH",
        help: "MOUL: read state descriptors, besides those in the capture",
        more_help: "It takes .sdl files, plain or encrypted, and folders of them. May be given \
                    several times.",
        kind: OptionKind::Files(FileRule {
            what: "a state descriptor file",
            most_bytes: MAX_FILE as u64,
            most_in_all: 16 << 20,
            extension: Some("sdl"),
        }),
        variable: None,
        everywhere: true,
    },
];

/// The settings of a run.
#[derive(Default)]
pub struct MoulSettings {
    /// All keys, including those that the capture carries.
    pub keys: KeyRing,
    /// State descriptor files, in the order in which they were given.
    descriptors: Vec<DescriptorFile>,
}

/// A state descriptor file that was read without a mistake, or that is encrypted with a key that is
/// not known yet.
struct DescriptorFile {
    name: String,
    bytes: Vec<u8>,
}

static NOTHING: LazyLock<MoulSettings> = LazyLock::new(MoulSettings::default);

impl MoulSettings {
    /// Settings with keys and nothing else.
    pub fn with_keys(keys: KeyRing) -> MoulSettings {
        MoulSettings { keys, descriptors: Vec::new() }
    }

    /// MOUL's settings of a run. Empty if the user gave none.
    pub(super) fn of(settings: &Settings) -> &MoulSettings {
        settings.get().unwrap_or(&NOTHING)
    }

    /// Reads the options.
    pub(super) fn read(
        values: &OptionValues,
        warn: &mut dyn FnMut(String),
    ) -> Result<MoulSettings, SettingsError> {
        Ok(MoulSettings { keys: read_keys(values, warn)?, descriptors: read_descriptors(values)? })
    }

    /// Puts the state descriptors into a store.
    pub(super) fn fill(&self, store: &mut Store) {
        for file in &self.descriptors {
            // Mistakes were reported when the files were read.
            store.keep_file(&file.name, &file.bytes);
        }
    }
}

fn read_keys(
    values: &OptionValues,
    warn: &mut dyn FnMut(String),
) -> Result<KeyRing, SettingsError> {
    let mut ring = KeyRing::default();
    // The folders that the user named, and whether each held a key file.
    let mut folders: Vec<(&str, bool)> = Vec::new();
    for file in values.files(KEYS) {
        let OptionFile { name, bytes, folder } = file;
        let found = match KeyFile::parse(name, bytes) {
            Ok(keys) => {
                keys.notes().iter().for_each(|note| warn(format!("{}: {note}", keys.name())));
                ring.add(keys);
                true
            }
            // A folder may hold other files too.
            Err(error) if folder.is_some() && error.is_of_another_kind() => false,
            Err(error) if folder.is_some() || error.is_harmless() => {
                warn(error.to_string());
                true
            }
            Err(error) => return Err(SettingsError::Unreadable(error.to_string())),
        };
        let Some(folder) = folder else { continue };
        match folders.iter_mut().find(|(known, _)| known == folder) {
            Some((_, any)) => *any |= found,
            None => folders.push((folder, found)),
        }
    }
    match folders.into_iter().find(|(_, any)| !any) {
        Some((folder, _)) => Err(SettingsError::Unreadable(format!(
            "{folder}: none of the files in this folder is a key file"
        ))),
        None => Ok(ring),
    }
}

fn read_descriptors(values: &OptionValues) -> Result<Vec<DescriptorFile>, SettingsError> {
    let mut store = Store::new();
    let mut files = Vec::new();
    for OptionFile { name, bytes, .. } in values.files(SDL) {
        if let Some(error) = store.keep_file(name, bytes).error {
            return Err(SettingsError::Typed(error.to_string()));
        }
        files.push(DescriptorFile { name: name.clone(), bytes: bytes.clone() });
    }
    match store.encrypted().next() {
        Some(name) if values.no_capture => {
            let text = format!(
                "{name}: encrypted with the key of a server, which only a capture of a login has"
            );
            Err(SettingsError::Typed(text))
        }
        _ => Ok(files),
    }
}
