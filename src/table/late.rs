//! Lists of a program that are unpacked late: an element, or the whole list, when somebody first
//! asks for it. Most runs need few types, few enums and no examples.

use std::sync::OnceLock;

use super::packed::{Packed, PackedList, UnpackedProgram};
use super::program::{EnumDef, Example, InfoLine, ListedDeclaration, Program, TypeDef};

/// The lists, from packed bytes or from a program that was just compiled.
pub(super) struct LateLists {
    pub(super) types: LateItems<TypeDef>,
    pub(super) enums: LateItems<EnumDef>,
    pub(super) infos: LateItems<InfoLine>,
    pub(super) examples: LateList<Example>,
    pub(super) declarations: LateList<ListedDeclaration>,
}

impl LateLists {
    /// Takes the lists out of a compiled program.
    pub(super) fn of_compiled(program: &mut Program) -> LateLists {
        LateLists {
            types: LateItems::filled(std::mem::take(&mut program.types)),
            enums: LateItems::filled(std::mem::take(&mut program.enums)),
            infos: LateItems::filled(std::mem::take(&mut program.infos)),
            examples: LateList::filled(std::mem::take(&mut program.examples)),
            declarations: LateList::filled(std::mem::take(&mut program.declarations)),
        }
    }

    /// The lists of an unpacked program.
    pub(super) fn of_unpacked(unpacked: &UnpackedProgram) -> LateLists {
        LateLists {
            types: LateItems::packed(unpacked.types),
            enums: LateItems::packed(unpacked.enums),
            infos: LateItems::packed(unpacked.infos),
            examples: LateList::packed(unpacked.examples),
            declarations: LateList::packed(unpacked.declarations),
        }
    }
}

/// A list each of whose elements is unpacked when it is first asked for.
pub(super) struct LateItems<T> {
    items: Box<[OnceLock<Box<T>>]>,
    packed: PackedList,
}

impl<T: Packed> LateItems<T> {
    fn filled(items: Vec<T>) -> Self {
        let items = items.into_iter().map(|item| OnceLock::from(Box::new(item))).collect();
        LateItems { items, packed: PackedList::default() }
    }

    fn packed(packed: PackedList) -> Self {
        LateItems { items: (0..packed.count()).map(|_| OnceLock::new()).collect(), packed }
    }

    /// An element by its place.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        let item = self.items.get(at)?;
        match item.get() {
            Some(item) => Some(item),
            None => self.unpacked(at),
        }
    }

    #[cold]
    #[inline(never)]
    fn unpacked(&self, at: usize) -> Option<&T> {
        let made = Box::new(self.packed.item(at)?);
        Some(self.items.get(at)?.get_or_init(|| made))
    }

    /// All elements.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + Clone {
        (0..self.items.len()).filter_map(|at| self.get(at))
    }
}

/// A list that is unpacked as a whole when it is first asked for.
pub(super) struct LateList<T> {
    items: OnceLock<Vec<T>>,
    packed: PackedList,
}

impl<T: Packed> LateList<T> {
    fn filled(items: Vec<T>) -> Self {
        LateList { items: OnceLock::from(items), packed: PackedList::default() }
    }

    fn packed(packed: PackedList) -> Self {
        LateList { items: OnceLock::new(), packed }
    }

    /// All elements.
    pub(super) fn all(&self) -> &[T] {
        self.items.get_or_init(|| {
            (0..self.packed.count()).filter_map(|at| self.packed.item(at)).collect()
        })
    }
}
