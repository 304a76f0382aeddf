"""A model with the encoding of its columns, on disk, and its predictions for files."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from imm.fit.label import Label
from imm.fit.old_input import OldSource, restore
from imm.tabular.encoding import Category, Encoding, typed
from imm.tabular.frame import Frame
from imm.tabular.persistence import FORMAT, check_format, load, whole

COLUMNS = "columns.json"


@dataclass(frozen=True)
class Saved:
    """All that a prediction needs.

    Attributes:
        label: what is predicted.
        encoding: of the columns.
        model: an :class:`IMMClassifier` of class numbers, or an :class:`IMMRegressor`.
        old: the old model if it is kept; None if it is not needed.
    """

    label: Label
    encoding: Encoding
    model: Any
    old: OldSource | None

    def save(self, folder: Path) -> None:
        """JSON, and the model in a folder of its own."""
        self.model.save(folder / "model")
        record = {
            "format": FORMAT,
            "label": asdict(self.label),
            "columns": self.encoding.record(),
            "features": self.encoding.features(),
            "old": None if self.old is None else self.old.save(folder),
        }
        (folder / COLUMNS).write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "Saved":
        """The reverse; nothing that is read is run."""
        try:
            record = json.loads((folder / COLUMNS).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(f"{folder} is not what `imm fit` wrote: it has no {COLUMNS}") from None
        except ValueError as error:
            raise ValueError(f"{folder / COLUMNS} is damaged ({error}): fit the model again") from None
        with whole(folder / COLUMNS):
            check_format(folder, record)
            classes = record["label"]["classes"]
            label = Label(record["label"]["name"], None if classes is None else tuple(classes))
            encoding = Encoding.from_record(record["columns"])
            if encoding.features() != record["features"]:
                raise LookupError("its columns do not make its features")
            old = None if record["old"] is None else restore(record["old"], folder)
        return cls(label, encoding, load(folder / "model"), old)

    def predict(self, frame: Frame) -> pl.DataFrame:
        """A row for each row: ``predicted``, and for classes ``probability of`` each."""
        missing = [code.column.name for code in self.encoding.codes if code.column.name not in frame.names]
        if missing:
            raise ValueError(
                f"{frame.path} lacks the columns {', '.join(missing[:30])}, which the model was trained with"
            )
        x = self.encoding(typed(frame, [code.column for code in self.encoding.codes]))
        old = None if self.old is None else self.old.ask(frame, self.label)
        if self.label.classes is None:
            return pl.DataFrame({"predicted": self.model.predict(x, old)})
        p = self.model.predict_proba(x, old)
        best = [self.label.classes[number] for number in p.argmax(1)]
        return pl.DataFrame(
            {"predicted": best, **{f"probability of {name}": p[:, i] for i, name in enumerate(self.label.classes)}}
        )

    def notes(self, frame: Frame) -> list[str]:
        """What a person should know of the rows: categories without a feature of their own."""
        found = []
        for code in self.encoding.codes:
            if isinstance(code, Category):
                values = typed(frame, [code.column])[code.column.name]
                unknown = values.filter(values.is_not_null() & ~values.is_in(code.levels))
                if len(unknown):
                    some = ", ".join(map(str, unknown.unique(maintain_order=True)[:3]))
                    found.append(f"{code.column.name}: {len(unknown)} rows have a rare or new category ({some})")
        return found
