"""How well a full model predicts a text."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from imm.language.model import LanguageModel
from imm.ngram import Ngram


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, which IMM's passes are in too (Section experiments); the mode from before comes back."""
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)


def log_likelihoods(model: LanguageModel, tokens: Tensor, unroll: int, batch_size: int = 1) -> Tensor:
    """``log Q(word | all words before)`` of each word but the first, ``[n - 1]``.

    Args:
        model: the full model.
        tokens: ``[n]``.
        unroll: how many words are read at once: a matter of memory for an LSTM, of how far a transformer sees.
        batch_size: the text is cut into as many columns, each begun without history. 1 is the paper's way for test.
    """
    n = len(tokens) - 1
    if n < 1:
        raise ValueError(f"there is nothing to predict: a text needs two words, got {len(tokens)}, line ends included")
    rows = math.ceil(n / batch_size)
    place = (torch.arange(batch_size) * rows + torch.arange(rows)[:, None]).clamp(max=n - 1)  # the last may repeat
    found = []
    with evaluating(model), torch.no_grad():
        state = model.initial_state(batch_size)
        for begin in range(0, rows, unroll):
            part = place[begin : begin + unroll]
            log_q, state = model(tokens[part], state)
            found.append(log_q.gather(1, tokens[part + 1].reshape(-1, 1)).view(part.shape))
    return torch.cat(found).T.flatten()[:n]


def judged(model: LanguageModel, texts: Mapping[str, Tensor], unroll: int, batch_size: int) -> dict[str, Tensor]:
    """:func:`log_likelihoods` of ``valid``, in columns as when training, and of ``test``, in one as in the paper."""
    columns = {"valid": batch_size, "test": 1}
    return {name: log_likelihoods(model, tokens, unroll, columns[name]) for name, tokens in texts.items()}


def perplexity(log_likelihood: Tensor) -> float:
    """``exp(-mean)``, in double precision."""
    return math.exp(min(-log_likelihood.double().mean().item(), 700.0))


def interpolated(log_likelihood: Tensor, tokens: Tensor, bigram: Ngram, ratio: float) -> Tensor:
    """``log[(1 - ratio) Q + ratio P̂]`` of the same words; see :func:`imm.baselines.interpolate`."""
    restricted = bigram.score(tokens[:-1], tokens[1:])
    return ((1 - ratio) * log_likelihood.double().exp() + ratio * restricted).log()


def best_ratio(log_likelihood: Tensor, tokens: Tensor, bigram: Ngram) -> float:
    """The bigram's share that predicts these words best, in steps of 0.05."""
    ratios = [step / 20 for step in range(21)]
    return min(ratios, key=lambda ratio: perplexity(interpolated(log_likelihood, tokens, bigram, ratio)))


def mixed_perplexities(
    likelihoods: Mapping[str, Tensor], tokens: Mapping[str, Tensor], bigram: Ngram
) -> tuple[float, dict[str, float]]:
    """The bigram's share that is best on ``valid``, and with it the perplexity of each text."""
    ratio = best_ratio(likelihoods["valid"], tokens["valid"], bigram)
    found = {name: perplexity(interpolated(each, tokens[name], bigram, ratio)) for name, each in likelihoods.items()}
    return ratio, found
