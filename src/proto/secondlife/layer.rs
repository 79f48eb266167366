//! Reads the content of LayerData: patches of terrain, wind or clouds, as a stream of bits with the
//! most significant bit of each byte first.
//!
//! It knows one field and nothing of circuits. Numbers of more than 8 bits come byte by byte, the
//! low byte first. Sources: the terrain code of libopenmetaverse and of the viewer. Coefficients
//! are shown as they were sent, and are not converted into heights.

use crate::table::{
    Call, Cursor, EncodeStop, Encoding, Field, Frame, Given, JsonKind, Run, Slot, SpanLeaf, Stop,
    Tables,
};
use crate::tree::{Buffer, Kind, Node, Severity, Sym, TypeRef, mark};

/// The byte that ends the patches, in place of the next one's first byte.
const END: u64 = 97;

/// Length in bits of the code for "all further coefficients of this patch are 0".
const END_OF_PATCH: u32 = 2;

/// Layers of regions larger than 256 metres, whose patches have places of 32 bits.
const LARGE: [u8; 4] = [b'M', b'X', b'9', b':'];

/// No more patches are read once a message has this many nodes; a simulator's layers have a tenth
/// of it.
const MOST: u32 = 1 << 16;

/// Names and types of the parts.
struct LayerParts {
    number: TypeRef,
    float: TypeRef,
    patch: TypeRef,
    patches: Sym,
    quantization: Sym,
    offset: Sym,
    range: Sym,
    place: Sym,
    x: Sym,
    y: Sym,
    coefficients: Sym,
}

/// A node without its position.
#[derive(Clone, Copy)]
struct NodeHead {
    name: Sym,
    ty: TypeRef,
    kind: Kind,
    value: u64,
    marks: u8,
}

/// The stream on its way into the tree.
struct BitReader<'r, 't, 'd> {
    run: &'r mut Run<'t>,
    parts: LayerParts,
    bytes: &'d [u8],
    buffer: Buffer,
    /// The stream's first bit in the buffer.
    origin: usize,
    /// How many bits were read.
    pos: usize,
}

/// A layer's data: its header and its patches. Plain bytes if they are not such a stream up to
/// their end.
pub fn layer(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let start = cursor.pos();
    let before = run.tree.checkpoint();
    // Patches are only read from whole bytes: every layer that was ever sent begins with one.
    let whole = start.is_multiple_of(8) && cursor.left() > 0;
    if whole && group(run, cursor, call).is_some() {
        return Ok(0);
    }
    run.tree.back_to(before);
    cursor.seek(start);
    let len = cursor.left();
    let at = cursor.skip(len)?;
    let node = run.tree.leaf(Node {
        value: Node::place(at, len),
        name: call.name,
        ty: call.ty,
        start: start as u32,
        bits: (len * 8) as u32,
        end: 0,
        buffer: cursor.buffer(),
        kind: Kind::Bytes,
        marks: call.marks,
    });
    if len > 0 {
        run.problem(Severity::Note, node, "not a complete stream of patches: shown as bytes", 0, 0);
    }
    Ok(0)
}

impl LayerParts {
    fn new(tables: &Tables) -> Option<LayerParts> {
        Some(LayerParts {
            number: tables.type_named("LayerNumber")?,
            float: tables.type_named("LayerFloat")?,
            patch: tables.type_named("LayerPatch")?,
            patches: tables.sym("Patches")?,
            quantization: tables.sym("QuantWBits")?,
            offset: tables.sym("DCOffset")?,
            range: tables.sym("Range")?,
            place: tables.sym("PatchIDs")?,
            x: tables.sym("X")?,
            y: tables.sym("Y")?,
            coefficients: tables.sym("Coefficients")?,
        })
    }
}

