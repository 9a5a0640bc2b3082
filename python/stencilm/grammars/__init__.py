"""Grammars: notations with their options, Python types and structural tags, as values.

One idea: a grammar is identified by its source, that is, a notation with all its options. A source
is checked when it is made and built when it is needed. Nothing here knows about tokenizers.

Entry points: `grammar.Grammar`, `sources`, `output_types` with their readers in `outputs.resolve`,
`structural_tag.StructuralTag`. Each file uses only those before it: `texts`, `sources`,
`output_types`, `conversion`, `grammar`, `outputs`, `described`.
"""
