"""Logits processors for the generation loops of other packages."""
