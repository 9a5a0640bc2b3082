//! Drops what is large in a thread of its own: to take a full lexeme cache apart takes up to half a second, which nobody should
//! wait for.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::host::{after_freeing, before_waiting};

/// To take more than this apart takes too long to be done by the way.
const LARGE: usize = 1 << 20;

/// Bytes that may wait for the thread, beside what it is taking apart. What would be more is dropped by who lets it go: else
/// memory would be used up faster than it is freed.
const MOST_WAITING: usize = 64 << 20;

/// Drops what holds so many bytes, in the thread where they are many.
pub fn let_go<T: Send + 'static>(what: T, bytes: usize) {
    if bytes > LARGE {
        THREAD.let_go(Box::new(what), bytes);
    }
}

/// The bytes that are still held by what was let go, at most.
pub fn being_taken_apart() -> usize {
    THREAD.queue().held()
}

static THREAD: Thread = Thread::new();

/// A thread that ends as soon as nothing waits for it.
struct Thread(Mutex<Queue>);

impl Thread {
    const fn new() -> Thread {
        Thread(Mutex::new(Queue { waiting: VecDeque::new(), waiting_bytes: 0, at_work: 0, process: None }))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn let_go(&'static self, what: Box<dyn Send>, bytes: usize) {
        let mut queue = self.queue();
        if queue.is_served() && queue.waiting_bytes + bytes > MOST_WAITING {
            drop(queue);
            before_waiting();
            drop(what);
            after_freeing();
            return;
        }
        queue.waiting_bytes += bytes;
        queue.waiting.push_back(Gone { what, bytes });
        if queue.is_served() {
            return;
        }
        let begun = std::thread::Builder::new().name("stencilm-let-go".into()).spawn(|| self.work());
        if begun.is_ok() {
            queue.process = Some(std::process::id());
            return;
        }
        // Where no thread can be had, nothing may wait for one.
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

/// What waits for the thread.
struct Gone {
    what: Box<dyn Send>,
    bytes: usize,
}

/// What the thread has to do.
struct Queue {
    waiting: VecDeque<Gone>,
    /// The bytes of all that waits.
    waiting_bytes: usize,
    /// The bytes of what is being taken apart.
    at_work: usize,
    /// The process whose thread is at work: one that was forked off meanwhile does not have it.
    process: Option<u32>,
}

impl Queue {
    /// Whether a thread is at work, which asks for the next before it ends.
    fn is_served(&self) -> bool {
        self.process == Some(std::process::id())
    }

    fn held(&self) -> usize {
        self.waiting_bytes + if self.is_served() { self.at_work } else { 0 }
    }

    /// What is taken apart next; without it the thread is over.
    fn next(&mut self) -> Option<Gone> {
        let next = self.waiting.pop_front();
        self.at_work = next.as_ref().map_or(0, |gone| gone.bytes);
        self.waiting_bytes -= self.at_work;
        if next.is_none() {
            self.process = None;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread::{self, ThreadId};

    use super::*;

    /// Says where it is dropped, once it may be.
    struct Told {
        name: usize,
        may: Option<Receiver<()>>,
        dropped: Sender<(usize, ThreadId)>,
    }

    impl Drop for Told {
        fn drop(&mut self) {
            if let Some(may) = &self.may {
                may.recv().expect("told that it may be dropped");
            }
            self.dropped.send((self.name, thread::current().id())).expect("somebody asks");
        }
    }

    #[test]
    fn what_is_let_go_waits_for_the_thread_within_a_bound() {
        static THREAD: Thread = Thread::new();
        let here = thread::current().id();
        for _ in 0..3 {
            let (go_on, may) = channel();
            let (dropped, told) = channel();
            let thing = |name, may| Box::new(Told { name, may, dropped: dropped.clone() });
            THREAD.let_go(thing(0, Some(may)), 3 * MOST_WAITING);
            while THREAD.queue().at_work == 0 {
                thread::yield_now();
            }
            THREAD.let_go(thing(1, None), MOST_WAITING / 2);
            THREAD.let_go(thing(2, None), MOST_WAITING / 2);
            assert_eq!(THREAD.queue().held(), 4 * MOST_WAITING);
            assert!(told.try_recv().is_err());

            // No more may wait: this is dropped at once.
            THREAD.let_go(thing(3, None), 1);
            assert_eq!(told.try_recv(), Ok((3, here)));

            go_on.send(()).expect("the thread waits");
            for expected in 0..3 {
                let (name, by) = told.recv().expect("all are dropped");
                assert_eq!(name, expected);
                assert_ne!(by, here);
            }
            while THREAD.queue().is_served() {
                thread::yield_now();
            }
            assert_eq!(THREAD.queue().held(), 0);
        }
    }

    #[test]
    fn a_process_that_was_forked_off_gets_a_thread_of_its_own() {
        static THREAD: Thread = Thread::new();
        let (dropped, told) = channel();
        let thing = |name| Told { name, may: None, dropped: dropped.clone() };
        {
            let mut queue = THREAD.queue();
            // As it is found there: the thread was at work, and something waited for it.
            queue.process = Some(std::process::id() ^ 1);
            queue.at_work = 10;
            queue.waiting.push_back(Gone { what: Box::new(thing(0)), bytes: 7 });
            queue.waiting_bytes = 7;
            assert_eq!(queue.held(), 7);
        }
        THREAD.let_go(Box::new(thing(1)), MOST_WAITING);
        assert_eq!([told.recv(), told.recv()].map(|told| told.expect("dropped").0), [0, 1]);
    }
}
