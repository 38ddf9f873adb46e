r"""The pre-tokenizers that llama.cpp knows by name, as rows of split patterns of its dialect.

Each pattern cuts every piece that those before it left, at its matches and around them. What llama.cpp matches on a text
in which whole categories are one character is written here with these categories: so its ``\p{Lu}``, ``\p{Ll}`` and so
on are all ``\p{L}``, but for the letters of ASCII.
"""

from __future__ import annotations

from dataclasses import dataclass

from jittok.spec import DigitGroups, PreTokenizer, Split

_SHORT_FORMS = r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])"
_BLANKS = r"\s+(?!\S)|\s+"
_LINES_AND_BLANKS = r"\s*[\r\n]+|" + _BLANKS
_GPT2 = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|" + _BLANKS
_CJK = r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_ASCII_MARKS = r"[!-/:-@\[-`{-~]"
#: Where llama.cpp matches characters themselves, white space beyond ASCII is U+000B.
_CHINESE_AND_HANGUL = r"[[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]&&[^\s]]+"
_HAN = (
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    r"\U0002b820-\U0002ceaf\U0002ceb0-\U0002ebef\U0002f800-\U0002fa1f"
)
#: The cased letters that DeepSeek's own patterns list.
_CASED_LETTERS = (
    r"A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377"
    r"\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556"
    r"\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"
    r"\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4"
    r"\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc"
    r"\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
    r"\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b"
    r"\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    r"\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    r"\U000118a0-\U000118df\U0001e900-\U0001e943"
)


def _words(
    digits: str,
    *,
    before: str = "",
    letters: str = r"[^\r\n\p{L}\p{N}]?\p{L}+",
    others: str = r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    rest: str = _LINES_AND_BLANKS,
) -> str:
    """A pattern of the kind that Llama 3 has: words, digits, other characters, and blanks."""
    return "|".join(part for part in (before, letters, digits, others, rest) if part)


def _cased_words(letters: str, digits: str, short_forms: str = "") -> str:
    """As :func:`_words`, with words that end where a letter of ASCII in upper case follows one in lower case."""
    upper, lower = f"[{letters}&&[^a-z]]", f"[{letters}&&[^A-Z]]"
    start = r"[^\r\n\p{L}\p{N}]?"
    words = f"{start}{upper}*{lower}+{short_forms}|{start}{upper}+{lower}*{short_forms}"
    return _words(digits, letters=words, others=r" ?[^\s\p{L}\p{N}]+[\r\n/]*")


_LLAMA3 = _words(r"\p{N}{1,3}", before=_SHORT_FORMS)
_QWEN2 = _words(r"\p{N}", before=_SHORT_FORMS)
_AFTER_SHORT = f"(?:{_SHORT_FORMS})?"
_ONE_OR_MORE_CASES = _words(
    r"\p{N}",
    letters=r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+" + _AFTER_SHORT,
    others=r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
)
_DEEPSEEK3 = (
    _ASCII_MARKS + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + _LINES_AND_BLANKS
)
_SENTENCE_MARKS = r" ?[^(\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
_LINES = r"[^\n]+|\n+"

#: Patterns, by the first of the names that have them.
_PATTERNS: dict[str, tuple[str | DigitGroups, ...]] = {
    "default": (r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9]{3}"),
    "gpt-2": (_GPT2,),
    "llama3": (_LLAMA3,),
    "jais-2": (
        _words(
            r"\p{N}{1,3}",
            before=_SHORT_FORMS,
            rest=r"\s*[\r\n]+|"
            + "|".join(rf"\s{{{n}}}(?!\S)" for n in ("512", "256", "128", "64", "32", "16", "8", "4", "1,2"))
            + r"|\s",
        ),
    ),
    "deepseek-llm": (
        r"[\r\n]",
        rf"\s?[{_CASED_LETTERS}]+",
        r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3001\u3002]+",
        r"\s+$",
        _CHINESE_AND_HANGUL,
        r"\p{N}+",
    ),
    "deepseek-coder": (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CHINESE_AND_HANGUL, r"\p{N}"),
    "deepseek-v3": (r"\p{N}{1,3}", _CJK, _DEEPSEEK3),
    "spark2_5": (
        r"\p{N}{1,3}",
        _CJK,
        _ASCII_MARKS + r"[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|" + _BLANKS,
        r"\p{N}",
    ),
    "youtu": (
        r"[\uac00-\ud7a3\u3131-\u318e]+"
        r"|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+"
        r"|[\u3105-\u312f]+|" + _CJK,
        _ONE_OR_MORE_CASES,
    ),
    "falcon": (r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9]{3}"),
    "starcoder": (r"\p{N}", _GPT2),
    "qwen2": (_QWEN2,),
    "qwen35": (
        _words(
            r"\p{N}",
            before=_SHORT_FORMS,
            letters=r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
            others=r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
        ),
    ),
    "poro-chat": (_SENTENCE_MARKS,),
    "viking": (_SENTENCE_MARKS, r"\p{N}"),
    "tekken": (_cased_words(r"\p{L}", r"\p{N}"),),
    "chameleon": (
        "<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", r"[\t\n]|    |  ", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", _GPT2,
    ),
    "gpt-4o": (_cased_words(r"\p{L}", r"\p{N}{1,3}", _AFTER_SHORT),),
    "granite-embed-multi-97m": (_cased_words(r"[\p{L}\p{M}]", r"\p{N}{1,3}", _AFTER_SHORT),),
    "tiny_aya": (
        DigitGroups(r"\p{N}"),
        _ONE_OR_MORE_CASES.replace(r"|\p{N}|", r"|\p{N}{1,3}|"),
    ),
    "kimi-k2": (
        rf"[{_HAN}]+|"
        + _words(r"\p{N}{1,3}", letters=rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}&&[^{_HAN}]]+{_AFTER_SHORT}"),
    ),
    "superbpe": (r"\p{N}+", DigitGroups("[0-9]", cut="before")),
    "bailingmoe": (_words(r"\p{N}", before=_SHORT_FORMS, rest=r"\s*[\r\n]|" + _BLANKS),),
    "seed-coder": (_words(r"\p{N}", before=_SHORT_FORMS, others=r" ?[^\s\p{L}\p{N}\r\n]+"),),
    "ufakzeka": (_words(r"\p{N}"),),
    "afmoe": (
        DigitGroups(r"\p{N}"),
        r"[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f"
        r"\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+",
        _DEEPSEEK3,
    ),
    "laguna": (_LINES, _QWEN2),
    "exaone-moe": (
        _words(
            r"\p{N}",
            before=_SHORT_FORMS,
            letters=r"[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+",
            others=r" ?[^\s\p{L}\p{N}]+[\r\n/]?",
            rest=r"\s*[\r\n]|" + _BLANKS,
        ),
    ),
    "gemma4": (_LINES,),
    "whitespace": (r"\S+",),
    "minicpm5": (r"\p{N}{1,3}", _words(r"\p{N}+", before=_SHORT_FORMS)),
}  # fmt: skip

