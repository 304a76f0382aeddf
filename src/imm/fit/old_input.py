"""The old model as a person with files brings it: old rows, an ONNX file, or a column of scores."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from imm.fit.label import Label, check_label, written
from imm.tabular.column_types import Column, as_numbers, find_kinds
from imm.tabular.distinct_rows import Array
from imm.tabular.encoding import Encoding, typed
from imm.tabular.engines import engine_for
from imm.tabular.fitting import Setup
from imm.tabular.frame import Frame
from imm.tabular.onnx_model import Onnx
from imm.tabular.persistence import load
from imm.tabular.rivals import Table
from imm.tabular.tasks import Classification, Regression, Task, probabilities, values


class OldSource(Protocol):
    """Something that answers for the rows of a table as the old model does."""

    def ask(self, frame: Frame, label: Label) -> Array:
        """P̂, ``[n, classes]``, or ``[n, 1]`` values."""
        ...

    def save(self, folder: Path) -> dict[str, Any]:
        """Writes what is needed to ask again, and gives the rest as JSON."""
        ...

    def words(self) -> str:
        """What it is, for a person."""
        ...


@dataclass(frozen=True)
class OldData:
    """A model that is fitted on old rows, on the columns they share with the new ones."""

    encoding: Encoding
    model: Any
    about: str

    @classmethod
    def fit(cls, old: Frame, label: Label, columns: Sequence[Column], model: str, seed: int) -> "OldData":
        """Its penalty is chosen by cross-validation on the old rows."""
        from imm.tabular import IMMClassifier, IMMRegressor

        check_label(old, label.name)
        y = label.of(old)
        if label.classes is not None:
            lacking = [name for number, name in enumerate(label.classes) if number not in y]
            if lacking:
                there = ", ".join(written(old, label.name).unique(maintain_order=True)[:10])
                raise ValueError(
                    f"{old.path} has no row with {label.name!r} = {lacking[0]!r}, but the new rows have; it has {there}"
                )
        encoded = typed(old, columns)
        known = np.flatnonzero(y >= 0) if label.classes is not None else np.arange(len(y))
        encoded, y = {name: column[known] for name, column in encoded.items()}, y[known]
        encoding = Encoding.fit(columns, encoded)
        x = encoding(encoded)
        task = number_task(label)
        setup = Setup(task, engine_for(model), np.zeros(x.shape[1], dtype=bool), False, None, 1.0, True, seed)
        nothing = np.zeros((len(y), max(1, task.n_classes)))
        _, choice = setup.choose(replace(Table(x, y, nothing).data(), old=None), None, (0.0,))
        kind = IMMRegressor if label.classes is None else IMMClassifier
        fitted = kind(model=model, lam=0.0, l2=choice.l2, random_state=seed).fit(x, y)
        names = ", ".join(column.name for column in columns)
        other = f", {len(old) - len(y):,} with other labels left out" if len(y) < len(old) else ""
        about = f"a {model} model of {names}, fitted on {len(y):,} rows of {old.path.name}{other}"
        return cls(encoding, fitted, about)

    def ask(self, frame: Frame, label: Label) -> Array:
        """From the shared columns."""
        check_names(frame, [code.column.name for code in self.encoding.codes], "the old model's")
        x = self.encoding(typed(frame, [code.column for code in self.encoding.codes]))
        return number_task(label).ask(self.model, x)

    def save(self, folder: Path) -> dict[str, Any]:
        """The model in a folder of its own."""
        self.model.save(folder / "old")
        return {"kind": "data", "encoding": self.encoding.record(), "about": self.about}

    def words(self) -> str:
        """See :meth:`fit`."""
        return self.about


@dataclass(frozen=True)
class OldOnnx:
    """An ONNX file that is shown some columns as they are in the table, in its own order."""

    path: Path
    features: tuple[str, ...]

    def ask(self, frame: Frame, label: Label) -> Array:
        """Columns that are no numbers, and answers that are none, are refused."""
        check_names(frame, self.features, "the old model's")
        numbers = [as_numbers(frame, name) for name in self.features]
        x = np.column_stack([column.to_numpy().astype(np.float64) for column in numbers])
        session = Onnx(self.path)
        expects = getattr(session, "n_features_in_", len(self.features))
        if expects != len(self.features):
            raise ValueError(f"{self.path} sees {expects} columns, but --old-features names {len(self.features)}")
        answer, own = session(x)
        bad = np.flatnonzero(~np.isfinite(answer.reshape(len(x), -1)).all(1))
        if len(bad):
            raise ValueError(f"{self.path} gives no number for {frame.place(int(bad[0]))}: is a value missing there?")
        if label.classes is None:
            return values(answer, len(x))
        named = None if own is None else [str(name) for name in own]
        return probabilities(answer, len(x), named, np.array(label.classes))

    def save(self, folder: Path) -> dict[str, Any]:
        """A copy of the file, which must be all there is of it."""
        shutil.copyfile(self.path, folder / "old.onnx")
        try:
            Onnx(folder / "old.onnx")
        except ValueError:
            raise ValueError(
                f"{self.path} cannot be stored with the new model: its weights are in other files; export it as one"
            ) from None
        return {"kind": "onnx", "features": list(self.features)}

    def words(self) -> str:
        """With its columns."""
        return f"{self.path.name}, which sees {', '.join(self.features)}"


@dataclass(frozen=True)
class OldScore:
    """A column that holds what the old model said."""

    name: str
    positive: int

    def ask(self, frame: Frame, label: Label) -> Array:
        """Missing scores, and such that are no probabilities, are refused."""
        check_names(frame, [self.name], "the old score")
        found = as_numbers(frame, self.name)
        missing, outside = found.is_null(), ((found < 0) | (found > 1)).fill_null(False)
        if missing.any():
            raise ValueError(f"the old score {self.name!r} is missing in {frame.place(int(missing.arg_true()[0]))}")
        p = found.to_numpy().astype(np.float64)
        if label.classes is None:
            return values(p, len(p))
        if outside.any():
            row = int(outside.arg_true()[0])
            raise ValueError(
                f"the old score {self.name!r} must be a probability, 0 to 1, but {frame.place(row)} has {p[row]:g}:"
                " turn it into the probability that it stands for"
            )
        return np.stack([1 - p, p] if self.positive == 1 else [p, 1 - p], axis=1)

    def save(self, folder: Path) -> dict[str, Any]:  # noqa: ARG002 - nothing to write
        """The column must be there when predicting."""
        return {"kind": "score", "name": self.name, "positive": self.positive}

    def words(self) -> str:
        """With its name."""
        return f"what the column {self.name} says"


def restore(record: Mapping[str, Any], folder: Path) -> OldSource:
    """The reverse of :meth:`OldSource.save`."""
    if record["kind"] == "data":
        return OldData(Encoding.from_record(record["encoding"]), load(folder / "old"), record["about"])
    if record["kind"] == "onnx":
        return OldOnnx(folder / "old.onnx", tuple(record["features"]))
    return OldScore(record["name"], record["positive"])


def shared_columns(new: Frame, old: Frame, usable: Sequence[Column], label: str) -> tuple[list[Column], list[str]]:
    """The columns that an old model of old rows can use, and why it cannot use others of the new rows' columns.

    A column of another kind in the new rows is refused.
    """
    names = [name for name in new.names if name in old.names and name != label]
    if not names:
        raise ValueError(
            f"{new.path} and {old.path} share no column besides {label!r}: {', '.join(new.names[:15])} and"
            f" {', '.join(old.names[:15])}"
        )
    kinds = {column.name: column.kind for column in usable}
    every = find_kinds(old, names)
    found = [column for column in every if column.kind != "left out"]
    for column in found:
        here = kinds.get(column.name, column.kind)
        if here != column.kind:
            raise ValueError(
                f"column {column.name!r} is a {here} in {new.path}, but a {column.kind} in {old.path}: make them alike"
            )
    if not any(column.name in kinds for column in found):
        raise ValueError(
            f"of the columns that {new.path} and {old.path} share, {', '.join(names[:15])}, none can be used"
        )
    unused = {column.name: column.note for column in every if column.kind == "left out" and column.name in kinds}
    notes = [f"{name}: the old model does not see it ({old.path.name}: {why})" for name, why in unused.items()]
    theirs = [column.name for column in found if column.name not in kinds]
    return found, notes + [f"{name}: left out of the new model, but the old model sees it" for name in theirs]


def number_task(label: Label) -> Task:
    """The task with class numbers as labels, as models are trained here."""
    return Regression() if label.classes is None else Classification(np.arange(len(label.classes)))


def check_names(frame: Frame, names: Sequence[str], what: str) -> None:
    """Refuses a table that lacks one of these columns."""
    for name in names:
        if name not in frame.names:
            raise ValueError(f"{frame.path} has no column {name!r} ({what}); it has {', '.join(frame.names[:30])}")
