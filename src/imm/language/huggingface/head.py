"""A model's head alone."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput


class _Answer(BaseModelOutput):
    """The last hidden state and nothing else: what a head asks for besides (a cache, a router's scores) is None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class _Given(nn.Module):
    """Stands where the base model was, and answers what is known already."""

    def __init__(self, hidden: Tensor) -> None:
        super().__init__()
        self.hidden = hidden

    @property
    def decoder(self) -> "_Given":
        """What OPT's head asks."""
        return self

    def forward(self, *_: Any, **__: Any) -> Any:
        return _Answer(last_hidden_state=self.hidden)


def head(model: Any, hidden: Tensor) -> Tensor:
    """The scores of all words, ``[n, words]``, from rows of the base model's last hidden state, ``[n, width]``.

    A head is more than its last matrix in many models (a transform in BERT, a scale or a soft cap elsewhere), and each
    has another name for it: so the model's own code is run, with the base model's answer given.
    """
    name, base = model.base_model_prefix, model.base_model
    setattr(model, name, _Given(hidden[None]))
    try:
        scores: Tensor = model(input_ids=torch.zeros(1, 1, dtype=torch.long, device=hidden.device)).logits[0]
    finally:
        setattr(model, name, base)
    return scores
