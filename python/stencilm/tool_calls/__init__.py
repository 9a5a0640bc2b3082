"""Tool calls of families of models, both ways: a grammar of what a model may write, and a parser of what it wrote."""
