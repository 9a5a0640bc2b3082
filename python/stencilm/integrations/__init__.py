"""Plug-ins for serving engines; each engine finds its own."""
