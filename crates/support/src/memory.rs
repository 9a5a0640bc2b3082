//! How many bytes of memory a value holds, counted in the same way everywhere.
//!
//! What counts is what the allocator hands out: the capacity of a list or a table, used or not, and the overhead of an
//! allocation.

/// What an allocator takes for each allocation, and what it rounds up to: those of the common ones are no larger.
const HEADER: usize = 8;
const GRAIN: usize = 16;
const SMALLEST: usize = 32;

/// What an allocation of so many bytes takes.
#[inline]
pub const fn allocated(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    let rounded = (bytes + HEADER).next_multiple_of(GRAIN);
    if rounded < SMALLEST { SMALLEST } else { rounded }
}

/// What a list holds, but for what its elements own.
#[inline]
pub const fn of_list<T>(list: &Vec<T>) -> usize {
    allocated(list.capacity() * size_of::<T>())
}

/// What a boxed or shared slice of so many elements holds, but for what these own.
#[inline]
pub const fn of_slice<T>(len: usize) -> usize {
    allocated(len * size_of::<T>())
}

/// What a shared slice of so many elements holds, with its two counts.
#[inline]
pub const fn of_shared<T>(len: usize) -> usize {
    allocated(len * size_of::<T>() + 2 * size_of::<usize>())
}

/// What a hash table holds that has room for so many entries of type `T`, but for what these own: seven of eight slots
/// may be used, the slots are a power of two, and each has a byte beside it.
#[inline]
pub fn of_table<T>(capacity: usize) -> usize {
    if capacity == 0 {
        return 0;
    }
    let slots = if capacity < 8 { (capacity + 1).next_power_of_two() } else { (capacity * 8 / 7).next_power_of_two() };
    allocated(slots * (size_of::<T>() + 1) + 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_allocations_are_rounded_up() {
        assert_eq!([0, 1, 24, 25, 40, 41].map(allocated), [0, 32, 32, 48, 48, 64]);
        assert_eq!(of_list(&Vec::<u64>::with_capacity(5)), 48);
        assert_eq!(of_table::<u64>(0), 0);
        assert_eq!(of_table::<u64>(28), allocated(32 * 9 + 16));
    }
}
