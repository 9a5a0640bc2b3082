"""Matching: a grammar compiled for a tokenizer, and the matchers of one sequence or of many.

One idea: the work is done in Rust; here each request is compiled once, cached within a budget of
bytes, and shared by all threads.

Entry points: `compiler.GrammarCompiler`, `matcher.GrammarMatcher`, `index.TokenIndex`.
"""
