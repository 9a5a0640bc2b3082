//! Tests of the engine through its public face.

mod alternatives;
mod budgets;
mod canonical;
mod captures;
mod common;
mod containers;
mod earley;
mod host_names;
mod index;
mod lengths;
mod masks;
mod matcher;
mod names;
mod open_ends;
mod queries;
mod random;
mod recognition;
mod structural_tags;
mod token_budgets;
mod token_edges;
mod values;
