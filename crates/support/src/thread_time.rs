//! The processor time of the calling thread: it stands still while the thread does not run.

use std::time::Duration;

/// The processor time that this thread has used; `None` where the system does not tell.
#[cfg(unix)]
pub fn thread_time() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock writes to the one `timespec` that the pointer is to.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    (status == 0).then(|| Duration::new(seconds, nanoseconds))
}

/// The processor time that this thread has used; `None` where the system does not tell.
#[cfg(windows)]
pub fn thread_time() -> Option<Duration> {
    use windows_sys::Win32::Foundation::FILETIME;
    use windows_sys::Win32::System::Threading::{GetCurrentThread, GetThreadTimes};

    const ZERO: FILETIME = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    let (mut creation, mut exit, mut kernel, mut user) = (ZERO, ZERO, ZERO, ZERO);
    // SAFETY: the handle is that of this thread, and each pointer is to a `FILETIME` of its own.
    let status = unsafe { GetThreadTimes(GetCurrentThread(), &mut creation, &mut exit, &mut kernel, &mut user) };
    // In units of 100 ns.
    let of = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    (status != 0).then(|| Duration::from_nanos((of(kernel) + of(user)).saturating_mul(100)))
}

/// The processor time that this thread has used; `None` where the system does not tell.
#[cfg(not(any(unix, windows)))]
pub fn thread_time() -> Option<Duration> {
    None
}
