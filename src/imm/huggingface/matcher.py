"""The three ways to match a batch, as the trainer calls them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.utils.checkpoint import checkpoint

from imm.huggingface.config import IMMConfig
from imm.huggingface.context_index import Index, log_q_at
from imm.huggingface.distributed import Together
from imm.huggingface.forward import Causal, Reading, head
from imm.huggingface.passes import exact_loss, sampled_backward
from imm.huggingface.positions import Places, Rows, as_keys, choose, find_places
from imm.huggingface.streaming import Codes, streaming_loss
from imm.inducers import Contexts
from imm.language.evaluation import evaluating
from imm.language.methods.induced_table import table_size
from imm.matching.induced_table import InducedTable
from imm.targets import Target

ROWS_AT_ONCE = 32
"""Rows of probabilities over the vocabulary that are held at once, unless told."""

KEPT_BY_LAYER, KEPT_OF_SCORES = 34, 3
"""What a usual transformer keeps of a token in a layer, in its width; of a row of scores, in words."""


LEAST_TABLE_MB = 64


def table_mb(model: nn.Module) -> int:
    """What running means may take unless told: half of what parameters, their gradients and Adam's moments do.

    So that streaming fits where plain training fits. Less than 64 MB is not worth saving.
    """
    trained = sum(p.nbytes * (4 if p.requires_grad else 1) for p in model.parameters())
    return max(LEAST_TABLE_MB, trained // 2_000_000)


@dataclass(frozen=True)
class Batch:
    """What is matched in a step.

    Attributes:
        rows: the texts as they are, without masks.
        places: the words that are predicted in them.
        scores: what the primary pass gave, ``[rows, length, words]``; None before it.
    """

    rows: Rows
    places: Places
    scores: Tensor | None = None


class Matcher(nn.Module):
    """IMM of a batch; the restricted model's side of a step. What it remembers is its ``state_dict``.

    Args:
        model: with a language-model head; for its size, it is not kept.
        args: the settings.
        target: the restricted model.
        reading: how the model reads.
        dataset: the training data.
        m: how many tokens a short context has.
        together: the processes.

    Attributes:
        apart: whether :meth:`backward_apart` is called after the primary loss's backward, and not :meth:`forward`
            before.
        contexts: names the short contexts that what it remembers is of; empty if of none.
        generators: of places, and of contexts; the same in each process. Two, so that draws do not depend on how many
            batches an optimizer step has.
    """

    apart = False
    contexts = ""

    def __init__(
        self,
        model: Any,
        args: IMMConfig,
        target: Target,
        reading: Reading,
        dataset: Any,
        m: int,
        together: Together,
    ) -> None:
        super().__init__()
        self.args, self.target, self.reading, self.m, self.together = args, target, reading, m, together
        self._width, self._layers = (getattr(model.config, name, 1) for name in ("hidden_size", "num_hidden_layers"))
        self.index = Index(dataset, reading, m)
        self.generators = {"places": Generator(), "contexts": Generator()}
        for generator in self.generators.values():
            generator.manual_seed(args.seed)

    def batch(self, inputs: Any) -> Batch:
        """The texts of a batch, and all places in them."""
        rows, predicted = self.reading.rows(inputs)
        return Batch(rows, find_places(rows, predicted, self.m))

    def forward(self, model: Any, batch: Batch) -> Tensor:
        """``Σ_t w_t IMM_t`` over the batch's places, differentiable."""
        raise NotImplementedError

    def backward_apart(self, model: Any, batch: Batch, scale: float) -> Tensor:
        """Adds the gradient of ``scale`` times that sum to the ``.grad``, and returns the sum."""
        raise NotImplementedError

    def _choose(self, places: Places) -> Places:
        """Draws for the whole batch of all processes, and takes one's own."""
        sizes = [len(each) for each in self.together.gather(places.row)]
        u = torch.rand(sum(sizes), generator=self.generators["places"], dtype=torch.float64)
        return choose(places, self.args.positions, u.split(sizes)[self.together.rank])

    def _contexts_at_once(self, batch: Batch) -> int:
        """How many contexts are run together: unless told, as many as need the memory that the primary pass needed.

        A pass in evaluation mode keeps what every layer gave, also with gradient checkpointing; the primary one then
        kept what went into each, and one layer.
        """
        if self.args.rows_at_once:
            return self.args.rows_at_once
        width, layers = self._width, self._layers
        of_context = self.index.row_length * KEPT_BY_LAYER * layers * width
        of_token = (layers + KEPT_BY_LAYER if self.args.gradient_checkpointing else KEPT_BY_LAYER * layers) * width
        of_scores = KEPT_OF_SCORES * len(self.target.classes)
        there = batch.rows.ids.numel() * of_token + len(batch.places) * of_scores
        return max(1, min(ROWS_AT_ONCE, int(there / of_context)))

    def _predict(self, model: Any) -> Any:
        def predict(_: Any, chosen: Tensor) -> Tensor:
            with evaluating(model):
                return log_q_at(model, self.reading, self.index, chosen)

        return predict


