"""The playground: one local page that shows how a text, a grammar and a tokenizer meet.

`session` answers questions and knows no HTTP; `server` carries questions and answers between it and
the page in `static`; `guard` keeps strangers out; `places` finds where in an editor an error
stands.
"""
