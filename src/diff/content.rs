//! Hashes the content of a message, without values that differ each time and without numbers that
//! only identify things. These numbers are kept beside the hash, in the order of the fields.
//!
//! The elements of a list whose order means nothing are hashed in the order of their own hashes.

use super::hash::{
    ContentHash, bytes_content, hash_text, mix, mix_content, number, secret_half, text_content,
};
use crate::record::MessageView;
use crate::table::Tables;
use crate::tree::{Kind, Node, Sym, TextKind, TypeRef, decode_text};

/// A number or UUID that identifies a thing of a kind; or, in the marks of a set, where its
/// elements begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdentityMark {
    /// The hash of the kind's name, or [`IdentityMark::ELEMENT`] or [`IdentityMark::END`].
    pub(super) kind: u64,
    /// The number, or the hash of the UUID or text; of an element its content.
    pub(super) value: u64,
}

impl IdentityMark {
    /// The next element of a set; `value` is its content.
    pub(super) const ELEMENT: u64 = 1;
    /// The end of a set.
    pub(super) const END: u64 = 2;
}

/// The kind whose values stand for a request within one connection.
pub(super) const TRANSACTION: &str = "transaction";

/// How to compare the values of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CompareRole {
    /// It is not compared.
    pub(super) volatile: bool,
    /// The order of its elements means nothing.
    pub(super) unordered: bool,
    /// The hashes of the kinds of things that it identifies.
    pub(super) kinds: Vec<u64>,
}

/// What is known of the tables of one protocol.
#[derive(Default)]
struct TableRoles {
    tables: usize,
    /// Name and type of the fields with which objects of some class begin.
    classes: Vec<(Sym, TypeRef)>,
    roles: Vec<Option<Box<CompareRole>>>,
    names: Vec<u64>,
}

/// How many classes of objects, told by number, tell messages of one name apart.
const CLASSES: usize = 2;

/// The content of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HashedMessage {
    /// Its fields.
    pub(super) content: ContentHash,
    /// The hash of the classes of the first objects in it that a number identifies.
    pub(super) sort: u64,
    /// The hash of the values that differ each time. 0 if there are none.
    pub(super) volatile: u64,
}

/// A message as it is hashed.
#[derive(Clone, Copy)]
pub(super) struct ContentView<'a> {
    pub(super) message: MessageView<'a>,
    /// Nodes that are left out, in ascending order.
    pub(super) ignored: &'a [u32],
}

/// Hashes messages. It keeps what it knows of the tables.
#[derive(Default)]
pub(super) struct ContentHasher {
    /// Volatile fields are compared, too.
    strict: bool,
    known: Vec<TableRoles>,
    text: String,
}

impl ContentHasher {
    pub(super) fn new(strict: bool) -> ContentHasher {
        ContentHasher { strict, ..ContentHasher::default() }
    }

    /// Hashes a message. What its fields identify is appended to `marks`.
    pub(super) fn message(
        &mut self,
        view: &ContentView<'_>,
        marks: &mut Vec<IdentityMark>,
    ) -> HashedMessage {
        let at = self.known(view.message.tables);
        let text = std::mem::take(&mut self.text);
        let Some(roles) = self.known.get(at) else { return HashedMessage::default() };
        let mut walk = Walker { view, roles, text, classes: 0, sort: 0, volatile: 0 };
        let content = view.message.tree.get(0).map_or(0, |root| walk.value(0, root, marks));
        let sort = walk.sort;
        let volatile = walk.volatile;
        self.text = walk.text;
        HashedMessage { content, sort, volatile }
    }

    /// The hash of one node's value.
    pub(super) fn node(
        &mut self,
        view: &ContentView<'_>,
        index: u32,
        marks: &mut Vec<IdentityMark>,
    ) -> ContentHash {
        let at = self.known(view.message.tables);
        let Some(roles) = self.known.get(at) else { return 0 };
        let mut walk =
            Walker { view, roles, text: String::new(), classes: 0, sort: 0, volatile: 0 };
        view.message.tree.get(index).map_or(0, |node| walk.value(index, node, marks))
    }

    /// How to compare the values of a type. Nothing special for most types.
    pub(super) fn role(&mut self, tables: &Tables, ty: TypeRef) -> Option<&CompareRole> {
        let at = self.known(tables);
        self.known.get(at)?.roles.get(ty.0 as usize)?.as_deref()
    }

    fn known(&mut self, tables: &Tables) -> usize {
        let id = std::ptr::from_ref(tables).addr();
        if let Some(at) = self.known.iter().position(|known| known.tables == id) {
            return at;
        }
        let strict = self.strict;
        let roles = (0..).map_while(|ty| {
            tables.type_def(TypeRef(ty)).map(|_| role(tables, TypeRef(ty), strict))
        });
        let names = tables.names().iter().map(|name| hash_text(name)).collect();
        let classes = tables.families().iter().map(|family| (family.field, family.of)).collect();
        self.known.push(TableRoles { tables: id, classes, roles: roles.collect(), names });
        self.known.len() - 1
    }
}

fn role(tables: &Tables, ty: TypeRef, strict: bool) -> Option<Box<CompareRole>> {
    let facts = tables.type_def(ty)?.facts.as_deref();
    let role = CompareRole {
        volatile: !strict && facts.is_some_and(|facts| facts.volatile),
        unordered: facts.is_some_and(|facts| facts.unordered),
        kinds: tables.identities(ty).map(|kind| hash_text(tables.name(kind))).collect(),
    };
    (role != CompareRole::default()).then(|| Box::new(role))
}

