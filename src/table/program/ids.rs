//! Places in the program's lists. Every part of a program refers to the others by these numbers.

/// A place in the list of layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LayoutId(pub u32);
/// A place in the list of enums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnumId(pub u32);
/// A place in the list of families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FamilyId(pub u32);
/// A place in the list of info lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InfoId(pub u32);
/// A place in the list of expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExprId(pub u32);
/// A place in the list of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageId(pub u32);
/// A place in the list of services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServiceId(pub u32);
