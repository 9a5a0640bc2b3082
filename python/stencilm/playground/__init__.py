"""The playground: a local page to try a grammar with a text and a tokenizer.

`session` answers queries and knows no HTTP; `server` connects it with the page in `static`; `guard`
rejects requests from elsewhere; `places` finds the location of an error in an editor.
"""
