"""Processors of logits for the loops of other packages."""
