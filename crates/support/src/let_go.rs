//! Drops large values on a separate thread: dropping a full lexeme cache takes up to half a second, and nobody should
//! wait for that.

use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::host::{after_freeing, before_waiting};

/// Dropping more bytes than this takes too long to do in passing.
const LARGE: usize = 1 << 20;

/// The greatest number of bytes that may wait for the thread, in addition to what it is dropping. Anything beyond that
/// is dropped by the caller: otherwise memory would be used up faster than it is freed.
const MOST_WAITING: usize = 64 << 20;

/// Drops a value of `bytes` bytes; if these are many, on the separate thread.
pub fn let_go<T: Send + 'static>(what: T, bytes: usize) {
    if bytes > LARGE {
        here().let_go(Box::new(what), bytes);
    }
}

/// An upper bound on the bytes that dropped values still hold.
pub fn being_dropped() -> usize {
    here().queue().held()
}

/// The thread of the process that asked last.
static THREAD: AtomicPtr<Thread> = AtomicPtr::new(ptr::null_mut());

/// The thread of this process.
fn here() -> &'static Thread {
    thread_of(std::process::id(), &THREAD)
}

/// The thread of a process. A forked process does not have its parent's thread, and the parent's lock may stay locked
/// forever by a thread that was not copied. So it never uses that lock, and does not drop what waited there.
fn thread_of(process: u32, last: &AtomicPtr<Thread>) -> &'static Thread {
    loop {
        let known = last.load(Ordering::Acquire);
        // SAFETY: it is null, or was leaked below.
        if let Some(thread) = unsafe { known.as_ref() }
            && thread.process == process
        {
            return thread;
        }
        let fresh = Box::into_raw(Box::new(Thread::new(process)));
        if last.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: it was made from a box, and nobody else has seen it.
            drop(unsafe { Box::from_raw(fresh) });
        }
    }
}

/// A thread that ends when nothing is left to drop.
struct Thread {
    process: u32,
    queue: Mutex<Queue>,
}

impl Thread {
    fn new(process: u32) -> Thread {
        Thread { process, queue: Mutex::default() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn let_go(&'static self, what: Box<dyn Send>, bytes: usize) {
        let mut queue = self.queue();
        if queue.is_served && queue.waiting_bytes + bytes > MOST_WAITING {
            drop(queue);
            before_waiting();
            drop(what);
            after_freeing();
            return;
        }
        queue.waiting_bytes += bytes;
        queue.waiting.push_back(Gone { what, bytes });
        if queue.is_served {
            return;
        }
        let begun = std::thread::Builder::new().name("stencilm-let-go".into()).spawn(|| self.work());
        if begun.is_ok() {
            queue.is_served = true;
            return;
        }
        // Where no thread can be started, nothing may wait for one.
        queue.waiting_bytes = 0;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        drop(waiting);
    }

    fn work(&self) {
        while let Some(gone) = self.next() {
            drop(gone.what);
            after_freeing();
        }
    }

    fn next(&self) -> Option<Gone> {
        self.queue().next()
    }
}

/// A value that waits for the thread.
struct Gone {
    what: Box<dyn Send>,
    bytes: usize,
}

/// The work of the thread.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Gone>,
    /// The bytes of all waiting values.
    waiting_bytes: usize,
    /// The bytes of the value that is being dropped.
    at_work: usize,
    /// Whether the thread is running. It asks for the next value before it ends.
    is_served: bool,
}

impl Queue {
    fn held(&self) -> usize {
        self.waiting_bytes + self.at_work
    }

    /// The next value to drop; if there is none, the thread ends.
    fn next(&mut self) -> Option<Gone> {
        let next = self.waiting.pop_front();
        self.at_work = next.as_ref().map_or(0, |gone| gone.bytes);
        self.waiting_bytes -= self.at_work;
        self.is_served = next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread::{self, ThreadId};

    use super::*;

    /// Reports where it is dropped, once it is allowed to.
    struct Reporting {
        name: usize,
        may: Option<Receiver<()>>,
        dropped: Sender<(usize, ThreadId)>,
    }

    impl Drop for Reporting {
        fn drop(&mut self) {
            if let Some(may) = &self.may {
                may.recv().expect("told that it may be dropped");
            }
            self.dropped.send((self.name, thread::current().id())).expect("somebody asks");
        }
    }

    #[test]
    fn what_is_let_go_waits_for_the_thread_within_a_bound() {
        let last = AtomicPtr::new(ptr::null_mut());
        let thread = thread_of(1, &last);
        let here = thread::current().id();
        for _ in 0..3 {
            let (go_on, may) = channel();
            let (dropped, dropped_names) = channel();
            let thing = |name, may| Box::new(Reporting { name, may, dropped: dropped.clone() });
            thread.let_go(thing(0, Some(may)), 3 * MOST_WAITING);
            while thread.queue().at_work == 0 {
                std::thread::yield_now();
            }
            thread.let_go(thing(1, None), MOST_WAITING / 2);
            thread.let_go(thing(2, None), MOST_WAITING / 2);
            assert_eq!(thread.queue().held(), 4 * MOST_WAITING);
            assert!(dropped_names.try_recv().is_err());

            // No more may wait, so this is dropped at once.
            thread.let_go(thing(3, None), 1);
            assert_eq!(dropped_names.try_recv(), Ok((3, here)));

            go_on.send(()).expect("the thread waits");
            for expected in 0..3 {
                let (name, by) = dropped_names.recv().expect("all are dropped");
                assert_eq!(name, expected);
                assert_ne!(by, here);
            }
            while thread.queue().is_served {
                std::thread::yield_now();
            }
            assert_eq!(thread.queue().held(), 0);
        }
    }

    #[test]
    fn a_process_that_was_forked_off_has_a_thread_of_its_own() {
        let last = AtomicPtr::new(ptr::null_mut());
        let parent = thread_of(1, &last);
        assert!(ptr::eq(parent, thread_of(1, &last)));
        // As after a fork: the lock is held forever.
        let _held = parent.queue();
        let child = thread_of(2, &last);
        assert!(!ptr::eq(parent, child) && ptr::eq(child, thread_of(2, &last)));

        let (dropped, dropped_names) = channel();
        child.let_go(Box::new(Reporting { name: 7, may: None, dropped }), MOST_WAITING);
        assert_eq!(dropped_names.recv().expect("it is dropped").0, 7);
    }
}
