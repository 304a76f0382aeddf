"""Which columns of a table are the short features, and how they are taken from any kind of table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imm.tabular.distinct_rows import Array


def column_numbers(wanted: Any, X: Any, names: Sequence[str] | None, n_features: int) -> NDArray[np.intp]:
    """The numbers of the ``wanted`` columns, in their order, each once.

    Args:
        wanted: names, numbers (negative ones count from the end), a mask of ``n_features`` booleans, one name or
            number, or a callable that is given ``X`` and answers one of these.
        X: the table as the user gave it.
        names: its column names, None if it has none.
        n_features: how many columns it has.

    Example:
        >>> column_numbers(["age", "income"], None, ["income", "height", "age"], 3)
        array([2, 0])
        >>> column_numbers([True, False, True], None, None, 3)
        array([0, 2])
    """
    if callable(wanted):
        wanted = wanted(X)
    if isinstance(wanted, slice):
        wanted = list(range(n_features))[wanted]
    given = [wanted] if isinstance(wanted, str | int | np.integer) else list(wanted)
    if given and all(isinstance(value, bool | np.bool_) for value in given):
        if len(given) != n_features:
            raise ValueError(f"short_features has {len(given)} booleans, but the table has {n_features} columns")
        return np.flatnonzero(np.array(given, dtype=bool))
    numbers = [_number(value, names, n_features) for value in given]
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"short_features names a column twice: {given}")
    return np.array(numbers, dtype=np.intp)


def _number(value: Any, names: Sequence[str] | None, n_features: int) -> int:
    if isinstance(value, str):
        if names is None:
            raise ValueError(f"short_features has the name {value!r}, but the table's columns have no names")
        found = [i for i, name in enumerate(names) if name == value]
        if not found:
            raise ValueError(f"short_features has {value!r}, which is not among the columns {list(names)[:30]}")
        return found[0]
    if not isinstance(value, int | np.integer) or not -n_features <= value < n_features:
        raise ValueError(f"short_features must be names or numbers below {n_features}, got {value!r}")
    return int(value) % n_features


def table_names(X: Any) -> list[str] | None:
    """The column names of a pandas or polars table; None for an array or if they are not all strings."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


def take(X: Any, numbers: Sequence[int] | NDArray[np.intp]) -> Any:
    """These columns, as a table of the same kind with names if it has any, else as an array."""
    names = table_names(X)
    if names is not None:
        return X[[names[i] for i in numbers]]
    values: Array = np.asarray(X)
    return values[:, list(numbers)]
