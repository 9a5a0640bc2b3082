"""The integrations into transformers: `generate`, its `custom_generate`, and continuous batching.

One idea: the state of a row is looked up by its tokens, so rows may move, be copied and go back.

Entry points: `logits_processor.LogitsProcessor`, `custom_generate.CustomGenerate`,
`continuous_batching.ContinuousBatchingLogitsProcessor`.
"""
