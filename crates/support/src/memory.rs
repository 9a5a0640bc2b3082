//! How many bytes of memory a value holds, counted in the same way everywhere.
//!
//! What counts is what the allocator hands out: the capacity of a list or a table, used or not, and the overhead of an
//! allocation.

/// The overhead of an allocation, and the unit to which its size is rounded up: upper bounds for common allocators.
const HEADER: usize = 8;
const GRAIN: usize = 16;
const SMALLEST: usize = 32;

/// The memory taken by an allocation of `bytes` bytes.
#[inline]
pub const fn allocated(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    let rounded = (bytes + HEADER).next_multiple_of(GRAIN);
    if rounded < SMALLEST { SMALLEST } else { rounded }
}

/// The memory of a list, without what its elements own.
#[inline]
pub const fn of_list<T>(list: &Vec<T>) -> usize {
    allocated(list.capacity() * size_of::<T>())
}

/// The memory of a boxed or shared slice of `len` elements, without what these own.
#[inline]
pub const fn of_slice<T>(len: usize) -> usize {
    allocated(len * size_of::<T>())
}

/// The memory of a shared slice of `len` elements, with its two reference counts.
#[inline]
pub const fn of_shared<T>(len: usize) -> usize {
    allocated(len * size_of::<T>() + 2 * size_of::<usize>())
}

/// The memory of a hash table for `capacity` entries of type `T`, without what these own: seven of eight slots may be
/// used, the number of slots is a power of two, and each has one byte in addition.
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
