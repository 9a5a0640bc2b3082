"""Drawings of traces for a browser, a notebook or a terminal. They read events and nothing else."""
