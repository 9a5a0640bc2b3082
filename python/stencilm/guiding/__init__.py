"""Speculative grammar backtracking: draft freely, keep the valid prefix, correct, go on, end valid.

`local` guides a model whose logits are at hand, `text` any function from text to text, `task`
defines what both take and return, `api` is the public interface. Nothing is imported here.
"""
