"""Plug-ins for engines that serve models: each is found by its engine and inert until switched on."""
