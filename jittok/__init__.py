"""A Numba-JIT, array-oriented tokenizer engine."""