/// Header, patches, end mark and fewer than 8 bits of padding. `None` if the bytes are something
/// else.
fn group(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Option<()> {
    let tables = run.tables;
    let header = tables.layouts().iter().find(|l| Some(l.name) == tables.sym("LayerGroup"))?;
    let bytes = cursor.rest();
    let origin = cursor.pos();
    let [_, _, side, layer, ..] = *bytes else { return None };
    if !matches!(side, 16 | 32) {
        return None;
    }
    let root = run.open(cursor, call.name, call.ty, call.marks);
    run.steps(header, &[], root, cursor).ok()?;
    let parts = LayerParts::new(tables)?;
    let mut stream = BitReader {
        run,
        parts,
        bytes,
        buffer: cursor.buffer(),
        origin,
        pos: cursor.pos() - origin,
    };
    let list = stream.open(stream.parts.patches, Kind::List);
    while stream.patch(LARGE.contains(&layer), usize::from(side) * usize::from(side))? {}
    stream.close(list);
    stream.number(tables.end_name(), 8, mark::SPAN)?;
    let rest = bytes.len() * 8 - stream.pos;
    if rest >= 8 {
        return None;
    }
    if rest > 0 {
        stream.number(tables.padding_name(), rest as u32, mark::SPAN)?;
    }
    cursor.seek(cursor.limit());
    run.tree.close(root, cursor.pos());
    Some(())
}

impl BitReader<'_, '_, '_> {
    /// The next bits (64 at most); `None` behind the end.
    fn take(&mut self, count: u32) -> Option<u64> {
        let mut value = 0;
        for low in (0..count).step_by(8) {
            let mut part = 0;
            for _ in 0..(count - low).min(8) {
                let byte = self.bytes.get(self.pos / 8)?;
                part = part << 1 | u64::from(byte >> (7 - self.pos % 8) & 1);
                self.pos += 1;
            }
            value |= part << low;
        }
        Some(value)
    }

    /// Reads a patch. Returns whether there was one, `None` if the bits end within it.
    fn patch(&mut self, large: bool, most: usize) -> Option<bool> {
        let from = self.pos;
        if self.take(8)? == END {
            self.pos = from;
            return Some(false);
        }
        self.pos = from;
        if self.run.tree.len() > MOST {
            return None;
        }
        let node = self.open(Sym::ELEMENT, Kind::Struct);
        let quantization = self.number(self.parts.quantization, 8, 0)?;
        let from = self.pos;
        let offset = self.take(32)?;
        self.leaf(
            from,
            NodeHead {
                name: self.parts.offset,
                ty: self.parts.float,
                kind: Kind::F32,
                value: offset,
                marks: 0,
            },
        );
        self.number(self.parts.range, 16, 0)?;
        let place = self.number(self.parts.place, if large { 32 } else { 10 }, mark::SPAN)?;
        let (x, y) = if large { (place >> 16, place & 0xffff) } else { (place >> 5, place & 31) };
        self.leaf(self.pos, self.unsigned(self.parts.x, x, 0));
        self.leaf(self.pos, self.unsigned(self.parts.y, y, 0));
        let list = self.open(self.parts.coefficients, Kind::List);
        let ended = self.coefficients((quantization & 15) as u32 + 2, most)?;
        self.close(list);
        if ended {
            self.number(self.run.tables.end_name(), END_OF_PATCH, mark::SPAN)?;
        }
        self.close(node);
        Some(true)
    }

    /// A patch's coefficients: `0` is 0, `10` says that all others are 0, `110` and `111` come
    /// before a positive and a negative number. Returns whether the next bits are that end.
    fn coefficients(&mut self, width: u32, most: usize) -> Option<bool> {
        for _ in 0..most {
            let from = self.pos;
            let mut value = 0;
            if self.take(1)? == 1 {
                if self.take(1)? == 0 {
                    self.pos = from;
                    return Some(true);
                }
                let negative = self.take(1)? == 1;
                let magnitude = self.take(width)? as i64;
                value = if negative { -magnitude } else { magnitude };
            }
            let signed =
                NodeHead { kind: Kind::Signed, ..self.unsigned(Sym::ELEMENT, value as u64, 0) };
            self.leaf(from, signed);
        }
        Some(false)
    }

    /// Reads a number of `bits` bits as a node.
    fn number(&mut self, name: Sym, bits: u32, marks: u8) -> Option<u64> {
        let from = self.pos;
        let value = self.take(bits)?;
        self.leaf(from, self.unsigned(name, value, marks));
        Some(value)
    }

    fn unsigned(&self, name: Sym, value: u64, marks: u8) -> NodeHead {
        NodeHead { name, ty: self.parts.number, kind: Kind::Unsigned, value, marks }
    }

    /// Adds a node without children, from the bit `from` up to here.
    fn leaf(&mut self, from: usize, NodeHead { name, ty, kind, value, marks }: NodeHead) -> u32 {
        self.run.tree.leaf(Node {
            value,
            name,
            ty,
            start: (self.origin + from) as u32,
            bits: (self.pos - from) as u32,
            end: 0,
            buffer: self.buffer,
            kind,
            marks,
        })
    }

    fn open(&mut self, name: Sym, kind: Kind) -> u32 {
        self.leaf(self.pos, NodeHead { name, ty: self.parts.patch, kind, value: 0, marks: 0 })
    }

    fn close(&mut self, node: u32) {
        self.run.tree.close(node, self.origin + self.pos);
    }
}

