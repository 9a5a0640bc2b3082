"""An audit of mask engines: masks that are wrong, proved by a validator that is not ours.

For any engine behind four calls, any tokenizer and any JSON Schemas, `audit` looks for masks that
allow what nothing completes, and for masks that refuse what could be completed. The engine's own
verdict proves nothing here, and neither does that of stencilm: the package `jsonschema` decides
which texts are valid.

One idea: only what no later token can mend is called an error. These proofs are sound:

* `violation`: a token, or the end, is allowed after a prefix of which the validator says that no
  text that begins so is valid (`judge` says which keywords it may ask of a text that is not
  complete). Since what is broken for good stays so, halving finds the first token that breaks it.
* `not JSON`: a token, or the end, is allowed after which no JSON text can come.
* `dead end`: an allowed token was taken, after which the mask is empty, the end included, while the
  text is not complete.
* `broken mask`: the mask allows a token that the engine then refuses to take.
* `refused`: a token of a text is refused, and the validator says that the text is valid; and so is
  some token of each text that writes the same value in another way: without white space, with the
  keys as the schema lists them, with escapes, and with the keys in other orders, which are searched
  for from the places of the refusals.

These are notes, since an engine may say that it is narrower than JSON Schema, or wider:

* `writing`: the valid text is refused, and taken in another writing of the same value.
* `tokens`: the valid text is taken in the tokenizer's own tokens, and refused in some others.
* `format`: the valid text is taken when the schema has no `format`. No draft asks for formats to be
  asserted, so that a text that breaks one is no error either.
* `failure`: the engine raises an exception after it took the schema.

What the validator cannot decide proves nothing and is counted as unjudged: a text in which a key
comes twice, half of a surrogate pair, numbers that common readers hold only in part, patterns that
Python and ECMA-262 read in different ways, schemas that their own draft refuses or about which
drafts disagree where none is named.

Texts to read are the instances that come with the schemas, values drawn from a schema, values that
differ from these at one place, and what the engines themselves wrote on random walks through their
masks: a text of one engine is read by all. Each engine is in a process of its own, so that it may
crash, hang or grow.
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
