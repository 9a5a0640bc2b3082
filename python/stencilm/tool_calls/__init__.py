"""Tool calls of model families: a grammar of what may be written, and a parser of what was written.

One idea: how a family writes calls is data (`template`, `families_json`, `families_marked`,
`families_literal`), or learned from a model's chat template (`probing`). `tags` makes a structural
tag from it, `parser` reads calls with the same data, `writer` writes them.
"""
