"""Documents to ids, and which documents cannot be encoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from jittok.corpus.blocks import Problem
from jittok.corpus.reading import IS_BLANK, NOT_UTF_8, SPECIAL_TOKEN, Documents, Reading, place
from jittok.corpus.sources import Source
from jittok.errors import FormatError, JittokError, SpecialTokenError, TextError
from jittok.text import text_from

T = TypeVar("T")


def run_on_documents(
    function: Callable[[Any], T], documents: Documents, source: Source, reading: Reading, skip: bool
) -> tuple[Documents, T]:
    """Call a function on the texts of documents; leave out those that it refuses.

    Parameters
    ----------
    function
        Takes :attr:`Documents.texts`; raises a TextError or SpecialTokenError if one of them cannot be encoded.
    documents, source, reading
        What was read, and from where.
    skip
        Whether documents that are refused become problems, or an error.

    Returns
    -------
    documents
        Without those that were refused, which are among its problems; blank lines are none.
    result
        Of the function on these.

    Raises
    ------
    FormatError, TextError, SpecialTokenError
        There are problems, and `skip` is false.
    """
    problems = tuple(problem for problem in documents.problems if problem.kind != IS_BLANK)
    first = min((problem.number for problem in problems), default=None)
    try:
        result = function(documents.texts)
    except (TextError, SpecialTokenError):
        if not skip:
            row, error = _refused(function, documents, 0, len(documents), first_only=True)[0]
            if first is None or documents.numbers[row] < first:
                raise _located(error, documents, row, source, reading) from None
        else:
            bad = _all_refused(function, documents)
            rows = np.zeros(len(documents), np.bool_)
            rows[[row for row, _ in bad]] = True
            found = tuple(_problem(error, documents, row) for row, error in bad)
            documents = documents.without(rows, found)
            problems = tuple(problem for problem in documents.problems if problem.kind != IS_BLANK)
            return _with_problems(documents, problems), function(documents.texts)
    if problems and not skip:
        raise problem_error(problems[0], source, reading)
    return _with_problems(documents, problems), result


def problem_error(problem: Problem, source: Source, reading: Reading) -> FormatError:
    """What to raise where a problem ends the job.

    Parameters
    ----------
    problem, source, reading
        What was read, and from where.
    """
    where = place(source, problem.number, problem.position, reading.separator)
    return FormatError(f"{where}: {problem.reason}. Mend it, or leave such records out with --on-error skip.")


def _with_problems(documents: Documents, problems: tuple[Problem, ...]) -> Documents:
    d = documents
    return Documents(d.texts, d.numbers, d.starts, d.ends, problems, d.size, d.done, d.columns)


def _all_refused(function: Callable[[Any], Any], documents: Documents) -> list[tuple[int, JittokError]]:
    """The documents that are refused: those that are no text are told without the function, of which there may be many."""
    bad: list[tuple[int, JittokError]] = []
    for row in range(len(documents)):
        try:
            text_from(_text_of(documents, row))
        except TextError as error:
            bad.append((row, error))
        except UnicodeDecodeError as error:  # of an Arrow string
            bad.append((row, TextError(str(error))))
    if bad and not _refused(function, documents, bad[0][0], bad[0][0] + 1, first_only=True):
        bad = []  # the function makes text of such documents
    others = np.ones(len(documents), np.bool_)
    others[[row for row, _ in bad]] = False
    rest, rows = documents.without(~others, ()), np.flatnonzero(others)
    return bad + [(int(rows[row]), error) for row, error in _refused(function, rest, 0, len(rest), first_only=False)]


def _refused(
    function: Callable[[Any], Any], documents: Documents, first: int, last: int, first_only: bool
) -> list[tuple[int, JittokError]]:
    """The documents in a range that are refused, found by halving it."""
    if first == last:
        return []
    try:
        function(documents.part(first, last).texts)
        return []
    except (TextError, SpecialTokenError) as error:
        if last - first == 1:
            return [(first, error)]
    middle = (first + last) // 2
    found = _refused(function, documents, first, middle, first_only)
    if found and first_only:
        return found
    return found + _refused(function, documents, middle, last, first_only)


def _text_of(documents: Documents, row: int) -> bytes | str:
    part = documents.part(row, row + 1).texts
    if isinstance(part, tuple):
        data, indptr = part
        return data[indptr[0] : indptr[1]].tobytes()  # type: ignore[no-any-return]
    text: bytes | str = part[0] if isinstance(part, list) else part[0].as_py()
    return text


def _invalid(documents: Documents, row: int) -> UnicodeDecodeError | None:
    try:
        text = _text_of(documents, row)
        if isinstance(text, bytes):
            text.decode("utf-8")
    except UnicodeDecodeError as problem:  # of an Arrow string too
        return problem
    return None


def _problem(error: JittokError, documents: Documents, row: int) -> Problem:
    number, position = int(documents.numbers[row]), int(documents.starts[row])
    if isinstance(error, SpecialTokenError):
        return Problem(number, position, SPECIAL_TOKEN, str(error))
    invalid = _invalid(documents, row)
    reason = f"invalid UTF-8 at byte {invalid.start} of the record ({invalid.reason})" if invalid else str(error)
    return Problem(number, position, NOT_UTF_8, reason)


def _located(error: JittokError, documents: Documents, row: int, source: Source, reading: Reading) -> JittokError:
    """The error of one document, with its place in the source."""
    number, position = int(documents.numbers[row]), int(documents.starts[row])
    where = place(source, number, position, reading.separator)
    invalid = _invalid(documents, row)
    if invalid is None:
        return type(error)(f"{where}: {error}")
    value = invalid.object[invalid.start]
    at, thing = (position + invalid.start, "the file") if source.kind == "text" else (invalid.start, "the record")
    return TextError(
        f"{where}: invalid UTF-8 at byte {at:,} (0x{value:02X}, {invalid.reason}) of {thing}. Expected text in UTF-8;"
        " convert it first, for example with: iconv -c -f utf-8 -t utf-8; or leave such records out with --on-error skip"
    )
