//! The slow twin of the machine: the grammar written out as plain productions, and Earley's algorithm (1970) at its
//! simplest. Knows neither stacks nor automata; counts are unrolled, and parts that match nothing are dropped here anew.

use std::collections::{HashMap, HashSet};

use stencilm_grammar::{Grammar, Node, NodeId, TokenPattern};
use stencilm_regex::ExprId;

/// One letter of a text: a byte, or a single token by its id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Letter {
    Byte(u8),
    Token(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Symbol {
    Letter(Letter),
    Name(usize),
}

/// Productions by name; name 0 is the root.
pub struct Earley {
    productions: Vec<(usize, Vec<Symbol>)>,
}

/// What a text is to a grammar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Whether some text of the grammar begins with it.
    pub viable: bool,
    /// Whether it is a text of the grammar.
    pub complete: bool,
}

impl Earley {
    /// The productions of a grammar whose lexemes are these words, and which asks for single ids only.
    pub fn new(grammar: &Grammar, words: &HashMap<ExprId, Vec<u8>>) -> Earley {
        let mut names = grammar.nodes().len() + 1;
        let name = |id: NodeId| Symbol::Name(id.0 as usize + 1);
        let mut productions = vec![(0, vec![name(grammar.root())])];
        for (index, node) in grammar.nodes().iter().enumerate() {
            let own = index + 1;
            match node {
                Node::Lexeme(expr) => {
                    let word = words.get(expr).into_iter().flatten();
                    productions.push((own, word.map(|&byte| Symbol::Letter(Letter::Byte(byte))).collect()));
                }
                Node::Sequence(parts) => productions.push((own, parts.iter().map(|&part| name(part)).collect())),
                Node::Choice(parts) => parts.iter().for_each(|&part| productions.push((own, vec![name(part)]))),
                Node::Repeat { body, min, max } => {
                    let least = vec![name(*body); *min as usize];
                    match max {
                        Some(max) => {
                            (*min..=*max).for_each(|count| productions.push((own, vec![name(*body); count as usize])))
                        }
                        None => {
                            let star = Symbol::Name(names);
                            productions.push((own, [least, vec![star]].concat()));
                            productions.push((names, vec![]));
                            productions.push((names, vec![name(*body), star]));
                            names += 1;
                        }
                    }
                }
                Node::Rule(rule) => productions.push((own, vec![name(grammar.rule(*rule).body)])),
                Node::Marked { body, .. } => productions.push((own, vec![name(*body)])),
                Node::Token(pattern) => match &**pattern {
                    TokenPattern::Ids { ranges, negated: false } => {
                        for id in ranges.iter().flat_map(|&(from, to)| from..=to) {
                            productions.push((own, vec![Symbol::Letter(Letter::Token(id))]));
                        }
                    }
                    other => panic!("{other:?} depends on a vocabulary"),
                },
                Node::Members(_) | Node::Items(_) => panic!("objects have a twin of their own"),
            }
        }
        let mut productive: HashSet<usize> = HashSet::new();
        let is_live = |productive: &HashSet<usize>, symbols: &[Symbol]| {
            symbols.iter().all(|symbol| match symbol {
                Symbol::Letter(_) => true,
                Symbol::Name(name) => productive.contains(name),
            })
        };
        loop {
            let before = productive.len();
            for (name, symbols) in &productions {
                if is_live(&productive, symbols) {
                    productive.insert(*name);
                }
            }
            if productive.len() == before {
                break;
            }
        }
        productions.retain(|(_, symbols)| is_live(&productive, symbols));
        Earley { productions }
    }

    /// What a text is to the grammar.
    pub fn verdict(&self, text: &[Letter]) -> Verdict {
        // An item is a production, how much of it is read, and where it began.
        let mut chart: Vec<HashSet<(usize, usize, usize)>> = vec![HashSet::new(); text.len() + 1];
        chart[0].extend((0..self.productions.len()).filter(|&p| self.productions[p].0 == 0).map(|p| (p, 0, 0)));
        for at in 0..=text.len() {
            // Until nothing is new: a completion may need an item that comes later in the same set.
            loop {
                let mut found = Vec::new();
                for &(production, dot, from) in &chart[at] {
                    let (name, symbols) = &self.productions[production];
                    match symbols.get(dot) {
                        None => {
                            for &(waiting, dot, begun) in &chart[from] {
                                if self.productions[waiting].1.get(dot) == Some(&Symbol::Name(*name)) {
                                    found.push((waiting, dot + 1, begun));
                                }
                            }
                        }
                        Some(Symbol::Name(wanted)) => {
                            let starts = (0..self.productions.len()).filter(|&p| self.productions[p].0 == *wanted);
                            found.extend(starts.map(|p| (p, 0, at)));
                        }
                        Some(Symbol::Letter(_)) => {}
                    }
                }
                let before = chart[at].len();
                chart[at].extend(found);
                if chart[at].len() == before {
                    break;
                }
            }
            if at < text.len() {
                chart[at + 1] = chart[at]
                    .iter()
                    .filter(|&&(p, dot, _)| self.productions[p].1.get(dot) == Some(&Symbol::Letter(text[at])))
                    .map(|&(p, dot, from)| (p, dot + 1, from))
                    .collect();
            }
        }
        let last = &chart[text.len()];
        let complete = last.iter().any(|&(p, dot, _)| self.productions[p].0 == 0 && dot == self.productions[p].1.len());
        Verdict { viable: !last.is_empty(), complete }
    }
}
