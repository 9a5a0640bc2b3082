//! The number of processors that this process may use, which in a container is often less than the machine has.

use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::thread;

/// The number of processors that this process may keep busy, at least one: those on which the system lets it run, but
/// no more than the quota of its control group (Linux), rounded up.
pub fn available_cpus() -> usize {
    let allowed = thread::available_parallelism().map_or(1, NonZero::get);
    let own_groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let quota = quota(&own_groups, &|path| fs::read_to_string(path).ok());
    quota.map_or(allowed, |quota| allowed.min(quota)).max(1)
}

/// The smallest quota, in processors, of the control groups named in `own_groups` (`/proc/self/cgroup`) and of their
/// ancestors.
fn quota(own_groups: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<usize> {
    let mut least: Option<usize> = None;
    for line in own_groups.lines() {
        // `0::/path` for version 2, `4:cpu,cpuacct:/path` for version 1.
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(group)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (unified, legacy) = (number == "0" && controllers.is_empty(), controllers.split(',').any(|c| c == "cpu"));
        if !unified && !legacy {
            continue;
        }
        for group in Path::new(group).ancestors() {
            let group = group.to_string_lossy();
            let group = group.trim_end_matches('/');
            let found = if unified {
                read(&format!("/sys/fs/cgroup{group}/cpu.max")).and_then(|text| unified_quota(&text))
            } else {
                let number = |name: &str| read(&format!("/sys/fs/cgroup/cpu{group}/cpu.cfs_{name}_us"));
                number("quota").zip(number("period")).and_then(|(quota, period)| processors(&quota, &period))
            };
            least = [least, found].into_iter().flatten().min();
        }
    }
    least
}

/// `cpu.max` of version 2: `150000 100000`, or `max 100000` without a quota.
fn unified_quota(text: &str) -> Option<usize> {
    let (quota, period) = text.trim().split_once(' ')?;
    processors(quota, period)
}

fn processors(quota: &str, period: &str) -> Option<usize> {
    let quota: u64 = quota.trim().parse().ok()?;
    let period: u64 = period.trim().parse().ok().filter(|&period| period > 0)?;
    usize::try_from(quota.div_ceil(period)).ok().filter(|&processors| processors > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota_of(own_groups: &str, files: &[(&str, &str)]) -> Option<usize> {
        quota(own_groups, &|path| files.iter().find(|(known, _)| *known == path).map(|(_, text)| (*text).to_owned()))
    }

    #[test]
    fn the_smallest_quota_on_the_way_to_the_root_counts() {
        let files = [
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/cpu.max", "800000 100000\n"),
        ];
        assert_eq!(quota_of("0::/a/b\n", &files), Some(2));
        assert_eq!(quota_of("0::/\n", &files), Some(8));
        assert_eq!(quota_of("0::/\n", &[]), None);
    }

    #[test]
    fn version_one_has_two_files_and_minus_one_for_none() {
        let own = "5:memory:/x\n4:cpu,cpuacct:/x\n";
        let files = |quota| {
            [("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", quota), ("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "50000")]
        };
        assert_eq!(quota_of(own, &files("200000\n")), Some(4));
        assert_eq!(quota_of(own, &files("-1\n")), None);
        assert_eq!(quota_of(own, &files("what\n")), None);
    }

    #[test]
    fn there_is_always_one() {
        assert!(available_cpus() >= 1);
    }
}
