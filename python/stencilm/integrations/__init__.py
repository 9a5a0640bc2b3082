"""Plug-ins for engines that serve models, each found by its engine."""
