"""Chat templates, which come with models and may be broken or hostile: rendered within limits.

`budget` counts what a template uses, `costs` predicts the size of results of filters and methods,
and `environment` is the Jinja sandbox that consults both. `renderer` renders as transformers does,
and `huggingface` renders the template of one of its tokenizers.
"""
