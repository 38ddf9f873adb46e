"""Calling the user's step, and checking what it gives."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import ArgumentTypeError, GenerationError
from jittok.tables import read_only

#: ``step(ids, state, beam_index) -> (logits, state)``
Step = Callable[[NDArray[np.int32], Any, Any], tuple[Any, Any]]


class Model:
    """The user's step, with its state.

    Parameters
    ----------
    step
        The function.
    state
        What it gets at first.

    Attributes
    ----------
    vocab_size
        Length of a row of logits; 0 before the first call.
    """

    def __init__(self, step: Step, state: Any) -> None:
        if not callable(step):
            raise ArgumentTypeError(f"step={step!r}: expected a function step(ids, state, beam_index) -> (logits, state)")
        self._step = step
        self._state = state
        self._calls = 0
        self.vocab_size = 0

    def __call__(self, ids: NDArray[np.int32], beam_index: NDArray[np.int64] | None) -> NDArray[np.int32]:
        """Logits for the next token of each row, as the bits of float32.

        Parameters
        ----------
        ids : int32[rows, n]
            New tokens.
        beam_index : int64[rows]
            The row of the call before that each row continues; None in the first call.

        Returns
        -------
        int32[rows, vocab]
        """
        call, self._calls = self._calls, self._calls + 1
        try:
            result = self._step(ids, self._state, beam_index)
        except Exception as error:
            raise GenerationError(f"step {call} raised {type(error).__name__}: {error}") from error
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise GenerationError(f"step {call} returned {type(result).__name__}; expected the pair (logits, state)")
        self._state = result[1]
        logits = _array(result[0], call)
        if logits.ndim == 3:
            logits = logits[:, -1] if logits.shape[1] else logits[:, 0:0, 0]
        shape = logits.shape
        if logits.ndim != 2 or shape[0] != len(ids) or shape[1] == 0 or self.vocab_size not in (0, shape[1]):
            vocab = self.vocab_size or "vocab"
            raise GenerationError(
                f"step {call} returned logits of shape {np.shape(result[0])}; expected ({len(ids)}, {vocab}): "
                "a row for each row of ids"
            )
        self.vocab_size = shape[1]
        if logits.dtype != np.float32 or not logits.flags.aligned:
            with np.errstate(over="ignore"):
                logits = logits.astype(np.float32)
        return read_only(read_only(logits).view(np.int32))


def _array(logits: Any, call: int) -> NDArray[Any]:
    if hasattr(logits, "detach"):  # a tensor of PyTorch: bfloat16 has no NumPy type
        logits = logits.detach().float().cpu().numpy()
    try:
        array = np.asarray(logits)
    except Exception as error:
        raise GenerationError(f"step {call} returned logits that are no array: {error}") from error
    if array.dtype.kind not in "fiu":
        raise GenerationError(f"step {call} returned logits of dtype {array.dtype}; expected numbers, best float32")
    return array


class Workers:
    """Scratch for each thread, and the threads.

    Parameters
    ----------
    threads
        How many.
    new_scratch
        Makes the scratch of one.
    """

    def __init__(self, threads: int, new_scratch: Callable[[], Any]) -> None:
        self._scratch = [new_scratch() for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def run(self, task: Callable[[int, int, Any], int], count: int) -> int:
        """Run ``task(first, last, scratch)`` on parts of ``range(count)``; returns the first fault, or 0.

        Parameters
        ----------
        task
            A kernel that returns 0, or a fault below 0.
        count
            Of what there is to do.
        """
        parts = min(len(self._scratch), count)
        if self._pool is None or parts < 2:
            return int(task(0, count, self._scratch[0]))
        bounds = [count * part // parts for part in range(parts + 1)]
        futures = [
            self._pool.submit(task, first, last, scratch)
            for first, last, scratch in zip(bounds, bounds[1:], self._scratch, strict=False)
        ]
        return min((int(future.result()) for future in futures), key=lambda status: (status == 0, -status))

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def check_status(status: int, step: int) -> None:
    """Raise what a kernel's status says is wrong with the logits.

    Parameters
    ----------
    status
        0, or ``-(FAULTS * row + fault)``.
    step
        Number of the call that gave the logits.
    """
    from jittok.kernels.logits import ALL_MASKED, FAULTS

    if status == 0:
        return
    row, fault = divmod(-status, FAULTS)
    if fault == ALL_MASKED:
        raise GenerationError(
            f"step {step}, row {row}: every token is masked (minus infinity), by the model or by the settings that ban "
            "tokens; nothing can follow"
        )
    raise GenerationError(
        f"step {step}, row {row}: the logits have NaN or infinity, or become infinite when divided by the temperature; "
        "expected finite numbers, or minus infinity for what is masked"
    )
