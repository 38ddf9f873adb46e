"""Training of new tokenizers."""
