//! Queries that change nothing, against simple twins: what a token, a text or a draft tree would do, what is forced,
//! and how a text is completed.

use stencilm_engine::{
    DraftTree, Explanation, GrammarMatcher, IndexBuilder, IndexLimits, MatcherError, Status, TokenIndex,
};
use stencilm_engine::{TokenSet, Verdict};

use crate::Counts;
use crate::choices::Choices;
use crate::setting::{Ended, Setting, allowed, mask, state};

/// The longest completion that is requested, in bytes.
const MOST: usize = 100_000;

/// The longest forced text that is tried.
const TRIED: usize = 50;

/// The most states of an index.
const INDEX: IndexLimits = IndexLimits { max_states: 60, max_bytes: 1 << 20 };

fn byte_by_byte(matcher: &GrammarMatcher, text: &[u8]) -> Result<Verdict, Ended> {
    let mut probe = matcher.fork();
    let mut valid_bytes = 0;
    while valid_bytes < text.len() && probe.accept_bytes(&text[valid_bytes..=valid_bytes])? {
        valid_bytes += 1;
    }
    let status = match (valid_bytes == text.len(), probe.is_completed()) {
        (false, _) => Status::Dead,
        (true, true) => Status::Complete,
        (true, false) => Status::Viable,
    };
    Ok(Verdict { status, valid_bytes })
}

fn forced_by_trying(matcher: &GrammarMatcher) -> Result<Vec<u8>, Ended> {
    let mut probe = matcher.fork();
    let mut forced = Vec::new();
    while !probe.is_completed() && forced.len() < TRIED {
        let mut fit = Vec::new();
        for byte in 0..=255 {
            if probe.fork().accept_bytes(&[byte])? {
                fit.push(byte);
            }
        }
        let [byte] = fit[..] else { break };
        forced.push(byte);
        assert!(probe.accept_bytes(&[byte])?);
    }
    Ok(forced)
}

/// Which tokens fit, how many bytes of a text fit, and why others do not.
pub fn queries(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let (mut matcher, what) = (setting.walked(choices)?, &setting.what);
    let before = state(&mut matcher)?;
    let vocabulary = &setting.vocabulary;

    // Texts made of tokens are nearly valid in most cases.
    let ids: Vec<u32> = (0..choices.below(6)).map(|_| choices.below(vocabulary.vocab_size() + 1) as u32).collect();
    let mut probe = matcher.fork();
    let mut fits = 0;
    while fits < ids.len() && probe.accept_token(ids[fits])? {
        fits += 1;
    }
    assert_eq!(matcher.validate_tokens(ids.iter().copied())?, fits, "{what}");

    let mut text: Vec<u8> =
        ids.iter().flat_map(|&id| vocabulary.token_bytes(id).unwrap_or_default()).copied().collect();
    if let (true, [first, ..]) = (choices.chance(2), &setting.texts[..]) {
        text = first.clone();
    }
    let verdict = matcher.longest_valid_prefix(&text)?;
    if matcher.is_terminated() {
        assert_eq!(verdict.valid_bytes, 0, "{what}");
    } else {
        assert_eq!(verdict, byte_by_byte(&matcher, &text)?, "{text:?} of {what}");
    }
    let mask = if matcher.is_terminated() { None } else { Some(mask(&mut matcher)?) };
    for id in setting.some_tokens(choices) {
        let in_mask = (id as usize) < vocabulary.vocab_size() && mask.as_ref().is_some_and(|mask| mask.contains(id));
        assert_eq!(matcher.is_allowed(id)?, in_mask, "is_allowed({id}): {what}");
        let why = matcher.explain(id)?;
        assert_eq!(why == Explanation::Allowed, in_mask, "token {id} {why}: {what}");
        assert!(!why.to_string().is_empty());
        counts.decisions += 1;
        if let (Explanation::Refused { fits, byte, expected }, true) = (why, choices.chance(4)) {
            let mut probe = matcher.fork();
            assert!(fits.is_empty() || probe.accept_bytes(&fits)?, "{what}");
            for other in 0..=255 {
                assert_eq!(probe.fork().accept_bytes(&[other])?, expected.bytes.contains(other), "{other}: {what}");
            }
            assert!(!expected.bytes.contains(byte), "{what}");
            assert_eq!(expected.end, probe.is_completed(), "{what}");
        }
    }
    if let Some(mask) = mask {
        let patch = matcher.mask_patch()?;
        let mut row = TokenSet::empty(vocabulary.vocab_size());
        assert!(vocabulary.write_row(patch.row, row.words_mut()), "a row that was given out is there: {what}");
        for id in patch.flipped {
            row.words_mut()[id as usize / 32] ^= 1 << (id % 32);
        }
        assert_eq!(row, mask, "a mask as a row and what differs: {what}");
        counts.masks += 1;
    }
    matcher.candidates(choices.below(20))?;
    assert_eq!(state(&mut matcher)?, before, "{what}");
    Ok(())
}

