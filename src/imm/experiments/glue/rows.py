"""The rows of four GLUE tasks, and the figure that each is judged by."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imm.experiments.data import data_file, data_folder


@dataclass(frozen=True)
class Task:
    """How a task's files are read.

    Attributes:
        texts: which columns are its sentences.
        label: which column is the answer.
        positive: the answer that is 1.
        header: how many lines stand above the rows.
    """

    texts: tuple[int, ...]
    label: int
    positive: str = "1"
    header: int = 1


TASKS = {
    "CoLA": Task((3,), 1, header=0),
    "MRPC": Task((3, 4), 0),
    "RTE": Task((1, 2), 3, "entailment"),
    "QNLI": Task((1, 2), 3, "entailment"),
}

Example = tuple[tuple[str, ...], int]
"""The sentences of a row, and its answer, 0 or 1."""


def read(task: str, split: str) -> list[Example]:
    """The rows of ``train`` or ``dev``, in the file's order; of a part of them, if ``….sample.tsv`` is all there is."""
    how = TASKS[task]
    whole, part = f"glue/{task}/{split}.tsv", f"glue/{task}/{split}.sample.tsv"
    only_part = (data_folder() / part).exists() and not (data_folder() / whole).exists()
    path = data_file(part if only_part else whole)
    rows = []
    for number, line in enumerate(path.read_text("utf-8-sig").split("\n")):
        if number < how.header or not line:
            continue
        rows.append(_example(line.split("\t"), how, path, number))
    return rows


def _example(cells: list[str], how: Task, path: Path, number: int) -> Example:
    if len(cells) <= max(*how.texts, how.label):
        raise ValueError(f"{path}: line {number + 1} has {len(cells)} columns, too few for a row of this task")
    return tuple(cells[i] for i in how.texts), int(cells[how.label].strip() == how.positive)


def score(task: str, answers: Any, predicted: Any) -> float:
    """Table results_bert: "Matthew's Correlation Coefficient is used for CoLA, F1 score for MRPC and Accuracy" else."""
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

    metric = {"CoLA": matthews_corrcoef, "MRPC": f1_score}.get(task, accuracy_score)
    return 100 * float(metric(answers, predicted))
