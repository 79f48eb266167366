//! What tables say about messages and fields beyond their layout: which message answers which, what
//! a refusal is, which fields identify a person. Reading bytes uses none of it; it is looked up
//! after a message was read.

use super::super::text::PlaceRole;
use super::{LayoutId, TableText};
use crate::tree::Sym;

/// Facts about a field, beyond how it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldFacts {
    /// The kinds of things that its value identifies (`identity KIND`), beside those of `id`,
    /// `refers` and `transaction`: [`Tables::identities`](crate::table::Tables::identities) has
    /// them all.
    pub identity: Vec<Sym>,
    /// It identifies the client of this connection (`self`).
    pub own: bool,
    /// It identifies or names a place where the client is (`place`).
    pub place: Option<PlaceRole>,
    /// If not empty, any other value means that the client leaves the message's place (`leaves
    /// unless A | B`).
    pub leaves_unless: Vec<u64>,
    /// Its value differs each time the same thing is done: a time, a seed, a challenge
    /// (`volatile`).
    pub volatile: bool,
    /// A reply repeats the value of its request (`echoed`).
    pub echoed: bool,
    /// The order of its elements has no meaning (`unordered`).
    pub unordered: bool,
    /// It goes on with the name in the field before it (`continues`).
    pub continues: bool,
    /// Its value is the number of something on its own connection alone (`local`).
    pub local: bool,
    /// It is another number of the thing whose number of this kind is beside it (`same KIND`).
    pub same: Option<Sym>,
    /// What it tells about a person (`person WORD`).
    pub person: Option<Person>,
    /// What it is in a conversation (`chat WORD`).
    pub chat: Option<ChatRole>,
    /// What it is of a transferred file (`file WORD`).
    pub file: Option<FileRole>,
    /// What it is of a store of nodes (`graph WORD`).
    pub graph: Option<GraphRole>,
    /// What it is of a reply in several messages (`share WORD`).
    pub share: Option<ShareRole>,
    /// What it is of something whose values change (`change WORD`).
    pub change: Option<ChangeRole>,
    /// If not empty, any other number refuses (`refuses unless A | B`).
    pub refuses_unless: Vec<u64>,
    /// If not empty, any other text refuses (`refuses unless "a" | "b"`).
    pub refuses_unless_texts: Vec<String>,
}

impl FieldFacts {
    /// Whether some value of the field refuses.
    pub fn may_refuse(&self) -> bool {
        !self.refuses_unless.is_empty() || !self.refuses_unless_texts.is_empty()
    }
}

/// What a field tells about a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Person {
    /// A name: of an account, a player, an avatar, a character.
    Name,
    /// A number or UUID that identifies the person.
    Number,
    /// Words that the person wrote.
    Text,
    /// An e-mail address.
    Mail,
    /// The name of the person's host.
    Host,
    /// A network address.
    Address,
}

impl Person {
    /// All of them, by the word that tables use.
    pub const WORDS: [(&str, Person); 6] = [
        ("name", Person::Name),
        ("number", Person::Number),
        ("text", Person::Text),
        ("mail", Person::Mail),
        ("host", Person::Host),
        ("address", Person::Address),
    ];
}

/// What a field is in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatRole {
    /// The sender of the chat message.
    From,
    /// The listener.
    To,
    /// The channel, session or place that all listeners share.
    Channel,
    /// The speaker's host.
    FromHost,
    /// The listener's host.
    ToHost,
    /// What kind of speech it is: aloud, private, a shout.
    Kind,
    /// The conversation that it belongs to.
    Session,
    /// The text of the message.
    Text,
}

impl ChatRole {
    /// All of them, by the word that tables use.
    pub const WORDS: [(&str, ChatRole); 8] = [
        ("from", ChatRole::From),
        ("to", ChatRole::To),
        ("channel", ChatRole::Channel),
        ("text", ChatRole::Text),
        ("from_host", ChatRole::FromHost),
        ("to_host", ChatRole::ToHost),
        ("kind", ChatRole::Kind),
        ("session", ChatRole::Session),
    ];
}

/// What a field is of a file that is transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileRole {
    /// The name, number or UUID by which the file is asked for.
    Name,
    /// The file's name in a message that brings the file itself.
    Title,
    /// What kind of file it is.
    Kind,
    /// What the parts of a file have in common, where no transaction ties them.
    Id,
    /// Bytes of the whole file.
    Size,
    /// Some of its bytes. Without an offset or a number beside them, they follow the bytes that
    /// came before.
    Part,
    /// The same; the part with number 0 begins with the size of the whole file, 4 bytes,
    /// little-endian.
    CountedPart,
    /// All of its bytes.
    Whole,
    /// The place of a part's first byte in the file.
    Offset,
    /// A part's number, from 0.
    Number,
    /// How many parts the file has.
    Parts,
    /// The name of a list of files.
    List,
    /// In a list: the name under which the receiver keeps the file.
    Listed,
    /// In a list: the size of what is transferred.
    PackedSize,
    /// In a list: the MD5 of the file as the receiver keeps it, in hex.
    Md5,
    /// In a list: the MD5 of what is transferred, in hex.
    PackedMd5,
    /// Numbers with which encrypted files are opened.
    Key,
}

