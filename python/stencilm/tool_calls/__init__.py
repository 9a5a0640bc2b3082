"""Tool calls of model families: a grammar of the model's output, and a parser of it.

One idea: how a family writes calls is data (`template`, `families_json`, `families_marked`,
`families_literal`), or learned from a model's chat template (`probing`). `tags` makes a structural
tag from this data, `parser` reads calls with it, `writer` writes them.
"""
