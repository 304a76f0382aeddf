"""The engine of the language studies: an LSTM is trained plainly, then trained on with each method.

A cell is a part of the Penn Treebank and a width. In each cell plain training chooses its dropout, and each method its
strength, by the validation text and with the first seed; all methods begin with the same parameters, at the same
learning rate, and have as many steps. Runs are kept, so that studies share them.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imm.experiments.study import Row, Settings
from imm.files import digest

if TYPE_CHECKING:
    from torch import Tensor

    from imm.language import Texts

TRAINING = {
    # "L = 35 unroll positions are used"
    "unroll": 35,
    "batch_size": 20,
    "clip": 5.0,
    "precision": "bf16",
    "table_mb": 2000,
    # "we settled for k = 10 (and j = 5)"
    "n_contexts": 10,
    "every": 5,
    # The rate at which the published program mixes the label on the other batches: that of noising.
    "gamma": 0.2,
    "memory": 1000.0,
    "lifetime": 30.0,
    # Plain training: the rate is halved when the validation text gets no better, as in the published program.
    "first_stage": {"learning_rate": 1.0, "decay_after": 0, "max_decays": 3},
    # The published program turns IMM on late, with the rate set back to 0.5; here every method begins there.
    "second_stage": {"learning_rate": 0.5, "decay_after": 3},
    # λ of reverse KD and of IMM, γ0 of noising; the same number of tries for each method but plain training, which has
    # as many tries of its dropout.
    "strengths": {
        "none": [0.0],
        "kn-noising": [0.1, 0.2, 0.4],
        "reverse-kd": [0.2, 0.5, 1.0],
        "imm-sampled": [1.0, 2.0, 4.0],
        "imm-streaming": [1.0, 2.0, 4.0],
    },
    "judged": None,
    "seed": 0,
}
"""What the language studies share."""

OF_METHOD = {"imm-sampled": ("n_contexts", "every", "gamma", "table_mb"), "imm-streaming": ("memory", "lifetime")}
"""The settings that only one method has: a run of another is the same run whatever they are."""

SHARED = ("unroll", "batch_size", "clip", "precision")


@lru_cache(maxsize=2)
def texts(percent: float, ngram_percent: float, judged: int | None) -> "Texts":
    """Returns the first part of the Penn Treebank, with a bigram of that part or of all of it.

    Models are judged on the first ``judged`` words of valid and test, all if None.
    """
    from imm.experiments.data import data_file
    from imm.language import Texts

    train, valid, test = (data_file(f"ptb/ptb.{part}.txt") for part in ("train", "valid", "test"))
    whole = Texts.read(train, valid, test)
    assert whole.test is not None
    whole = replace(whole, valid=whole.valid[:judged], test=whole.test[:judged])
    if ngram_percent not in (percent, 100):
        raise ValueError(f"the bigram is of {percent}% or of 100% of the text, got {ngram_percent}")
    return whole if percent == 100 else whole.first(percent / 100, ngram_percent == percent)


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

    def perplexities(self) -> dict[str, float]:
        """Returns the perplexity on ``valid`` and ``test``."""
        return {split: self.result[f"{split}_perplexity"] for split in ("valid", "test")}

    def log_likelihoods(self, split: str) -> "Tensor":
        """Returns ``log Q`` of each word of ``valid`` or ``test``."""
        from imm.language import load_model
        from imm.language.evaluation import judged

        model, _, settings = load_model(self.folder / "model")
        return judged(model, {split: self.text.judged[split]}, settings.unroll, settings.batch_size)[split]

    def induced(self) -> dict[str, float]:
        """Returns the perplexity of the induced bigram on train, valid and test, and with the old one mixed in.

        The share of the old one is the best on valid.
        """
        from imm.language import induced_ngram, load_model
        from imm.language.diagnosis import mixed_with

        model, vocabulary, settings = load_model(self.folder / "model")
        bigram = induced_ngram(model, self.text.train, len(vocabulary), settings.unroll, settings.batch_size)
        parts = {"train": self.text.train, **self.text.judged}
        found = {split: bigram.perplexity(tokens) for split, tokens in parts.items()}
        ratio, _ = mixed_with(bigram, self.text.bigram, self.text.valid)
        for split, tokens in self.text.judged.items():
            found[f"{split} mixed"] = mixed_with(bigram, self.text.bigram, tokens, ratio)[1]
        return found


def bigram_alone(text: "Texts") -> dict[str, float]:
    """Returns the perplexity of the restricted model itself on train, valid and test."""
    from imm.ngram import evaluate

    parts = {"train": text.train, **text.judged}
    return {split: evaluate(text.bigram, [tokens.numpy()]).perplexity for split, tokens in parts.items()}


@dataclass(frozen=True)
class Cell:
    """The runs of one cell; each is trained when it is asked for, and continued or read if it is there.

    Attributes:
        settings: those of ``TRAINING``.
        cell: ``percent`` and ``ngram_percent`` of the text, ``width``, the ``epochs`` of both stages, the ``dropout``
            rates to be tried, and the strengths as ``tries``.
        kept: the folder of runs.
    """

    settings: Settings
    cell: Row
    kept: Path

    @property
    def text(self) -> "Texts":
        """The texts of the cell."""
        return texts(self.cell["percent"], self.cell["ngram_percent"], self.settings["judged"])

    def dropout(self) -> float:
        """Returns the rate that is best for plain training on the validation text."""
        rates: list[float] = self.cell["dropout"]
        return rates[0] if len(rates) == 1 else min(rates, key=self.dropout_tries().__getitem__)

    def dropout_tries(self) -> dict[float, float]:
        """Returns the validation perplexity of plain training with each rate, of the first seed."""
        return {rate: self._first_stage(rate, 0).perplexities()["valid"] for rate in self.cell["dropout"]}

    def strength(self, method: str) -> float:
        """Returns the strength that is best for a method on the validation text."""
        tries: list[float] = self.cell["tries"]
        return tries[0] if len(tries) == 1 else min(tries, key=self.strength_tries(method).__getitem__)

    def strength_tries(self, method: str) -> dict[float, float]:
        """Returns the validation perplexity of a method with each strength, of the first seed."""
        return {each: self._second_stage(method, each, 0).perplexities()["valid"] for each in self.cell["tries"]}

    def plain(self, seed: int) -> Trained:
        """Returns plain training with its best dropout rate, before the second stage."""
        return self._first_stage(self.dropout(), seed)

    def trained(self, method: str, seed: int) -> Trained:
        """Returns the second stage of a method with its best strength."""
        return self._second_stage(method, self.strength(method), seed)

    def _first_stage(self, dropout: float, seed: int) -> Trained:
        return self._run("none", 0.0, dropout, seed, 0, None)

    def _second_stage(self, method: str, strength: float, seed: int) -> Trained:
        return self._run(method, strength, self.dropout(), seed, 1, self.plain(seed).folder / "model")

    def _run(self, method: str, strength: float, dropout: float, seed: int, stage: int, start: Path | None) -> Trained:
        from imm.language import Run
        from imm.language import Settings as Training
        from imm.language.training import identity

        names = (*SHARED, *OF_METHOD.get(method, ()))
        chosen = {
            **{name: self.settings[name] for name in names},
            **self.settings["second_stage" if stage else "first_stage"],
            "gamma" if method.endswith("noising") else "lam": strength,
            "method": method,
            "width": self.cell["width"],
            "epochs": self.cell["epochs"][stage],
            "dropout": dropout,
            "seed": self.settings["seed"] + seed,
        }
        training = Training(**chosen)
        folder = self.kept / digest(identity(training, start), self.text.fingerprint())
        return Trained(folder, self.text, Run(training, self.text, folder, start=start).train())


def gain(here: Trained, there: Trained, split: str) -> tuple[float, float]:
    """Returns how far one model's log-perplexity is below another's, in nats a word, and the standard error of that.

    Lines are the units: words of one line are not independent, and both models read the same ones.
    """
    import torch

    gained = (here.log_likelihoods(split) - there.log_likelihoods(split)).double()
    line = (here.text.judged[split][:-1] == here.text.vocabulary.eos).long().cumsum(0)
    sums = torch.zeros(int(line[-1]) + 1, dtype=torch.float64).index_add_(0, line, gained)
    mean = gained.mean().item()
    spread = (sums - mean * torch.bincount(line)).square().sum().sqrt().item()
    return mean, spread / len(gained)
