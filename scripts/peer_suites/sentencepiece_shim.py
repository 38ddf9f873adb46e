"""Puts jittok's wrapper where sentencepiece has its SentencePieceProcessor, and its messages."""

import sentencepiece
from counted import Marker, counted
from sentencepiece import sentencepiece_pb2

from jittok.interop import _sentencepiece_text
from jittok.interop.sentencepiece import SentencePieceProcessor as Wrapper
from jittok.interop.sentencepiece import set_random_generator_seed

SentencePieceProcessor = counted(Wrapper)
SentencePieceProcessor.__module__ = __name__

sentencepiece.SentencePieceProcessor = SentencePieceProcessor
sentencepiece.SetRandomGeneratorSeed = sentencepiece.set_random_generator_seed = set_random_generator_seed
sentencepiece_pb2.SentencePieceText = _sentencepiece_text.SentencePieceText
sentencepiece_pb2.NBestSentencePieceText = _sentencepiece_text.NBestSentencePieceText


def pytest_configure(config):
    config.pluginmanager.register(Marker())
