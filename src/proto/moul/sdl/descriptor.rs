//! A state descriptor: a name, a version, and variables in their order, each a list of values of
//! one type.
//!
//! It knows neither the text form of descriptors (`parse`) nor the bytes of a state (`decode`).

use std::sync::Arc;

/// One version of a state descriptor: the layout of the records that name it.
#[derive(Clone, Debug, PartialEq)]
pub struct Descriptor {
    /// The name as the file spells it. Names are compared without regard to case.
    pub name: Arc<str>,
    /// The version, which a record on the wire carries in 16 bits.
    pub version: u32,
    /// The variables in the order of the file.
    variables: Vec<Variable>,
    /// Indices of those that hold values: a record's first list counts these.
    simple: Vec<usize>,
    /// Indices of those that hold records: a record's second list counts these.
    nested: Vec<usize>,
}

impl Descriptor {
    /// A descriptor with its variables in order.
    pub fn new(name: Arc<str>, version: u32, variables: Vec<Variable>) -> Self {
        let (nested, simple) = (0..variables.len()).partition(|at| {
            variables
                .get(*at)
                .is_some_and(|variable| matches!(variable.kind, VariableKind::Nested(_)))
        });
        Descriptor { name, version, variables, simple, nested }
    }

    /// The variables in the order of the file.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// How many variables hold values.
    pub fn simple_count(&self) -> usize {
        self.simple.len()
    }

    /// How many variables hold records of another descriptor.
    pub fn nested_count(&self) -> usize {
        self.nested.len()
    }

    /// The variable at an index among those that hold values.
    pub fn simple(&self, place: usize) -> Option<(&Variable, SimpleType)> {
        let variable = self.variables.get(*self.simple.get(place)?)?;
        match &variable.kind {
            VariableKind::Simple(simple) => Some((variable, *simple)),
            VariableKind::Nested(_) => None,
        }
    }

    /// The variable at an index among those that hold records.
    pub fn nested(&self, place: usize) -> Option<(&Variable, &NestedType)> {
        let variable = self.variables.get(*self.nested.get(place)?)?;
        match &variable.kind {
            VariableKind::Nested(nested) => Some((variable, nested)),
            VariableKind::Simple(_) => None,
        }
    }
}

/// A variable of a descriptor.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The name as the file spells it.
    pub name: Arc<str>,
    /// What its elements are.
    pub kind: VariableKind,
    /// How many elements it has. `None` if the record contains the length (`[]`, or `[0]`, which
    /// clients treat the same).
    pub count: Option<u32>,
    /// The default as written, vectors with commas between their values. `None` if the file gives
    /// none.
    pub default: Option<Arc<str>>,
    /// The words behind `DEFAULTOPTION` and `DISPLAYOPTION`, and the old words `INTERNAL` and
    /// `PHASED`. None of them changes a record.
    pub options: Vec<Arc<str>>,
}

/// What the elements of a variable are.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableKind {
    /// Values.
    Simple(SimpleType),
    /// Records of another descriptor.
    Nested(NestedType),
}

/// A reference to another descriptor, `$Name`.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedType {
    /// The other descriptor's name.
    pub name: Arc<str>,
    /// The newest version of it that precedes this variable in the same file. A client takes the
    /// newest version that it has seen when it reads the variable. DIRTSAND takes the newest
    /// version of all. The two differ only if a newer version follows later in the file.
    pub seen: Option<u32>,
}

/// The types of values. The numbers of the client's `plVarDescriptor::Type` are never on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimpleType {
    /// 4 bytes, signed.
    Int,
    /// 4 bytes, IEEE 754.
    Float,
    /// 1 byte.
    Bool,
    /// 32 bytes of text, ended by a zero byte.
    String32,
    /// A plUoid.
    Key,
    /// A class index, a length and an object. No object: only the index 0x8000.
    Creatable,
    /// 8 bytes, IEEE 754.
    Double,
    /// A plUnifiedTime: seconds and microseconds, 4 bytes each.
    Time,
    /// 1 byte, unsigned.
    Byte,
    /// 2 bytes, signed.
    Short,
    /// Nothing on the wire: a client works the time of day out for itself.
    AgeTimeOfDay,
    /// x, y, z as Float.
    Vector3,
    /// x, y, z as Float.
    Point3,
    /// r, g, b as Float.
    Rgb,
    /// r, g, b, a as Float.
    Rgba,
    /// x, y, z, w as Float.
    Quaternion,
    /// r, g, b as Byte.
    Rgb8,
    /// r, g, b, a as Byte.
    Rgba8,
}

/// The types by the names descriptors use for them.
const NAMES: [(&str, SimpleType); 19] = [
    ("INT", SimpleType::Int),
    ("FLOAT", SimpleType::Float),
    ("BOOL", SimpleType::Bool),
    ("STRING32", SimpleType::String32),
    ("PLKEY", SimpleType::Key),
    ("CREATABLE", SimpleType::Creatable),
    ("MESSAGE", SimpleType::Creatable),
    ("DOUBLE", SimpleType::Double),
    ("TIME", SimpleType::Time),
    ("BYTE", SimpleType::Byte),
    ("SHORT", SimpleType::Short),
    ("AGETIMEOFDAY", SimpleType::AgeTimeOfDay),
    ("VECTOR3", SimpleType::Vector3),
    ("POINT3", SimpleType::Point3),
    ("RGB", SimpleType::Rgb),
    ("RGBA", SimpleType::Rgba),
    ("QUATERNION", SimpleType::Quaternion),
    ("RGB8", SimpleType::Rgb8),
    ("RGBA8", SimpleType::Rgba8),
];

impl SimpleType {
    /// All types, in the order of their numbers as `usize`.
    pub const ALL: [SimpleType; 18] = [
        Self::Int,
        Self::Float,
        Self::Bool,
        Self::String32,
        Self::Key,
        Self::Creatable,
        Self::Double,
        Self::Time,
        Self::Byte,
        Self::Short,
        Self::AgeTimeOfDay,
        Self::Vector3,
        Self::Point3,
        Self::Rgb,
        Self::Rgba,
        Self::Quaternion,
        Self::Rgb8,
        Self::Rgba8,
    ];

    /// The type of that name, in any case. As in clients, every name that begins with QUAT is a
    /// quaternion.
    pub fn named(name: &str) -> Option<Self> {
        if name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("QUAT")) {
            return Some(Self::Quaternion);
        }
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, simple)| *simple)
    }

    /// The name descriptors use.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, simple)| *simple == self).map_or("", |(name, _)| name)
    }

    /// The names of a vector's parts. Empty for a single value.
    pub fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Vector3 | Self::Point3 => &["x", "y", "z"],
            Self::Rgb | Self::Rgb8 => &["r", "g", "b"],
            Self::Rgba | Self::Rgba8 => &["r", "g", "b", "a"],
            Self::Quaternion => &["x", "y", "z", "w"],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn types_are_known_by_name_in_any_case() {
        assert_eq!(SimpleType::named("int"), Some(SimpleType::Int));
        assert_eq!(SimpleType::named("PlKey"), Some(SimpleType::Key));
        assert_eq!(SimpleType::named("message"), Some(SimpleType::Creatable));
        assert_eq!(SimpleType::named("quat"), Some(SimpleType::Quaternion));
        assert_eq!(SimpleType::named("string"), None);
        assert_eq!(SimpleType::named(""), None);
    }

    #[test]
    fn every_name_leads_back_to_its_type() {
        for (name, simple) in NAMES {
            assert_eq!(SimpleType::named(name), Some(simple));
            assert_eq!(SimpleType::named(simple.name()), Some(simple));
        }
    }
}
