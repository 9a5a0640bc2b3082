"""Rows of a dataset, answered by a model: what `stencilm.ray` is made of.

`rows` turns a row into a prompt and an answer into columns, `engines` run the model, `finished`
keeps what is done for the next run, and `arrow_types` says which type a column has. None of them
schedules anything: that is Ray's work.
"""
