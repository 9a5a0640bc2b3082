"""Rows of a dataset, answered by a model: the parts of `stencilm.ray`.

`rows` turns a row into a prompt and an answer into columns, `engines` run the model, `finished`
keeps what is done for the next run, and `arrow_types` gives the type of a column. None of them
schedules anything: that is Ray's job.
"""
