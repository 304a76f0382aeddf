"""Cassandra's ``.POMDP`` files, the format of pomdp.org and of most solvers.

A preamble (``discount``, ``values``, ``states``, ``actions``, ``observations``, perhaps ``start``), then entries
``T: action : state : next p``, ``O: action : next : seen p`` and ``R: action : state : next : seen r``, where ``*`` is
all, a later entry overrides an earlier one, and fewer fields are followed by a row or a matrix. ``#`` begins a comment.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from imm.control.pomdp.model import Floats, Pomdp

ROUNDED = 1e-4
"""How far a row of probabilities may be from one: files print few digits."""

MOST = 2**28
"""How many entries of T or O a file may have: they are read into dense arrays, 2 GB at this size."""

KINDS = ("discount", "values", "states", "actions", "observations", "start", "T", "O", "R")
SETS = ("states", "actions", "observations")
FIELDS = {
    "T": ("actions", "states", "states"),
    "O": ("actions", "states", "observations"),
    "R": ("actions", "states", "states", "observations"),
}
Index = tuple[int | slice, ...]
Names = dict[str, int]
"""Each name's number."""


def read_pomdp(path: Path | str) -> Pomdp:
    """The problem in a ``.POMDP`` file; what is wrong with one is said in a line that names the file's line."""
    path = Path(path)
    try:
        content = path.read_text(encoding="utf-8-sig")  # with or without a byte order mark
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read as a .POMDP file: {error}") from None
    entries = list(_entries(path, content))
    preamble: dict[str, _Entry] = {}
    for entry in entries:
        if entry.kind not in FIELDS and preamble.setdefault(entry.kind, entry) is not entry:
            entry.fail(f"`{entry.kind}:` is given again, first in line {preamble[entry.kind].line}")
    missing = [kind for kind in ("discount", *SETS) if kind not in preamble]
    if missing:
        raise ValueError(f"{path} is not a .POMDP file: it has no line `{missing[0]}:`")
    sizes = {kind: preamble[kind].size() for kind in SETS}
    n, n_actions, n_seen = sizes.values()
    if (needed := n_actions * n * max(n, n_seen)) > MOST:
        raise ValueError(
            f"{path}: {n_actions} actions, {n} states and {n_seen} observations need {needed} entries, more than the"
            f" {MOST} that are read from a file; give Pomdp sparse matrices instead"
        )
    names = {kind: preamble[kind].names() for kind in SETS}
    start = preamble["start"].belief(names["states"]) if "start" in preamble else np.full(n, 1 / n)
    tables = {"T": np.zeros((n_actions, n, n)), "O": np.zeros((n_actions, n, n_seen))}
    for entry in entries:
        if entry.kind in tables:
            index = entry.index(names)
            tables[entry.kind][index] = entry.probabilities(tables[entry.kind][index].shape[-2:], start)
    sign = preamble["values"].sign() if "values" in preamble else 1.0
    reward = sign * _rewards([entry for entry in entries if entry.kind == "R"], names, tables["T"], tables["O"])
    try:
        labels = {kind: tuple(found) for kind, found in names.items()}
        discount = preamble["discount"].number()
        return Pomdp(tables["T"], tables["O"], reward, discount, start, **labels, tolerance=ROUNDED)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _rewards(entries: Sequence["_Entry"], names: dict[str, Names], T: Floats, O: Floats) -> Floats:  # noqa: E741
    """The mean reward ``[states, actions]``; what depends on what follows has a table for one state at a time."""
    n_actions, n, n_seen = O.shape
    out = np.zeros((n, n_actions))
    placed = [(entry.index(names), entry.numbers((n, n_seen)[2 - _free(entry) :])) for entry in entries]
    for action in range(n_actions):
        mine: list[list[tuple[Index, Floats]]] = [[] for _ in range(n)]
        for (by, here, *after), numbers in placed:
            if by in (action, slice(None)):
                for parts in mine[here] if isinstance(here, slice) else [mine[here]]:
                    parts.append((tuple(after), numbers))
        for state, parts in enumerate(mine):
            if all(numbers.ndim == 0 and index == (slice(None), slice(None)) for index, numbers in parts):
                out[state, action] = parts[-1][1] if parts else 0.0
                continue
            table = np.zeros((n, n_seen))
            for index, numbers in parts:
                table[index] = numbers
            out[state, action] = T[action, state] @ (O[action] * table).sum(1)
    return out


def _free(entry: "_Entry") -> int:
    """How many dimensions the numbers after the fields have."""
    return len(FIELDS[entry.kind]) - len(entry.fields)


