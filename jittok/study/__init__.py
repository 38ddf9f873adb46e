"""Published algorithms in the forms in which they were described, to read, to try and to measure.

Nothing here is used to encode: the engine has faster forms of the same.
"""

from jittok.study.byte_pairs import ALGORITHMS, BytePairEncoder, bpe

__all__ = ["ALGORITHMS", "BytePairEncoder", "bpe"]
