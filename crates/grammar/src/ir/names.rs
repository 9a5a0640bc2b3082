//! Names that a text declares, and references to them: a reference may begin only if a name was declared before it.
//!
//! One idea: whether any name of a set has been declared is one bit, and a grammar with that bit is a product
//! (Bar-Hillel, Perles, Shamir 1961). Each part has up to three forms: nothing declared before and after it, declared
//! within it, and declared before it. A reference exists only in the last form, so what matches nothing is dropped as
//! usual, and no matcher can reach a place where a reference must come and there is no name. Which names there are,
//! only a matcher knows.

use indexmap::IndexSet;
use stencilm_regex::ExprId;
use stencilm_support::check_time;

use crate::error::{ErrorKind, GrammarError};
use crate::ir::declared_before::is_settled;
use crate::ir::grammar::{
    DeclaredMember, Grammar, Items, ItemsId, Mark, Members, MembersId, NameSet, Node, NodeId, Repeats, Rule, RuleId,
};

/// The greatest number of rounds of a counted repetition whose body may declare names.
const MAX_ROUNDS: u32 = 64;
/// The longest sequence that is written out once for each part that may declare a name; a longer one is split into
/// nested sequences.
const MAX_PARTS: usize = 64;
/// The greatest number of sets of names of one grammar.
const MAX_SETS: usize = 8;

/// What is declared before a part and after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Nothing before it, nothing in it.
    Without = 0,
    /// Nothing before it, something in it.
    Declaring = 1,
    /// Something before it.
    With = 2,
}

/// The forms of a part, in an order such that everything before its first declaration is in the first and everything
/// after it is in the last.
const FORMS: [Form; 3] = [Form::Without, Form::Declaring, Form::With];

/// The same grammar, with references only after declarations.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for what cannot be known in advance: declarations in objects that are open or unordered,
/// in arrays that count, and in long counted repetitions; [`ErrorKind::Unsatisfiable`] for references to names that
/// nothing declares.
pub(crate) fn settled(mut grammar: Grammar) -> Result<Grammar, GrammarError> {
    let mut sets: IndexSet<NameSet> = IndexSet::new();
    for node in &grammar.nodes {
        if let Node::Marked { mark: Mark::Declares(set) | Mark::Refers(set), .. } = node
            && !sets.contains(set)
        {
            sets.insert(set.clone());
        }
    }
    if sets.len() > MAX_SETS {
        let message =
            format!("the grammar has {} sets of names, and at most {MAX_SETS} are kept; join some", sets.len());
        return Err(GrammarError::new(ErrorKind::Limit, "", message));
    }
    if !sets.is_empty() {
        grammar = with_short_sequences(grammar);
    }
    for set in &sets {
        if sets.iter().any(|other| other.name == set.name && other.quoted != set.quoted) {
            let message = format!("the names {:?} are JSON strings here and plain text there; use two sets", set.name);
            return Err(GrammarError::new(ErrorKind::Unsupported, "", message));
        }
        let mut parts = Parts { grammar };
        let names = Names::of(&mut parts, set)?;
        if is_settled(&parts.grammar, set, &names.involved, &names.declaring) {
            grammar = names.with_references(parts, set);
            continue;
        }
        let root = Product::new(&mut parts, set, names).build()?;
        grammar = Grammar { root, ..parts.grammar };
    }
    Ok(grammar)
}

/// Where a grammar has the names of one set.
struct Names {
    /// For each node, whether it contains a declaration or a reference, and (the next field) whether it contains a
    /// declaration.
    involved: Vec<bool>,
    declaring: Vec<bool>,
    /// What references match: everything that some declaration matches.
    reference: ExprId,
}

impl Names {
    fn of(builder: &mut Parts, set: &NameSet) -> Result<Names, GrammarError> {
        let is_declaration = |node: &Node| matches!(node, Node::Marked { mark: Mark::Declares(own), .. } if own == set);
        let is_reference = |node: &Node| matches!(node, Node::Marked { mark: Mark::Refers(own), .. } if own == set);
        let declaring = holding(builder, is_declaration);
        let involved = holding(builder, |node| is_declaration(node) || is_reference(node));
        let mut declared: Vec<ExprId> = Vec::new();
        for id in 0..builder.grammar.nodes.len() as u32 {
            let Node::Marked { mark: Mark::Declares(own), body } = builder.get(NodeId(id)) else { continue };
            if own == set {
                let expr = lexeme_of(builder, *body)?;
                if builder.grammar.exprs.is_nullable(expr) {
                    let message =
                        format!("a name of {:?} may be empty; make it match one character at least", set.name);
                    return Err(GrammarError::new(ErrorKind::Unsupported, "", message));
                }
                declared.push(expr);
            }
        }
        if declared.is_empty() {
            let message = format!(
                "there are references to the names {:?}, and nothing declares any; mark what declares them",
                set.name
            );
            return Err(GrammarError::new(ErrorKind::Unsatisfiable, "", message));
        }
        let reference = builder.grammar.exprs.or(&declared);
        Ok(Names { involved, declaring, reference })
    }

