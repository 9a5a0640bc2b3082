"""Models behind an API: OpenAI and compatible servers, and Anthropic.

They draft for `guide`, and offer what every model offers (`api_model`). `capabilities` says what an
endpoint can do, `requests` turns queries into the arguments of a call, `messages` writes prompts in
a provider's form, `openai` and `anthropic` make the calls. Nothing is imported here.
"""
