//! The types of the game manager that need code: which game a message is for.
//!
//! A message names its game by a number that the shard gave out. It never says what kind of game
//! that is. The kind is learned from the messages that set games up; where these were not captured,
//! number and length of a message often leave only one. This file knows kinds, numbers and lengths;
//! what messages hold is in `gamemgr.table`.

use crate::table::{Call, Cursor, EncodeStop, Encoding, Field, Native, Run, Slot, Stop};
use crate::tree::{Kind, Node, Severity, mark};

/// The types with code, by the names tables use.
pub const NATIVES: [Native; 2] = [
    Native::new("game_of", add_game).written_by(write_game),
    Native::new("game_type_id", read_game_type_id).written_by(write_game_type_id),
];

/// What kind of thing a game is in what tables remember.
const REMEMBERED: &str = "game";

/// The kinds of games and their UUIDs, in Microsoft's order.
const TYPES: [(u64, [u8; 16]); 6] = [
    (1, *b"\x29\x65\x23\xa7\xd8\x11\x58\x47\x93\x68\x59\xcb\x43\x44\x5a\x83"),
    (2, *b"\xe2\xc2\x83\x9d\x35\x78\x77\x44\x9a\xaa\x22\x25\x4c\x59\xa7\x53"),
    (3, *b"\x39\x2c\x0b\x00\x19\x03\xe1\x4b\xb0\x6c\x7a\x10\x5b\x16\x0f\xcf"),
    (4, *b"\x65\x81\xf9\x5f\x3e\x91\xd1\x4f\xa2\xc2\x9c\x7f\x31\xbe\x2c\xc8"),
    (5, *b"\xf4\xcd\x24\x62\x56\x35\x40\x47\xb7\xcd\xd6\x37\x56\x2d\x07\xbe"),
    (6, *b"\x9b\x2e\x5c\x47\x45\xa2\x06\x41\xa0\x47\x9b\x25\xd4\x1f\xf3\x33"),
];

/// Messages of the games by number and length of what follows the header: from clients, from
/// servers. Those that all games have come before these numbers.
const LENGTHS: [[&[(u32, usize)]; 6]; 2] = [
    [
        &[(3, 2)],
        &[(3, 517), (4, 0), (5, 1), (6, 1)],
        &[(3, 0), (4, 0), (5, 0), (6, 512), (7, 4), (8, 0), (9, 696), (10, 4), (11, 516), (12, 4)],
        &[(3, 0), (4, 1)],
        &[(3, 4), (4, 2), (5, 3), (6, 0), (7, 1), (8, 0), (9, 0)],
        &[(3, 516), (4, 12), (5, 0), (6, 1024), (7, 520)],
    ],
    [
        &[(4, 1), (5, 8), (6, 6)],
        &[
            (4, 3),
            (5, 0),
            (6, 520),
            (7, 1),
            (8, 8),
            (9, 2),
            (10, 1),
            (11, 1),
            (12, 2),
            (13, 1),
            (14, 9),
        ],
        &[
            (4, 160),
            (5, 1),
            (6, 1),
            (7, 0),
            (8, 4),
            (9, 0),
            (10, 0),
            (11, 512),
            (12, 4),
            (13, 1),
            (14, 700),
            (15, 4),
            (16, 516),
            (17, 5),
        ],
        &[(4, 7), (5, 0), (6, 0), (7, 0), (8, 1)],
        &[(4, 2), (5, 4), (6, 82), (7, 0), (8, 3), (9, 162)],
        &[(4, 516), (5, 12), (6, 0), (7, 1028), (8, 524)],
    ],
];

/// Minimum bytes behind the header of messages that all games have: from clients, from servers.
const COMMON: [&[usize]; 2] = [&[0, 4, 4], &[4, 4, 12, 4]];

/// Minimum bytes behind the header of the game manager's own messages.
const MANAGERS: [&[usize]; 2] = [&[24, 8], &[28, 24, 24]];

/// Added to the kind if the message is shorter than its number requires.
const SHORT: u64 = 8;

/// The game manager itself.
const MANAGER: u64 = 7;

