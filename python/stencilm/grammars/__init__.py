"""Grammars: notations with their options, Python types and structural tags, as values.

One idea: a grammar is identified by its source, the notation with all its options, which is checked
when it is made and built when it is needed. Tokenizers are unknown here.

Entry points: `grammar.Grammar`, `sources`, `output_types` with their readers in `outputs.resolve`,
`structural_tag.StructuralTag`. Each file uses those before it: `texts`, `sources`, `output_types`,
`conversion`, `grammar`, `outputs`, `described`.
"""
