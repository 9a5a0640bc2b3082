"""Drawings of traces: for a browser, a notebook, a terminal. They read events and nothing else."""