/// Adds the kind of game that the message at the cursor is for, as a span without bytes. Game
/// number 0 is the game manager. Any other has the kind remembered for it, or else the only kind
/// whose messages fit. Arguments: 0 for a client's message and 1 for a server's; the remembered
/// kind, or 0. In expressions the kind is 8 higher if the message is too short for its number.
fn add_game(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let sender = run.arg(call, 0, cursor);
    let given = run.arg(call, 1, cursor);
    let bytes = cursor.rest();
    let word = |at: usize| {
        let four = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        four.map(|four| u32::from_le_bytes(*four))
    };
    let (Some(number), Some(game)) = (word(0), word(8)) else {
        add_kind(run, cursor, call, 0, false);
        return Ok(0);
    };
    let tables = run.tables;
    let known =
        tables.sym(REMEMBERED).and_then(|kind| run.state.memory.recall(kind, u64::from(game)));
    let (value, guess) = match (game, given, known) {
        (0, ..) => (MANAGER, false),
        (_, 0, None | Some(0)) => {
            (find_fitting(sender, number, bytes.len().saturating_sub(16)), true)
        }
        (_, 0, Some(known)) => (known, false),
        (_, given, _) => (given, false),
    };
    let node = add_kind(run, cursor, call, value, guess && value != 0);
    let common = if sender == 0 { 3 } else { 4 };
    if guess && number >= common {
        let text = match value {
            0 => "the kind of game is not known: nothing that set it up was captured",
            _ => {
                "the kind of game is not known; this is the only one with such a message of this \
                 length"
            }
        };
        run.problem(Severity::Note, node, text, 0, 0);
    }
    let short = find_least_length(sender, value, number)
        .is_some_and(|least| bytes.len() < least.saturating_add(16));
    Ok(if short { value.saturating_add(SHORT) } else { value })
}

/// The minimum number of bytes behind the header of a message.
fn find_least_length(sender: u64, kind: u64, number: u32) -> Option<usize> {
    let of = |[client, server]: [&[usize]; 2]| {
        let list = if sender == 0 { client } else { server };
        list.get(usize::try_from(number).ok()?).copied()
    };
    if kind == MANAGER {
        return of(MANAGERS);
    }
    let [client, server] = &LENGTHS;
    let games = if sender == 0 { client } else { server };
    let own = usize::try_from(kind).ok()?.checked_sub(1).and_then(|at| games.get(at));
    let length = own.and_then(|messages| messages.iter().find(|message| message.0 == number));
    of(COMMON).or(length.map(|message| message.1))
}

/// The only kind of game that has a message of that number and length. 0 if no kind has one, or
/// several have.
fn find_fitting(sender: u64, number: u32, length: usize) -> u64 {
    let [client, server] = &LENGTHS;
    let games = if sender == 0 { client } else { server };
    let mut fits = (1..).zip(games).filter(|(_, messages)| messages.contains(&(number, length)));
    match (fits.next(), fits.next()) {
        (Some((game, _)), None) => game,
        _ => 0,
    }
}

fn add_kind(run: &mut Run<'_>, cursor: &Cursor<'_>, call: &Call, value: u64, guess: bool) -> u32 {
    let ty = run.tables.type_named("GameMgr_Game").unwrap_or(call.ty);
    let marks = call.marks | if guess { mark::GUESS } else { 0 };
    run.tree.leaf(Node { ty, marks, ..call.node(cursor, cursor.pos(), Kind::Unsigned, value) })
}

/// A UUID that names a kind of game. In expressions its value is the kind's number, 0 if the kind
/// is unknown.
fn read_game_type_id(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let start = cursor.pos();
    let bytes = cursor.array::<16>()?;
    run.tree.leaf(call.node(cursor, start, Kind::Uuid, Node::place(start / 8, 16)));
    Ok(TYPES.iter().find(|(_, uuid)| *uuid == bytes).map_or(0, |(kind, _)| *kind))
}

/// The words of messages' names for the kinds of games, in the order of their numbers.
const WORDS: [&str; 7] =
    ["TTT", "Heek", "Marker", "BlueSpiral", "ClimbingWall", "VarSync", "GameMgr"];

/// The warning of a message without all that its number calls for.
const TOO_SHORT: &str = "too short for the message that its number names";

/// The kind of game is not written. It is the one that is remembered for the game, or else the one
/// that the message's name tells.
fn write_game(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let json = encoding.json;
    let number = |name: &str| {
        let node = json.get(field.object, name)?;
        json.text(json.get(node, "value").unwrap_or(node)).parse::<u64>().ok()
    };
    let game = number("recv_game_id");
    let remembered = encoding.tables.sym(REMEMBERED);
    let known =
        remembered.zip(game).and_then(|(kind, game)| encoding.state.memory.recall(kind, game));
    let named = json.get(field.object, "message_id").and_then(|id| json.text_of(id, "name"));
    let word = named.and_then(|name| name.split('_').nth(1));
    let named = word.and_then(|word| WORDS.iter().position(|known| *known == word));
    let value = match (game, encoding.arg(field, 1), named, known) {
        (Some(0), ..) => MANAGER,
        (_, given @ 1.., ..) => given,
        (_, _, Some(at), _) => at as u64 + 1,
        (_, _, None, Some(known)) => known,
        _ => 0,
    };
    let short = encoding.is_said(field.object, TOO_SHORT);
    Ok(Slot::Number(if short { value + SHORT } else { value }))
}