/// The shortest completion completes the text.
pub fn completions(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let (mut matcher, what) = (setting.walked(choices)?, &setting.what);
    // Now and then in the middle of a token.
    if choices.chance(2) {
        let text: Vec<u8> = (0..choices.below(3)).map(|_| *choices.pick(b"\"a{(b")).collect();
        matcher.accept_bytes(&text)?;
    }
    let before = state(&mut matcher)?;
    match matcher.shortest_completion(MOST) {
        Ok(text) => {
            counts.texts += 1;
            assert_eq!(&matcher.shortest_completion(MOST)?, &text, "the same again: {what}");
            assert_eq!(text.is_empty(), matcher.is_completed(), "{what}");
            if !matcher.is_terminated() {
                let verdict = matcher.longest_valid_prefix(&text)?;
                let expected = Verdict { status: Status::Complete, valid_bytes: text.len() };
                assert_eq!(verdict, expected, "{:?}: {what}", String::from_utf8_lossy(&text));
                if let Some(less) = text.len().checked_sub(1) {
                    match matcher.shortest_completion(less) {
                        // The estimate is a lower bound, so a search that may not stop there goes on to its limit.
                        Err(MatcherError::CompletionTooLong { .. } | MatcherError::Engine(_)) => {}
                        other => assert_eq!(other.map(|other| other.len()), Ok(text.len()), "{what}"),
                    }
                }
            }
        }
        Err(MatcherError::NoTextCompletes | MatcherError::Engine(_)) => {}
        // If a grammar counts to large numbers.
        Err(MatcherError::CompletionTooLong { bytes, max_bytes: MOST }) => assert!(bytes > MOST as u64, "{what}"),
        Err(error) => panic!("{error}: {what}"),
    }
    assert_eq!(state(&mut matcher)?, before, "{what}");
    Ok(())
}

