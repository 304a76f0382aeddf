"""How a model reads the words before a place, causal or masked, and its head alone."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from imm.huggingface.positions import Rows

IGNORED = -100
"""The label of what is not predicted."""


class Reading(Protocol):
    """What a kind of model answers.

    Attributes:
        whole: whether a row is needed to its end, not only up to the place that is asked for.
    """

    whole: bool

    def rows(self, inputs: Mapping[str, Any]) -> tuple[Rows, Tensor]:
        """A batch's token sequences, and which words are to be predicted, both ``[rows, length]``."""
        ...

    def hidden(self, model: Any, rows: Rows, row: Tensor, place: Tensor) -> Tensor:
        """What the head reads to predict the words at these places from all before them: ``[n, width]``."""
        ...


class Causal:
    """A model whose prediction of a word sees the words before it only, as GPT-2 and Llama."""

    whole = False

    def rows(self, inputs: Mapping[str, Any]) -> tuple[Rows, Tensor]:
        """See :class:`Reading`; words with the label -100 are not predicted."""
        rows = _rows(inputs, inputs["input_ids"])
        labels = inputs.get("labels")
        return rows, torch.ones_like(rows.real) if labels is None else labels != IGNORED

    def hidden(self, model: Any, rows: Rows, row: Tensor, place: Tensor) -> Tensor:
        """See :class:`Reading`: one pass over each row gives all of its places."""
        read: Tensor = _run(model, rows, rows.ids)[row, place - 1]
        return read


class Masked:
    """A masked model, made to predict the next word from the past (Appendix param-details).

    "At each location of a fine-tuning training sentence, we mask that word and all future words during the forward
    passes being done to compute the IMM component."  Tokens such as ``[SEP]`` are no words: they are not masked, nor
    predicted; nor is the word after one inside a row, the first of a second sentence: of what comes after a text a
    restricted model of texts knows only that another begins, with ``[CLS]``.

    Args:
        mask: the token of the mask.
        special: the tokens that are no words.
        restore: whether a batch's labels are the words that were masked in it for the MLM loss.
    """

    whole = True

    def __init__(self, mask: int, special: Sequence[int], restore: bool) -> None:
        self._mask, self._restore = mask, restore
        self._special = torch.tensor(sorted(special))

    def rows(self, inputs: Mapping[str, Any]) -> tuple[Rows, Tensor]:
        """See :class:`Reading`."""
        ids, labels = inputs["input_ids"], inputs.get("labels")
        if self._restore and labels is not None:
            ids = ids.where(labels == IGNORED, labels)
        rows, special = _rows(inputs, ids), self._is_special(ids)
        predicted = ~special
        predicted[:, 2:] &= ~(special[:, 1:-1] & rows.real[:, :-2])
        return rows, predicted

    def hidden(self, model: Any, rows: Rows, row: Tensor, place: Tensor) -> Tensor:
        """See :class:`Reading`: a pass for each place."""
        types = None if rows.types is None else rows.types[row]
        ids = rows.ids[row]
        future = torch.arange(ids.shape[1], device=ids.device) >= place[:, None]
        masked = ids.masked_fill(future & ~self._is_special(ids), self._mask)
        read: Tensor = _run(model, Rows(ids, rows.real[row], types), masked)[
            torch.arange(len(place), device=place.device), place
        ]
        return read

    def _is_special(self, ids: Tensor) -> Tensor:
        return torch.isin(ids, self._special.to(ids.device))


def _rows(inputs: Mapping[str, Any], ids: Tensor) -> Rows:
    real = inputs.get("attention_mask")
    real = torch.ones_like(ids).bool() if real is None else real.bool()
    return Rows(ids, real, inputs.get("token_type_ids"), inputs.get("position_ids"))


def _run(model: Any, rows: Rows, ids: Tensor) -> Tensor:
    more = {} if rows.types is None else {"token_type_ids": rows.types}
    out: Tensor = model.base_model(input_ids=ids, attention_mask=rows.real.long(), **more).last_hidden_state
    return out


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