/// Writes a layer from its header and its patches, or from bytes.
pub fn write_layer(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let Given::Json(node) = field.given else { return encoding.fail_at(field, "is missing") };
    let json = encoding.json;
    if json.kind(node) == JsonKind::Text {
        let bytes = encoding.hex(node)?;
        encoding.take(node);
        encoding.out().put(&bytes);
        return Ok(Slot::Number(0));
    }
    let tables = encoding.tables;
    let header = tables.layout_named("LayerGroup").and_then(|layout| tables.layout(layout));
    let (Some(header), Some(parts)) = (header, LayerParts::new(tables)) else {
        return encoding.fail(node, "cannot be encoded: the tables have no patches");
    };
    let object = encoding.object(field)?;
    let start = encoding.pos() / 8;
    encoding.share(object);
    encoding.layout(header, &[], object)?;
    let [side, layer] = [2, 3].map(|at| encoding.out().bytes().get(start + at).copied());
    let side = usize::from(side.unwrap_or(0));
    let mut writer = LayerWriter {
        most: side * side,
        is_large: layer.is_some_and(|layer| LARGE.contains(&layer)),
        number: parts.number,
        float: parts.float,
        encoding,
    };
    writer.patches(object)?;
    encoding.out().align();
    Ok(Slot::Number(0))
}

/// Writes numbers of some bits: those of each byte from its most significant one on.
fn put_bits(encoding: &mut Encoding<'_>, value: u64, count: u32) {
    for low in (0..count).step_by(8) {
        for bit in (low..(low + 8).min(count)).rev() {
            encoding.out().put_bit_be(value >> bit & 1 != 0);
        }
    }
}

/// Writes a coefficient; `width` is that of its magnitude.
fn put_coefficient(encoding: &mut Encoding<'_>, value: i64, width: u32) {
    match value {
        0 => put_bits(encoding, 0, 1),
        _ => {
            let code = if value < 0 { 0b111 } else { 0b110 };
            put_bits(encoding, code, 3);
            put_bits(encoding, value.unsigned_abs(), width);
        }
    }
}

struct LayerWriter<'e, 'a> {
    encoding: &'e mut Encoding<'a>,
    /// The most coefficients of a patch.
    most: usize,
    is_large: bool,
    number: TypeRef,
    float: TypeRef,
}

impl LayerWriter<'_, '_> {
    fn patches(&mut self, object: u32) -> Result<(), EncodeStop> {
        let json = self.encoding.json;
        let list = self.part(object, "Patches", JsonKind::List)?;
        for patch in json.children(list) {
            if json.kind(patch) != JsonKind::Object {
                return self.encoding.fail(patch, "is no patch: an object is expected");
            }
            self.encoding.enter(patch);
            self.patch(patch)?;
        }
        put_bits(self.encoding, END, 8);
        Ok(())
    }

    fn patch(&mut self, patch: u32) -> Result<(), EncodeStop> {
        let json = self.encoding.json;
        let quantization = self.number(patch, "QuantWBits", 8)?;
        if quantization == END {
            return self.encoding.fail(patch, "QuantWBits is the mark of the patches' end");
        }
        put_bits(self.encoding, quantization, 8);
        let offset = self.field(patch, "DCOffset", self.float)?;
        let Given::Json(node) = offset.given else { return Ok(()) };
        let bits = self.encoding.float32(&offset, node)?;
        put_bits(self.encoding, bits.into(), 32);
        let range = self.number(patch, "Range", 16)?;
        put_bits(self.encoding, range, 16);
        let half = if self.is_large { 16 } else { 5 };
        let (x, y) = (self.number(patch, "X", half)?, self.number(patch, "Y", half)?);
        put_bits(self.encoding, x << half | y, half * 2);
        let width = (quantization & 15) as u32 + 2;
        let list = self.part(patch, "Coefficients", JsonKind::List)?;
        let count = json.children(list).count();
        if count > self.most {
            let text = format!("{count} elements: a patch has {} at most", self.most);
            return self.encoding.fail(list, text);
        }
        for child in json.children(list) {
            self.encoding.take(child);
            let value = json.text(child).parse::<i64>().ok();
            match value.filter(|value| value.unsigned_abs() >> width == 0) {
                Some(value) => put_coefficient(self.encoding, value, width),
                None => {
                    let text = format!("does not fit {width} bits: QuantWBits says how many");
                    return self.encoding.fail(child, text);
                }
            }
        }
        if count < self.most {
            put_bits(self.encoding, 0b10, END_OF_PATCH);
        }
        match json.children(patch).find(|child| {
            !["QuantWBits", "DCOffset", "Range", "X", "Y", "Coefficients"]
                .contains(&json.key(*child))
        }) {
            Some(other) => self.encoding.fail(other, "is no field of a patch"),
            None => Ok(()),
        }
    }

