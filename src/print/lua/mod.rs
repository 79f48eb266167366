//! A script for Wireshark that shows exported messages (`pdu`): trees with their bytes, filters on
//! fields, columns.
//!
//! The script does not decode messages. It walks the tree that each packet carries, and declares
//! the fields that tables name, so that display filters know them. It is written in what Lua 5.2,
//! 5.3 and 5.4 have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::pdu::dissector_name;
use crate::session::Side;
use crate::table::{LayoutStep, ReadAs, Tables};
use crate::tree::{Sym, TypeRef, mark};

/// Fields by their name, with how often each sort of value has it.
type LuaFields<'a> = BTreeMap<(bool, &'a str), BTreeMap<FieldSort, usize>>;

/// What a Wireshark field takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FieldSort {
    Number { wide: bool, signed: bool },
    Float,
    Bool,
    Uuid,
    Ipv4,
    Text,
    Bytes,
}

impl FieldSort {
    /// The word that the script has for it: numbers are one sort whatever their size.
    fn word(self) -> &'static str {
        match self {
            FieldSort::Number { .. } => "number",
            FieldSort::Float => "float",
            FieldSort::Bool => "bool",
            FieldSort::Uuid => "uuid",
            FieldSort::Ipv4 => "ipv4",
            FieldSort::Text => "text",
            FieldSort::Bytes => "bytes",
        }
    }
}

/// The script for the tables of some protocols.
pub fn lua_script<'a>(all: impl IntoIterator<Item = &'a Tables>) -> String {
    let mut out = String::from(HEAD);
    for tables in all {
        protocol(tables, &mut out);
    }
    out.push_str(include_str!("script.lua"));
    out
}

/// What comes before the tables' own part.
const HEAD: &str = r#"-- Shows messages that `moulsniff export messages` wrote: wireshark -X lua_script:moulsniff.lua FILE
-- Written by `moulsniff tables lua`; for Lua 5.2 to 5.4.

local unknown_tags = Field.new("exported_pdu.unknown_tag.val")

-- What every message has, whatever its protocol.
local records = Proto("moulsniff", "A message of moulsniff")
local record_fields = {
  record = ProtoField.uint64("moulsniff.record", "record"),
  message = ProtoField.string("moulsniff.message", "message"),
  service = ProtoField.string("moulsniff.service", "service"),
  offset = ProtoField.uint64("moulsniff.offset", "offset"),
  from = ProtoField.string("moulsniff.from", "from"),
  stream = ProtoField.uint32("moulsniff.stream", "stream"),
  type = ProtoField.uint64("moulsniff.type", "type"),
  reply_to = ProtoField.uint64("moulsniff.reply_to", "reply_to"),
}
records.fields = record_fields
local experts = {
  [0] = ProtoExpert.new("moulsniff.note", "Note", expert.group.PROTOCOL, expert.severity.NOTE),
  ProtoExpert.new("moulsniff.warning", "Warning", expert.group.PROTOCOL, expert.severity.WARN),
  ProtoExpert.new("moulsniff.error", "Error", expert.group.MALFORMED, expert.severity.ERROR),
}
records.experts = { experts[0], experts[1], experts[2] }

local MAKERS = {
  u32 = ProtoField.uint32, i32 = ProtoField.int32, u64 = ProtoField.uint64, i64 = ProtoField.int64, float = ProtoField.double,
  bool = ProtoField.bool, uuid = ProtoField.guid, ipv4 = ProtoField.ipv4, text = ProtoField.string, bytes = ProtoField.bytes,
}
local dissectors = {}

-- Declares a protocol's dissectors and fields. A line of `list` is a field's name, the sort of value, how Wireshark keeps it, and
-- what display filters call it behind the protocol's name.
local function declare(name, names, list)
  local protocol = { proto = Proto(name, name), name = name, title = name:upper(), fields = {} }
  -- By its dissector Wireshark tells whether one of the fields is asked for.
  protocol.proto.dissector = function() return 0 end
  local all = {}
  for field, sort, kind, filter in list:gmatch("(%S+) (%S+) (%S+) (%S+)\n") do
    local made = MAKERS[kind](name .. "." .. filter, (field:gsub("^spans%.", "")))
    protocol.fields[field] = protocol.fields[field] or {}
    protocol.fields[field][sort] = { field = made, kind = kind }
    table.insert(all, made)
  end
  protocol.proto.fields = all
  for _, dissector in ipairs(names) do
    local proto = dissector == name and protocol.proto or Proto(dissector, dissector)
    table.insert(dissectors, { protocol = protocol, name = dissector, proto = proto })
  end
end
"#;

/// Declares one protocol.
fn protocol(tables: &Tables, out: &mut String) {
    let sides = [Side::Client, Side::Server];
    let services =
        tables.services().iter().flat_map(|service| sides.map(|side| (&*service.name, side)));
    let names: BTreeSet<String> =
        services.map(|(service, side)| dissector_name(tables, service, side)).collect();
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let _ = writeln!(out, "\ndeclare(\"{}\", {{ {} }}, [[", tables.protocol(), names.join(", "));
    for ((span, name), sorts) in fields(tables) {
        let most = sorts
            .iter()
            .max_by_key(|(sort, count)| (**count, std::cmp::Reverse(**sort)))
            .map(|(sort, _)| sort.word());
        let span = if span { "spans." } else { "" };
        for (word, kind) in kinds(&sorts) {
            let further = if most == Some(word) { String::new() } else { format!(".{word}") };
            let _ = writeln!(out, "{span}{name} {word} {kind} {span}{name}{further}");
        }
    }
    out.push_str("]])\n");
}

