"""The training loop: steps, epochs, the learning rate, and what survives an interruption."""

import hashlib
import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import nll_loss
from torch.nn.utils import clip_grad_norm_

from imm.files import check_file, digest, write_whole
from imm.language.dataset import Texts
from imm.language.evaluation import judged, log_likelihoods, mixed_perplexities, perplexity
from imm.language.methods import Loss, Step, method_for
from imm.language.model import LanguageModel, build, load_model, load_parameters, save_model
from imm.language.run_folder import (
    Checkpoint,
    claimed,
    generator_tensors,
    optimizer_tensors,
    restore_generators,
    restore_optimizer,
)
from imm.language.settings import VERSIONS, Settings, without_effect
from imm.language.training_log import Metrics
from imm.language.windows import Windows
from imm.matching import clipped_apart
from imm.progress import TrainingProgress

LOG_EVERY = 20


class DivergenceError(ValueError):
    """The loss is no number any more, or far worse than knowing nothing."""


@dataclass
class Position:
    """Where a run stands.

    Attributes:
        epoch, window: the next step.
        step: how many were done.
        rate: the learning rate.
        decays: how often it was reduced because valid got no better (SGD).
        best, best_epoch: the lowest validation perplexity so far, and the epoch after which it was.
        loss, count: the sum of the epoch's cross-entropies, and of how many steps.
        terms: of each loss term since the last record, its sum and of how many steps.
        done: whether training is over.
    """

    epoch: int = 0
    window: int = 0
    step: int = 0
    rate: float = 0.0
    decays: int = 0
    best: float = math.inf
    best_epoch: int = 0
    loss: float = 0.0
    count: int = 0
    terms: dict[str, tuple[float, int]] = field(default_factory=dict)
    done: bool = False


