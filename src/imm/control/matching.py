"""The IMM risk of a policy in any world, as a second loss for any policy-gradient training."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from imm import functional
from imm.control.memory import Visited
from imm.control.spaces import Policy
from imm.inducers import Contexts
from imm.inducers.base import draw_columns
from imm.matching import Exact
from imm.validation import check_not_negative, check_probabilities

Short = Sequence[int] | Callable[[Tensor], Tensor]
"""Which part of an observation the restricted policy sees: columns of ``[n, features]``, or a function from
observations ``[n, *shape]`` to short contexts ``[n]`` or ``[n, d]``."""

Belief = Callable[[Tensor], tuple[Tensor, Tensor]]
"""What may go with a short context: from ``[n, ...]`` to observations ``[n, k, *shape]`` and weights ``[n, k]``, which
sum to one."""


class PolicyMatching:
    """The mismatch between a restricted policy and the average of the full one over what is not seen.

    ``-(1/n) Σ_t Σ_a P̂(a|short_t) log Σ_i w_i π(a|short_t, extended_i)``   (Eq. IMM-exact-coarse), with all that the
    belief gives; with k draws of equal weight it is Eq. IMM-component. A short context that repeats is induced once.

    Args:
        short: the part that the restricted policy sees. With columns, an extended observation has the short part of the
            one that asks, and only the rest is the belief's; with a function it is taken as the belief gives it.
        target: the restricted policy P̂, from short contexts to probabilities ``[n, actions]``.
        belief: a function, or :class:`Visited`, which learns from what was visited.

    Example:
        >>> matching = PolicyMatching(
        ...     short=[0],
        ...     target=lambda short: torch.tensor([[0.8, 0.2]]).repeat(len(short), 1),
        ...     belief=lambda short: (torch.tensor([[[9.0, -1.0], [9.0, 1.0]]]), torch.tensor([[0.5, 0.5]])),
        ... )
        >>> policy = lambda observations: observations[:, 1:] * torch.tensor([[2.0, 0.0]])
        >>> log_policy = lambda observations: torch.log_softmax(policy(observations), -1)
        >>> round(matching(log_policy, torch.tensor([[0.3, 5.0]])).item(), 4)  # it is (1/2, 1/2) on average: log 2
        0.6931
    """

    def __init__(self, short: Short, target: Callable[[Any], Tensor], belief: "Belief | Visited") -> None:
        for name, given in (("target", target), ("belief", belief)):
            if not callable(given):
                raise TypeError(f"{name} must be a function of short contexts, got {shown(given)}")
        self.columns = None if callable(short) else _columns(short)
        self._short = short if callable(short) else None
        self.target = target
        self.belief = belief

    def short(self, observations: Tensor) -> Tensor:
        """The short contexts of a batch of observations, ``[n]`` or ``[n, d]``."""
        n = len(observations)
        if self._short is not None:
            short = self._short(observations)
            if not isinstance(short, Tensor) or short.ndim not in (1, 2) or len(short) != n:
                raise ValueError(f"short must give a tensor [{n}] or [{n}, d] for {n} observations, got {shown(short)}")
            return short
        assert self.columns is not None
        if observations.ndim != 2 or any(not 0 <= column < observations.shape[1] for column in self.columns):
            raise ValueError(
                f"short must be columns of observations [n, features], got {self.columns}"
                f" for observations of shape {tuple(observations.shape)}"
            )
        return observations[:, self.columns]

    def see(self, observations: Tensor) -> None:
        """Lets a learned belief know what was visited, ``[n, *shape]``; a given one has nothing to learn."""
        if isinstance(self.belief, Visited):
            self.belief.see(observations, self.short(observations))

    def __call__(self, log_policy: Policy, observations: Tensor) -> Tensor:
        """The risk at these visited observations, a scalar that is differentiable in the policy.

        Args:
            log_policy: from observations ``[m, *shape]`` to ``[m, actions]`` log-probabilities.
            observations: ``[n, *shape]``. Not differentiated: how the policy changes the visits is the other loss's.
        """
        believed = _Believed(lambda short: self._asked(short, tuple(observations.shape[1:])))
        exact = Exact(self.target, believed, lambda _, index: log_policy(believed.observations[index]), check=True)
        risk: Tensor = exact(None, self.short(observations))
        return risk

    def _asked(self, short: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """What the belief gives, checked: observations ``[n, k, *shape]`` and weights ``[n, k]``."""
        given = self.belief(short)
        if not isinstance(given, tuple) or len(given) != 2:
            raise TypeError(f"belief must give two tensors, observations and weights, got {shown(given)}")
        observations, weights = given
        n, tensors = len(short), isinstance(observations, Tensor) and isinstance(weights, Tensor)
        if not tensors or weights.ndim != 2 or len(weights) != n or observations.shape != (*weights.shape, *shape):
            wanted = ", ".join(["n", "k", *map(str, shape)])
            raise ValueError(
                f"belief must give tensors, observations [{wanted}] and weights [n, k], for n = {n} short contexts,"
                f" got {shown(observations)} and {shown(weights)}"
            )
        check_probabilities(weights, "the belief's weights")
        if self.columns is not None:
            observations = observations.clone()
            observations[..., self.columns] = short[:, None].to(observations)
        return observations, weights


class _Believed:
    """What a belief gives, as an inducer: extended contexts are numbers of the observations that it gave last."""

    data = None
    own_short = False
    observations: Tensor

    def __init__(self, belief: Belief) -> None:
        self._belief = belief

    def every(self, short: Any) -> Contexts:
        observations, weights = self._belief(short)
        self.observations = observations.flatten(0, 1)
        return Contexts(torch.arange(weights.numel()).view_as(weights), weights, padded=True)

    def draw(self, short: Any, n_contexts: int, generator: Generator | None = None) -> Contexts:
        every = self.every(short)
        column = draw_columns(every.weights, n_contexts, generator)
        return Contexts(every.index.gather(1, column), torch.full(column.shape, 1 / n_contexts))


def _columns(short: Any) -> list[int]:
    if not isinstance(short, Sequence) or not short or not all(isinstance(column, int) for column in short):
        raise TypeError(f"short must be a function, or columns such as [0, 2], got {short!r}")
    return list(short)


Help = Callable[[Policy, Tensor], Tensor]
"""A second loss from ``log π`` and visited observations: a :class:`PolicyMatching`, or a function of the user's."""


def checked_lam(lam: float, help_with: Help | None) -> float:
    """λ, if there is something that it is the factor of."""
    if check_not_negative(lam, "lam") and help_with is None:
        raise ValueError(f"lam is {lam}, but there is no matching: give one, or lam = 0")
    return float(lam)


def let_see(lam: float, help_with: Help | None, observations: Tensor) -> None:
    """What was visited, ``[n, *shape]``, for a help that learns from it; a plain function does not."""
    if lam and isinstance(help_with, PolicyMatching):
        help_with.see(observations)


def helped(primary: Tensor, lam: float, help_with: Help | None, log_policy: Policy, at: Tensor) -> Tensor:
    """``primary + λ · help``   (Eq. main-objective); ``primary`` itself, untouched, where λ is 0."""
    checked_lam(lam, help_with)
    if lam == 0 or help_with is None:
        return primary
    return functional.objective(primary, help_with(log_policy, at), lam)


def shown(given: Any) -> str:
    """A tensor's shape, or the type of something else."""
    return f"shape {tuple(given.shape)}" if isinstance(given, Tensor) else f"a {type(given).__name__}"
