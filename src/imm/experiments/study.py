"""What an experiment is: settings, pieces of work, the paper's figures, and how it is drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
"""One flat record: it names its cell (``method``, ``n``, ``ratio`` …) and holds its figures (``mean``, ``p10`` …)."""

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """How rows become a figure: one line for each ``series``, one panel for each value of ``panel``.

    Attributes:
        x: the key along the horizontal axis; the same as ``series``: there are no lines, but a point for each of them,
            one below the other.
        x_label: what stands below the horizontal axis.
        y_label: what stands beside the vertical one.
        y: the key of what is drawn; rows without it are not.
        series: the key that tells the lines apart.
        panel: the key that tells the panels apart, if there are several.
        log_x: whether the horizontal axis is logarithmic.
        log_y: whether the vertical one is.
        y_limits: the ends of the vertical axis; where the rows end if None.
        note: what the error bars are, or anything else a reader of the figure must know.
        beside: whether the paper's means are drawn beside ours, as crosses.
        points: whether rows are points where they are, and not joined by lines.
    """

    x: str
    x_label: str
    y_label: str
    y: str = "mean"
    series: str = "method"
    panel: str | None = None
    log_x: bool = False
    log_y: bool = False
    y_limits: tuple[float, float] | None = None
    note: str = "bars: 10th to 90th percentile"
    beside: bool = False
    points: bool = False


@dataclass(frozen=True)
class Map:
    """How rows with a place become a figure and an animation: cells shaded by ``value``, arrows over them.

    Rows with ``y`` and ``x`` are cells, those with a ``step`` besides are a rollout.

    Attributes:
        panels: the methods, one panel each; the first is the landscape that is below all.
        moves: which keys of a row are probabilities, and the step (right, down) that each stands for.
        note: what a reader of the figure must know.
    """

    panels: Sequence[str]
    moves: Mapping[str, tuple[int, int]]
    note: str


@dataclass(frozen=True)
class Scorecard:
    """How rows become a coloured table: one line for each cell, one column for each method.

    Attributes:
        panels: the keys that tell the panels apart.
        lines: the keys that name a line.
        columns: the key that names a column.
        value: the figure that is printed and decides the colour: green above 0, red below.
        marked: the key whose value is marked.
        marks: which of its values, and how.
        note: what a reader of the figure must know.
    """

    panels: tuple[str, ...]
    lines: tuple[str, ...]
    columns: str
    value: str
    marked: str
    marks: Mapping[str, str]
    note: str


@dataclass(frozen=True)
class Planes:
    """How planes through a cube become four panels: the cube, a slice of it, curves over the first feature, angles.

    Rows say what they are by ``quantity``: the coefficients of a plane (``term``, ``value``), a point (its place and
    its label as ``value``), a curve (``value`` over ``x1``), or an angle (``mean`` and percentiles).

    Attributes:
        cube: its lowest and highest coordinate.
        terms: the name of the constant and of the three features.
        planes: the methods whose planes are drawn, with what they are called; the first is the true one.
        curves: those whose curves are.
        plane: the quantity of a plane's coefficients.
        point: that of a point.
        curve: that of a curve; it is the vertical axis too.
        angles: those of the last panel.
        at: where along the first feature the slice is.
        note: what a reader of the figure must know.
    """

    cube: tuple[float, float]
    terms: tuple[str, ...]
    planes: Mapping[str, str]
    curves: Mapping[str, str]
    plane: str
    point: str
    curve: str
    angles: tuple[str, ...]
    at: float
    note: str


@dataclass(frozen=True)
class Study:
    """One table or figure.

    Attributes:
        name: what ``imm reproduce`` calls it.
        title: one line that says what it shows and the paper's label for it.
        settings: everything that decides the rows, as JSON values; ``seed`` and ``runs`` are among them where
            they matter.
        quick: the settings that ``--quick`` changes.
        pieces: from settings, the pieces of work; each is a small record, resumed singly.
        run: from settings and a piece, its rows. The same settings and piece give the same rows.
        summarise: from the rows of all pieces, the rows of the result; those themselves if None.
        paper: the paper's figures for the same cells; None where it prints none.
        figure: how it is drawn; None for a table only.
        options: what only this study can be told on the command line; from settings and a value, other settings.
        continues: whether ``run`` takes a third argument: the folder where long work is kept, so that it continues
            after an interruption, and studies that need the same work do it once.
        reads_data: whether there are files of data that it reads: their folder is one of the settings if it is given.
        lists: the settings that only say which pieces there are. A piece that is finished stays so when they change.
        pieces_of: the folder, beside the study's own, of pieces that it shares with others of the same ``run``; they
            are kept when the result is whole.
    """

    name: str
    title: str
    settings: Settings
    quick: Settings
    pieces: Callable[[Settings], Sequence[Row]]
    run: Callable[..., Sequence[Row]]
    summarise: Callable[[Sequence[Row]], Sequence[Row]] | None = None
    paper: Sequence[Row] | None = None
    figure: Figure | Map | Planes | Scorecard | None = None
    options: Mapping[str, Callable[[Settings, Any], Settings]] = field(default_factory=dict)
    continues: bool = False
    reads_data: bool = False
    lists: tuple[str, ...] = ()
    pieces_of: str | None = None

    def with_options(
        self, quick: bool = False, runs: int | None = None, seed: int | None = None, **others: Any
    ) -> Settings:
        """The settings under the command line's options; those of ``others`` that are None were not given."""
        settings = {**self.settings, **(self.quick if quick else {})}
        for key, value in (("runs", runs), ("seed", seed)):
            if value is not None:
                if key not in settings:
                    raise ValueError(f"{self.name} has no {key} to set: it is not a Monte-Carlo study")
                least, most = (1, 10**6) if key == "runs" else (0, 2**31 - 1)
                if not least <= value <= most:
                    raise ValueError(f"{key} must be from {least} to {most}, got {value}")
                settings[key] = value
        for key, value in others.items():
            if value is not None:
                if key not in self.options:
                    raise ValueError(f"{self.name} has no {key} to set")
                settings = dict(self.options[key](settings, value))
        return settings

    def changed(self, settings: Settings) -> Settings:
        """What of these settings is not the study's own: a ``--quick`` result is not taken for a full one."""
        return {key: value for key, value in settings.items() if key != "data" and value != self.settings.get(key)}
