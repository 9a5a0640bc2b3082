"""An audit of mask engines: it finds wrong masks, proved by an independent validator.

For any engine behind four calls, any tokenizer and any JSON Schemas, `audit` looks for masks that
allow what nothing completes, and for masks that refuse what could be completed. The engine's own
verdict proves nothing here, and neither does that of stencilm: the package `jsonschema` decides
which texts are valid.

One idea: only what no later token can repair is called an error. These proofs are sound:

* `violation`: a token, or the end, is allowed after a prefix, and the validator says that no text
  with this beginning is valid (`judge` says which keywords it may check on an incomplete text). A
  violation is permanent, so bisection finds the first token that causes it.
* `not JSON`: a token, or the end, is allowed after which no JSON text can come.
* `dead end`: after an allowed token, the mask is empty, including the end, while the text is not
  complete.
* `broken mask`: the mask allows a token that the engine then refuses to accept.
* `refused`: a token of a text is refused that the validator calls valid; and so is some token of
  every text that writes the same value in another way: without white space, with the keys in the
  schema's order, with escapes, and with the keys in other orders, which are searched for from the
  positions of the refusals.

These are notes, because an engine may declare itself narrower or wider than JSON Schema:

* `writing`: the valid text is refused, and accepted in another writing of the same value.
* `tokens`: the valid text is accepted in the tokenizer's own tokens, and refused in some others.
* `format`: the valid text is accepted if the schema has no `format`. No draft requires formats to
  be asserted, so a text that violates one is no error either.
* `failure`: the engine raises an exception after it accepted the schema.

What the validator cannot decide proves nothing and is counted as unjudged: a text in which a key
occurs twice, half of a surrogate pair, numbers that common readers represent only in part, patterns
that Python and ECMA-262 read differently, schemas that their own draft refuses, or about which
drafts disagree if none is named.

The texts are the instances that come with the schemas, values drawn from a schema, values that
differ from these in one place, and what the engines wrote on random walks through their masks: the
texts of one engine are read by all. Each engine runs in its own process, so it may crash, hang or
grow.
"""

from __future__ import annotations

from stencilm.audit.engines import Engine, find_engine
from stencilm.audit.findings import Finding, Outcome
from stencilm.audit.report import Report
from stencilm.audit.run import audit
from stencilm.audit.schemas import SchemaCase, read_schemas

__all__ = [
    "Engine",
    "Finding",
    "Outcome",
    "Report",
    "SchemaCase",
    "audit",
    "find_engine",
    "read_schemas",
]
