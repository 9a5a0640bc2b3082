"""Bitmasks: int32 rows of one bit for each token, applied to the logits of any framework.

One idea: a buffer is checked for type, shape, strides and device before its first byte is written.

Entry points: `arrays.allocate_token_bitmask`, `arrays.apply_token_bitmask_inplace`,
`rows.MaskRows`.
"""
