"""Every exception that jittok raises on purpose.

Each message says what was given, what was expected, and what to do. All classes derive from
:class:`JittokError` and, where it fits, from the built-in exception that a caller would expect.
"""


class JittokError(Exception):
    """Base class of all jittok exceptions."""


class FormatError(JittokError, ValueError):
    """A tokenizer file is malformed, truncated or contradicts itself."""


class UnknownFormatError(FormatError):
    """The content of a file is not one of the formats that jittok reads."""


class UnsupportedError(JittokError, ValueError):
    """A file asks for a component, or a regular expression for a construct, that jittok does not have."""


class ConversionError(UnsupportedError):
    """A tokenizer would not give the same ids for all texts if it were saved in another format."""


class RegexError(JittokError, ValueError):
    """A split pattern is not a valid regular expression."""


class MissingFileError(JittokError, FileNotFoundError):
    """A file or a directory's expected member does not exist or cannot be read."""


class OutputError(JittokError, OSError):
    """An output file or directory cannot be written."""


class TextError(JittokError, ValueError):
    """Input text cannot be encoded: invalid UTF-8 in bytes, or a lone surrogate in str."""


class SpecialTokenError(JittokError, ValueError):
    """The text holds a special token, and the call asked for an error in that case."""


class TokenIdError(JittokError, ValueError):
    """A token id is outside the vocabulary."""


class MissingTokenError(TokenIdError, KeyError):
    """There is no such token; what the wrapper with tiktoken's methods raises, where that raises KeyError."""

    __str__ = Exception.__str__


class TokenRangeError(TokenIdError, IndexError):
    """A token id is outside the vocabulary; what the wrapper with sentencepiece's methods raises."""


class UnsupportedCallError(UnsupportedError, RuntimeError):
    """A call of another library that this object cannot do, where that library raises RuntimeError."""


class ArgumentError(JittokError, ValueError):
    """An argument has a value that the call does not accept."""


class ArgumentTypeError(JittokError, TypeError):
    """An argument has a type that the call does not accept."""


class GenerationError(JittokError, RuntimeError):
    """Generation cannot go on: a step raised or gave wrong arrays, logits are not finite, or every token is masked.

    Attributes
    ----------
    partial
        A :class:`jittok.generation.Generated` with the sequences so far; None if there are none yet.
    """

    def __init__(self, message: str, partial: object = None) -> None:
        super().__init__(message)
        self.partial = partial


class MissingDependencyError(JittokError, ImportError):
    """An optional package is needed for what was asked."""


class JittokWarning(UserWarning):
    """Base class of all jittok warnings."""


class CacheWarning(JittokWarning):
    """Compiled kernels cannot be kept between processes."""


class ConversionWarning(JittokWarning):
    """A tokenizer that was saved in another format does not give the same ids for all texts there."""


class TrainingWarning(JittokWarning):
    """Training made something else than was asked for: another vocabulary size, or texts were skipped or altered."""


class TextWarning(TrainingWarning):
    """Texts of a corpus were left out, or characters in them replaced."""