    /// The grammar as it is, with what its references match.
    fn with_references(&self, mut builder: Parts, set: &NameSet) -> Grammar {
        for id in 0..self.involved.len() {
            if let Node::Marked { mark: Mark::Refers(own), .. } = &builder.grammar.nodes[id]
                && own == set
                // In JSON a name may be spelled differently from its declaration.
                && !set.quoted
            {
                let body = builder.lexeme(self.reference);
                builder.grammar.nodes[id] = Node::Marked { mark: Mark::Refers(set.clone()), body };
            }
        }
        builder.grammar
    }
}

/// The same grammar, with each long sequence that contains declarations or references split into nested sequences.
fn with_short_sequences(grammar: Grammar) -> Grammar {
    let mut parts = Parts { grammar };
    let involved =
        holding(&parts, |node| matches!(node, Node::Marked { mark: Mark::Declares(_) | Mark::Refers(_), .. }));
    for (id, _) in involved.iter().enumerate().filter(|(_, involved)| **involved) {
        let Node::Sequence(all) = &parts.grammar.nodes[id] else { continue };
        let mut all = all.to_vec();
        if all.len() <= MAX_PARTS {
            continue;
        }
        while all.len() > MAX_PARTS {
            all = all.chunks(MAX_PARTS).map(|some| parts.sequence(some)).collect();
        }
        parts.grammar.nodes[id] = Node::Sequence(all.into());
    }
    parts.grammar
}

/// A grammar to which parts are added.
struct Parts {
    grammar: Grammar,
}

impl Parts {
    fn node(&mut self, node: Node) -> NodeId {
        self.grammar.nodes.push(node);
        NodeId(self.grammar.nodes.len() as u32 - 1)
    }

    fn lexeme(&mut self, expr: ExprId) -> NodeId {
        self.node(Node::Lexeme(expr))
    }

    fn sequence(&mut self, parts: &[NodeId]) -> NodeId {
        self.node(Node::Sequence(parts.into()))
    }

    fn choice(&mut self, parts: &[NodeId]) -> NodeId {
        self.node(Node::Choice(parts.into()))
    }

    fn repeat(&mut self, body: NodeId, min: u32, max: Option<u32>) -> NodeId {
        self.node(Node::Repeat { body, min, max })
    }

    fn marked(&mut self, mark: Mark, body: NodeId) -> NodeId {
        self.node(Node::Marked { mark, body })
    }

    fn object(&mut self, members: Members) -> NodeId {
        self.grammar.members.push(members);
        self.node(Node::Members(MembersId(self.grammar.members.len() as u32 - 1)))
    }

    fn array(&mut self, items: Items) -> NodeId {
        self.grammar.items.push(items);
        self.node(Node::Items(ItemsId(self.grammar.items.len() as u32 - 1)))
    }

    fn get(&self, id: NodeId) -> &Node {
        &self.grammar.nodes[id.0 as usize]
    }

    fn body(&self, rule: RuleId) -> NodeId {
        self.grammar.rules[rule.0 as usize].body
    }

    fn members(&self, id: MembersId) -> &Members {
        &self.grammar.members[id.0 as usize]
    }

    fn items(&self, id: ItemsId) -> &Items {
        &self.grammar.items[id.0 as usize]
    }
}

/// The product of a grammar and one set of names.
struct Product<'b> {
    builder: &'b mut Parts,
    set: &'b NameSet,
    /// For each node, whether it contains a declaration or a reference, and (the next field) whether it contains a
    /// declaration.
    involved: Vec<bool>,
    declaring: Vec<bool>,
    /// The rules for the forms of each node that is involved.
    rules: Vec<Option<[RuleId; 3]>>,
    /// What references match: everything that some declaration matches.
    reference: ExprId,
}

