//! Runs random cases for some time and keeps every failure as a small file.
//!
//!     cargo run --profile fuzz -p stencilm-fuzz -- --seconds 60 --seed 1 --out target/fuzz
//!     cargo run --profile fuzz -p stencilm-fuzz -- target/fuzz/failure-1-42.bin
//!     cargo run --profile fuzz -p stencilm-fuzz -- --shrink target/fuzz/running-1.bin
//!
//! Cases are numbered: a seed and a number make the same case again, on every machine. A panic is caught, made small and
//! written to a file that replays. A case that kills the process (a stack overflow, say) or takes too long is kept too:
//! it stands in `running-SEED.bin`, and `--shrink` makes it small in processes of its own. `--from` begins at a number.

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stencilm_fuzz::choices::random_bytes;
use stencilm_fuzz::minimize::minimize;
use stencilm_fuzz::{Counts, fuzz_one, shown};

/// A case that takes longer has found work without a bound, also on a machine that is busy with other work.
const MAX_CASE: Duration = Duration::from_secs(300);

/// A case that takes longer counts as endless while it is made small.
const SLOW: Duration = Duration::from_secs(2);

/// How many different failures end a run.
const MAX_FAILURES: usize = 20;

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

struct Options {
    seconds: u64,
    seed: u64,
    from: u64,
    out: PathBuf,
    shrink: Option<PathBuf>,
    replay: Vec<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut options =
        Options { seconds: 60, seed: 1, from: 0, out: "target/fuzz".into(), shrink: None, replay: Vec::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().unwrap_or_default();
            value.parse().map_err(|_| format!("{argument} is followed by {value:?}, but must be by a number"))
        };
        match argument.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--from" => options.from = number()?,
            "--out" => options.out = arguments.next().ok_or("--out is followed by a folder")?.into(),
            "--shrink" => options.shrink = Some(arguments.next().ok_or("--shrink is followed by a file")?.into()),
            flag if flag.starts_with('-') => return Err(format!("{flag} is not known; see the top of main.rs")),
            file => options.replay.push(file.into()),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    // The recogniser recurses; it is slow and simple on purpose.
    let run = move || match &options.shrink {
        Some(file) => shrink(file),
        None if options.replay.is_empty() => search(&options),
        None => replay(&options.replay),
    };
    let thread = std::thread::Builder::new().stack_size(256 << 20).spawn(run).expect("a thread can be started");
    thread.join().expect("failures of cases are caught")
}

fn replay(files: &[PathBuf]) -> ExitCode {
    for file in files {
        match fs::read(file) {
            Ok(data) => {
                println!("{}: {}", file.display(), shown(&data));
                let start = Instant::now();
                println!("{:?}, {:?}", fuzz_one(&data), start.elapsed());
            }
            Err(error) => {
                eprintln!("{}: {error}", file.display());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Makes a case small that kills its process or takes longer than [`SLOW`].
fn shrink(file: &Path) -> ExitCode {
    let data = fs::read(file).expect("the file can be read");
    let candidate_file = file.with_extension("try");
    let own = std::env::current_exe().expect("the program has a path");
    let small = minimize(&data, 400, |candidate| {
        fs::write(&candidate_file, candidate).expect("the file can be written");
        let command = Command::new(&own).arg(&candidate_file).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = command.expect("the program can be started again");
        let start = Instant::now();
        loop {
            match child.try_wait().expect("a process can be waited for") {
                Some(status) => return status.code() != Some(0),
                None if start.elapsed() > SLOW => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return true;
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    });
    let _ = fs::remove_file(&candidate_file);
    let path = file.with_extension("small.bin");
    fs::write(&path, &small).expect("the file can be written");
    println!("{}: {} bytes\n{}", path.display(), small.len(), shown(&small));
    ExitCode::SUCCESS
}

fn search(options: &Options) -> ExitCode {
    fs::create_dir_all(&options.out).expect("the folder can be made");
    panic::set_hook(Box::new(|info| *LAST_PANIC.lock().expect("only the hook writes") = info.to_string()));
    let running = options.out.join(format!("running-{}.bin", options.seed));
    watch_for_endless_cases(options.seed);
    let start = Instant::now();
    let mut counts = Counts::default();
    let mut failures: Vec<String> = Vec::new();
    let mut next_report = 60;
    for number in options.from.. {
        if start.elapsed().as_secs() >= options.seconds || failures.len() >= MAX_FAILURES {
            break;
        }
        let data = case_bytes(options.seed, number);
        fs::write(&running, &data).expect("the file can be written");
        CASE.store(number, Ordering::Relaxed);
        BEGUN.store(start.elapsed().as_secs() + 1, Ordering::Relaxed);
        let outcome = panic::catch_unwind(|| fuzz_one(&data));
        BEGUN.store(0, Ordering::Relaxed);
        match outcome {
            Ok(more) => counts += more,
            Err(_) => report(options, number, &data, &mut failures),
        }
        if start.elapsed().as_secs() >= next_report {
            next_report += 300;
            println!("{} s: {counts:?}, {} kinds of failure", start.elapsed().as_secs(), failures.len());
        }
    }
    let _ = fs::remove_file(&running);
    println!("seed {}, {} s: {counts:?}, {} kinds of failure", options.seed, start.elapsed().as_secs(), failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn case_bytes(seed: u64, number: u64) -> Vec<u8> {
    let len = [64, 256, 1024, 1024][number as usize % 4];
    random_bytes(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number), len)
}

/// Failures of the same kind panic in the same place.
fn kind_of(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
        + message.lines().nth(1).map_or("", |l| l.split(':').next().unwrap_or(""))
}

fn last_panic() -> String {
    LAST_PANIC.lock().expect("only the hook writes").clone()
}

fn report(options: &Options, number: u64, data: &[u8], failures: &mut Vec<String>) {
    let kind = kind_of(&last_panic());
    if failures.contains(&kind) {
        return;
    }
    let small = minimize(data, 3_000, |candidate| {
        panic::catch_unwind(|| fuzz_one(candidate)).is_err() && kind_of(&last_panic()) == kind
    });
    let _ = panic::catch_unwind(|| fuzz_one(&small));
    let path = options.out.join(format!("failure-{}-{number}.bin", options.seed));
    let message = last_panic();
    save(&path, &small, &message);
    println!("FAILURE {}: {} bytes\n{}\n{}\n", path.display(), small.len(), message, shown_if_it_can(&small));
    failures.push(kind);
}

/// The grammar of a case, unless making it is what fails.
fn shown_if_it_can(data: &[u8]) -> String {
    panic::catch_unwind(|| shown(data)).unwrap_or_else(|_| "the grammar cannot be made".into())
}

fn save(path: &Path, data: &[u8], message: &str) {
    fs::write(path, data).expect("the file can be written");
    fs::write(path.with_extension("txt"), format!("{message}\n{}", shown_if_it_can(data)))
        .expect("the file can be written");
}

static CASE: AtomicU64 = AtomicU64::new(0);
/// The second in which the case that is running began, counted from 1; 0 between cases.
static BEGUN: AtomicU64 = AtomicU64::new(0);

fn watch_for_endless_cases(seed: u64) {
    let start = Instant::now();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let begun = BEGUN.load(Ordering::Relaxed);
            if begun > 0 && start.elapsed().as_secs() > begun + MAX_CASE.as_secs() {
                println!("FAILURE case {} of seed {seed} takes more than {MAX_CASE:?}", CASE.load(Ordering::Relaxed));
                std::process::abort();
            }
        }
    });
}
