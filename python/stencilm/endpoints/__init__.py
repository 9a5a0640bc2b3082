"""Models behind an API: OpenAI and compatible servers, and Anthropic.

They write drafts for `guide`, and offer the interface of every model (`api_model`). `capabilities`
says what an endpoint can do, `requests` turns requests into the arguments of a call, `messages`
writes prompts in a provider's form, `openai` and `anthropic` make the calls. Nothing is imported
here.
"""
