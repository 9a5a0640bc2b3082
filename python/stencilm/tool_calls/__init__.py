"""Tool calls of families of models, both ways: a grammar of what a model may write, and a parser of what it wrote.

One idea: how a family writes calls is data (`template`, `families_json`, `families_marked`,
`families_literal`), or learnt from a model's chat template (`probing`). `tags` makes a structural tag of it,
`parser` reads calls back with the same data, `writer` writes them.
"""