impl<'b> Product<'b> {
    fn new(builder: &'b mut Parts, set: &'b NameSet, names: Names) -> Product<'b> {
        let Names { involved, declaring, reference } = names;
        let taken: std::collections::HashSet<String> =
            builder.grammar.rules.iter().map(|rule| rule.name.clone()).collect();
        let mut number = 0;
        let mut fresh = |builder: &mut Parts| loop {
            number += 1;
            let name = format!("{}-{number}", set.name);
            if !taken.contains(&name) {
                // Its body is set later.
                builder.grammar.rules.push(Rule { name, body: builder.grammar.root });
                return RuleId(builder.grammar.rules.len() as u32 - 1);
            }
        };
        let mut rules = Vec::with_capacity(involved.len());
        for &is_involved in &involved {
            rules.push(is_involved.then(|| FORMS.map(|_| fresh(builder))));
        }
        Product { builder, set, involved, declaring, rules, reference }
    }

    fn build(mut self) -> Result<NodeId, GrammarError> {
        let root = self.builder.grammar.root;
        for id in 0..self.involved.len() as u32 {
            let Some(rules) = self.rules[id as usize] else { continue };
            check_time().map_err(|limit| GrammarError::limit("", limit))?;
            let node = self.builder.get(NodeId(id)).clone();
            for form in FORMS {
                let body = self.formed(NodeId(id), &node, form)?;
                let body = self.or_nothing(body);
                self.builder.grammar.rules[rules[form as usize].0 as usize].body = body;
            }
        }
        let alternatives: Vec<NodeId> =
            [Form::Without, Form::Declaring].into_iter().filter_map(|form| self.in_form(root, form)).collect();
        Ok(self.builder.choice(&alternatives))
    }

    fn or_nothing(&mut self, node: Option<NodeId>) -> NodeId {
        node.unwrap_or_else(|| self.builder.choice(&[]))
    }

    /// A node in a form; `None` if it has no such form.
    fn in_form(&mut self, node: NodeId, form: Form) -> Option<NodeId> {
        match self.rules[node.0 as usize] {
            Some(rules) => {
                let is_there = form != Form::Declaring || self.declaring[node.0 as usize];
                is_there.then(|| self.builder.node(Node::Rule(rules[form as usize])))
            }
            None => (form != Form::Declaring).then_some(node),
        }
    }

    /// The body of an involved node in a form.
    fn formed(&mut self, id: NodeId, node: &Node, form: Form) -> Result<Option<NodeId>, GrammarError> {
        if form == Form::Declaring && !self.declaring[id.0 as usize] {
            return Ok(None);
        }
        Ok(match node {
            Node::Lexeme(_) | Node::Token(_) => unreachable!("only what holds marks is involved"),
            Node::Rule(rule) => {
                let body = self.builder.body(*rule);
                self.in_form(body, form)
            }
            Node::Choice(parts) => {
                let alternatives: Vec<NodeId> = parts.iter().filter_map(|&part| self.in_form(part, form)).collect();
                Some(self.builder.choice(&alternatives))
            }
            Node::Sequence(parts) if form == Form::Declaring => {
                let places = (0..parts.len()).filter(|&at| self.declaring[parts[at].0 as usize]);
                let mut alternatives = Vec::new();
                for at in places.collect::<Vec<_>>() {
                    let forms = (0..parts.len()).map(|part| match part.cmp(&at) {
                        std::cmp::Ordering::Less => Form::Without,
                        std::cmp::Ordering::Equal => Form::Declaring,
                        std::cmp::Ordering::Greater => Form::With,
                    });
                    let formed: Option<Vec<NodeId>> =
                        parts.iter().zip(forms).map(|(&part, form)| self.in_form(part, form)).collect();
                    alternatives.extend(formed.map(|parts| self.builder.sequence(&parts)));
                }
                Some(self.builder.choice(&alternatives))
            }
            Node::Sequence(parts) => {
                let parts: Option<Vec<NodeId>> = parts.iter().map(|&part| self.in_form(part, form)).collect();
                parts.map(|parts| self.builder.sequence(&parts))
            }
            &Node::Repeat { body, min, max } if form == Form::Declaring => Some(self.declaring_rounds(body, min, max)?),
            &Node::Repeat { body, min, max } => {
                self.in_form(body, form).map(|body| self.builder.repeat(body, min, max))
            }
            Node::Marked { mark: Mark::Declares(set), body } if set == self.set => {
                (form != Form::Without).then(|| self.builder.marked(Mark::Declares(set.clone()), *body))
            }
            Node::Marked { mark: Mark::Refers(set), body } if set == self.set => {
                if form != Form::With {
                    return Ok(None);
                }
                // In JSON a name may be spelled differently from its declaration.
                let body = if set.quoted { *body } else { self.builder.lexeme(self.reference) };
                Some(self.builder.marked(Mark::Refers(set.clone()), body))
            }
            Node::Marked { mark, body } => {
                let mark = mark.clone();
                self.in_form(*body, form).map(|body| self.builder.marked(mark, body))
            }
            &Node::Members(members) => {
                let members = self.builder.members(members).clone();
                if self.declaring[id.0 as usize] && !is_plain(&members) {
                    return Err(self.unsupported(
                        "an object that is open, counted or in any order",
                        "close it with additionalProperties: false, or with strict_mode, and keep the declared order",
                    ));
                }
                match form {
                    Form::Declaring => Some(self.declaring_members(&members)),
                    _ => self.members_in(members, form),
                }
            }
            &Node::Items(items) => {
                let items = self.builder.items(items).clone();
                self.check_not_compared(&items)?;
                if self.declaring[id.0 as usize] {
                    return Err(self.unsupported(
                        "an array that counts elements of some kind",
                        "leave contains out, or declare the names elsewhere",
                    ));
                }
                self.items_in(items, form)
            }
        })
    }

    fn check_not_compared(&self, items: &Items) -> Result<(), GrammarError> {
        let place = match items.repeats {
            Repeats::Any => return Ok(()),
            Repeats::Never { .. } => "an array whose elements must differ",
            Repeats::Required => "an array of which two elements must be equal",
        };
        Err(self.unsupported(place, "leave uniqueItems out"))
    }

    fn unsupported(&self, place: &str, way_out: &str) -> GrammarError {
        let message = format!("the names {:?} are declared or referred to within {place}; {way_out}", self.set.name);
        GrammarError::new(ErrorKind::Unsupported, "", message)
    }

    /// The rounds of a repetition, one of which is the first to declare a name.
    fn declaring_rounds(&mut self, body: NodeId, min: u32, max: Option<u32>) -> Result<NodeId, GrammarError> {
        if min.max(max.unwrap_or(0)) > MAX_ROUNDS {
            let way_out = format!("give it no greatest count, or one of at most {MAX_ROUNDS}");
            return Err(self.unsupported("a repetition with large counts", &way_out));
        }
        let (before, first, after) =
            (self.in_form(body, Form::Without), self.in_form(body, Form::Declaring), self.in_form(body, Form::With));
        let (Some(before), Some(first), Some(after)) = (before, first, after) else {
            return Ok(self.builder.choice(&[]));
        };
        let mut alternatives = Vec::new();
        for rounds in 0..max.unwrap_or(min) {
            let left = max.map(|max| max - 1 - rounds);
            let before = self.builder.repeat(before, rounds, Some(rounds));
            let after = self.builder.repeat(after, min.saturating_sub(rounds + 1), left);
            alternatives.push(self.builder.sequence(&[before, first, after]));
        }
        if max.is_none() {
            let before = self.builder.repeat(before, min, None);
            let after = self.builder.repeat(after, 0, None);
            alternatives.push(self.builder.sequence(&[before, first, after]));
        }
        Ok(self.builder.choice(&alternatives))
    }

    /// An object with all values in one form.
    fn members_in(&mut self, mut members: Members, form: Form) -> Option<NodeId> {
        for known in &mut members.declared {
            known.value = self.in_form(known.value, form)?;
        }
        for additional in &mut members.additional {
            additional.value = self.in_form(additional.value, form)?;
            if let Some(some) = &mut additional.some {
                *some = self.in_form(*some, form)?;
            }
        }
        Some(self.builder.object(members))
    }

    /// An array with all elements in one form.
    fn items_in(&mut self, mut items: Items, form: Form) -> Option<NodeId> {
        for element in items.prefix.iter_mut().flatten().chain(&mut items.rest) {
            element.value = self.in_form(element.value, form)?;
        }
        Some(self.builder.array(items))
    }

    /// A closed object in which one member is the first to declare a name, written out member by member.
    fn declaring_members(&mut self, members: &Members) -> NodeId {
        let surface = members.surface;
        let [open, item, colon, close] =
            [surface.open, surface.item, surface.colon, surface.close].map(|sign| self.builder.lexeme(sign));
        // After the last member, or without any, the object may end only if a name was declared.
        let nothing = self.builder.choice(&[]);
        // What follows from a member on, by whether it is the first one and whether a name was declared.
        let mut from = [[nothing, close], [nothing, nothing]];
        for known in members.declared.iter().rev() {
            let key = self.key(known);
            let mut before = [[nothing; 2]; 2];
            for (is_first, has_names) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let sign = if is_first == 1 { open } else { item };
                let forms = if has_names == 1 { &FORMS[2..] } else { &FORMS[..2] };
                let mut alternatives = Vec::with_capacity(3);
                for &form in forms {
                    let behind = from[0][usize::from(form != Form::Without)];
                    if let Some(value) = self.in_form(known.value, form) {
                        alternatives.push(self.builder.sequence(&[sign, key, colon, value, behind]));
                    }
                }
                if !known.required {
                    alternatives.push(from[is_first][has_names]);
                }
                before[is_first][has_names] = self.builder.choice(&alternatives);
            }
            from = before;
        }
        from[1][0]
    }

    fn key(&mut self, known: &DeclaredMember) -> NodeId {
        let key = match known.key {
            Some(key) => key,
            None => self.builder.grammar.exprs.literal(format!("\"{}\"", known.name).as_bytes()),
        };
        self.builder.lexeme(key)
    }
}

