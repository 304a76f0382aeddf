"""What a person asks ``imm fit`` for, checked before anything is read."""

from dataclasses import dataclass
from pathlib import Path

from imm.tabular.engines import engine_for


@dataclass(frozen=True)
class Request:
    """What a person asks for; the options of ``imm fit``."""

    new: Path
    label: str
    old_data: Path | None = None
    old_model: Path | None = None
    old_features: tuple[str, ...] = ()
    old_score: str | None = None
    positive: str | None = None
    task: str | None = None
    model: str = "linear"
    keep_old: bool = False
    rivals: bool = False
    seed: int = 0

    def check(self) -> None:
        """Refuses options that contradict one another, before anything is read."""
        given = [name for name in ("old_data", "old_model", "old_score") if getattr(self, name) is not None]
        options = [f"--{name.replace('_', '-')}" for name in given]
        if not given:
            raise ValueError("where is the old model? Give --old-data, --old-model or --old-score")
        if len(given) > 1:
            raise ValueError(f"give one of {' and '.join(options)}, not {len(given)}")
        if self.old_model is not None and not self.old_features:
            raise ValueError("--old-model needs --old-features: the columns that it sees, in its order, as a,b,c")
        if self.old_features and self.old_data is not None:
            raise ValueError("--old-features is not needed with --old-data: the shared columns are its features")
        if len(set(self.old_features)) < len(self.old_features):
            raise ValueError(f"--old-features names a column twice: {', '.join(self.old_features)}")
        if self.positive is not None and self.old_score is None:
            raise ValueError("--positive says what --old-score means, which is not given")
        for option, names in (("--old-score", [self.old_score]), ("--old-features", self.old_features)):
            if self.label in names:
                raise ValueError(f"{option} names the label {self.label!r}: it is what the old model predicts")
        if self.old_score is not None and self.old_score in self.old_features:
            raise ValueError(
                f"--old-features names the old score {self.old_score!r}: give the columns that it was made of"
            )
        if self.task not in (None, "classification", "regression"):
            raise ValueError(f"--task must be classification or regression, got {self.task!r}")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**31:
            raise ValueError(f"--seed must be from 0 to {2**31 - 1}, got {self.seed}")
        if self.model not in ("linear", "mlp", "lightgbm", "xgboost"):
            raise ValueError(f"--model must be linear, mlp, lightgbm or xgboost, got {self.model!r}")
        engine_for(self.model)
