"""One module for each file format: bytes to a :class:`~jittok.spec.TokenizerSpec` and back."""
