"""Neural full models: a multi-layer perceptron, or any module."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Generator, Tensor, nn

from imm.functional import cross_entropy_by_row, induce, objective
from imm.tabular.contexts import Pairs
from imm.tabular.distinct_rows import Array
from imm.tabular.engines.base import Problem
from imm.validation import check_count

Factory = Callable[[int, int], nn.Module]


@dataclass(frozen=True)
class NetworkFit:
    """A trained module; ``mean`` and ``scale`` are those of a regression's values."""

    module: nn.Module
    mean: float = 0.0
    scale: float = 1.0

    @torch.no_grad()
    def scores(self, x: Array) -> Array:
        """The module's outputs; for two classes the second logit less the first."""
        self.module.eval()
        parts = [self.module(part) for part in torch.from_numpy(x.astype(np.float32)).split(8192)]
        out: Array = torch.cat(parts).double().numpy() if parts else np.zeros((0, 1))
        return out[:, 1:] - out[:, :1] if out.shape[1] == 2 else self.mean + self.scale * out

    def arrays(self) -> dict[str, Array]:
        """The module's state."""
        state = {f"module.{name}": value.numpy() for name, value in self.module.state_dict().items()}
        return state | {"mean": np.array([self.mean]), "scale": np.array([self.scale])}


class Network(BaseEstimator):  # type: ignore[misc]
    """``cross-entropy + ½ l2 |w|² / n + λ · IMM`` (or half the squared error) by Adam in mini-batches.

    Each step draws ``n_contexts`` extended contexts for every short context of its batch   (Eq. k-approx-induced-q).
    Biases are not penalised. The learning rate falls to zero along half a cosine. The same seed gives the same model.

    Args:
        module: ``f(n_features, n_outputs) -> torch.nn.Module``, with one output for each class, or one for
            regression. A multi-layer perceptron if None.
        hidden: the perceptron's layers.
        epochs: passes over the rows.
        batch_size: rows a step.
        learning_rate: at the start.
        n_contexts: k.
        l2s: candidates for the penalty where it is chosen with λ.
    """

    def __init__(
        self,
        module: Factory | None = None,
        hidden: Sequence[int] = (64,),
        epochs: int = 100,
        batch_size: int = 64,
        learning_rate: float = 3e-3,
        n_contexts: int = 8,
        l2s: tuple[float, ...] = (1.0, 10.0),
    ) -> None:
        self.module = module
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_contexts = n_contexts
        self.l2s = l2s

    def folds(self, n: int) -> tuple[int, int]:  # noqa: ARG002 - a network takes its time at any size
        """Three, once."""
        return 3, 1

    def build(self, n_features: int, n_outputs: int) -> nn.Module:
        """An untrained module."""
        if self.module is not None:
            return self.module(n_features, n_outputs)
        widths = [n_features, *(check_count(width, "hidden") for width in self.hidden)]
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(widths[-1], n_outputs))

    def prepare(self, problem: Problem, seed: int) -> "Training":
        """Nothing is shared between strengths but the seed."""
        return Training(self, problem, seed)

    def restore(self, arrays: dict[str, Array], n_features: int, n_classes: int) -> NetworkFit:
        """From :meth:`NetworkFit.arrays`."""
        module = self.build(n_features, n_classes or 1)
        state = {name.removeprefix("module."): value for name, value in arrays.items() if name.startswith("module.")}
        module.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in state.items()})
        return NetworkFit(module, arrays["mean"].item(), arrays["scale"].item())


