//! The names and types of `sdl.table` that the code needs, looked up once.

use super::descriptor::SimpleType;
use crate::table::Tables;
use crate::tree::{Sym, TypeRef};

/// How many types of values there are.
const TYPES: usize = 18;

/// Names and types of one set of tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct SdlNames {
    pub(super) descriptor_name: Sym,
    pub(super) index: Sym,
    pub(super) save_flags: Sym,
    pub(super) save_flags2: Sym,
    pub(super) notification_info: Sym,
    pub(super) time_stamp: Sym,
    pub(super) total: Sym,
    pub(super) records: Sym,
    pub(super) flags: Sym,
    pub(super) io_version: Sym,
    pub(super) variables: Sym,
    pub(super) nested: Sym,
    pub(super) class: Sym,
    pub(super) object: Sym,
    pub(super) class_type: TypeRef,
    pub(super) size8: TypeRef,
    pub(super) size16: TypeRef,
    pub(super) size32: TypeRef,
    pub(super) var_flags: TypeRef,
    pub(super) record_flags: TypeRef,
    pub(super) notification: TypeRef,
    pub(super) time: TypeRef,
    pub(super) simple: TypeRef,
    pub(super) nested_type: TypeRef,
    pub(super) record: TypeRef,
    pub(super) records_type: TypeRef,
    pub(super) lists: TypeRef,
    values: [Option<TypeRef>; TYPES],
}

impl SdlNames {
    /// The names in `tables`. `None` if these have no `sdl.table`.
    pub(super) fn look_up(tables: &Tables) -> Option<SdlNames> {
        let sym = |name: &str| tables.sym(name);
        let ty = |name: &str| tables.type_named(name);
        let mut values = [None; TYPES];
        for simple in SimpleType::ALL {
            if let Some(place) = values.get_mut(simple as usize) {
                *place = ty(&format!("SDL_{}", simple.name()));
            }
        }
        Some(SdlNames {
            descriptor_name: sym("descriptor_name")?,
            index: sym("index")?,
            save_flags: sym("save_flags")?,
            save_flags2: sym("save_flags2")?,
            notification_info: sym("notification_info")?,
            time_stamp: sym("time_stamp")?,
            total: sym("total")?,
            records: sym("records")?,
            flags: sym("flags")?,
            io_version: sym("io_version")?,
            variables: sym("variables")?,
            nested: sym("nested")?,
            class: sym("class")?,
            object: sym("object")?,
            class_type: ty("SDL_Class")?,
            size8: ty("SDL_Size8")?,
            size16: ty("SDL_Size16")?,
            size32: ty("SDL_Size32")?,
            var_flags: ty("SDL_VarFlags")?,
            record_flags: ty("plStateDataRecord_Flags")?,
            notification: ty("plStateVarNotificationInfo")?,
            time: ty("plUnifiedTime")?,
            simple: ty("SDL_Simple")?,
            nested_type: ty("SDL_Nested")?,
            record: ty("SDL_Record")?,
            records_type: ty("SDL_Records")?,
            lists: ty("SDL_Variables")?,
            values,
        })
    }

    /// The type that reads a value. `None` for the one that is never on the wire.
    pub(super) fn of_type(&self, simple: SimpleType) -> Option<TypeRef> {
        self.values.get(simple as usize).copied().flatten()
    }

    /// The type of a count or index whose largest value is `largest`.
    pub(super) fn sized(&self, largest: usize) -> TypeRef {
        match largest {
            0..=0xff => self.size8,
            0x100..=0xffff => self.size16,
            _ => self.size32,
        }
    }
}