/// A text whose tokens come from the masks is complete within its budget, whatever the budget and the start.
pub fn budgets(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let (mut plain, what) = (setting.walked(choices)?, &setting.what);
    let before = state(&mut plain)?;
    let needed = match plain.tokens_to_end() {
        Ok(needed) => needed,
        Err(MatcherError::NoTokensComplete | MatcherError::Engine(_)) => return Ok(()),
        Err(error) => panic!("{error}: {what}"),
    };
    assert_eq!(state(&mut plain)?, before, "{what}");
    if plain.is_terminated() || needed > 100 {
        return Ok(());
    }
    if let Some(less) = needed.checked_sub(1) {
        match plain.fork_within(less) {
            Err(MatcherError::BudgetTooSmall { .. } | MatcherError::Engine(_)) => {}
            other => panic!("{:?} of {needed}: {what}", other.map(|other| other.token_budget_left())),
        }
    }
    let spare = if choices.chance(2) { 12 } else { 40 };
    let budget = needed + choices.below(spare);
    let mut matcher = match plain.fork_within(budget) {
        Ok(matcher) => matcher,
        Err(MatcherError::Engine(_)) => return Ok(()),
        Err(error) => panic!("{error}: {what}"),
    };
    let size = matcher.compiled().vocabulary().vocab_size();
    let (mut ours, mut theirs) = (TokenSet::empty(size), TokenSet::empty(size));
    let mut written: Vec<(u32, String)> = Vec::new();
    for left in (0..=budget).rev() {
        if matcher.is_terminated() {
            break;
        }
        assert_eq!(matcher.token_budget_left(), Some(left as i64), "{what}");
        match matcher.fill_mask(ours.words_mut()) {
            Err(MatcherError::NoStopToken) if matcher.is_completed() => break,
            filled => filled?,
        };
        plain.fill_mask(theirs.words_mut())?;
        counts.masks += 1;
        let allowed: Vec<u32> = ours.iter().collect();
        let other: Vec<u32> = allowed.iter().copied().filter(|&token| !theirs.contains(token)).collect();
        assert!(other.is_empty(), "{other:?} with {left} left of {budget} behind {written:?}: {what}");
        assert_eq!(matcher.is_narrowed(), ours != theirs, "{left} left of {budget}: {what}");
        // If nearly all bytes are allowed, few of them end a key, and fewer end a declared one.
        let vocabulary = matcher.compiled().vocabulary();
        let is_of_keys = |token: &u32| {
            vocabulary.token_bytes(*token).is_some_and(|bytes| bytes.iter().all(|byte| b"abc\"{}[]:,".contains(byte)))
        };
        let of_keys: Vec<u32> = allowed.iter().copied().filter(is_of_keys).collect();
        let is_any = of_keys.is_empty() || choices.chance(3);
        let token = *choices.pick(if is_any { &allowed } else { &of_keys });
        let bytes = vocabulary.token_bytes(token).unwrap_or_default();
        written.push((token, String::from_utf8_lossy(bytes).into()));
        assert!(matcher.accept_token(token)?, "token {token} with {left} left of {budget}: {what}");
        assert!(plain.accept_token(token)?, "{what}");
        if !matcher.is_terminated()
            && let Some(left) = left.checked_sub(1)
        {
            let still = matcher.tokens_to_end()?;
            assert!(still <= left, "{still} needed with {left} left behind {written:?}: {what}");
        }
    }
    let is_whole = matcher.is_terminated() || matcher.is_completed();
    assert!(is_whole, "{needed} of {budget}: {what} with {written:?}");
    counts.texts += 1;
    Ok(())
}

/// The forced text, and the tokens that cross its end.
pub fn forced(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let (mut matcher, what) = (setting.walked(choices)?, &setting.what);
    if matcher.is_terminated() {
        return Ok(());
    }
    let before = state(&mut matcher)?;
    let vocabulary = &setting.vocabulary;
    let forced = matcher.forced_bytes()?;
    let tried = forced_by_trying(&matcher)?;
    let beginning = &forced[..forced.len().min(TRIED)];
    // Bytes say nothing about single tokens that may come instead.
    assert!(tried.starts_with(beginning), "{forced:?} and {tried:?}: {what}");
    assert!(setting.has_token_nodes() || beginning == tried, "{forced:?} and {tried:?}: {what}");
    let text = matcher.forced_text()?;
    let whole = String::from_utf8_lossy(&forced);
    let whole = whole.split('\u{FFFD}').next().unwrap_or_default();
    assert_eq!(text, whole, "of {forced:?}: {what}");
    if let Some(token) = matcher.forced_token()? {
        let rest: Vec<u32> = allowed(&mut matcher)?;
        assert_eq!(rest, [token], "the only token: {what}");
    }
    let (same, spans) = matcher.forced_spans(usize::MAX)?;
    assert_eq!(same, forced, "{what}");
    if forced.len() <= 40 && vocabulary.vocab_size() < 2_000 {
        for start in 0..forced.len() {
            let rest = &forced[start..];
            let mut expected = Vec::new();
            for token in 0..vocabulary.vocab_size() as u32 {
                let Some(bytes) = vocabulary.token_bytes(token) else { continue };
                let first = vocabulary.trie().find(bytes).and_then(|node| vocabulary.trie().entry_at(node));
                let spans = bytes.len() > rest.len() && bytes.starts_with(rest) && first == Some(token);
                if spans && matcher.fork().accept_bytes(&[&forced[..start], bytes].concat())? {
                    expected.push(token);
                }
            }
            let found = spans.iter().find(|span| span.start == start);
            let mut found: Vec<u32> = found.map_or(Vec::new(), |span| span.tokens.clone());
            found.sort_unstable();
            assert_eq!(found, expected, "tokens over the end from byte {start}: {what}");
            counts.decisions += vocabulary.vocab_size() as u64;
        }
    }
    assert_eq!(state(&mut matcher)?, before, "{what}");
    Ok(())
}

