"""Models behind an API, as drafters for `guide`: OpenAI and what is like it, and Anthropic.

`capabilities` says what an endpoint can do, `requests` turns questions into the arguments of a
call, `openai` and `anthropic` make the calls. Nothing is imported here.
"""
