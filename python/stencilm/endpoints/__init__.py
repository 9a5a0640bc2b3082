"""Models behind an API: OpenAI and what is like it, and Anthropic.

They draft for `guide`, and give what every model gives (`api_model`). `capabilities` says what an
endpoint can do, `requests` turns questions into the arguments of a call, `messages` writes prompts
as a provider takes them, `openai` and `anthropic` make the calls. Nothing is imported here.
"""
