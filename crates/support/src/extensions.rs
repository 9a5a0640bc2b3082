//! Data that later rooms attach to a value of an earlier room, which need not know their types.
//!
//! The lexemes of a vocabulary are shared by all its grammars, and so are, for example, the structural keys of values,
//! which masks compute. Each kind of data is stored under its own type, and counts as memory of its owner.

use std::any::Any;

/// Data of which an owner has one value.
pub trait Extension: Any + Send {
    /// Approximate bytes of memory held; scratch space that is emptied after every operation counts as 0.
    fn memory_bytes(&self) -> usize {
        0
    }
}

/// At most one value of each type. There are few, so a linear search is enough.
#[derive(Default)]
pub struct Extensions(Vec<Box<dyn Extension>>);

impl Extensions {
    /// The value of a type; it is created with its default.
    pub fn get<T: Extension + Default>(&mut self) -> &mut T {
        let place = self.place_of::<T>().unwrap_or_else(|| {
            self.0.push(Box::<T>::default());
            self.0.len() - 1
        });
        let value: &mut dyn Any = &mut *self.0[place];
        value.downcast_mut().expect("it is of this type")
    }

    /// Removes the value of a type, which the caller puts back.
    pub fn take<T: Extension + Default>(&mut self) -> Box<T> {
        let Some(place) = self.place_of::<T>() else { return Box::default() };
        let value: Box<dyn Any> = self.0.swap_remove(place);
        value.downcast().expect("it is of this type")
    }

    /// Puts it back.
    pub fn put<T: Extension>(&mut self, value: Box<T>) {
        self.0.push(value);
    }

    /// Approximate bytes of memory held by all of them.
    pub fn memory_bytes(&self) -> usize {
        self.0.iter().map(|value| size_of_val(&**value) + value.memory_bytes()).sum()
    }

    #[inline]
    fn place_of<T: Extension>(&self) -> Option<usize> {
        self.0.iter().position(|value| {
            let value: &dyn Any = &**value;
            value.is::<T>()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, PartialEq, Debug)]
    struct Numbers(Vec<u8>);

    #[derive(Default, PartialEq, Debug)]
    struct Name(String);

    impl Extension for Numbers {
        fn memory_bytes(&self) -> usize {
            self.0.len()
        }
    }

    impl Extension for Name {}

    #[test]
    fn each_type_has_one_value() {
        let mut extensions = Extensions::default();
        extensions.get::<Numbers>().0.push(7);
        extensions.get::<Name>().0.push('a');
        let sizes = size_of::<Numbers>() + size_of::<Name>();
        assert_eq!(extensions.memory_bytes(), sizes + 1);
        let mut taken = extensions.take::<Numbers>();
        assert_eq!(*taken, Numbers(vec![7]));
        assert_eq!(*extensions.take::<Numbers>(), Numbers::default());
        taken.0.push(8);
        extensions.put(taken);
        assert_eq!(extensions.get::<Numbers>().0, [7, 8]);
        assert_eq!(extensions.get::<Name>().0, "a");
    }
}