/// An element of a set while it is put in order.
struct SetElement {
    content: ContentHash,
    marks: Vec<IdentityMark>,
}

struct Walker<'a, 'v> {
    view: &'a ContentView<'v>,
    roles: &'a TableRoles,
    text: String,
    classes: usize,
    sort: u64,
    volatile: u64,
}

impl Walker<'_, '_> {
    fn role(&self, ty: TypeRef) -> Option<&CompareRole> {
        self.roles.roles.get(ty.0 as usize)?.as_deref()
    }

    fn is_left_out(&self, index: u32, node: &Node) -> bool {
        self.role(node.ty).is_some_and(|role| role.volatile)
            || !self.view.ignored.is_empty() && self.view.ignored.binary_search(&index).is_ok()
    }

    fn name(&self, name: Sym) -> ContentHash {
        match self.roles.names.get(name.0 as usize) {
            Some(hash) => number(*hash),
            None => self.view.message.tree.dynamic(name).map_or(0, |text| text_content(text.raw())),
        }
    }

    fn value(&mut self, index: u32, node: &Node, marks: &mut Vec<IdentityMark>) -> ContentHash {
        let role = self.role(node.ty);
        if role.is_some_and(|role| role.unordered) {
            return self.set(index, marks);
        }
        match node.kind {
            Kind::Struct => {
                self.class(index);
                self.parts(index, number(3), marks, |walk, node| walk.name(node.name))
            }
            Kind::List => self.parts(index, number(5), marks, |_, _| number(7)),
            _ => {
                let kinds =
                    role.filter(|role| !role.kinds.is_empty()).map(|role| role.kinds.clone());
                let (value, nothing) = self.leaf(node);
                let Some(kinds) = kinds.filter(|_| !nothing) else { return value };
                let value = secret_half(value);
                marks.extend(kinds.iter().map(|kind| IdentityMark { kind: *kind, value }));
                number(11)
            }
        }
    }

    /// Notes the class of an object that begins with its number.
    fn class(&mut self, index: u32) {
        if self.classes >= CLASSES || self.roles.classes.is_empty() {
            return;
        }
        let first = self.view.message.tree.members(index).next().map(|(_, class)| class);
        if let Some(class) =
            first.filter(|first| self.roles.classes.contains(&(first.name, first.ty)))
        {
            self.classes += 1;
            self.sort = mix(self.sort, class.value);
        }
    }

    fn parts(
        &mut self,
        index: u32,
        first: ContentHash,
        marks: &mut Vec<IdentityMark>,
        key: impl Fn(&Self, &Node) -> ContentHash,
    ) -> ContentHash {
        let tree = self.view.message.tree;
        let mut hash = first;
        for (at, node) in tree.members(index) {
            if self.is_left_out(at, node) {
                self.differs_each_time(at, node);
            } else {
                let key = key(self, node);
                hash = mix_content(mix_content(hash, key), self.value(at, node, marks));
            }
        }
        hash
    }

    /// Notes a value that is left out.
    fn differs_each_time(&mut self, index: u32, node: &Node) {
        if !matches!(node.kind, Kind::Struct | Kind::List) {
            self.volatile = mix(self.volatile, secret_half(self.leaf(node).0)) | 1;
            return;
        }
        let tree = self.view.message.tree;
        tree.members(index).for_each(|(at, node)| self.differs_each_time(at, node));
    }

    /// A list whose order means nothing.
    fn set(&mut self, index: u32, marks: &mut Vec<IdentityMark>) -> ContentHash {
        let tree = self.view.message.tree;
        let mut elements = Vec::new();
        for (at, node) in tree.members(index) {
            let mut own = Vec::new();
            let content = self.value(at, node, &mut own);
            own.retain(|mark| mark.kind != IdentityMark::ELEMENT && mark.kind != IdentityMark::END);
            elements.push(SetElement { content, marks: own });
        }
        elements.sort_by_key(|element| element.content);
        if elements.iter().any(|element| !element.marks.is_empty()) {
            for element in &elements {
                let value = secret_half(element.content);
                marks.push(IdentityMark { kind: IdentityMark::ELEMENT, value });
                marks.extend(&element.marks);
            }
            marks.push(IdentityMark { kind: IdentityMark::END, value: 0 });
        }
        elements.iter().fold(number(13), |hash, element| mix_content(hash, element.content))
    }

    /// The hash of a value without parts, or the value itself if it is a number, and whether it is
    /// zero or empty.
    fn leaf(&mut self, node: &Node) -> (ContentHash, bool) {
        let tree = self.view.message.tree;
        let bytes = self.view.message.bytes;
        match node.kind {
            Kind::Text(TextKind::Owned) => {
                let text = tree.owned(node.value).raw();
                (text_content(text), text.is_empty())
            }
            Kind::Text(kind) => {
                self.text.clear();
                decode_text(kind, &tree.content(node, bytes), &mut self.text);
                (text_content(&self.text), self.text.is_empty())
            }
            Kind::Bytes | Kind::Undecoded => (bytes_content(&tree.content(node, bytes)), false),
            Kind::Uuid | Kind::UuidBe => {
                let (start, _) = node.content();
                let all = tree
                    .bytes(node.buffer, bytes)
                    .get(start..start.saturating_add(16))
                    .unwrap_or_default();
                (bytes_content(all), all.iter().all(|byte| *byte == 0))
            }
            Kind::Null => (number(17), true),
            _ => (number(node.value), node.value == 0),
        }
    }
}
