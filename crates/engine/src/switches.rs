//! Caches and special ways that may be switched off, each alone: none of them may change an answer, and each must pay.
//!
//! In a usual build each of these questions is the constant `true`. With the feature `switches`, which the fuzzer and
//! `bench/ablation.py` ask for, every thread says for itself what is off.

macro_rules! switches {
    ($($switch:ident $name:literal,)*) => {
        /// Something that the engine can do without.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "their names say it")]
        pub enum Switch { $($switch,)* }

        impl Switch {
            /// All of them.
            #[cfg(feature = "switches")]
            pub const ALL: &[Switch] = &[$(Switch::$switch,)*];

            /// Its name: the room, and what it is.
            #[cfg(feature = "switches")]
            pub const fn name(self) -> &'static str {
                match self { $(Switch::$switch => $name,)* }
            }
        }
    };
}

switches! {
    LexemeBounded "lexeme: masks of patterns with a greatest length",
    LexemeRuns "lexeme: masks of runs of characters",
    LexemeUnbounded "lexeme: masks of runs that can always be completed",
    LexemeSharedSuffixes "lexeme: suffixes behind a byte, shared by all masks",
    LexemeCategoryWalk "lexeme: walks by categories",
    LexemeCategoriesKept "lexeme: categories of the automaton walked last",
    LexemeAfterWhitespace "lexeme: masks behind whitespace",
    LexemeClamp "lexeme: counts far from their bounds are clamped",
    LexemeNearlyEndless "lexeme: bounded strings as endless ones",
    VocabularyWarmUp "vocabulary: a text read beforehand",
    VocabularyLists "vocabulary: lists of children in the trie",
    VocabularyWholeKeys "vocabulary: keys within tokens at a glance",
    MaskCache "mask: cache",
    MaskNear "mask: masks as the difference to another one",
    MaskValues "mask: suffixes up to the end of a value for all grammars",
    MaskNextNodes "mask: few crossing tokens read one by one",
    ParseStarts "parse: what starts at a deep stack is kept",
    ParseByStates "parse: equal steps by states",
    MachineTexts "machine: enumerations as tries",
    CanonicalUnmergeable "canonical: beginnings of unmergeable tokens by the cursor without",
    CanonicalIndependent "canonical: context-independent tokens of lexeme masks",
    CanonicalClasses "canonical: lexeme masks by the class of their runs",
    CanonicalAtCursor "canonical: tokens that a lexeme decides at a cursor",
    CanonicalGroups "canonical: equivalent tokens as one question",
    CanonicalWhitespaceLists "canonical: whitespace tokens that are viable, kept as lists",
    CanonicalAnswers "canonical: answers of searches kept by lexeme mask",
    CanonicalForced "canonical: forced texts",
    CanonicalListed "canonical: lists of the tokens that the grammar reads",
    CanonicalFollowers "canonical: lists of the tokens that may follow",
    CanonicalWhitespace "canonical: whitespace tokens by their number",
    CanonicalLonger "canonical: beginnings ruled out by a longer token",
    CanonicalSparse "canonical: sparse masks",
    CanonicalSparseCache "canonical: cache of sparse masks",
    CanonicalDeadEndCache "canonical: cache of dead ends",
    CanonicalCommonTexts "canonical: a walk of common texts when the encoding is learned",
    CanonicalShown "canonical: texts that showed an end before",
    CanonicalSuffixStates "canonical: states by the last characters",
    CanonicalReadSuffixes "canonical: cache of suffixes that are read",
    CanonicalCrossing "canonical: equivalent crossing tokens kept by cursor",
    CanonicalRowCache "canonical: cache of rows behind a token",
    CanonicalSearched "canonical: answers of a search kept for a mask",
    CanonicalWhitespaceKept "canonical: whitespace kept for all grammars",
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
