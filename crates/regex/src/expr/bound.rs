//! How large a set of expressions may grow, and why it was given up.

use stencilm_support::{LimitExceeded, check_time_after};

use crate::expr::node::ExprId;
use crate::limits::Limits;

/// Sorting this many parts of a list counts as making one expression.
const PARTS_OF_A_STEP: usize = 32;

/// The bound of a set, and why it was given up.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) max_exprs: usize,
    /// The limit for the lists in the expressions.
    pub(crate) max_bytes: usize,
    pub(crate) given_up: Option<LimitExceeded>,
}

impl Bound {
    /// A bound on the expressions that a set adds; there are also bounds on time and memory.
    pub(crate) fn new(max_exprs: usize) -> Bound {
        Bound { max_exprs, max_bytes: Limits::default().max_bytes, given_up: None }
    }

    /// The same bound, if a set is known to grow to `exprs` expressions.
    pub(crate) fn foreseeing(self, exprs: usize) -> Bound {
        let too_many = (exprs > self.max_exprs).then_some(LimitExceeded::Expressions(self.max_exprs));
        Bound { given_up: self.given_up.or(too_many), ..self }
    }

    /// The same bound after checking a set of this many expressions with this many children in their lists, and a list
    /// of `parts` parts that may become one of them.
    pub(crate) fn after(self, exprs: usize, children: usize, parts: usize) -> Bound {
        if self.given_up.is_some() {
            return self;
        }
        let given_up = if exprs > self.max_exprs {
            Some(LimitExceeded::Expressions(self.max_exprs))
        } else if (children + parts) * size_of::<ExprId>() > self.max_bytes {
            Some(LimitExceeded::Memory(self.max_bytes))
        } else {
            check_time_after((parts / PARTS_OF_A_STEP) as u32 + 1).err()
        };
        Bound { given_up, ..self }
    }
}
