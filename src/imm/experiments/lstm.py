"""The engine of the language studies: one training run on a part of the Penn Treebank, and its figures."""

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imm.experiments.study import Row, Settings
from imm.files import digest

if TYPE_CHECKING:
    from imm.language import Texts

TRAINING = {
    # "the same topology for the LSTM RNN", two layers, at a width that two processors train in an hour
    "width": 200,
    # "L = 35 unroll positions are used"
    "unroll": 35,
    "batch_size": 20,
    "judged": None,
    "learning_rate": 1.0,
    "clip": 5.0,
    # "k = 10 (and j = 5)"; positions, memory and the schedule are ours
    "n_contexts": 10,
    "every": 5,
    "positions": 32,
    "memory": 1000.0,
    "lifetime": 30.0,
    # fraction of the text: epochs, the epoch from which the learning rate is halved after each, dropout
    "schedule": {
        "0.05": [12, 8, 0.5],
        "0.1": [10, 6, 0.5],
        "0.25": [4, 2, 0.5],
        "1.0": [4, 2, 0.3],
    },
}
"""What the language studies share."""

QUICK: Settings = {
    "width": 32,
    "batch_size": 4,
    "judged": 5000,
    "schedule": {"0.01": [4, 3, 0.2]},
}
"""What ``--quick`` changes in all of them: a hundredth of the text, for the plumbing and not for the figures."""

OF_METHOD = {"imm-sampled": ("n_contexts", "every", "positions"), "imm-streaming": ("memory", "lifetime")}
"""The settings that only one method has: a run of another is the same run whatever they are."""


@lru_cache(maxsize=2)
def texts(fraction: float, recount: bool, judged: int | None) -> "Texts":
    """The first part of the Penn Treebank, and a bigram of all of it or of that part.

    Models are judged on the first ``judged`` words of valid and test, all if None.
    """
    from imm.language import Texts, data_file

    train, valid, test = (data_file(f"ptb/ptb.{part}.txt") for part in ("train", "valid", "test"))
    whole = Texts.read(train, valid, test)
    assert whole.test is not None
    whole = replace(whole, valid=whole.valid[:judged], test=whole.test[:judged])
    return whole if fraction == 1 else whole.first(fraction, recount)


def bigram_alone(text: "Texts") -> dict[str, float]:
    """The restricted model's own perplexity on train, valid and test."""
    from imm.targets.ngram import evaluate

    parts = {"train": text.train, **text.judged}
    return {split: evaluate(text.bigram, [tokens.numpy()]).perplexity for split, tokens in parts.items()}


def train(settings: Settings, piece: Row, kept: Path) -> "Trained":
    """One run, continued from where it was interrupted; one that is over is read.

    Args:
        settings: those of ``TRAINING``, and ``seed``.
        piece: ``method``, ``strength`` (λ, or γ of noising), ``fraction``, ``recount``, ``restart``; ``falls`` if
            the strength falls to zero; ``dropout`` if it is not that of the schedule.
        kept: where runs are kept.
    """
    from imm.language import Run
    from imm.language import Settings as Training

    text = texts(piece["fraction"], piece["recount"], settings["judged"])
    epochs, decay_after, usual = settings["schedule"][str(piece["fraction"])]
    names = ("width", "unroll", "batch_size", "learning_rate", "clip", *OF_METHOD.get(piece["method"], ()))
    noising = piece["method"].endswith("noising")
    chosen = {
        **{name: settings[name] for name in names},
        "gamma" if noising else "lam": piece["strength"],
        "falls": piece.get("falls", False),
        "method": piece["method"],
        "epochs": epochs,
        "decay_after": decay_after,
        "dropout": piece.get("dropout", usual),
        "seed": settings["seed"] + piece["restart"],
    }
    training, folder = Training(**chosen), kept / digest(chosen, text.fingerprint())
    return Trained(folder, text, Run(training, text, folder).train())


@dataclass(frozen=True)
class Trained:
    """A run that is over.

    Attributes:
        folder: where its model is.
        text: what it was trained and judged on.
        result: its figures.
    """

    folder: Path
    text: "Texts"
    result: dict[str, Any]

    def perplexity(self) -> dict[str, float]:
        """On valid and test."""
        return {split: self.result[f"{split}_perplexity"] for split in ("valid", "test")}

    def epochs(self) -> list[float]:
        """On valid, after each epoch."""
        records = map(json.loads, (self.folder / "metrics.jsonl").read_text().splitlines())
        return [record["valid_perplexity"] for record in records if "epoch" in record]

    def interpolated(self) -> dict[str, float]:
        """On valid and test, mixed with the bigram; its share is the best on valid."""
        from imm.language import evaluation, load_model

        model, _, settings = load_model(self.folder / "model")
        likelihoods = evaluation.judged(model, self.text.judged, settings.unroll, settings.batch_size)
        return evaluation.mixed_perplexities(likelihoods, self.text.judged, self.text.bigram)[1]

    def induced(self) -> dict[str, float]:
        """Of the induced bigram, on train, valid and test."""
        from imm.language import induced_ngram, load_model

        model, vocabulary, settings = load_model(self.folder / "model")
        bigram = induced_ngram(model, self.text.train, len(vocabulary), settings.unroll, settings.batch_size)
        parts = {"train": self.text.train, **self.text.judged}
        return {split: bigram.perplexity(tokens) for split, tokens in parts.items()}
