//! The object at the end of a message, which an outline may leave out: where its region is, and
//! what comes before it.

use super::Tables;
use super::program::*;
use crate::tree::TypeRef;

/// The last field of a layout, if that is a region with an object, and no other field has its type.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastObject {
    /// The region's type.
    pub(super) region: TypeRef,
    /// What the object is one of.
    pub(super) family: FamilyId,
    /// What the layout has before the object, if that is simple.
    pub(super) before: Option<PlainNumbers>,
}

/// Plain numbers with nothing to check, of which the last is the length of the region behind them.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainNumbers {
    /// How many bytes they have.
    pub(super) bytes: usize,
    pub(super) nodes: u32,
    /// All marks of their nodes.
    pub(super) marks: u8,
    /// The last number.
    pub(super) length: Scalar,
    /// Marks of the region's node.
    pub(super) region_marks: u8,
}

impl LastObject {
    /// That of a layout. `before` is what it has before its last field.
    pub(super) fn of(
        tables: &Tables,
        layout: &Layout,
        before: Option<PlainNumbers>,
    ) -> Option<LastObject> {
        let steps = tables.steps().get(layout.start as usize..)?.iter();
        let steps = || steps.clone().take_while(|step| !matches!(step, LayoutStep::End));
        let Some(LayoutStep::Field { ty: region, .. }) = steps().last() else { return None };
        let same = steps()
            .filter(|step| matches!(step, LayoutStep::Field { ty, .. } if ty == region))
            .count();
        let family = object_in(tables, *region).filter(|_| same == 1)?;
        Some(LastObject { region: *region, family, before })
    }
}

/// The family of the object that fills a region.
fn object_in(tables: &Tables, ty: TypeRef) -> Option<FamilyId> {
    let Some(ReadAs::Region(RegionType { inner, zlib: None, .. })) =
        tables.type_def(ty).map(|def| &def.read)
    else {
        return None;
    };
    match (
        inner.as_slice(),
        inner.first().and_then(|inner| tables.type_def(*inner)).map(|def| &def.read),
    ) {
        ([_], Some(ReadAs::Family(family))) => Some(*family),
        _ => None,
    }
}
