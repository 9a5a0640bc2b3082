"""The playground: a local page to try a grammar with a text and a tokenizer.

`session` answers queries and knows no HTTP; `server` carries them between it and the page in
`static`; `guard` keeps strangers out; `places` finds the location of an error in an editor.
"""
