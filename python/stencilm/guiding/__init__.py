"""Speculative grammar backtracking: draft freely, keep the valid prefix, correct, go on, end valid.

`local` guides a model whose logits are at hand, `text` anything that maps text to text, `task` says
what both are given and give back, `api` is the public door. Nothing is imported here.
"""
