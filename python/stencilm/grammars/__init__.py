"""Grammars: notations with their options, Python types and structural tags, as values.

One idea: a grammar is known by its source, the notation with all its options, which is checked
when it is made and built when it is asked for. No tokenizer is known here.

Entry points: `grammar.Grammar`, `sources`, `output_types.resolve`, `structural_tag.StructuralTag`.
"""
