"""Decode loops: from a model and a matcher to a text with its trace and statistics.

Nothing is imported here, so that reading a trace does not load a loop: import from
`stencilm.generation.trace`, `.sampling`, `.stats` or `.loop`.
"""