class Run:
    """One training run.

    Args:
        settings: everything that decides it.
        texts: what it is trained and judged on.
        folder: keeps ``settings.json``, ``metrics.jsonl``, ``checkpoint.safetensors``, the best model in ``model/``
            and at last ``result.json``. A run that was interrupted there continues, to the same bits.
        tensorboard: whether TensorBoard's files are written too.
        checkpoint_seconds: how much work an interruption may cost.
        start: the folder of a trained model whose parameters this run begins with, as a stage of its own: with its own
            learning rate, and with other random numbers than any stage before, whatever the seed.
    """

    def __init__(
        self,
        settings: Settings,
        texts: Texts,
        folder: Path,
        tensorboard: bool = False,
        checkpoint_seconds: float = 120.0,
        start: Path | None = None,
    ) -> None:
        self.settings, self.texts, self.folder = settings, texts, folder
        self._checkpoint_seconds = checkpoint_seconds
        with claimed(folder, identity(settings, start), texts.fingerprint()):
            self._make_ready(tensorboard, start)

    def _make_ready(self, tensorboard: bool, start: Path | None) -> None:
        settings, texts = self.settings, self.texts
        # A stage that used the seed of the one before would drop the same units in the same order.
        seed = settings.seed if start is None else int(digest(settings.seed, _parameters_digest(start)), 16)
        torch.manual_seed(seed)
        self._generator = Generator().manual_seed(seed)
        self.windows = Windows(texts.train, settings.batch_size, settings.unroll)
        self._used = replace(settings, unroll=self.windows.unroll)  # of a short text it is less
        self.model = build(len(texts.vocabulary), self._used)
        if start is not None:
            _begin_with(self.model, start, texts, settings)
        self.method = method_for(settings, texts, self.windows, self.model, self._generator)
        self._parameters = list(self.model.parameters())
        self._state = self.model.initial_state(self.windows.batch_size)
        rate = settings.learning_rate
        self._optimizer = torch.optim.SGD(self._parameters, rate)
        self.position = Position(rate=rate)
        length = self._resume()
        self._metrics = Metrics(self.folder, length, tensorboard, self.position.step)

    def train(self, progress: TrainingProgress | None = None) -> dict[str, Any]:
        """Runs to the end and gives the content of ``result.json``."""
        at, last, shown, valid = self.position, time.monotonic(), "begun", ""
        total = self.settings.epochs * len(self.windows)
        try:
            while not at.done:
                for name, part in self.step().items():
                    before, count = at.terms.get(name, (0.0, 0))
                    at.terms[name] = before + part.item(), count + 1
                if at.step % LOG_EVERY == 0 or at.window == len(self.windows):
                    record = {name: value / count for name, (value, count) in at.terms.items()}
                    self._metrics.write(at.step, {"learning_rate": at.rate, **record})
                    at.terms.clear()
                    shown = f"train {math.exp(min(at.loss / at.count, 700.0)):.1f}"
                if at.window == len(self.windows):
                    valid = f", valid {self._end_epoch():.1f}, best {at.best:.1f}"
                    last = self._save()
                elif time.monotonic() - last > self._checkpoint_seconds:
                    last = self._save()
                if progress is not None:
                    progress(at.step, total, shown + valid)
        finally:
            self._metrics.close()
        return self._result()

    def step(self) -> dict[str, Tensor]:
        """One window of the text; gives the loss terms, each without its factor."""
        at, settings = self.position, self.settings
        self._set_rate()
        left = 1 - at.step / (settings.epochs * len(self.windows)) if settings.falls else 1.0
        step = Step(self.model, self.windows[at.window], self._state, settings.lam * left, left)
        step = replace(step, batch=self.method.prepare(step))
        with self._fast_output():
            log_q, after = self.method.read(step)
        self._check(nll_loss(log_q.detach(), step.batch.labels).item())  # or the method would refuse it in its words
        loss: Loss = self.method(log_q, step)
        self._optimizer.zero_grad()
        (loss.total * self.windows.unroll).backward()
        norm = clip_grad_norm_(self._parameters, settings.clip)
        cross_entropy = loss.parts["cross_entropy"].item()
        self._check(cross_entropy, loss=loss.total.item(), gradient_norm=norm.item())
        parts = dict(loss.parts)
        if self.method.apart:
            parts["matching"] = self._second_pass(step)
            self._check(cross_entropy, gradient_norm=clip_grad_norm_(self._parameters, math.inf).item())
        self._optimizer.step()
        self._state = after
        at.loss, at.count = at.loss + cross_entropy, at.count + 1
        at.step, at.window = at.step + 1, at.window + 1
        return parts

    def _second_pass(self, step: Step) -> Tensor:
        """In evaluation mode; the primary state is not touched (Section experiments, LSTM)."""
        self.model.eval()
        try:
            with clipped_apart(self._parameters, self.settings.clip, step.lam), self._fast_output():
                return self.method.backward_apart(step, self.windows.unroll)
        finally:
            self.model.train()

    @contextmanager
    def _fast_output(self) -> Iterator[None]:
        """Computes the output layer as the setting ``precision`` says; outside it is exact."""
        self.model.output_dtype = torch.bfloat16 if self.settings.precision == "bf16" else None
        try:
            yield
        finally:
            self.model.output_dtype = None

    def _check(self, cross_entropy: float, **others: float) -> None:
        if not (cross_entropy <= self._hopeless and all(map(math.isfinite, others.values()))):
            seen = {"cross-entropy": cross_entropy, **others}
            figures = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in seen.items())
            raise self._diverged(f"at step {self.position.step + 1}: {figures}")

    @property
    def _hopeless(self) -> float:
        """A cross-entropy that no run comes back from: knowing nothing costs log V, a bad start little more.

        Of few words a single surprise costs more than that.
        """
        return max(3 * math.log(len(self.texts.vocabulary)) + 3, 20.0)

    def _diverged(self, how: str) -> DivergenceError:
        kept = f"; the last good state is in {self.folder}" if (self.folder / "checkpoint.safetensors").exists() else ""
        smaller = f"a learning rate below {self.position.rate:g}"
        if self.settings.lam and not without_effect(self.settings.method, ["lam"]):
            smaller += f" or a λ below {self.settings.lam:g}"
        return DivergenceError(f"training diverged {how}{kept}; try {smaller}, in another folder")

    def _set_rate(self) -> None:
        for group in self._optimizer.param_groups:
            group["lr"] = self.position.rate

    def _end_epoch(self) -> float:
        """Judges the model, and decides what it means for the next epoch; gives the validation perplexity."""
        at, settings = self.position, self.settings
        likelihoods = log_likelihoods(self.model, self.texts.valid, self._used.unroll, settings.batch_size)
        valid = perplexity(likelihoods)
        if not math.log(valid) <= self._hopeless:
            raise self._diverged(f"at step {at.step}: the validation perplexity is {valid:.4g}")
        record = {"train_perplexity": math.exp(min(at.loss / at.count, 700.0)), "valid_perplexity": valid}
        at.epoch, at.window, at.loss, at.count = at.epoch + 1, 0, 0.0, 0
        self._state = self.model.initial_state(self.windows.batch_size)
        self._metrics.write(at.step, {"epoch": at.epoch, **record})
        if valid < at.best:
            at.best, at.best_epoch = valid, at.epoch
            save_model(self.model, self.texts.vocabulary, self._used, self.folder / "model")
        elif not settings.decay_after:
            at.rate, at.decays = at.rate * settings.decay, at.decays + 1
            self.model.load_state_dict(load_parameters(self.folder / "model", settings))
        if 0 < settings.decay_after <= at.epoch:
            at.rate *= settings.decay
        at.done = at.epoch == settings.epochs or at.decays > settings.max_decays
        return valid

    def _result(self) -> dict[str, Any]:
        """Judges the best model, or reads how it was judged."""
        settings, texts, at = self.settings, self.texts, self.position
        path = self.folder / "result.json"
        names = ["epochs", "best_epoch", *(f"{name}_perplexity" for name in texts.judged)]
        finished = _figures(path, [*names, "ratio"] if settings.method == "interpolation" else names)
        if not (self.folder / "model" / "model.safetensors").exists():
            raise FileNotFoundError(f"{self.folder} has lost its model; remove it, and the same command trains again")
        if finished is not None:
            load_model(self.folder / "model")  # a damaged one is not said to be there
            return finished
        self.model.load_state_dict(load_parameters(self.folder / "model", settings))
        result: dict[str, Any] = {"epochs": at.epoch, "best_epoch": at.best_epoch}
        likelihoods = judged(self.model, texts.judged, self._used.unroll, settings.batch_size)
        found = {name: perplexity(each) for name, each in likelihoods.items()}
        if settings.method == "interpolation":
            result["ratio"], found = mixed_perplexities(likelihoods, texts.judged, texts.bigram)
        result |= {f"{name}_perplexity": value for name, value in found.items()}
        write_whole(path, json.dumps(result, indent=1) + "\n")
        return result

    def _save(self) -> float:
        """Everything; of a run that is over, whose best model is kept, only that it is."""
        tensors: dict[str, Tensor] = {}
        parts: dict[str, dict[str, Tensor]] = {
            "model": dict(self.model.state_dict()),
            "method": dict(self.method.state_dict()),
            "optimizer": optimizer_tensors(self._optimizer),
            "generator": generator_tensors(self._generator),
            "state": {str(i): part for i, part in enumerate(self._state)},
        }
        for prefix, part in ({} if self.position.done else parts).items():
            tensors |= {f"{prefix}.{name}": tensor for name, tensor in part.items()}
        record = {"position": asdict(self.position), "metrics": self._metrics.length()}
        Checkpoint(tensors, record).write(self.folder / "checkpoint.safetensors")
        return time.monotonic()

    def _resume(self) -> int:
        """Continues from the checkpoint, if there is one; how many bytes of the metrics belong to it."""
        path = self.folder / "checkpoint.safetensors"
        found = Checkpoint.read(path)
        if found is None:
            (self.folder / "result.json").unlink(missing_ok=True)  # of a run that is made again
            return 0
        try:
            return self._restore(found)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            what = " ".join(str(error).split())[:200]
            raise ValueError(f"{path} is damaged ({what}); remove it to begin anew") from None

    def _restore(self, found: Checkpoint) -> int:
        self.position = Position(**found.record["position"])
        if self.position.done:
            return int(found.record["metrics"])
        self.model.load_state_dict(found.under("model"))
        self.method.load_state_dict(found.under("method"))
        restore_optimizer(self._optimizer, found.under("optimizer"))
        restore_generators(self._generator, found.under("generator"))
        state = found.under("state")
        before = state["0"], state["1"]
        if [part.shape for part in before] != [part.shape for part in self._state]:
            raise ValueError("its state is of other columns")
        self._state = before
        return int(found.record["metrics"])


