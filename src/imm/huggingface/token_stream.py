"""A stream of tokens as rows for a causal model, and how well it predicts them."""

from typing import Any

import torch
from torch import Tensor

from imm.language.evaluation import evaluating


def cut(tokens: Tensor, context: int) -> list[dict[str, Tensor]]:
    """Rows of ``context + 1`` tokens, the first of each the last of the row before: each other is predicted once."""
    rows = [tokens[i : i + context + 1] for i in range(0, len(tokens) - 1, context)]
    return [{"input_ids": row, "labels": row} for row in rows]


@torch.no_grad()
def log_likelihoods(model: Any, tokens: Tensor, context: int) -> Tensor:
    """``log Q`` of each token but the first, from those before it in its row of :func:`cut`, ``[n - 1]``.

    Args:
        model: causal.
        tokens: ``[n]``.
        context: how many tokens of a row are predicted.
    """
    rows = [row["input_ids"].to(model.device) for row in cut(tokens, context)]
    whole = torch.stack(rows[:-1]).split(32) if len(rows) > 1 else ()
    found = []
    with evaluating(model):
        for some in (*whole, rows[-1][None]):
            log_q = torch.log_softmax(model(input_ids=some).logits[:, :-1].float(), -1)
            found.append(log_q.gather(-1, some[:, 1:, None]).flatten())
    return torch.cat(found).cpu()
