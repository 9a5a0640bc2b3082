"""Stands in for a name that SGLang imports on machines without a GPU, and never calls there."""
