//! Writes regions: their content in the form that the JSON has, packed where it is packed, and
//! their length.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::super::program::*;
use super::expr::Value;
use super::{Encoding, Field, Given, Habits, JsonKind, Slot, Stop};
use crate::tree::{Sym, TypeRef};

impl Encoding<'_> {
    pub(super) fn region(&mut self, field: &Field, region: &RegionType) -> Result<Slot, Stop> {
        let Given::Json(node) = field.given else { return self.missing(field) };
        let write = |this: &mut Self| match region.zlib {
            None => this.bounded(field, &region.inner, region.dialects, node),
            Some(zlib) => this.packed(field, region, zlib, node),
        };
        match region.len.from {
            LenFrom::Inline(ty) => return self.counted_in_bytes(field, ty, write),
            LenFrom::Const(size) => {
                let start = self.pos();
                write(self)?;
                let n = (self.pos() - start).div_ceil(8);
                if n != size as usize {
                    return self.fail(node, format!("{n} bytes, where {size} are expected"));
                }
            }
            LenFrom::Expr(id) => {
                // The layout inside may have a `remaining` of its own: the length is that of the
                // whole, and is known once it is written.
                let start = self.pos();
                write(self)?;
                let n = (self.pos() - start).div_ceil(8);
                self.require(id, n as i128, field, "bytes")?;
            }
            LenFrom::Until(place) => {
                write(self)?;
                let end = self.tables.delimiter(place);
                self.out().put(end);
            }
            _ => write(self)?,
        }
        Ok(Slot::Number(0))
    }

    /// Writes the content of a region, which ends with it.
    pub fn bounded(
        &mut self,
        field: &Field,
        inner: &[TypeRef],
        dialects: bool,
        node: u32,
    ) -> Result<(), Stop> {
        let spoken = self.dialects;
        if dialects {
            self.dialects |= self.said_dialects(node);
        }
        let mark = self.mark_place();
        let mut first = None;
        let result = loop {
            let form = match first {
                None => self.said_form(node),
                Some((form, _)) => form + 1,
            };
            let Some(ty) = inner.get(form) else {
                break first.map_or(Ok(()), |(_, failure)| Err(failure));
            };
            let result = self.form(field, *ty, node);
            let failed = matches!(result, Err(Stop::Failed(_)));
            if !failed || form + 1 >= inner.len() {
                break match (result, first) {
                    // Of several forms, the first one is what is meant.
                    (Err(_), Some((_, failure))) if failed => Err(failure),
                    (result, _) => result,
                };
            }
            self.back_to(mark);
            first = match (result, first) {
                (_, Some((_, failure))) => Some((form, failure)),
                (Err(failure), None) => Some((form, failure)),
                (Ok(()), None) => None,
            };
        };
        self.dialects = spoken;
        result
    }

    fn form(&mut self, field: &Field, ty: TypeRef, node: u32) -> Result<(), Stop> {
        let (unknowns, checks) = (self.unknowns.len(), self.checks.len());
        let start = self.pos();
        self.forget_ends();
        let is_object = self.json.kind(node) == JsonKind::Object;
        let holder = if is_object { node } else { field.object };
        self.regions.push(holder);
        let ended = self.ended.take();
        let result = match self.value(&Field { ty, span: false, ..*field }) {
            // What no field claims: in the object, or behind the value.
            Ok(_) if is_object => self.undecoded(node).map(|_| ()),
            Ok(_) if self.follows_undecoded(node) => self.undecoded(holder).map(|_| ()),
            Ok(_) | Err(Stop::Undecoded) => Ok(()),
            Err(failed) => Err(failed),
        };
        self.regions.pop();
        self.ended = ended;
        result?;
        self.open_end(false);
        self.out().align();
        self.cut_list_end(start, checks);
        let end = self.pos();
        self.forget_ends();
        self.resolve(unknowns, checks, Some(end))?;
        self.drop_checks(checks, end);
        Ok(())
    }

    /// Whether bytes that no field claims stand behind a value, in the object around it.
    fn follows_undecoded(&self, node: u32) -> bool {
        let behind = self.json.end(node);
        self.json.key(behind) == self.tables.name(Sym::UNDECODED)
            && self.used.get(behind as usize) == Some(&super::Used::No)
    }

    /// The form that a region's problem says it was read in.
    fn said_form(&self, node: u32) -> usize {
        let (before, behind) = super::super::eval::OTHER_FORM.split_once("{a}").unwrap_or(("", ""));
        let number = self.notes_of(node).find_map(|note| {
            note.text.strip_prefix(before)?.strip_suffix(behind)?.parse::<usize>().ok()
        });
        number.map_or(0, |number| number.saturating_sub(1))
    }

    /// The dialects that a region's problems say it was read in.
    fn said_dialects(&self, node: u32) -> u32 {
        let is_said = |id: &u32| {
            self.tables.dialect(*id).is_some_and(|text| self.is_said(node, self.tables.name(text)))
        };
        (0..32).filter(is_said).fold(0, |all, id| all | 1 << id)
    }

    /// Writes a packed region: its content into a buffer of its own, which is packed then.
    fn packed(
        &mut self,
        field: &Field,
        region: &RegionType,
        Zlib { keep, size }: Zlib,
        node: u32,
    ) -> Result<(), Stop> {
        let keep = match self.value_of(keep, field.frame) {
            Value::Known(keep) => usize::try_from(keep).unwrap_or(0),
            _ => 0,
        };
        let size_known = self.value_of(size, field.frame);
        let content = self.content(field, region, size_known, node)?;
        // The announced size may be another one: then it was given, and a problem says so.
        if size_known == Value::Unknown {
            self.require(size, content.len() as i128, field, "bytes")?;
        }
        let (plain, rest) = content.split_at_checked(keep).unwrap_or((&content, &[]));
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
        let packed = packer.write_all(rest).and_then(|()| packer.finish());
        let packed = packed.unwrap_or_default();
        self.out().put(plain);
        self.out().put(&packed);
        Ok(())
    }
    /// The content of a packed region. Its announced size says which texts are in Latin-1, where
    /// their type allows it.
    fn content(
        &mut self,
        field: &Field,
        region: &RegionType,
        size: Value,
        node: u32,
    ) -> Result<Vec<u8>, Stop> {
        let (mark, habits) = (self.mark_place(), self.state.habits);
        let before = self.state.asked.odd_texts;
        let usual = self.unpacked(field, region, node)?;
        let texts = self.state.asked.odd_texts - before;
        let fits = |content: &[u8]| size == Value::Known(content.len() as i128);
        if texts == 0 || size == Value::Unknown || fits(&usual) {
            return Ok(usual);
        }
        if habits != Habits::default() {
            return self.fail(node, format!("{} bytes: another size is announced", usual.len()));
        }
        let choices = [u64::MAX].into_iter().chain(super::choices(texts));
        for latin1 in choices.take(super::most_tries(usual.len())) {
            self.back_to(mark);
            self.state.habits.latin1 = latin1.checked_shl(before).unwrap_or(0);
            let content = self.unpacked(field, region, node);
            self.state.habits = habits;
            if let Ok(content) = content
                && fits(&content)
            {
                return Ok(content);
            }
        }
        self.back_to(mark);
        self.unpacked(field, region, node)
    }

    fn unpacked(&mut self, field: &Field, region: &RegionType, node: u32) -> Result<Vec<u8>, Stop> {
        self.open_buffer();
        let written = self.bounded(field, &region.inner, region.dialects, node);
        let content = self.close_buffer().into_bytes();
        written.map(|()| content)
    }
}
