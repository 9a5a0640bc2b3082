//! Minimises a failing input: shorter first, then smaller bytes, as long as it still fails.

/// The smallest input found in at most `tries` runs of `fails` that still fails.
pub fn minimize(data: &[u8], tries: usize, mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut best = data.to_vec();
    let mut left = tries;
    let mut attempt = |candidate: Vec<u8>, best: &mut Vec<u8>| {
        let better = left > 0 && (candidate.len(), &candidate) < (best.len(), best) && {
            left -= 1;
            fails(&candidate)
        };
        if better {
            *best = candidate;
        }
        better
    };
    loop {
        let before = best.clone();
        // First the end, then pieces from anywhere, each time half as long.
        let mut size = best.len().next_power_of_two();
        while size > 0 {
            let mut at = best.len().saturating_sub(size);
            loop {
                let mut candidate = best.clone();
                candidate.drain(at.min(candidate.len())..(at + size).min(best.len()));
                attempt(candidate, &mut best);
                if at == 0 {
                    break;
                }
                at = at.saturating_sub(size);
            }
            size /= 2;
        }
        for at in 0..best.len() {
            for value in [0, 1, 2, 4] {
                if at < best.len() && best[at] > value {
                    let mut candidate = best.clone();
                    candidate[at] = value;
                    attempt(candidate, &mut best);
                }
            }
        }
        if best == before {
            return best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::minimize;

    #[test]
    fn what_matters_is_what_stays() {
        let data: Vec<u8> = (0..200).collect();
        let fails = |data: &[u8]| data.contains(&77) && data.iter().any(|&byte| byte > 150);
        assert_eq!(minimize(&data, 10_000, fails), [77, 151]);
    }
}
