"""Noising-based data augmentation for discrete contexts and predictions (Appendix noising-observations)."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from imm.validation import check_count, check_fraction, check_probabilities, check_same_shape, check_weights

Where = Literal["context", "prediction", "both"]


@dataclass(frozen=True)
class Noise:
    """How often a token is noised, and what replaces it.

    Attributes:
        gamma: ``[contexts]``, the probability γ(x) that a position with context ``x`` is noised.
        q: ``[tokens]``, the distribution that the replacement is drawn from.
    """

    gamma: Tensor
    q: Tensor

    def __post_init__(self) -> None:
        check_probabilities(self.q, "q")
        if not bool(((self.gamma >= 0) & (self.gamma <= 1)).all()):
            raise ValueError(
                f"gamma must be between 0 and 1, got {self.gamma.min().item()} to {self.gamma.max().item()}"
            )

    @classmethod
    def uniform(cls, n_tokens: int, gamma: float) -> "Noise":
        """Every token alike, everywhere as often."""
        n_tokens = check_count(n_tokens, "n_tokens")
        return cls(torch.full((n_tokens,), check_fraction(gamma, "gamma")), torch.full((n_tokens,), 1 / n_tokens))

    @classmethod
    def unigram(cls, counts: Tensor, gamma: float) -> "Noise":
        """Tokens by their frequency in bigram counts ``c(x, y)``, ``[contexts, tokens]``; everywhere as often."""
        check_weights(counts.flatten(), "counts")
        tokens = counts.sum(0).to(torch.get_default_dtype())
        return cls(torch.full((len(counts),), check_fraction(gamma, "gamma")), tokens / tokens.sum())

    @classmethod
    def kneser_ney(cls, counts: Tensor, gamma0: float) -> "Noise":
        """``γ(x) = γ0 N1+(x, ·) / c(x)`` and ``q(y) ∝ N1+(·, y)``, from bigram counts ``c(x, y)``.

        A context that never occurs has γ = 0.
        """
        check_weights(counts.flatten(), "counts")
        kinds = counts > 0
        return cls.of_kinds(kinds.sum(1), kinds.sum(0), counts.sum(1), gamma0)

    @classmethod
    def of_kinds(cls, after: Tensor, before: Tensor, total: Tensor, gamma0: float) -> "Noise":
        """:meth:`kneser_ney` without a table of all pairs.

        Args:
            after: ``N1+(x, ·)``, ``[contexts]``: how many different tokens follow each.
            before: ``N1+(·, y)``, ``[tokens]``: how many different ones it follows.
            total: ``c(x)``, ``[contexts]``.
            gamma0: γ0.
        """
        dtype = torch.get_default_dtype()
        gamma = check_fraction(gamma0, "gamma0") * after / torch.where(total > 0, total, 1)  # no count, no kinds
        return cls(gamma.to(dtype), before.to(dtype) / before.sum())


def noise(
    contexts: Tensor, predictions: Tensor, by: Noise, where: Where, generator: Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Replaces, at each position with probability γ(context), the context, the prediction, or both.

    With ``"both"`` one coin decides, and the two replacements are drawn independently.

    Args:
        contexts: ``[n]`` tokens.
        predictions: ``[n]`` tokens.
        by: how often and by what.
        where: what is replaced.
        generator: makes the noise reproducible.

    Returns:
        The noised contexts and predictions, ``[n]`` each; the given ones are not changed.
    """
    if where not in ("context", "prediction", "both"):
        raise ValueError(f"where must be 'context', 'prediction' or 'both', got {where!r}")
    check_same_shape(contexts, predictions, "contexts and predictions")
    for tokens, size, name in ((contexts, len(by.gamma), "contexts"), (predictions, len(by.q), "predictions")):
        if tokens.numel() == 0 or int(tokens.min()) < 0 or int(tokens.max()) >= size:
            raise ValueError(f"{name} must be tokens 0 to {size - 1} and not empty, got {tokens.tolist()[:5]} …")
    coin = torch.rand(contexts.shape, generator=generator) < by.gamma[contexts]

    def replaced(tokens: Tensor) -> Tensor:
        draws = torch.multinomial(by.q, tokens.numel(), replacement=True, generator=generator)
        return torch.where(coin, draws.view(tokens.shape), tokens)

    return (
        contexts if where == "prediction" else replaced(contexts),
        predictions if where == "context" else replaced(predictions),
    )


def expected_counts(counts: Tensor, by: Noise, where: Where) -> Tensor:
    """The bigram counts ``c̃(x, y)`` that a learner sees on average under :func:`noise`.

    (a) context: ``[1 - γ(x)] c(x,y) + q(x) Σ_x' γ(x') c(x',y)``
    (b) prediction: ``[1 - γ(x)] c(x,y) + q(y) γ(x) c(x)``
    (c) both: ``[1 - γ(x)] c(x,y) + q(x) q(y) Σ_x',y' γ(x') c(x',y')``

    Args:
        counts: ``c(x, y)``, ``[tokens, tokens]``.
        by: how often and by what.
        where: what is replaced.
    """
    gamma, q = by.gamma[:, None], by.q
    noised = gamma * counts
    kept = counts - noised
    if where == "context":
        return kept + q[:, None] * noised.sum(0)
    if where == "prediction":
        return kept + q * noised.sum(1, keepdim=True)
    if where == "both":
        return kept + q[:, None] * q * noised.sum()
    raise ValueError(f"where must be 'context', 'prediction' or 'both', got {where!r}")