def identity(settings: Settings, start: Path | None = None) -> dict[str, Any]:
    """Returns what tells a run from others: its settings, its method's version and the parameters it begins with."""
    version = VERSIONS.get(settings.method)
    return {
        **settings.to_json(),
        **({} if version is None else {"version": version}),
        **({} if start is None else {"start": _parameters_digest(start)}),
    }


def _parameters_digest(folder: Path) -> str:
    path = folder / "model.safetensors"
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    check_file(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _begin_with(model: LanguageModel, start: Path, texts: Texts, shape: Settings) -> None:
    trained, vocabulary, settings = load_model(start)
    if (vocabulary.words, vocabulary.level) != (texts.vocabulary.words, texts.vocabulary.level):
        raise ValueError(
            f"{start} has another vocabulary than these texts: {len(vocabulary):,} words there,"
            f" {len(texts.vocabulary):,} here"
        )
    for name in ("width", "layers", "tied"):
        there, here = getattr(settings, name), getattr(shape, name)
        if there != here:
            raise ValueError(f"{start} is a model of another shape: {name} {there} there and {here} here")
    model.load_state_dict(trained.state_dict())


def _figures(path: Path, names: Sequence[str]) -> dict[str, float] | None:
    """What a finished run wrote; None if there is nothing, or it is damaged: the model can be judged again."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(path.read_text())
        figures = {name: found[name] for name in names}
        if all(math.isfinite(figure) for figure in figures.values()):
            return figures
    return None