/// The rows of a draft tree are the masks after its nodes.
pub fn drafts(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let (mut matcher, what) = (setting.walked(choices)?, &setting.what);
    let before = state(&mut matcher)?;
    let words = setting.vocabulary.mask_words();
    // A random tree: the parent of each node except the first is an earlier node.
    let count = 1 + choices.below(12);
    let parents: Vec<usize> = (0..count).map(|node| if node == 0 { 0 } else { choices.below(node) }).collect();
    let mut tokens: Vec<i64> = vec![-1; count];
    for node in 1..count {
        let mut parent = after(&matcher, &parents, &tokens, parents[node])?;
        let likely = parent.as_mut().filter(|parent| !parent.is_terminated()).map(allowed);
        let likely = likely.transpose()?.unwrap_or_default();
        tokens[node] = if likely.is_empty() || choices.chance(4) {
            choices.below(setting.vocabulary.vocab_size() + 3) as i64 - 1
        } else {
            i64::from(*choices.pick(&likely))
        };
    }
    let (mut next_token, mut next_sibling) = (vec![-1; count], vec![-1; count]);
    for node in (1..count).rev() {
        next_sibling[node] = next_token[parents[node]];
        next_token[parents[node]] = node as i64;
    }
    let tree = DraftTree::new(&next_token, &next_sibling, &tokens, 0).expect("it is a tree");
    let mut expected = Vec::new();
    for node in 0..count {
        let mut row = TokenSet::empty(setting.vocabulary.vocab_size());
        if let Some(mut at) = after(&matcher, &parents, &tokens, node)?
            && !at.is_terminated()
        {
            row = mask(&mut at)?;
        }
        expected.extend_from_slice(row.words_mut());
    }
    let mut rows = vec![7; words * count];
    let is_done = matcher.traverse_draft_tree(&tree, &mut rows, None)?;
    assert!(is_done && rows == expected, "rows of {tokens:?} below {parents:?}: {what}");
    counts.masks += count as u64;
    assert_eq!(state(&mut matcher)?, before, "{what}");
    Ok(())
}

/// The matcher after a node of a tree; `None` if a token on the path is refused.
fn after(
    matcher: &GrammarMatcher,
    parents: &[usize],
    tokens: &[i64],
    mut node: usize,
) -> Result<Option<GrammarMatcher>, Ended> {
    let mut path = Vec::new();
    while node != 0 {
        path.push(tokens[node]);
        node = parents[node];
    }
    let mut matcher = matcher.fork();
    for &token in path.iter().rev() {
        let Ok(id) = u32::try_from(token) else { return Ok(None) };
        if !matcher.accept_token(id)? {
            return Ok(None);
        }
    }
    Ok(Some(matcher))
}

/// An index allows what the matcher allows.
pub fn index(setting: &Setting, choices: &mut Choices<'_>, counts: &mut Counts) -> Result<(), Ended> {
    let what = &setting.what;
    let built = || {
        let mut builder = IndexBuilder::new(&setting.compiled, INDEX)?;
        while !builder.advance(std::time::Duration::from_millis(1))? {}
        Ok::<_, stencilm_engine::IndexError>(builder.finish().expect("the builder said that it is done"))
    };
    let Ok(index) = built() else { return Ok(()) };
    let saved = TokenIndex::from_bytes(&index.to_bytes(), setting.vocabulary.clone()).expect("it was just written");
    assert_eq!(saved.to_bytes(), index.to_bytes(), "{what}");
    let mut matcher = setting.matcher()?;
    let mut state = 0;
    for _ in 0..10 {
        assert_eq!(index.is_final(state), matcher.is_completed(), "{what}");
        let mut ours = TokenSet::empty(setting.vocabulary.vocab_size());
        index.fill_mask(state, ours.words_mut()).expect("the mask has the size of the vocabulary");
        assert_eq!(ours, mask(&mut matcher)?, "the mask of state {state}: {what}");
        counts.masks += 1;
        let moves: Vec<(u32, u32)> = index.transitions(state).collect();
        let Some(&(token, next)) = moves.get(choices.below(moves.len())) else { break };
        assert_eq!(index.next(state, token), Some(next), "{what}");
        assert!(matcher.accept_token(token)?, "{what}");
        state = next;
    }
    Ok(())
}