@dataclass(frozen=True)
class _Entry:
    """One entry: what stands before its values, and these, with where it stands for messages."""

    path: Path
    line: int
    kind: str
    fields: tuple[str, ...]
    rest: tuple[str, ...]

    def fail(self, what: str) -> NoReturn:
        raise ValueError(f"{self.path}, line {self.line}: {what}")

    def numbers(self, shape: tuple[int, ...]) -> Floats:
        wanted = int(np.prod(shape))
        found = np.array([float(token) if _is_number(token) else np.nan for token in self.rest])
        finite = np.isfinite(found)
        if not finite.all():
            self.fail(f"`{self.kind}:` needs finite numbers, got {_short(self.rest[int(finite.argmin())])}")
        if found.size != wanted:
            self.fail(f"`{self.kind}:` needs {wanted} finite number{'s'[: wanted > 1]} here, got {found.size}")
        return found.reshape(shape)

    def number(self) -> float:
        return float(self.numbers(()))

    def sign(self) -> float:
        if self.rest not in (("reward",), ("cost",)):
            self.fail(f"`values:` must be reward or cost, got {' '.join(self.rest)!r}")
        return 1.0 if self.rest == ("reward",) else -1.0

    def size(self) -> int:
        """How many names there are, before any is made: a file may say any number."""
        return self._counted() or len(self.names())

    def names(self) -> Names:
        if counted := self._counted():
            return {str(i): i for i in range(counted)}
        if not self.rest or len(set(self.rest)) != len(self.rest) or all(map(_is_number, self.rest)):
            given = _short(" ".join(self.rest[:8]))
            self.fail(f"`{self.kind}:` must be a number above 0 or different names, got {given}")
        return {name: i for i, name in enumerate(self.rest)}

    def _counted(self) -> int | None:
        return _whole(self.rest[0]) if len(self.rest) == 1 else None

    def place(self, token: str, kind: str, names: Names) -> int | slice:
        if token == "*":
            return slice(None)
        if token in names:
            return names[token]
        number = _whole(token)
        if number is not None and number < len(names):
            return number
        return self.fail(f"{_short(token)} is not one of the {len(names)} {kind}")

    def index(self, names: dict[str, Names]) -> Index:
        """Where in its table the entry's values go."""
        kinds, least = FIELDS[self.kind], 2 if self.kind == "R" else 1
        if not least <= len(self.fields) <= len(kinds):
            self.fail(f"`{self.kind}:` has {len(self.fields)} fields, not {least} to {len(kinds)}")
        given = [self.place(token, kind, names[kind]) for token, kind in zip(self.fields, kinds, strict=False)]
        return (*given, *[slice(None)] * (len(kinds) - len(given)))

    def probabilities(self, shape: tuple[int, ...], start: Floats) -> Floats:
        """What follows a ``T:`` or ``O:``; ``shape`` is that of the last two dimensions it goes to."""
        shape = shape[len(shape) - _free(self) :] if _free(self) else ()
        if self.rest == ("uniform",) and shape:
            return np.full(shape, 1 / shape[-1])
        if self.rest == ("identity",) and self.kind == "T" and len(shape) == 2:
            return np.eye(*shape)
        if self.rest == ("reset",) and self.kind == "T" and shape:
            return start
        return self.numbers(shape)

    def belief(self, states: Names) -> Floats:
        """What follows ``start:``, ``start include:`` or ``start exclude:``."""
        n, chosen = len(states), np.zeros(len(states), dtype=bool)
        if not self.rest:
            self.fail(f"`start:` needs uniform, states, or {n} probabilities, got nothing")
        if self.fields:
            for token in self.rest:
                chosen[self.place(token, "states", states)] = True
            chosen = ~chosen if self.fields == ("exclude",) else chosen
        elif self.rest == ("uniform",):
            chosen[:] = True
        elif len(self.rest) == 1 and n > 1:
            chosen[self.place(self.rest[0], "states", states)] = True
        else:
            return self.numbers((n,))
        if not chosen.any():
            self.fail("`start` leaves no state")
        out: Floats = chosen / chosen.sum()
        return out


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _whole(token: str) -> int | None:
    """A whole number; what has more digits than any count of states is none."""
    return int(token) if token.isdecimal() and len(token) <= 20 else None


def _short(token: str) -> str:
    return repr(token if len(token) <= 60 else token[:57] + "...")


def _entries(path: Path, content: str) -> Iterator[_Entry]:
    """The entries in order; an entry goes on until the next begins."""
    tokens = [
        (token, number)
        for number, line in enumerate(content.splitlines(), 1)
        for token in re.findall(r":|[^\s:]+", line.partition("#")[0])
    ]
    begins: list[int] = []
    for i in range(len(tokens)):
        # `T: a : start : 0` has the name of an entry as a field: there a field stands after a colon.
        field = i > 0 and tokens[i - 1][0] == ":" and bool(begins) and tokens[begins[-1]][0] in FIELDS
        if not field and _begins([token for token, _ in tokens[i : i + 3]]):
            begins.append(i)
    if tokens and begins[:1] != [0]:
        token, line = tokens[0]
        raise ValueError(f"{path}, line {line}: {token!r} begins no entry; entries are {', '.join(KINDS)}")
    for first, last in itertools.pairwise([*begins, len(tokens)]):
        kind, line = tokens[first]
        words = [token for token, _ in tokens[first + 1 : last]]
        fields: list[str] = []
        if kind == "start" and words[0] != ":":
            fields.append(words.pop(0))
        words.pop(0)
        if kind in FIELDS:
            fields.append(words.pop(0) if words else "")
            while words[:1] == [":"]:
                fields.append(words[1] if len(words) > 1 else "")
                words = words[2:]
        if ":" in words:
            before, at = tokens[max(first, last - len(words) + words.index(":") - 1)]
            raise ValueError(f"{path}, line {at}: {before!r} before a colon begins no entry that is known here")
        yield _Entry(path, line, kind, tuple(fields), tuple(words))


def _begins(here: list[str]) -> bool:
    """Whether these tokens are the beginning of an entry, if they are no field."""
    if here[0] == "start" and len(here) == 3 and here[1] in ("include", "exclude") and here[2] == ":":
        return True
    return here[0] in KINDS and here[1:2] == [":"]
