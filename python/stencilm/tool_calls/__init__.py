"""Tool calls of families of models: a grammar of what may be written, and a parser of what was.

One idea: how a family writes calls is data (`template`, `families_json`, `families_marked`,
`families_literal`), or learnt from a model's chat template (`probing`). `tags` makes a structural
tag of it, `parser` reads calls back with the same data, `writer` writes them.
"""
