"""The training data as extended contexts: where each short context stands."""

from collections.abc import Iterator, Mapping, Sized
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imm.huggingface.forward import Reading, head
from imm.huggingface.positions import Rows, as_keys, find_places
from imm.inducers import Multiset

BUCKETS = 4
"""Contexts are run together with others of about the same length."""


class Index:
    """All places of the training data at which a word is predicted, by their short contexts.

    Args:
        dataset: rows with ``input_ids``, and ``attention_mask``, ``token_type_ids``, ``position_ids``, ``labels`` where
            they have them. Where positions begin anew in a row, so does the text.
        reading: of the model.
        m: how many tokens a short context has.

    Attributes:
        short: ``[N, m]``, the short context of each place.
        row_length: the mean number of tokens of a row.
        longest: the largest.
        multiset: an inducer whose contexts are numbers of these places   (Eq. imm-from-dictionary).
    """

    def __init__(self, dataset: Any, reading: Reading, m: int) -> None:
        ids, types, begin, short, place = [], [], [0], [], []
        for given in _rows_of(dataset):
            rows, predicted = reading.rows(given)
            found = find_places(rows, predicted, m)
            short.append(found.short)
            place.append(found.place + begin[-1])
            ids.append(rows.ids[0])
            types += [] if rows.types is None else [rows.types[0]]
            begin.append(begin[-1] + rows.ids.shape[1])
        if not short or sum(map(len, short)) == 0:
            raise ValueError(
                f"the training data has no word to predict after {m} tokens in any of its {len(short)} rows"
            )
        self._ids, self._types = torch.cat(ids), torch.cat(types) if types else None
        self._begin = torch.tensor(begin)
        self.row_length = begin[-1] / (len(begin) - 1)
        self.longest = int(self._begin.diff().max())
        self._place = torch.cat(place)
        self.short = torch.cat(short)
        self.multiset = Multiset(as_keys(self.short))

    def gather(self, index: Tensor, whole: bool) -> tuple[Rows, Tensor, Tensor]:
        """The rows in which these places are, and row and place of each there.

        Args:
            index: numbers of places, ``[n]``.
            whole: whether rows go to their end, or to the last place that is asked for.
        """
        at = self._place[index]
        which, row = torch.unique(torch.searchsorted(self._begin, at, right=True) - 1, return_inverse=True)
        begin = self._begin[which]
        place = at - begin[row]
        length = self._begin[which + 1] - begin
        if not whole:
            length = torch.zeros_like(begin).scatter_reduce_(0, row, place, "amax")
        column = torch.arange(int(length.max()))
        real = column < length[:, None]
        flat = (begin[:, None] + column).where(real, 0)
        types = None if self._types is None else self._types[flat].where(real, 0)
        return Rows(self._ids[flat].where(real, 0), real, types), row, place

    def lengths(self, index: Tensor, whole: bool) -> Tensor:
        """How many tokens are read for each of these places."""
        at = self._place[index]
        which = torch.searchsorted(self._begin, at, right=True)
        return (self._begin[which] if whole else at) - self._begin[which - 1]


def log_q_at(model: Any, reading: Reading, index: Index, chosen: Tensor) -> Tensor:
    """``log Q(· | the words before)`` at places of the training data, ``[n, words]``; at least single precision.

    Args:
        model: with a language-model head.
        reading: how it reads.
        index: the training data.
        chosen: numbers of places, ``[n]``.
    """
    hidden: list[Tensor] = []
    order = index.lengths(chosen, reading.whole).argsort()
    for some in order.chunk(BUCKETS):
        rows, row, place = index.gather(chosen[some], reading.whole)
        hidden.append(reading.hidden(model, rows.to(model.device), row.to(model.device), place.to(model.device)))
    back = torch.empty_like(order).index_put_((order,), torch.arange(len(order)))
    return log_softmax(head(model, torch.cat(hidden)[back.to(model.device)]))


def log_softmax(scores: Tensor) -> Tensor:
    """At least single precision, under autocast too."""
    return torch.log_softmax(scores.to(torch.promote_types(scores.dtype, torch.float32)), -1)


def _rows_of(dataset: Any) -> Iterator[dict[str, Tensor]]:
    """Each text as a batch of its own, without padding, and without columns that say nothing of its tokens."""
    if not isinstance(dataset, Sized):
        kind = type(dataset).__name__
        raise ValueError(f"IMM looks for contexts in all of the training data: {kind} has no length; give one that has")
    for number in range(len(dataset)):
        given: Mapping[str, Any] = dataset[number]  # type: ignore[index]
        if "input_ids" not in given:
            raise ValueError(f"row {number} of the training data has no input_ids, only {', '.join(map(str, given))}")
        n_tokens = len(given["input_ids"])
        row = {
            name: torch.as_tensor(np.asarray(given[name], np.int64))
            for name in ("input_ids", "attention_mask", "token_type_ids", "position_ids", "labels")
            if name in given and np.shape(given[name]) == (n_tokens,)
        }
        if "input_ids" not in row:
            raise ValueError(
                f"row {number} of the training data has input_ids of shape {np.shape(given['input_ids'])}: give each"
                " row as one sequence of tokens"
            )
        real = row.pop("attention_mask", torch.ones(n_tokens)).bool()
        row = {name: values[real] for name, values in row.items()}
        positions = row.pop("position_ids", torch.arange(int(real.sum())))
        begins = (positions[1:] == 0).nonzero()[:, 0] + 1
        for text in zip(*(values[None].tensor_split(begins, 1) for values in row.values()), strict=True):
            yield dict(zip(row, text, strict=True))
