//! MOUL: Myst Online: Uru Live and its fan shards. See `docs/moul.md`.
//!
//! The message tables beside this file say what messages hold; the code here knows how a connection begins, how it is
//! encrypted, and how its messages follow each other.

mod evidence;
mod framing;
mod gamemgr;
mod half;
pub mod keys;
mod keystream;
mod natives;
mod opening;
mod recognise;
mod rejoin;
pub mod sdl;
mod search;
mod session;
mod unlock;
mod vault;

use super::{LazyTables, Opening, Options, Protocol, Session, Start, Verdict};
use crate::table::{Evaluator, Native, TableSource, Tables};

/// The protocol.
pub struct Moul;

/// The port shards listen on by default: a hint, never a proof.
const PORT: u16 = 14617;

/// The types with code.
const NATIVES: [Native; 9] = {
    let [string, wstring, p_string] = natives::NATIVES;
    let [variables, nested, creatable] = sdl::NATIVES;
    let [text] = vault::NATIVES;
    let [game, game_type] = gamemgr::NATIVES;
    [string, wstring, p_string, variables, nested, creatable, text, game, game_type]
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

    fn prepare(&self, evaluator: &mut Evaluator, options: &Options) {
        let Some(store) = sdl::store::Store::of(evaluator) else { return };
        for (name, bytes) in &options.descriptors {
            // Mistakes were reported where the files were read.
            store.keep_file(name, bytes);
        }
    }

    fn natives(&self) -> &'static [Native] {
        &NATIVES
    }

    fn recognise_tcp(&self, opening: &Opening<'_>, tables: &LazyTables) -> Verdict {
        recognise::tcp(opening, tables)
    }

    fn recognise_udp(&self, _opening: &Opening<'_>, _tables: &LazyTables) -> Verdict {
        Verdict::No
    }

    fn session(&self, start: &Start<'_>, tables: &Tables) -> Box<dyn Session> {
        Box::new(session::MoulSession::new(start, tables))
    }
}
