"""pandas and polars: a column of texts to a column of lists of ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ArgumentTypeError, MissingDependencyError, TextError

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer


def encode_series(tokenizer: Tokenizer, series: Any, **settings: Any) -> Any:
    """Encode a series of texts.

    Parameters
    ----------
    tokenizer
        Encodes.
    series
        A pandas or polars Series of str, missing values allowed.
    **settings
        As in :meth:`jittok.Tokenizer.encode_arrow`.

    Returns
    -------
    pandas.Series or polars.Series
        Lists of int32, with the name of `series` and, in pandas, its index; missing where the text is. In pandas they are
        in Arrow memory (``list<int32>[pyarrow]``), in polars its own ``List(Int32)``.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    ArgumentTypeError
        It is no such series.

    Examples
    --------
    >>> import jittok, pandas
    >>> from jittok.interop.frames import encode_series
    >>> encode_series(jittok.load_default(), pandas.Series(["", None], name="text")).isna().tolist()
    [False, True]
    """
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("encode_series() needs pyarrow: pip install 'jittok[arrow]'") from None
    library = type(series).__module__.split(".")[0]
    if library == "polars" and hasattr(series, "to_arrow"):
        import polars

        ids = tokenizer.encode_arrow(series.to_arrow(), **settings)
        return polars.Series(series.name, ids, dtype=polars.List(polars.Int32))
    if library == "pandas" and hasattr(series, "index"):
        import pandas

        if getattr(series, "ndim", 1) != 1:
            raise ArgumentTypeError("series: expected one column of a frame, got all of it")
        try:
            texts = pyarrow.array(series, pyarrow.large_string(), from_pandas=True)
        except UnicodeEncodeError as error:
            raise TextError(f"series: a text has a lone surrogate at character {error.start}; remove it") from None
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
            raise ArgumentTypeError(f"series: expected texts ({error})") from None
        ids = tokenizer.encode_arrow(texts, **settings)
        return pandas.Series(pandas.arrays.ArrowExtensionArray(ids), index=series.index, name=series.name)
    raise ArgumentTypeError(f"series: expected a pandas or polars Series, got {type(series).__name__}")