#: Other names for them.
_SAME = {
    "llama3": "llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx smaug-bpe chatglm-bpe glm4 glm5",
    "deepseek-v3": "hunyuan-dense joyai-llm hy_v4",
    "starcoder": "refact command-r smollm codeshell exaone minerva-7b mellum2",
    "gpt-2": "phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert jina-v1-en jina-v2-code "
    "roberta-bpe mpt olmo jais trillion granite-docling exaone4",
    "qwen2": "stablelm2 deepseek-r1-qwen kormo f2llmv2 hunyuan solar-open grok-2 megrez",
    "poro-chat": "bloom gpt3-finnish",
    "gpt-4o": "llama4 kanana2 talkie minimax-m2",
    "tiny_aya": "cohere2moe",
    "bailingmoe": "bailingmoe2 llada-moe",
    "gemma4": "granite-embed-multi-311m sarvam-moe",
}
_FIRST_NAME = {name: first for first, names in _SAME.items() for name in names.split()}

#: The names of those for which a pre-token that is a token stays whole, whatever the merges are.
_IGNORING_MERGES = frozenset(
    "minicpm5 llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano youtu glm4 glm5 tekken "
    "granite-embed-multi-97m".split()
)
#: The names of those that put a token for the beginning before a text unless the file says otherwise.
_ADDING_BOS = frozenset(
    "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano tekken chameleon".split()
)
#: Those whose vocabulary is not written in the byte alphabet, but with U+2581 for blanks.
_OF_PIECES = frozenset("gemma4 granite-embed-multi-311m sarvam-moe".split())
_WITHOUT_BOS = frozenset("chatglm-bpe glm4 glm5".split())


@dataclass(frozen=True, slots=True)
class PreTokenization:
    """What the name of a pre-tokenizer says.

    Attributes
    ----------
    steps
        The cuts.
    ignores_merges
        A pre-token that is a token stays whole.
    adds_bos
        By default a token for the beginning is put before each text.
    has_bos
        By default there is such a token.
    is_bytes
        The vocabulary is written in the byte alphabet; else in the text's own characters.
    has_marks
        Blanks are written as U+2581.
    """

    steps: tuple[PreTokenizer, ...]
    ignores_merges: bool
    adds_bos: bool
    has_bos: bool
    is_bytes: bool
    has_marks: bool


def pre_tokenization(name: str) -> PreTokenization | None:
    """Return what a name stands for; None for one that llama.cpp does not know.

    Parameters
    ----------
    name
        As ``tokenizer.ggml.pre`` has it; empty for a file that has none.
    """
    name = name or "default"
    patterns = _PATTERNS.get(_FIRST_NAME.get(name, name))
    if patterns is None:
        return None
    return PreTokenization(
        tuple(
            pattern if isinstance(pattern, DigitGroups) else Split(pattern, "isolated", dialect="llama.cpp")
            for pattern in patterns
        ),
        name in _IGNORING_MERGES,
        name in _ADDING_BOS or name in ("gemma4", "granite-embed-multi-311m"),
        name not in _WITHOUT_BOS,
        name not in _OF_PIECES and name != "whitespace",
        name in _OF_PIECES,
    )


def names() -> list[str]:
    """Return all names, for messages and tests."""
    return sorted({*_PATTERNS, *_FIRST_NAME})
