//! Values of fields, with the types that Rust has for them.

use std::fmt;

use crate::filter::{Leaf, RecordScope, RecordValue};
use crate::print::format_time;
use crate::record::{Body, Record};
use crate::tree::{Kind, Node, Sym};

/// The value of a field or of a record's key.
///
/// ```
/// use moulsniff::Value;
///
/// let result = Value::Enum { value: 20, name: Some("kNetErrAuthenticationFailed".into()) };
/// assert_eq!(
///     (result.as_i64(), result.as_str()),
///     (Some(20), Some("kNetErrAuthenticationFailed"))
/// );
/// assert_eq!(result.to_string(), "kNetErrAuthenticationFailed");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum FieldValue {
    /// No object where one could be.
    #[default]
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer of any width.
    Int(i128),
    /// A float.
    Float(f64),
    /// Text; also UUIDs, addresses and times in their usual form, and what a redacted secret is
    /// replaced by.
    Text(String),
    /// Bytes without a structure.
    Bytes(Vec<u8>),
    /// A number of an enum, and its name where it has one.
    Enum {
        /// The number as on the wire.
        value: i128,
        /// Its name.
        name: Option<String>,
    },
    /// A set of flags.
    Flags {
        /// The number as on the wire.
        value: i128,
        /// The names of those that are set.
        names: Vec<String>,
    },
    /// A list.
    List(Vec<FieldValue>),
    /// A structure: its fields in wire order.
    Object(Vec<(String, FieldValue)>),
}

impl FieldValue {
    /// The number, also of an enum or of flags, if it fits.
    ///
    /// ```
    /// use moulsniff::Value;
    ///
    /// assert_eq!(Value::Int(-7).as_i64(), Some(-7));
    /// assert_eq!(Value::Enum { value: 14, name: None }.as_i64(), Some(14));
    /// ```
    pub fn as_i64(&self) -> Option<i64> {
        self.integer().and_then(|number| i64::try_from(number).ok())
    }

    /// The same without a sign.
    ///
    /// ```
    /// use moulsniff::Value;
    ///
    /// assert_eq!(Value::Int(1001).as_u64(), Some(1001));
    /// assert_eq!(Value::Int(-7).as_u64(), None);
    /// ```
    pub fn as_u64(&self) -> Option<u64> {
        self.integer().and_then(|number| u64::try_from(number).ok())
    }

    /// The number as a float.
    ///
    /// ```
    /// use moulsniff::Value;
    ///
    /// assert_eq!(Value::Float(0.5).as_f64(), Some(0.5));
    /// ```
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            FieldValue::Float(number) => Some(*number),
            _ => self.integer().map(|number| number as f64),
        }
    }

    /// The truth value.
    ///
    /// ```
    /// use moulsniff::Value;
    ///
    /// assert_eq!(Value::Bool(true).as_bool(), Some(true));
    /// ```
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            FieldValue::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The text, or the name of an enum's number.
    ///
    /// ```
    /// use moulsniff::Value;
    ///
    /// assert_eq!(Value::from("city").as_str(), Some("city"));
    /// ```
    pub fn as_str(&self) -> Option<&str> {
        match self {
            FieldValue::Text(text) => Some(text),
            FieldValue::Enum { name, .. } => name.as_deref(),
            _ => None,
        }
    }

    /// The bytes, where they have no structure.
    ///
    /// ```
    /// use moulsniff::Value;
    ///
    /// assert_eq!(Value::Bytes(vec![1, 2]).as_bytes(), Some(&[1, 2][..]));
    /// ```
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            FieldValue::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements of a list; empty for everything else.
    ///
    /// ```
    /// use moulsniff::Value;
    ///
    /// assert_eq!(Value::List(vec![Value::from(1), Value::from(2)]).elements().len(), 2);
    /// ```
    pub fn elements(&self) -> &[FieldValue] {
        match self {
            FieldValue::List(elements) => elements,
            _ => &[],
        }
    }

    /// A field of a structure.
    ///
    /// ```
    /// use moulsniff::Value;
    ///
    /// let account = Value::Object(vec![("name".into(), Value::from("city"))]);
    /// assert_eq!(account.field("name").and_then(Value::as_str), Some("city"));
    /// ```
    pub fn field(&self, name: &str) -> Option<&FieldValue> {
        match self {
            FieldValue::Object(fields) => {
                fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            FieldValue::Int(value)
            | FieldValue::Enum { value, .. }
            | FieldValue::Flags { value, .. } => Some(*value),
            _ => None,
        }
    }
}

