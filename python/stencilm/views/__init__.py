"""Renderings of traces for a browser, a notebook or a terminal. They only read events."""
