"""The documentation as a site of static pages: `python -m website`, or `make docs`."""
