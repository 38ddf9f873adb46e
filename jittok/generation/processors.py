"""What is done to logits, to be called alone: in place, on ``float32[batch, vocab]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.encodings import whole_number
from jittok.errors import ArgumentError, ArgumentTypeError
from jittok.generation.settings import GenerationSettings
from jittok.generation.steps import check_status

Logits = NDArray[np.float32]


class LogitsProcessor:
    """Applies settings to logits, in place, in the order of transformers' ``generate``.

    Penalties and bans come first, then (with ``do_sample=True``) temperature, top-k, top-p, min-p and typical. Scratch is
    kept from call to call, so an object is for one thread at a time; nothing is allocated for each row.

    Parameters
    ----------
    log_softmax
        Whether the logits become logarithms of probabilities before all else, as in beam search.
    **settings
        See :class:`GenerationSettings`. Lengths and beams, but for ``num_beams`` (filters then keep two tokens), have no
        meaning here.

    Examples
    --------
    >>> import numpy as np
    >>> from jittok.generation import LogitsProcessor
    >>> logits = np.array([[1.0, 3.0, 2.0, 0.0]], np.float32)
    >>> LogitsProcessor(do_sample=True, temperature=0.5, top_k=2)(logits).tolist()
    [[-inf, 6.0, 4.0, -inf]]
    """

    def __init__(self, *, log_softmax: bool = False, **settings: Any) -> None:
        self.settings = GenerationSettings(**settings)
        self._rules = self.settings.rules(log_softmax=log_softmax)
        if not self.settings.do_sample:
            from jittok.kernels.logits import LOG_MIN_P, TEMPERATURE, TOP_K, TOP_P, TYPICAL_P

            numbers, sizes = self._rules.numbers.copy(), self._rules.sizes.copy()
            numbers[[TEMPERATURE, TOP_P, LOG_MIN_P, TYPICAL_P]] = 1.0, 1.0, -np.inf, 1.0
            sizes[TOP_K] = 0
            numbers.flags.writeable = sizes.flags.writeable = False
            self._rules = self._rules._replace(numbers=numbers, sizes=sizes)
        self._work: Any = None

    def __call__(
        self,
        logits: Logits,
        ids: Any = None,
        *,
        lengths: Any = None,
        end_is_banned: bool = False,
        is_first: bool = False,
        is_last: bool = False,
    ) -> Logits:
        """Process rows in place, and return them.

        Parameters
        ----------
        logits : float32[rows, vocab]
            C-contiguous and writable; input and output.
        ids : int[rows, n]
            The tokens before: for penalties and bans.
        lengths : int[rows]
            How many of each row's ids count, from its first on; None for all.
        end_is_banned
            Whether end tokens are banned, because the sequences are too short.
        is_first, is_last
            Whether the forced first and last tokens apply.

        Returns
        -------
        float32[rows, vocab]
            The same array.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            The arrays do not fit.
        GenerationError
            The logits are not finite, or all of a row are masked; the rows before that one are done.
        """
        from jittok.kernels.logits import IS_FIRST, IS_LAST, NO_END, Rows, new_work, process_logits

        check_logits(logits)
        rows, vocab_size = logits.shape
        self.settings.check_vocabulary(vocab_size)
        try:
            history = np.zeros((rows, 0), np.int32) if ids is None else np.asarray(ids)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError(f"ids: rows of different lengths; expected an array of {rows} rows, and lengths=") from None
        if history.size == 0:  # an empty list has no whole numbers to show
            history = history.astype(np.int32)
        if history.ndim != 2 or len(history) != rows or history.dtype.kind not in "iu":
            raise ArgumentError(f"ids of shape {history.shape}, {history.dtype}; expected whole numbers, {rows} rows")
        if history.size and not -(2**31) <= int(history.min()) <= int(history.max()) < 2**31:
            raise ArgumentError("ids: one of them does not fit in int32, so it is no token")
        counts = np.full(rows, history.shape[1]) if lengths is None else _whole_numbers("lengths", lengths, np.int64)
        if counts.shape != (rows,) or (counts < 0).any() or (counts > history.shape[1]).any():
            raise ArgumentError(f"lengths={lengths!r}: expected {rows} numbers from 0 to {history.shape[1]}")
        flags = NO_END * bool(end_is_banned) | IS_FIRST * bool(is_first) | IS_LAST * bool(is_last)
        if self._work is None or len(self._work.seen) != vocab_size + 1:
            self._work = new_work(vocab_size)
        behind = Rows(
            np.array(history, np.int32, order="C"),
            np.array(counts, np.int64),
            np.full(rows, flags, np.uint8),
            np.zeros(rows, np.uint64),
            np.zeros((rows, 0), np.int32),
        )
        check_status(int(process_logits(logits, logits.view(np.int32), self._rules, behind, self._work)), 0)
        return logits


def check_logits(logits: Any) -> None:
    """Refuse what kernels cannot work on in place.

    Parameters
    ----------
    logits
        Expected to be float32[rows, vocab], C-contiguous and writable.
    """
    if type(logits) is not np.ndarray or logits.dtype != np.float32:
        raise ArgumentTypeError(f"logits: expected a NumPy array of float32, got {getattr(logits, 'dtype', type(logits))}")
    if logits.ndim != 2 or logits.shape[1] == 0:
        raise ArgumentError(f"logits of shape {logits.shape}; expected [rows, vocab]")
    if not logits.flags.c_contiguous or not logits.flags.writeable or not logits.flags.aligned:
        raise ArgumentError("logits: expected a C-contiguous, writable array, since they are changed in place")


def scale_by_temperature(logits: Logits, temperature: float) -> Logits:
    """Divide logits by a temperature, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output.
    temperature
        Above 0.
    """
    return LogitsProcessor(do_sample=True, temperature=temperature)(logits)


def keep_top_k(logits: Logits, k: int) -> Logits:
    """Mask all but the `k` largest of each row, and those equal to the last of these, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output.
    k
        At least 1.
    """
    return LogitsProcessor(do_sample=True, top_k=whole_number("k", k, 1))(logits)


def keep_top_p(logits: Logits, p: float) -> Logits:
    """Mask all but the fewest largest of each row whose probabilities add up to `p`, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output.
    p
        From 0 to 1.
    """
    return LogitsProcessor(do_sample=True, top_p=p)(logits)


def keep_min_p(logits: Logits, p: float) -> Logits:
    """Mask what has less than `p` times the largest probability of its row, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output.
    p
        From 0 to 1.
    """
    return LogitsProcessor(do_sample=True, min_p=p)(logits)


def keep_typical(logits: Logits, mass: float) -> Logits:
    """Mask all but the tokens whose information is nearest to the entropy, up to a mass, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output.
    mass
        Above 0, at most 1.

    Notes
    -----
    Source: Meister et al., "Locally typical sampling" (2023).
    """
    return LogitsProcessor(do_sample=True, typical_p=mass)(logits)


def penalize_repetition(logits: Logits, ids: Any, penalty: float, lengths: Any = None) -> Logits:
    """Divide the logits of tokens that were there by a penalty, or multiply them where negative, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output.
    ids : int[rows, n]
        The tokens before.
    penalty
        Above 0; above 1 it makes them less probable.
    lengths : int[rows]
        How many of each row's ids count.

    Notes
    -----
    Source: Keskar et al., "CTRL" (2019).
    """
    return LogitsProcessor(repetition_penalty=penalty)(logits, ids, lengths=lengths)


def ban_repeated_ngrams(logits: Logits, ids: Any, size: int, lengths: Any = None) -> Logits:
    """Mask tokens that would complete a sequence of `size` tokens that was there, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output.
    ids : int[rows, n]
        The tokens before.
    size
        At least 1.
    lengths : int[rows]
        How many of each row's ids count.
    """
    return LogitsProcessor(no_repeat_ngram_size=whole_number("size", size, 1))(logits, ids, lengths=lengths)


def ban_words(logits: Logits, ids: Any, words: Sequence[Sequence[int]], lengths: Any = None) -> Logits:
    """Mask tokens that would complete one of some sequences, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output.
    ids : int[rows, n]
        The tokens before.
    words
        The sequences.
    lengths : int[rows]
        How many of each row's ids count.
    """
    return LogitsProcessor(bad_words_ids=words)(logits, ids, lengths=lengths)


def ban_tokens(logits: Logits, tokens: int | Sequence[int]) -> Logits:
    """Mask tokens, such as the end tokens of sequences that are too short, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output.
    tokens
        One or several.
    """
    return LogitsProcessor(eos_token_id=tokens)(logits, end_is_banned=True)


def force_token(logits: Logits, token: int) -> Logits:
    """Mask all tokens but one, whose logit becomes 0, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output.
    token
        The one.
    """
    return LogitsProcessor(forced_bos_token_id=token)(logits, is_first=True)


def log_softmax(logits: Logits) -> Logits:
    """Make logits the logarithms of their probabilities, in place.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Input and output.
    """
    return LogitsProcessor(log_softmax=True)(logits)


def sample(
    logits: Logits, seed: int, streams: Any = None, positions: Any = 0
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Draw a token from each row; the logits stay as they are.

    Parameters
    ----------
    logits : float32[rows, vocab]
        Of any scale.
    seed, streams, positions
        A row's draw depends on its logits and these three only: the seed of all, a number from 0 up for each row (None:
        its place) and a number from 0 up, for all or each, which should differ from draw to draw.

    Returns
    -------
    tokens : int32[rows]
    scores : float32[rows]
        Logarithms of their probabilities.
    """
    from jittok.kernels.logits import Rows, choose_tokens, new_work
    from jittok.tables import read_only

    if isinstance(logits, np.ndarray) and logits.dtype == np.float32:
        logits = np.array(logits, order="C")
    check_logits(logits)
    rows = len(logits)
    numbers = np.arange(rows, dtype=np.uint64) if streams is None else _whole_numbers("streams", streams, np.uint64)
    if numbers.shape != (rows,):
        raise ArgumentError(f"streams of shape {numbers.shape}; expected {rows} of them")
    steps = _whole_numbers("positions", positions, np.int64)
    if steps.shape not in ((), (1,), (rows,)):
        raise ArgumentError(f"positions of shape {steps.shape}; expected one, or {rows} of them")
    steps = np.broadcast_to(steps, (rows,)).copy()
    if (steps < 0).any() or (steps >= 2**32).any():
        raise ArgumentError("positions: expected numbers from 0 up below 2**32")
    behind = Rows(
        np.zeros((rows, 0), np.int32), np.zeros(rows, np.int64), np.zeros(rows, np.uint8), numbers,
        np.zeros((rows, 0), np.int32),
    )  # fmt: skip
    tokens, scores = np.zeros(rows, np.int32), np.zeros(rows, np.float32)
    rules = GenerationSettings(do_sample=True).rules()
    bits = read_only(logits.view(np.int32))
    seeds = seed_array(seed)
    work = new_work(logits.shape[1])
    check_status(int(choose_tokens(bits, rules, behind, seeds, steps, 0, rows, work, tokens, scores)), 0)
    return tokens, scores


def _whole_numbers(name: str, values: Any, kind: type[np.integer[Any]]) -> NDArray[Any]:
    """A copy of an array of whole numbers, as another type that all of them fit in; raises naming the argument."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        array = np.array(None)
    if array.dtype.kind not in "iu" and array.size:
        raise ArgumentTypeError(f"{name}={values!r}: expected whole numbers")
    limits = np.iinfo(kind)
    if array.size and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
        raise ArgumentError(f"{name}={values!r}: expected numbers from {limits.min} to {limits.max}")
    return array.astype(kind)


def seed_array(seed: int | None) -> NDArray[np.uint64]:
    """The seed as kernels take it.

    Parameters
    ----------
    seed
        A whole number; None: any.
    """
    import secrets

    number = secrets.randbits(64) if seed is None else whole_number("seed", seed, 0)
    array = np.array([number & 0xFFFFFFFFFFFFFFFF], np.uint64)
    array.flags.writeable = False
    return array
