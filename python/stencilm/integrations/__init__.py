"""Plug-ins for engines that serve models: found by the engine, inert until switched on."""