/// The fields that tables name.
fn fields(tables: &Tables) -> LuaFields<'_> {
    let mut fields = LuaFields::new();
    let mut add = |span: bool, name: Sym, ty: TypeRef| {
        let name = tables.name(name);
        if !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        {
            sorts(tables, ty, 0, &mut |sort| {
                *fields.entry((span, name)).or_default().entry(sort).or_default() += 1;
            });
        }
    };
    for service in tables.services() {
        service.header.iter().for_each(|(_, name, ty)| add(true, *name, *ty));
    }
    let mut place = 0;
    while let Some(step) = tables.step(place) {
        place += 1;
        if let LayoutStep::Field { name, ty, marks, .. } = step {
            let own = tables.type_def(*ty).map_or(0, |def| def.marks) | marks;
            add(own & mark::SPAN != 0, *name, *ty);
        }
    }
    for family in tables.families() {
        add(false, family.field, family.of);
    }
    fields
}

/// What values of a type are. Elements of a list stand under the list's name.
fn sorts(tables: &Tables, ty: TypeRef, depth: usize, add: &mut dyn FnMut(FieldSort)) {
    let Some(def) = tables.type_def(ty) else { return };
    if depth > 8 {
        return;
    }
    match &def.read {
        ReadAs::Int { size, signed, .. } => {
            add(FieldSort::Number { wide: *size > 4, signed: *signed })
        }
        ReadAs::Float { .. } => add(FieldSort::Float),
        ReadAs::Bool => add(FieldSort::Bool),
        ReadAs::Uuid { .. } => add(FieldSort::Uuid),
        ReadAs::Ipv4 { .. } => add(FieldSort::Ipv4),
        ReadAs::Bytes(_) => add(FieldSort::Bytes),
        ReadAs::Digits { .. } => {
            add(FieldSort::Number { wide: true, signed: true });
            add(FieldSort::Text);
        }
        ReadAs::Text { .. } => add(FieldSort::Text),
        ReadAs::List { of, .. } | ReadAs::NullOr { of, .. } => sorts(tables, *of, depth + 1, add),
        ReadAs::Region(region) => {
            region.inner.iter().for_each(|inner| sorts(tables, *inner, depth + 1, add))
        }
        ReadAs::Layout { .. } | ReadAs::Family(_) => {}
        // Only the code knows what it reads: what its name says comes first, and everything else
        // may be there too.
        ReadAs::Value(_) | ReadAs::Native { .. } => {
            let number = FieldSort::Number { wide: true, signed: true };
            let says = |words: &[&str]| words.iter().any(|word| def.text.contains(word));
            let first = if says(&["bits", "int"]) { number } else { FieldSort::Text };
            [first, first, number, FieldSort::Text, FieldSort::Bytes].into_iter().for_each(add);
        }
    }
}

/// How Wireshark keeps each sort: numbers as wide as the widest.
fn kinds(sorts: &BTreeMap<FieldSort, usize>) -> Vec<(&'static str, &'static str)> {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    let number = |wide, signed| sorts.contains_key(&FieldSort::Number { wide, signed });
    let all = [number(false, false), number(false, true), number(true, false), number(true, true)];
    let kept = match all {
        [false, false, false, false] => None,
        [true, false, false, false] => Some("u32"),
        [false, true, false, false] => Some("i32"),
        [_, false, true, false] => Some("u64"),
        _ => Some("i64"),
    };
    kinds.extend(kept.map(|kind| ("number", kind)));
    kinds.extend(
        sorts
            .keys()
            .map(|sort| sort.word())
            .filter(|word| *word != "number")
            .map(|word| (word, word)),
    );
    kinds
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::table::TableSource;

    const TABLE: &str = "protocol test
        service auth { number: u16 }
        message auth client 1 Login { trans_id: u32, name: utf8[u8], ids: u64[u8], size: u8, at: { \
                         size: utf8[u8] } }
        message auth server 2 Reply { trans_id: u32, size: i32 }
    ";

    #[test]
    fn fields_are_declared_once_for_each_sort_of_value() {
        let source = TableSource { name: "test".into(), text: TABLE.into() };
        let tables = Tables::load("test", vec![source], &[]).unwrap();
        let script = lua_script([&tables]);
        assert!(
            script
                .contains("declare(\"test\", { \"test.auth.client\", \"test.auth.server\" }, [[\n"),
            "{script}"
        );
        for line in [
            "trans_id number u32 trans_id",
            "ids number u64 ids",
            "spans.type number u32 spans.type",
        ] {
            assert!(script.contains(&format!("\n{line}\n")), "{line}");
        }
        assert!(script.contains("\nsize number i64 size\nsize text text size.text\n"));
    }
}
