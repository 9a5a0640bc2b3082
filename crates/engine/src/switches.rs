//! Caches and special cases that can be switched off one by one: none of them may change a result, and each must pay.
//! Near the end of a token budget, where only a limited number of paths is searched, a mask may lack tokens without one.
//!
//! In a normal build each of these functions is the constant `true`. With the feature `switches`, which the fuzzer and
//! `bench/ablation.py` use, every thread decides for itself what is off.

macro_rules! switches {
    ($($switch:ident $name:literal,)*) => {
        /// A cache or special case that the engine can do without.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "their names say it")]
        pub enum Switch { $($switch,)* }

        impl Switch {
            /// All switches.
            #[cfg(feature = "switches")]
            pub const ALL: &[Switch] = &[$(Switch::$switch,)*];

            /// Its name: the room and the feature.
            #[cfg(feature = "switches")]
            pub const fn name(self) -> &'static str {
                match self { $(Switch::$switch => $name,)* }
            }
        }
    };
}

switches! {
    LexemeBounded "lexeme: masks of patterns with a greatest length",
    LexemeLimits "lexeme: texts within several limits of length",
    LexemeLanguages "lexeme: languages that a program decides",
    LexemeRuns "lexeme: masks of runs of characters",
    LexemeUnbounded "lexeme: masks of runs that can always be completed",
    LexemeRedundant "lexeme: alternatives that say nothing left out",
    LexemeNear "lexeme: masks from those of a larger language",
    LexemeEndingBytes "lexeme: tokens with a byte that ends a text, all at once",
    LexemeAhead "lexeme: how many bytes lead to where two languages differ",
    LexemeAlternatives "lexeme: alternatives one by one",
    LexemeCategories "lexeme: walks by categories",
    LexemeCrossings "lexeme: crossing tokens stored where they are few",
    LexemeSuffixes "lexeme: suffixes after a byte, shared by all masks",
    LexemeWhitespace "lexeme: masks after whitespace",
    LexemeClamped "lexeme: counts far from their bounds are clamped",
    TrieLists "vocabulary: lists of children in the trie",
    TokenKeys "vocabulary: keys within tokens at a glance",
    MaskCache "mask: cache",
    MaskUnbounded "mask: bounded strings as unbounded ones",
    MaskReference "mask: masks as the difference to another one",
    MaskValues "mask: suffixes up to the end of a value for all grammars",
    MaskFewCrossing "mask: few crossing tokens read one by one",
    MaskJoined "mask: lexemes joined with those that follow",
    MaskJoinedOfMany "mask: lexemes joined only where many tokens are read",
    MaskLeaving "mask: crossing tokens of lexemes that may end nearly everywhere",
    MaskFirstAfter "mask: first bytes after a lexeme from the frames alone",
    ParseAbsorbed "parse: frames that another one makes superfluous",
    ParseStates "parse: equal steps by states",
    StateMerged "state: stacks joined in depth",
    StateStarts "state: what starts at a deep stack is kept",
    CompletionSteps "completion: how many tokens a bound holds for",
    CompletionExact "completion: the cost of a place as its bound",
    CompletionPlaces "completion: places kept with configurations",
    CompletionKnown "completion: paths kept with places",
    CompletionLast "completion: the last path first",
    CompletionMerged "completion: answers of a search kept for a mask",
    CompletionShared "completion: one path for several tokens",
    CompletionStrings "completion: strings of the elements of a path",
    CompletionCounting "completion: arrays of different numbers by counting",
    CompletionLeast "completion: lower bounds by counting",
    CompletionCounted "completion: results of counting kept for a mask",
    CompletionLists "completion: bits for long lists of tokens",
    CompletionHurry "completion: searches that hurry",
    CompletionLazy "completion: further texts weighed when their turn comes",
    CompletionOrder "completion: elements in one order only",
    CompletionObjects "completion: costs of members kept for an object",
    CompletionWorst "completion: worst cases by residuals",
    CompletionValues "completion: costs of few values",
    CompletionFresh "completion: costs of new texts",
    CompletionBrackets "completion: bounds by brackets",
    CompletionRepeat "completion: no longer texts towards a repeat",
    CanonicalUnmergeable "canonical: beginnings of unmergeable tokens by the cursor without",
    CanonicalIndependent "canonical: context-independent tokens of lexeme masks",
    CanonicalClasses "canonical: lexeme masks by the class of their runs",
    CanonicalAtCursor "canonical: tokens that a lexeme decides at a cursor",
    CanonicalCategoryWalk "canonical: judging tokens by categories",
    CanonicalCommon "canonical: judging by the bytes of most states",
    CanonicalGroups "canonical: equivalent tokens as one question",
    CanonicalAnswers "canonical: answers of searches kept by lexeme mask",
    CanonicalNextByte "canonical: next bytes that certainly come",
    CanonicalForced "canonical: forced texts",
    CanonicalNextCharacters "canonical: next characters",
    CanonicalListed "canonical: lists of the tokens that the grammar reads",
    CanonicalFollowers "canonical: lists of the tokens that may follow",
    CanonicalWhitespace "canonical: whitespace tokens by their number",
    CanonicalLonger "canonical: beginnings ruled out by a longer token",
    CanonicalSparse "canonical: sparse masks",
    CanonicalSparseCache "canonical: cache of sparse masks",
    CanonicalDeadEndCache "canonical: cache of dead ends",
    CanonicalClassStrings "canonical: cursor masks by class strings",
    CanonicalCommonTexts "canonical: a walk of common texts when the encoding is learned",
    CanonicalShown "canonical: texts that showed an end before",
    CanonicalSuffixStates "canonical: states by the last characters",
    CanonicalReadSuffixes "canonical: cache of suffixes that are read",
    CanonicalCrossing "canonical: equivalent crossing tokens kept by cursor",
    CanonicalCursorMaskCache "canonical: cache of cursor masks after a token",
    CanonicalSearched "canonical: answers of a search kept for a mask",
    CanonicalWhitespaceKept "canonical: whitespace kept for all grammars",
    CanonicalJudgedKept "canonical: sets of tokens by the bytes that may come",
    CanonicalFewTokens "canonical: lexeme masks of few tokens as any",
    CanonicalMergeBits "canonical: bits of pairs that merge",
    CanonicalEndBits "canonical: bits of what tokens merge with at their ends",
}

impl Switch {
    /// Whether it is on.
    #[inline(always)]
    pub(crate) fn is_on(self) -> bool {
        #[cfg(feature = "switches")]
        return OFF.with(|off| off.get() & 1 << self as u32 == 0);
        #[cfg(not(feature = "switches"))]
        true
    }

    /// Switches these off for the calling thread, and all others on.
    #[cfg(feature = "switches")]
    pub fn switch_off(switches: impl IntoIterator<Item = Switch>) {
        OFF.set(switches.into_iter().fold(0, |off, switch| off | 1 << switch as u32));
    }
}

#[cfg(feature = "switches")]
thread_local! {
    static OFF: std::cell::Cell<u128> = const { std::cell::Cell::new(0) };
}
