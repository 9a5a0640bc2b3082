"""Decode loops: a model and a matcher in, a text with its trace and statistics out.

Nothing is imported here, so that reading a trace does not load a loop: import from
`stencilm.generation.trace`, `.sampling`, `.stats` or `.loop`.
"""