fn write_game_type_id(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let bytes = encoding.uuid_bytes(field, false)?;
    encoding.out().put(&bytes);
    let kind = TYPES.iter().find(|(_, uuid)| *uuid == bytes).map_or(0, |(kind, _)| *kind);
    Ok(Slot::Number(kind))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use crate::print::json::{JsonOptions, JsonWriter};
    use crate::print::problem_text;
    use crate::proto::{load_tables, protocol_named};
    use crate::record::MessageView;
    use crate::table::{Evaluator, Tables};
    use crate::tree::{Sym, Tree};
    use serde_json::{Value, json};

    struct Fixture {
        tables: Tables,
        evaluator: Evaluator,
    }

    impl Fixture {
        fn new() -> Self {
            let tables = load_tables(protocol_named("moul").unwrap(), &[]).unwrap();
            Fixture { tables, evaluator: Evaluator::default() }
        }

        fn read(&mut self, of: &str, bytes: &[u8]) -> (Value, Vec<String>) {
            let ty = self.tables.type_named(of).unwrap();
            let mut tree = Tree::new();
            self.evaluator.value(&self.tables, ty, Sym::ELEMENT, bytes, 0, &mut tree);
            let mut out = Vec::new();
            JsonWriter::new(JsonOptions::default())
                .fields(MessageView { tables: &self.tables, tree: &tree, bytes }, &mut out);
            let said =
                tree.problems().iter().map(|p| problem_text(p, &self.tables, &tree)).collect();
            (serde_json::from_slice(&out).unwrap(), said)
        }

        /// What a game's message is called.
        fn name(&mut self, of: &str, number: u32, game: u32, body: &[u8]) -> Value {
            self.read(of, &message(number, game, body)).0["message_id"]["name"].clone()
        }
    }

    fn message(number: u32, game: u32, body: &[u8]) -> Vec<u8> {
        let header = [number, 0, game, 16 + body.len() as u32];
        header.iter().flat_map(|word| word.to_le_bytes()).chain(body.iter().copied()).collect()
    }

    #[test]
    fn the_kind_of_a_game_is_learned_from_what_sets_it_up() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.name("GameMgrMsg_client", 3, 9, &[]), Value::Null);
        for (kind, uuid) in [(3, super::TYPES[2].1), (4, super::TYPES[3].1)] {
            let body = [&[0; 8][..], &uuid, &(kind as u32).to_le_bytes()].concat();
            fixture.read("GameMgrMsg_server", &message(0, 0, &body));
        }
        assert_eq!(fixture.name("GameMgrMsg_client", 3, 3, &[]), "Cli2Srv_Marker_StartGame");
        assert_eq!(fixture.name("GameMgrMsg_client", 3, 4, &[]), "Cli2Srv_BlueSpiral_StartGame");
        assert_eq!(fixture.name("GameMgrMsg_client", 0, 4, &[]), "Cli2Srv_Game_LeaveGame");
        assert_eq!(fixture.name("GameMgrMsg_client", 0, 0, &[]), "Cli2Srv_GameMgr_CreateGame");
    }

    #[test]
    fn where_only_one_kind_fits_it_is_taken_and_said() {
        let mut fixture = Fixture::new();
        let (fields, said) = fixture.read("GameMgrMsg_client", &message(3, 77, &[1, 2]));
        assert_eq!((&fields["row"], &fields["col"], said.len()), (&json!(1), &json!(2), 1));
        let (fields, said) = fixture.read("GameMgrMsg_server", &message(4, 77, &[0; 33]));
        assert_eq!((&fields["message_id"], said.is_empty()), (&json!({"value": 4}), false));
        assert_eq!(fields["body"], "00".repeat(33));
        let (fields, said) = fixture.read("GameMgrMsg_client", &message(0, 0, &[1, 2, 3, 4]));
        assert_eq!((&fields["body"], said.len()), (&json!("01020304"), 1));
    }

    #[test]
    fn a_short_message_shows_what_it_has() {
        let mut fixture = Fixture::new();
        let whole = message(12, 5, &[9, 0, 0, 0]);
        for end in 0..whole.len() {
            fixture.read("GameMgrMsg_client", &whole[..end]);
        }
        let (fields, _) = fixture.read("GameMgrMsg_client", &whole[..8]);
        assert_eq!((&fields["message_id"]["value"], &fields["trans_id"]), (&json!(12), &json!(0)));
    }

    #[test]
    fn join_game_comes_in_two_lengths() {
        let mut fixture = Fixture::new();
        let (fields, said) =
            fixture.read("GameMgrMsg_client", &message(1, 0, &[5, 0, 0, 0, 4, 0, 0, 0]));
        assert_eq!(
            (&fields["new_game_id"], fields.get("game_type_id"), said.len()),
            (&json!(5), None, 0)
        );
    }
}