class Training:
    """One problem, as tensors."""

    def __init__(self, network: Network, problem: Problem, seed: int) -> None:
        self._network, self._problem, self._seed = network, problem, seed
        self._x = torch.from_numpy(problem.x.astype(np.float32))
        self._weight = torch.from_numpy((problem.weight / problem.weight.mean()).astype(np.float32))
        self._short = torch.from_numpy(problem.short)
        self._mean, self._scale, target, offset = 0.0, 1.0, problem.target, problem.offset
        self._offset = None
        if problem.n_classes:
            if offset is not None:
                logits = offset if problem.n_outputs > 1 else np.hstack([np.zeros_like(offset), offset])
                self._offset = torch.from_numpy(logits.astype(np.float32))
            self._y = torch.from_numpy(np.eye(problem.n_classes, dtype=np.float32)[problem.y])
        else:
            y = problem.y if offset is None else problem.y - offset[:, 0]
            self._mean = float(np.average(y, weights=problem.weight))
            self._scale = float(np.average((y - self._mean) ** 2, weights=problem.weight)) ** 0.5 or 1.0
            self._y = torch.from_numpy(((y - self._mean) / self._scale).astype(np.float32))[:, None]
            target = None if target is None else (target - self._mean) / self._scale
        self._target = None if target is None else torch.from_numpy(target.astype(np.float32))
        self._draw = (
            None if problem.pairs is None else Draw(problem.pairs, check_count(network.n_contexts, "n_contexts"))
        )

    def solve(self, l2: float, lam: float, start: Any = None, precise: bool = True) -> NetworkFit:  # noqa: ARG002
        """Trains from the seed's initial weights, whatever ``start`` is."""
        settings, n = self._network, len(self._x)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            module = settings.build(self._x.shape[1], self._y.shape[1])
            generator = Generator().manual_seed(self._seed)
            penalised = [p for p in module.parameters() if p.ndim > 1]
            optimizer = torch.optim.AdamW(module.parameters(), lr=settings.learning_rate, weight_decay=0.0)
            batch = min(settings.batch_size, n)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.epochs * -(-n // batch))
            module.train()
            for _ in range(settings.epochs):
                for rows in torch.randperm(n, generator=generator).split(batch):
                    loss = self._loss(module, rows, lam, generator)
                    penalty = sum((p.square().sum() for p in penalised), loss.new_zeros(()))
                    loss = loss + 0.5 * l2 / float(self._problem.weight.sum()) * penalty
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    schedule.step()
        return NetworkFit(module, self._mean, self._scale)

    def _loss(self, module: nn.Module, rows: Tensor, lam: float, generator: Generator) -> Tensor:
        weight = self._weight[rows]
        out = module(self._x[rows])
        by_row = self._by_row(out if self._offset is None else out + self._offset[rows], self._y[rows])
        loss = (weight * by_row).mean()
        if not lam or self._draw is None or self._target is None:
            return loss
        context = self._draw.code[rows]
        known = context >= 0
        if not bool(known.any()):
            return loss
        rows, weight, context = rows[known], weight[known], context[known]
        extended, mass = self._draw(context, generator)
        mixed = torch.where(self._short, self._x[rows][:, None], self._x[extended])
        out = module(mixed.flatten(0, 1)).unflatten(0, mixed.shape[:2])
        induced = induce(out.log_softmax(-1), mass) if self._problem.n_classes else (mass[..., None] * out).sum(1)
        return objective(loss, (weight * self._matching(induced, self._target[context])).mean(), lam)

    def _by_row(self, out: Tensor, y: Tensor) -> Tensor:
        """The loss of each row, ``[n]``."""
        if out.shape != y.shape:
            raise ValueError(f"the module must give [{len(y)}, {y.shape[1]}], got shape {tuple(out.shape)}")
        return self._matching(out.log_softmax(-1) if self._problem.n_classes else out, y)

    def _matching(self, induced: Tensor, target: Tensor) -> Tensor:
        if self._problem.n_classes:
            return cross_entropy_by_row(induced, target)
        return 0.5 * (induced - target).square().sum(-1)


class Draw:
    """``k`` extended contexts for each of some short contexts: all of them, if there are no more."""

    def __init__(self, pairs: Pairs, k: int) -> None:
        self.code = torch.from_numpy(pairs.code)
        self._k, self._all = k, pairs.width if (pairs.width or k + 1) <= k else None
        self._start = torch.from_numpy(pairs.start.astype(np.int64))
        self._extended = torch.from_numpy(pairs.extended.astype(np.int64))
        self._weight = torch.from_numpy(pairs.weight.astype(np.float32))
        # Each short context's weights sum to one: t + u falls among those of context t.
        self._edges = torch.from_numpy(np.cumsum(pairs.weight, dtype=np.float64))

    def __call__(self, context: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """Row numbers and weights, ``[n, k]`` each."""
        first, last = self._start[context, None], self._start[context + 1, None] - 1
        if self._all is not None:
            place = first + torch.arange(self._all)
            return self._extended[place], self._weight[place]
        u = torch.rand(len(context), self._k, dtype=torch.float64, generator=generator)
        place = torch.searchsorted(self._edges, context[:, None] + u).clamp(first, last)
        return self._extended[place], torch.full(place.shape, 1 / self._k)