class StreamingMatcher(Matcher):
    """With the primary pass's scores if the model is causal, else with a pass for each of some places."""

    def __init__(self, model: Any, args: IMMConfig, target: Target, *rest: Any) -> None:
        super().__init__(model, args, target, *rest)
        self.codes = Codes(self.index)
        size = args.table_mb or table_mb(model)
        n_held, dtype = table_size(len(target.classes), size, min(args.memory, args.lifetime), len(self.codes))
        self.table = InducedTable(len(self.codes), args.memory, args.lifetime, n_held, dtype)
        self.contexts = self.codes.fingerprint()

    def forward(self, model: Any, batch: Batch) -> Tensor:
        """See the base class."""
        if isinstance(self.reading, Causal):
            if batch.scores is None:
                raise ValueError(
                    f"{type(model).__name__} gives no logits in training, as with a fused loss, and streaming matching"
                    " needs them: switch that off, or use sampled matching"
                )
            places, shape = batch.places, batch.rows.ids.shape
            scores = batch.scores.flatten(0, 1)
            at = places.row * shape[1] + places.place - 1
            codes = torch.full((len(scores),), -1, device=scores.device)
            codes[at] = self.codes.encode(places.short)
            weight = torch.zeros_like(codes, dtype=torch.float32)
            weight[at] = places.weight
        else:
            places = self._choose(batch.places)
            codes, weight = self.codes.encode(places.short), places.weight
            scores = weight.new_zeros(0, len(self.target.classes))
            if len(places):
                hidden = self._hidden(model, batch, places)
                with evaluating(model):
                    scores = head(model, hidden)
        return streaming_loss(
            self.table,
            scores,
            codes,
            weight,
            self.target,
            self.codes,
            self.args.rows_at_once or ROWS_AT_ONCE,
            self.together,
        )

    def _hidden(self, model: Any, batch: Batch, places: Places) -> Tensor:
        """Passes of some places at once; where there are several, they are made again on the way back."""

        def of(row: Tensor, place: Tensor) -> Tensor:
            with evaluating(model):
                return self.reading.hidden(model, batch.rows, row, place)

        some = self._contexts_at_once(batch)
        if len(places) <= some:
            return of(places.row, places.place)
        pieces = zip(places.row.split(some), places.place.split(some), strict=True)
        return torch.cat([checkpoint(of, row, place, use_reentrant=False) for row, place in pieces])


class ExactMatcher(Matcher):
    """All contexts of the training data."""

    def forward(self, model: Any, batch: Batch) -> Tensor:
        """See the base class."""
        places = self._choose(batch.places)
        if len(places) == 0:
            return places.weight.new_zeros(())
        at_once = self._contexts_at_once(batch)
        return exact_loss(self._predict(model), self.index.multiset, places.short, places.weight, self.target, at_once)


class SampledMatcher(Matcher):
    """k contexts of the training data for each of some places."""

    apart = True

    def backward_apart(self, model: Any, batch: Batch, scale: float) -> Tensor:
        """See the base class."""
        places = self._choose(batch.places)
        contexts = self._contexts(places.short)
        if len(places) == 0:
            return places.weight.new_zeros(())
        at_once = self._contexts_at_once(batch)
        return sampled_backward(
            self._predict(model), contexts, places.short, places.weight, self.target, scale, at_once
        )

    def _contexts(self, short: Tensor) -> Contexts:
        """Drawn for the whole batch of all processes; one's own of them, on the CPU."""
        every = self.together.gather(short)
        whole = torch.cat(every)
        sizes, rank = [len(each) for each in every], self.together.rank
        if len(whole) == 0:
            return Contexts(torch.zeros(0, 1, dtype=torch.long), torch.zeros(0, 1))
        drawn = self.index.multiset.draw(as_keys(whole), self.args.n_contexts, self.generators["contexts"])
        return Contexts(drawn.index.split(sizes)[rank], drawn.weights.split(sizes)[rank])


MATCHERS = {"streaming": StreamingMatcher, "exact": ExactMatcher, "sampled": SampledMatcher}
