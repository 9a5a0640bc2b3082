"""Bitmasks: int32 rows with one bit for each token, applied to the logits of any framework.

One idea: a buffer's type, shape, strides and device are checked before its first byte is written.

Entry points: `arrays.allocate_token_bitmask`, `arrays.apply_token_bitmask_inplace`,
`rows.MaskRows`.
"""
