"""Chat templates, which come with models and may be broken or hostile: rendered within limits.

`budget` counts what a template uses, `costs` knows the size of what filters and methods make, and
`environment` is the Jinja sandbox that asks both. `renderer` renders as transformers does, and
`huggingface` renders the template of one of its tokenizers.
"""
