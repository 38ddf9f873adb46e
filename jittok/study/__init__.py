"""Published algorithms in the forms in which they were described, to read, to try and to measure.

Nothing here is used to encode or to train: the engine and the trainers have faster forms of the same.
"""

from jittok.study.byte_pairs import ALGORITHMS, BytePairEncoder, bpe
from jittok.study.training import TRAINING_ALGORITHMS, learn_merges

__all__ = ["ALGORITHMS", "TRAINING_ALGORITHMS", "BytePairEncoder", "bpe", "learn_merges"]
