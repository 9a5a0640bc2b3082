//! The parent of a run. Its cases run in child processes, so that a crash or an endless case is a finding.
//!
//! A child that dies or hangs is replaced by another one, which continues with the next case. The case is minimised in
//! separate processes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use stencilm_fuzz::minimize::minimize;
use stencilm_fuzz::{Counts, Target};

use crate::worker::{self, case_bytes};

/// A case that takes more processor time is endless: its own deadline has passed.
const ENDLESS: Duration = Duration::from_secs(60);

/// A case that takes this long hangs, even on a machine that is busy.
const STANDSTILL: Duration = Duration::from_secs(1_800);

/// The limit of processor time while a case is minimised.
const SLOW: Duration = Duration::from_secs(30);

/// The longest time for minimising a case.
const SHRINKING: Duration = Duration::from_secs(180);

/// A run ends after this many findings.
const MAX_FINDINGS: usize = 20;

/// The options of a run of one target.
pub struct Run {
    pub target: &'static Target,
    pub seed: u64,
    pub from: u64,
    pub to: u64,
    pub time: Duration,
    pub out: PathBuf,
}

/// How a child ended.
enum End {
    /// It completed its work.
    Done,
    /// The process died in a case.
    Died(ExitStatus),
    /// A case takes too long.
    Endless,
}

/// Runs the cases of a target and reports; returns the number of findings.
pub fn run(run: &Run) -> usize {
    fs::create_dir_all(&run.out).expect("the folder can be made");
    let begun = Instant::now();
    let mut counts = Counts::default();
    let mut kinds: Vec<String> = Vec::new();
    let mut findings = 0;
    let mut next = run.from;
    let mut reported = Instant::now();
    while begun.elapsed() < run.time && next < run.to && findings < MAX_FINDINGS {
        let left = run.time - begun.elapsed();
        let (end, last, failures) = child(run, next, left, &mut counts);
        for file in failures {
            let message = fs::read_to_string(file.with_extension("txt")).unwrap_or_default();
            let kind = worker::kind_of(&message);
            if kinds.contains(&kind) {
                continue;
            }
            kinds.push(kind);
            findings += 1;
            println!("FAILURE of {}, seed {}: {}\n{message}\n", run.target.name, run.seed, file.display());
        }
        let how = match end {
            End::Done => None,
            End::Died(status) => Some(("crash", format!("the process ended with {status}"))),
            End::Endless => {
                Some(("hang", format!("the case takes more than {} s of processor time", ENDLESS.as_secs())))
            }
        };
        if let Some((kind, message)) = how {
            findings += 1;
            counts.cases += 1;
            let path = run.out.join(format!("{}-{}-{last}-{kind}.bin", run.target.name, run.seed));
            println!("FAILURE of {}, seed {}, case {last}: {message}", run.target.name, run.seed);
            let small = shrink(run.target, &case_bytes(run.seed, last), &path.with_extension("try"));
            worker::save(run.target, &path, &small, &message);
            let shown = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
            println!("{}\n{shown}\n", path.display());
        }
        next = last + 1;
        if reported.elapsed() > Duration::from_secs(300) {
            reported = Instant::now();
            println!("{}, {} s: {counts:?}, {findings} findings", run.target.name, begun.elapsed().as_secs());
        }
    }
    let (name, seed, seconds) = (run.target.name, run.seed, begun.elapsed().as_secs());
    println!("{name}, seed {seed}, cases {} to {next}, {seconds} s: {counts:?}, {findings} findings", run.from);
    findings
}

/// Lets a child work from a case on; returns how it ended, the case that it had reached, and the panics that it saved.
fn child(run: &Run, from: u64, time: Duration, counts: &mut Counts) -> (End, u64, Vec<PathBuf>) {
    let mut child = own_program()
        .arg("--worker")
        .args(["--target", run.target.name, "--seed", &run.seed.to_string(), "--from", &from.to_string()])
        .args(["--to", &run.to.to_string(), "--seconds", &time.as_secs().max(1).to_string()])
        .arg("--out")
        .arg(&run.out)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be started again");
    let (sender, lines) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().expect("it is a pipe"));
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let (mut last, mut is_done, mut failures) = (from, false, Vec::new());
    let mut patience = Patience::new(&child, ENDLESS);
    loop {
        match lines.recv_timeout(Duration::from_secs(1)) {
            Ok(line) => {
                if let Some(number) = line.strip_prefix("case ").and_then(|number| number.parse().ok()) {
                    (last, patience) = (number, Patience { begun: Instant::now(), spent: None, ..patience });
                } else if let Some(more) = Counts::from_line(&line) {
                    *counts += more;
                } else if let Some(file) = line.strip_prefix("failure ") {
                    failures.push(PathBuf::from(file));
                }
                is_done |= line == "done";
            }
            Err(RecvTimeoutError::Timeout) if patience.has_ended() => {
                stop(&mut child);
                return (End::Endless, last, failures);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait().expect("a process can be waited for");
    (if is_done && status.success() { End::Done } else { End::Died(status) }, last, failures)
}

/// The timeout of a process, in its own processor time if the system reports it, so that a busy machine makes no case
/// endless.
struct Patience {
    process: u32,
    limit: Duration,
    begun: Instant,
    /// The time that the process had used at the first check.
    spent: Option<Duration>,
}

impl Patience {
    fn new(child: &Child, limit: Duration) -> Patience {
        Patience { process: child.id(), limit, begun: Instant::now(), spent: None }
    }

    /// To be called about once a second.
    fn has_ended(&mut self) -> bool {
        match processor_time(self.process) {
            Some(time) => {
                let spent = *self.spent.get_or_insert(time);
                time - spent > self.limit || self.begun.elapsed() > STANDSTILL
            }
            None => self.begun.elapsed() > self.limit,
        }
    }
}

/// The processor time of all threads of a process; `None` if the system does not report it.
fn processor_time(process: u32) -> Option<Duration> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name, in parentheses, may contain spaces; after it these are the 12th and the 13th field.
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    // 100 ticks per second, on every Linux.
    Some(Duration::from_millis(10 * ticks))
}

fn own_program() -> Command {
    Command::new(std::env::current_exe().expect("the program has a path"))
}

fn stop(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Minimises a case that kills its process or does not end.
pub fn shrink(target: &Target, data: &[u8], file: &Path) -> Vec<u8> {
    let begun = Instant::now();
    let small = minimize(data, 400, |candidate| {
        if begun.elapsed() > SHRINKING {
            return false;
        }
        fs::write(file, candidate).expect("the file can be written");
        let mut command = own_program();
        command.args(["--target", target.name]).arg(file).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program can be started again");
        let mut patience = Patience::new(&child, SLOW);
        loop {
            match child.try_wait().expect("a process can be waited for") {
                Some(status) => return !status.success(),
                None if patience.has_ended() => {
                    stop(&mut child);
                    return true;
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    });
    let _ = fs::remove_file(file);
    small
}