impl FileRole {
    /// All of them, by the word that tables use.
    pub const WORDS: [(&str, FileRole); 17] = [
        ("name", FileRole::Name),
        ("title", FileRole::Title),
        ("kind", FileRole::Kind),
        ("id", FileRole::Id),
        ("size", FileRole::Size),
        ("part", FileRole::Part),
        ("counted_part", FileRole::CountedPart),
        ("whole", FileRole::Whole),
        ("offset", FileRole::Offset),
        ("number", FileRole::Number),
        ("parts", FileRole::Parts),
        ("list", FileRole::List),
        ("listed", FileRole::Listed),
        ("packed_size", FileRole::PackedSize),
        ("md5", FileRole::Md5),
        ("packed_md5", FileRole::PackedMd5),
        ("key", FileRole::Key),
    ];
}

/// What a field is of a store of nodes that hang under each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GraphRole {
    /// In a node: its number.
    Id,
    /// In a node: what kind of node it is.
    Kind,
    /// Says which fields of a node follow. Every node has it, and it is no field of the node
    /// itself.
    Mask,
    /// The number of the node that the message is about, where the node does not have it itself.
    Target,
    /// The number of a node that is asked for or spoken of, or a list of numbers.
    Asked,
    /// The number of a node under which another one is.
    Parent,
    /// The number of the node that is under it.
    Child,
    /// The same, where it is taken away from there.
    Removed,
    /// The owner of the reference from parent to child.
    Owner,
    /// Who makes the reference.
    Saver,
    /// The number of a node that is deleted.
    Deleted,
}

/// What a field is of a reply in several messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareRole {
    /// What the message brings: a number, bytes, or elements of a list.
    Part,
    /// The number of bytes or elements that all of the reply's messages bring together.
    Whole,
}

impl ShareRole {
    /// Both, by the word that tables use.
    pub const WORDS: [(&str, ShareRole); 2] =
        [("part", ShareRole::Part), ("whole", ShareRole::Whole)];
}

/// What a field is of something whose values change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeRole {
    /// It tells which thing it is.
    Key,
    /// The values that change, each with its name.
    Values,
}

impl ChangeRole {
    /// Both, by the word that tables use.
    pub const WORDS: [(&str, ChangeRole); 2] =
        [("key", ChangeRole::Key), ("values", ChangeRole::Values)];
}

impl GraphRole {
    /// All of them, by the word that tables use.
    pub const WORDS: [(&str, GraphRole); 11] = [
        ("id", GraphRole::Id),
        ("kind", GraphRole::Kind),
        ("mask", GraphRole::Mask),
        ("target", GraphRole::Target),
        ("asked", GraphRole::Asked),
        ("parent", GraphRole::Parent),
        ("child", GraphRole::Child),
        ("removed", GraphRole::Removed),
        ("owner", GraphRole::Owner),
        ("saver", GraphRole::Saver),
        ("deleted", GraphRole::Deleted),
    ];
}

/// How a message refuses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Refusal {
    /// It never refuses.
    #[default]
    Never,
    /// It always refuses (`refuses`).
    Always,
    /// A field of it may refuse (`refuses unless …`).
    ByField,
}

/// The line that says what a message or structure is about (`info "…"`): of several, the first of
/// which all fields outside brackets are there, or else the last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InfoLine {
    /// Each with its parts in order.
    pub lines: Vec<Vec<InfoPart>>,
}

/// A part of an [`InfoLine`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InfoPart {
    /// Text, written as it is.
    Text(TableText),
    /// The value of a field, by its path from the structure's own fields
    /// (`{receivers[0].object_name}`).
    Field(Vec<InfoStep>),
    /// All elements of a list, or all values of a structure whose names came with the traffic
    /// (`{receivers[*]}`, `{variables[*].value}`).
    Each {
        /// The path of the list.
        list: Vec<InfoStep>,
        /// The path from an element on.
        of: Vec<InfoStep>,
    },
    /// The line of the structure that this one extends (`{extends}`).
    Extends(LayoutId),
    /// One text where a field has a value, another where it is absent, empty or zero
    /// (`{on_or_off?listens to|leaves}`).
    Choice {
        /// The field's path.
        path: Vec<InfoStep>,
        /// Written where it has a value.
        yes: TableText,
        /// Written otherwise.
        no: TableText,
    },
    /// Parts that are left out where one of their fields is absent, empty or zero (`[, in
    /// {age_name}]`).
    Optional(Vec<InfoPart>),
}

/// One step on the way to a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfoStep {
    /// The field of this name.
    Name(Sym),
    /// The list's element at this place, from 0.
    Element(u32),
}
