//! MOUL: Myst Online: Uru Live and its fan shards. See `docs/moul.md`.
//!
//! The message tables beside this file say what messages hold; the code here knows how a connection
//! begins, how it is encrypted, and how its messages follow each other.

mod direction;
mod evidence;
mod framing;
mod gamemgr;
mod joined_key;
pub mod keys;
mod keystream;
mod natives;
mod net_log;
mod opening;
mod recognise;
mod rejoin;
pub mod sdl;
mod seal;
mod search;
mod secrets;
mod service_search;
mod session;
#[cfg(test)]
mod session_tests;
mod settings;
#[cfg(test)]
mod testing;
mod unlock;
mod vault;
mod wrong_key;

pub use settings::MoulSettings;

use super::{
    EncodedMessage, Expected, LazyTables, Opening, OptionSpec, OptionValues, Protocol, RecordNames,
    Seal, Secrets, SettingsError, TextFormat, Verdict,
};
use crate::session::{Ends, Session, Settings, Start, Transport};
use crate::table::{Encoder, Evaluator, Meaning, Native, TableSource, Tables};
use std::io::Write;

/// The protocol.
pub struct Moul;

/// The port shards listen on by default: a hint, never a proof.
const PORT: u16 = 14617;

/// The words that tables may write after `shown`.
const MEANINGS: [Meaning; 1] = [Meaning { name: "sequence_number", write: write_sequence_number }];

/// The types with code.
const NATIVES: [Native; 10] = {
    let [string, wstring, p_string, wide_time] = natives::NATIVES;
    let [variables, nested, creatable] = sdl::NATIVES;
    let [text] = vault::NATIVES;
    let [game, game_type] = gamemgr::NATIVES;
    [string, wstring, p_string, wide_time, variables, nested, creatable, text, game, game_type]
};

/// The embedded tables, by file.
macro_rules! tables {
    ($($file:literal),* $(,)?) => {
        vec![$(TableSource { name: concat!("moul/", $file).into(), text: include_str!($file).into() }),*]
    };
}

impl Protocol for Moul {
    fn name(&self) -> &'static str {
        "moul"
    }

    fn sources(&self) -> Vec<TableSource> {
        tables![
            "enums.table",
            "connect.table",
            "gatekeeper.table",
            "auth.table",
            "file.table",
            "game.table",
            "csr.table",
            "creatables.table",
            "plasma_types.table",
            "netmessages.table",
            "messages_core.table",
            "messages_anim.table",
            "messages_avatar.table",
            "messages_camera.table",
            "messages_input.table",
            "messages_net.table",
            "messages_physics.table",
            "messages_sound.table",
            "sdl.table",
            "vault.table",
            "gamemgr.table",
        ]
    }

    fn usual_ports(&self) -> &'static [(Transport, u16)] {
        &[(Transport::Tcp, 14617)]
    }

    fn natives(&self) -> &'static [Native] {
        &NATIVES
    }

    fn meanings(&self) -> &'static [Meaning] {
        &MEANINGS
    }

    fn record_names(&self) -> RecordNames {
        RecordNames {
            messages: &["ConnectPacket"],
            services: &["unknown", "http"],
            ..RecordNames::default()
        }
    }

    fn command_lines(&self) -> &'static [&'static str] {
        &[
            "moulsniff capture.pcapng --keys shard.keys",
            "moulsniff capture.pcapng --keys dirtsand.ini --json | jq 'select(.refused)'",
            "moulsniff decode moul.auth.client 1a00 07000000 e9030000",
            "moulsniff tables show Cli2Auth_VaultNodeFetch",
        ]
    }

    fn options(&self) -> &'static [OptionSpec] {
        &settings::OPTIONS
    }

    fn settings(
        &self,
        values: &OptionValues,
        warn: &mut dyn FnMut(String),
    ) -> Result<Settings, SettingsError> {
        MoulSettings::read(values, warn).map(Settings::new)
    }

    fn secrets(&self) -> Option<&'static dyn Secrets> {
        Some(&secrets::ShardKeys)
    }

    fn expects(&self, ends: Ends, settings: &Settings) -> Option<Expected> {
        if let Some(expected) = net_log::expected(ends) {
            return Some(expected);
        }
        // A session key whose line names both ends of a connection also tells its protocol.
        MoulSettings::of(settings).keys.session_between(ends.client, ends.server)
    }

    fn text_format(&self) -> Option<&'static dyn TextFormat> {
        Some(&net_log::NetLog)
    }

    fn prepare(&self, evaluator: &mut Evaluator, settings: &Settings) {
        if let Some(store) = sdl::store::Store::of(evaluator) {
            MoulSettings::of(settings).fill(store);
        }
    }

    fn open_file(&self, bytes: &[u8], keys: &[Vec<u32>]) -> Option<Result<Vec<u8>, String>> {
        sdl::decrypt::open_file(bytes, keys)
    }

    fn recognise_tcp(&self, opening: &Opening<'_>, tables: &LazyTables) -> Verdict {
        recognise::recognise_tcp(opening, tables)
    }

    fn learn(
        &self,
        tables: &Tables,
        encoder: &mut Encoder,
        message: &EncodedMessage,
        stream: &str,
    ) {
        sdl::downloads::learn(tables, encoder, message, stream);
    }

    fn seal(&self, service: &str) -> Option<Box<dyn Seal>> {
        Some(Box::new(seal::MoulSeal::new(service)))
    }

    fn session(&self, start: &Start<'_>, tables: &Tables) -> Box<dyn Session> {
        Box::new(session::MoulSession::new(start, tables))
    }
}

/// A location's sequence number as age and page: see `docs/moul.md`.
fn write_sequence_number(value: u64, out: &mut Vec<u8>) {
    let n = value as u32;
    let _ = match n {
        0 => write!(out, "fixed keys"),
        1..=0x20 => write!(out, "reserved for local use"),
        0x21..=0xfeff_0020 => write!(out, "age {}, page {}", (n - 0x21) >> 16, (n - 0x21) & 0xffff),
        0xff01_0001..=0xffff_fffe => {
            write!(out, "age -{}, page {}", (n - 0xff00_0001) >> 16, (n - 0xff00_0001) & 0xffff)
        }
        u32::MAX => write!(out, "invalid"),
        _ => write!(out, "reserved"),
    };
}