impl fmt::Display for FieldValue {
    /// Text as it is, numbers and names, bytes as hex; lists in brackets, structures in braces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldValue::Null => f.write_str("null"),
            FieldValue::Bool(truth) => write!(f, "{truth}"),
            FieldValue::Int(number) => write!(f, "{number}"),
            FieldValue::Float(number) => write!(f, "{number}"),
            FieldValue::Text(text) => f.write_str(text),
            FieldValue::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            FieldValue::Enum { name: Some(name), .. } => f.write_str(name),
            FieldValue::Enum { value, .. } => write!(f, "{value}"),
            FieldValue::Flags { value, names } if names.is_empty() => write!(f, "{value}"),
            FieldValue::Flags { names, .. } => f.write_str(&names.join("|")),
            FieldValue::List(elements) => {
                f.write_str("[")?;
                for (at, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if at > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            FieldValue::Object(fields) => {
                f.write_str("{")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}{name}: {value}", if at > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

impl From<i64> for FieldValue {
    fn from(number: i64) -> Self {
        FieldValue::Int(number.into())
    }
}

impl From<i32> for FieldValue {
    fn from(number: i32) -> Self {
        FieldValue::Int(number.into())
    }
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        FieldValue::Text(text.to_owned())
    }
}

/// A value that was found in a record; `None` for objects of the record that are no fields, whose
/// parts are asked for one by one.
pub(super) fn value_of<'a>(
    scope: &RecordScope<'a>,
    record: &Record<'a>,
    value: RecordValue<'a>,
) -> Option<FieldValue> {
    let (index, node) = match (value, &record.body) {
        (RecordValue::Node(index), Body::Message { tree, .. }) => (index, tree.get(index)),
        _ => (0, None),
    };
    Some(match scope.leaf(value) {
        Leaf::Null => FieldValue::Null,
        Leaf::Bool(truth) => FieldValue::Bool(truth),
        Leaf::Int(number) | Leaf::Long(number) => FieldValue::Int(number),
        Leaf::Float(number) => FieldValue::Float(number),
        Leaf::Text(text) => FieldValue::Text(text.into_owned()),
        Leaf::Hex(text) => match (node, &record.body) {
            (Some(node), Body::Message { message, tree, .. }) => {
                FieldValue::Bytes(tree.content(node, message.bytes).into_owned())
            }
            _ => FieldValue::Text(text),
        },
        Leaf::Uuid(text) => FieldValue::Text(text),
        Leaf::Address(at) => FieldValue::Text(at.to_string()),
        Leaf::Ipv4(bits) => FieldValue::Text(std::net::Ipv4Addr::from(bits).to_string()),
        Leaf::Time(time) => {
            let mut text = String::new();
            format_time(time, &mut text);
            FieldValue::Text(text)
        }
        Leaf::Named(value, name) => FieldValue::Enum { value, name: name.map(str::to_owned) },
        Leaf::Flags(value, ..) => {
            FieldValue::Flags { value, names: scope.flag_names(index).map(str::to_owned).collect() }
        }
        Leaf::Composite => return composite(scope, record, index, node?),
    })
}

/// The value of a structure or a list. How deep they lie within each other is bounded where they
/// are read.
fn composite<'a>(
    scope: &RecordScope<'a>,
    record: &Record<'a>,
    index: u32,
    node: &Node,
) -> Option<FieldValue> {
    let Body::Message { tables, tree, .. } = &record.body else { return None };
    let value = |index| value_of(scope, record, RecordValue::Node(index));
    if node.kind == Kind::List {
        return Some(FieldValue::List(
            tree.members(index).filter_map(|(index, _)| value(index)).collect(),
        ));
    }
    let name = |name: Sym| match tree.dynamic(name) {
        Some(own) => own.raw().to_owned(),
        None => tables.name(name).to_owned(),
    };
    let fields =
        tree.members(index).filter_map(|(index, field)| Some((name(field.name), value(index)?)));
    Some(FieldValue::Object(fields.collect()))
}
