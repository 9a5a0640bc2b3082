"""Chat templates, which come with models and may be broken or hostile: rendered within bounds.

`budget` counts what a template takes, `costs` knows what filters and methods can make, and
`environment` is the sandbox of Jinja that asks both. `renderer` renders, as transformers does, and
`huggingface` the template of one of its tokenizers.
"""