/// Whether an object has only declared members, in their order, without bounds on their number.
fn is_plain(members: &Members) -> bool {
    members.ordered == members.declared.len()
        && members.additional.is_empty()
        && members.min == 0
        && members.max.is_none()
}

/// The expression that a declaration matches.
fn lexeme_of(builder: &mut Parts, body: NodeId) -> Result<ExprId, GrammarError> {
    let mut work = vec![body];
    let mut exprs = Vec::new();
    // After a grammar was saved and loaded, a long literal is a sequence of pieces.
    for _ in 0..=builder.grammar.nodes.len() {
        let Some(id) = work.pop() else { return Ok(builder.grammar.exprs.concat_all(&exprs)) };
        match builder.get(id) {
            Node::Lexeme(expr) => exprs.push(*expr),
            Node::Rule(rule) => work.push(builder.body(*rule)),
            Node::Sequence(parts) => work.extend(parts.iter().rev()),
            _ => break,
        }
    }
    let message = "what declares a name is one terminal: literals, classes and patterns";
    Err(GrammarError::new(ErrorKind::Unsupported, "", message))
}

/// For every node, whether it is such a node or contains one.
fn holding(builder: &Parts, is_such: impl Fn(&Node) -> bool) -> Vec<bool> {
    let count = builder.grammar.nodes.len();
    let mut parents: Vec<Vec<u32>> = vec![Vec::new(); count];
    let mut holds = vec![false; count];
    let mut work = Vec::new();
    for id in 0..count as u32 {
        let node = builder.get(NodeId(id));
        if is_such(node) {
            holds[id as usize] = true;
            work.push(id);
        }
        children(builder, node, |child| parents[child.0 as usize].push(id));
    }
    while let Some(id) = work.pop() {
        for &parent in &parents[id as usize] {
            if !std::mem::replace(&mut holds[parent as usize], true) {
                work.push(parent);
            }
        }
    }
    holds
}

fn children(builder: &Parts, node: &Node, mut found: impl FnMut(NodeId)) {
    let of_members = |id: MembersId, found: &mut dyn FnMut(NodeId)| {
        let members = builder.members(id);
        members.declared.iter().for_each(|known| found(known.value));
        members.additional.iter().for_each(|additional| {
            found(additional.value);
            additional.some.into_iter().for_each(&mut *found);
        });
    };
    match node {
        Node::Lexeme(_) | Node::Token(_) => {}
        Node::Sequence(parts) | Node::Choice(parts) => parts.iter().copied().for_each(found),
        Node::Repeat { body, .. } | Node::Marked { body, .. } => found(*body),
        Node::Rule(rule) => found(builder.body(*rule)),
        Node::Members(id) => of_members(*id, &mut found),
        Node::Items(id) => builder.items(*id).elements().for_each(|element| found(element.value)),
    }
}
