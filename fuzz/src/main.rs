//! Looks for failures: random cases of each target, in child processes, for some time.
//!
//!     cargo run --profile fuzz -p stencilm-fuzz -- --minutes 10 --seed 1
//!     cargo run --profile fuzz -p stencilm-fuzz -- --target drafts --target forced --minutes 5
//!     cargo run --profile fuzz -p stencilm-fuzz -- --target repetitions --to 100000 --minutes 300
//!     cargo run --profile fuzz -p stencilm-fuzz -- --target drafts target/fuzz/drafts-1-42-panic.bin
//!     cargo run --profile fuzz -p stencilm-fuzz -- --list
//!
//! Cases are numbered: a seed and a number make the same case again, on every machine. What panics, kills its process (a
//! stack overflow, say) or goes on past its deadline is reported with both, made small and written to a file that replays. `--from` and `--to` choose the numbers. Where the environment variable `STENCILM_SHARED` names a folder
//! with tokenizers, their vocabularies are used beside the small random ones.

mod supervise;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use stencilm_fuzz::{TARGETS, Target, tokenizers};

use crate::supervise::Run;
use crate::worker::Work;

struct Options {
    targets: Vec<&'static Target>,
    seconds: u64,
    seed: u64,
    from: u64,
    to: u64,
    out: PathBuf,
    is_worker: bool,
    is_list: bool,
    replay: Vec<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        targets: Vec::new(),
        seconds: 60,
        seed: 1,
        from: 0,
        to: u64::MAX,
        out: "target/fuzz".into(),
        is_worker: false,
        is_list: false,
        replay: Vec::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut text = || arguments.next().ok_or_else(|| format!("{argument} is the last argument, but takes a value"));
        let mut number = || {
            let value = text()?;
            value.parse::<u64>().map_err(|_| format!("{argument} is followed by {value:?}, but must be by a number"))
        };
        match argument.as_str() {
            "--target" => options.targets.extend(targets(&text()?)?),
            "--seconds" => options.seconds = number()?,
            "--minutes" => options.seconds = number()?.saturating_mul(60),
            "--seed" => options.seed = number()?,
            "--from" => options.from = number()?,
            "--to" => options.to = number()?,
            "--out" => options.out = text()?.into(),
            "--worker" => options.is_worker = true,
            "--list" => options.is_list = true,
            flag if flag.starts_with('-') => return Err(format!("{flag} is not known; see the top of main.rs")),
            file => options.replay.push(file.into()),
        }
    }
    if options.targets.is_empty() {
        options.targets.extend(TARGETS);
    }
    if !options.replay.is_empty() && options.targets.len() != 1 {
        return Err("a file is a case of one target; name it with --target, as the file's own name begins".into());
    }
    Ok(options)
}

fn targets(name: &str) -> Result<Vec<&'static Target>, String> {
    if name == "all" {
        return Ok(TARGETS.iter().collect());
    }
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    let target = Target::named(name);
    target.map(|target| vec![target]).ok_or_else(|| format!("no target is named {name:?}; give one of {names:?}"))
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    if options.is_list {
        TARGETS.iter().for_each(|target| println!("{:16} {}", target.name, target.about));
        return ExitCode::SUCCESS;
    }
    if options.is_worker || !options.replay.is_empty() {
        return on_a_stack_of_its_own(options);
    }
    tokenizers::allow();
    if !tokenizers::any() {
        println!("STENCILM_SHARED names no folder with tokenizers, so all vocabularies are small");
    }
    // Time that one target leaves over is given to the others.
    let begun = Instant::now();
    let mut findings = 0;
    for (index, target) in options.targets.iter().enumerate() {
        let left = Duration::from_secs(options.seconds).saturating_sub(begun.elapsed());
        let time = left / (options.targets.len() - index) as u32;
        let (seed, from, to, out) = (options.seed, options.from, options.to, options.out.clone());
        findings += supervise::run(&Run { target, seed, from, to, time, out });
    }
    if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs cases of one target on a thread with the stack size that the target asks for.
fn on_a_stack_of_its_own(options: Options) -> ExitCode {
    tokenizers::allow();
    let target = options.targets[0];
    let run = move || {
        if options.is_worker {
            let Options { seed, from, to, seconds, out, .. } = options;
            worker::work(&Work { target, seed, from, to, time: Duration::from_secs(seconds), out });
            return ExitCode::SUCCESS;
        }
        replay(target, &options.replay)
    };
    let thread = std::thread::Builder::new().stack_size(target.stack_bytes()).spawn(run);
    match thread.expect("a thread can be started").join() {
        Ok(code) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

fn replay(target: &Target, files: &[PathBuf]) -> ExitCode {
    for file in files {
        match std::fs::read(file) {
            Ok(data) => {
                println!("{}: {}", file.display(), target.shown(&data));
                let start = Instant::now();
                println!("{:?}, {:?}", worker::run_case(target, &data), start.elapsed());
            }
            Err(error) => {
                eprintln!("{}: {error}", file.display());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
