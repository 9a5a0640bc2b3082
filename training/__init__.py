"""Makes the embedded model `tiny` from nothing: words, text, tokenizer, weights, figures and model card."""