    fn part(&mut self, object: u32, name: &str, kind: JsonKind) -> Result<u32, EncodeStop> {
        let Some(node) = self.encoding.lookup(object, name) else {
            return self.encoding.fail(object, format!("has no {name}"));
        };
        if self.encoding.json.kind(node) != kind {
            return self.encoding.fail(node, format!("is not {}", kind.word()));
        }
        self.encoding.enter(node);
        Ok(node)
    }

    fn field(&mut self, object: u32, name: &str, ty: TypeRef) -> Result<Field, EncodeStop> {
        let Some(node) = self.encoding.lookup(object, name) else {
            return self.encoding.fail(object, format!("has no {name}"));
        };
        Ok(Field {
            name: Sym::ELEMENT,
            ty,
            span: false,
            object,
            frame: Frame::default(),
            given: Given::Json(node),
        })
    }

    /// A number that has to fit some bits.
    fn number(&mut self, object: u32, name: &str, bits: u32) -> Result<u64, EncodeStop> {
        let field = self.field(object, name, self.number)?;
        let value = self.encoding.number(&field)?;
        match u64::try_from(value).ok().filter(|value| value >> bits == 0) {
            Some(value) => Ok(value),
            None => self.encoding.fail_at(&field, format!("{value} does not fit {bits} bits")),
        }
    }
}

/// Writes a span of a layer's stream. Returns whether it is one.
pub fn write_part(encoding: &mut Encoding<'_>, leaf: &SpanLeaf) -> Result<bool, EncodeStop> {
    let json = encoding.json;
    let bits = leaf.bits as u32;
    let text = json.text(leaf.value);
    match json.text_of(leaf.span, "type") {
        Some("LayerFloat") => {
            let float = text.parse::<f32>().map_or(f32::NAN, |float| float);
            put_bits(encoding, float.to_bits().into(), bits);
        }
        Some("LayerNumber") => {
            let Ok(value) = text.parse::<i64>() else {
                return encoding.fail(leaf.value, "is no number");
            };
            let is_element = json.text_of(leaf.span, "name").is_some_and(|n| n.starts_with('['));
            match bits.checked_sub(3) {
                Some(width) if is_element => put_coefficient(encoding, value, width),
                _ => put_bits(encoding, value as u64, bits),
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::proto::{load_tables, protocol_named};
    use crate::table::Evaluator;
    use crate::tree::{Sym, Tree};

    /// The kind of a layer's data that begins at some bit, and its end.
    fn read(bytes: &[u8], bit: usize) -> (Kind, u32) {
        let tables = load_tables(protocol_named("secondlife").unwrap(), &[]).unwrap();
        let message = tables.message(tables.message_named("LayerData").unwrap()).unwrap();
        let layout = tables.layout(message.layout.unwrap()).unwrap();
        let mut tree = Tree::new();
        Evaluator::default().value(&tables, layout.ty, Sym::ELEMENT, bytes, bit, &mut tree);
        let data =
            tree.nodes().iter().position(|node| Some(node.name) == tables.sym("Data")).unwrap()
                as u32;
        let node = tree.get(data).unwrap();
        let last = tree.children(data).last();
        let end = last.map_or(node.start + node.bits, |(_, last)| last.start + last.bits);
        assert_eq!(end, node.start + node.bits, "no bit of it without a place");
        (node.kind, end)
    }

    #[test]
    fn patches_begin_with_a_byte_and_else_are_shown_as_bytes() {
        // Type, the data's length, their header, and the mark that ends the patches.
        let layer = [0x4c, 5, 0, 8, 1, 16, 0x4c, 0x61];
        assert_eq!(read(&layer, 0), (Kind::Struct, 64));
        let shifted: Vec<u8> = (0..=layer.len())
            .map(|at| {
                let low = layer.get(at.wrapping_sub(1)).unwrap_or(&0);
                let high = layer.get(at).unwrap_or(&0);
                low >> 3 | high << 5
            })
            .collect();
        assert_eq!(read(&shifted, 5), (Kind::Bytes, 69));
    }
}
