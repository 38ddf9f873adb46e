"""Normalizers and pre-tokenizers as callers of the trainers state them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from jittok import spec
from jittok.errors import ArgumentError, ArgumentTypeError, FormatError
from jittok.spec import ByteLevel, MapBytes, Normalizer, PreTokenizer, Split, UnicodeForm

_NORMALIZERS: tuple[type, ...] = get_args(Normalizer)
_PRE_TOKENIZERS: tuple[type, ...] = get_args(PreTokenizer)
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_SHORT_FORM = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
#: Splits of known encodings, as tokenizer.json files state them: possessive quantifiers mean something else there.
_PATTERNS = {
    "cl100k": _SHORT_FORM + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "o200k": rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORT_FORM}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORT_FORM}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


class Steps(NamedTuple):
    """What is done to a text before a model sees its words."""

    normalizers: tuple[Normalizer, ...] = ()
    pre_tokenizers: tuple[PreTokenizer, ...] = ()

    @property
    def byte_level(self) -> bool:
        """Whether a model sees bytes instead of characters, as where the last pre-tokenizer is ByteLevel."""
        return bool(self.pre_tokenizers) and isinstance(self.pre_tokenizers[-1], ByteLevel)

    def settings(self) -> dict[str, Any]:
        """The steps as JSON values, for :attr:`WordCounts.settings`."""
        from jittok.formats.jittok_file import plain

        return {
            "normalizers": plain(self.normalizers),
            "pre_tokenizers": plain(self.pre_tokenizers),
            "byte_level": self.byte_level,
        }


def steps_from_settings(settings: Mapping[str, Any]) -> Steps:
    """The steps that :meth:`Steps.settings` stated; none where `settings` says nothing of them.

    Parameters
    ----------
    settings
        Of :class:`~jittok.WordCounts`.

    Raises
    ------
    FormatError
        They are none that this version knows.
    """
    from jittok.formats.jittok_file import restored

    try:
        steps = Steps(*(tuple(restored(settings.get(name, []))) for name in ("normalizers", "pre_tokenizers")))
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise FormatError(f"the settings of word counts cannot be read ({error}); count the words anew") from None
    if not all(isinstance(step, _NORMALIZERS) for step in steps.normalizers):
        raise FormatError(f"the normalizers of word counts cannot be read: {steps.normalizers!r}; count the words anew")
    if not all(isinstance(step, _PRE_TOKENIZERS) for step in steps.pre_tokenizers):
        raise FormatError(
            f"the pre-tokenizers of word counts cannot be read: {steps.pre_tokenizers!r}; count the words anew"
        )
    return steps


def read_steps(normalizer: object = None, pre_tokenizer: object = None) -> Steps:
    """Normalizers and pre-tokenizers, in any of the forms that callers may give them.

    Parameters
    ----------
    normalizer
        None; the name of one that needs no arguments ("NFC", "NFKC", "Lowercase", "StripAccents", "BertNormalizer",
        ...); an object as the field of a tokenizer.json has it; a component of :mod:`jittok.spec`; or a sequence of
        these, which run one after the other.
    pre_tokenizer
        Likewise ("ByteLevel", "Whitespace", "BertPreTokenizer", "Metaspace", ...). Also the name of a known encoding
        ("gpt2", "cl100k", "o200k", ...): its split, byte-level.

    Raises
    ------
    ArgumentError
        A name that is not known.
    ArgumentTypeError
        None of these forms.
    FormatError, UnsupportedError
        An object that no tokenizer.json could have, or a component that jittok does not have.
    """
    return Steps(tuple(_chain(normalizer, "normalizer")), tuple(_chain(pre_tokenizer, "pre_tokenizer")))


def _chain(given: object, role: str) -> list[Any]:
    kinds = _NORMALIZERS if role == "normalizer" else _PRE_TOKENIZERS
    if given is None:
        return []
    if isinstance(given, kinds):
        return [given]
    if isinstance(given, str):
        return _named(given, role, kinds)
    if isinstance(given, Mapping):
        from jittok.formats import tokenizer_json

        read = tokenizer_json.read_normalizers if role == "normalizer" else tokenizer_json.read_pre_tokenizers
        return list(read(given))
    if isinstance(given, list | tuple):
        return [step for item in given for step in _chain(item, role)]
    raise ArgumentTypeError(
        f"{role}: expected None, a name, an object as in a tokenizer.json, a component of jittok.spec or a list of "
        f"these, got {type(given).__name__}"
    )


def _named(name: str, role: str, kinds: tuple[type, ...]) -> list[Any]:
    if role == "normalizer" and name in _FORMS:
        return [UnicodeForm(name)]  # type: ignore[arg-type]
    if role == "normalizer" and name == "ByteLevel":
        return [MapBytes()]
    kind = getattr(spec, name, None)
    if isinstance(kind, type) and kind in kinds:
        try:
            return [kind()]
        except TypeError:
            raise ArgumentError(f"{role}={name!r} needs arguments; give it as an object, as in a tokenizer.json") from None
    if role == "pre_tokenizer":
        if name == "gpt2":
            return [ByteLevel(add_prefix_space=False)]
        if name in _PATTERNS:
            return [Split(_PATTERNS[name]), ByteLevel(add_prefix_space=False, use_regex=False)]
    names = [*_FORMS] if role == "normalizer" else ["gpt2", *_PATTERNS]
    names += sorted(kind.__name__ for kind in kinds if not _needs_arguments(kind))
    raise ArgumentError(
        f"{role}={name!r} is not known; expected one of {', '.join(names)}, or an object as in a tokenizer.json"
    )


def _needs_arguments(kind: type) -> bool:
    try:
        kind()
    except TypeError:
        return True
    return False
