"""The attentive full model."""

import torch
from torch import Tensor, nn

from imm.language.model import LanguageModel, State
from imm.language.settings import Settings


class Transformer(LanguageModel):
    """A small causal transformer that sees the window before and its own: from ``L`` to ``2 L`` words.

    Its state is the window before, as tokens; before the first word it is the first word of the vocabulary repeated.
    """

    def __init__(self, n_words: int, settings: Settings) -> None:
        super().__init__(n_words, settings)
        self.unroll = settings.unroll
        self.place = nn.Embedding(2 * settings.unroll, settings.width)
        layer = nn.TransformerEncoderLayer(
            settings.width, settings.heads, 4 * settings.width, settings.dropout, "gelu", norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, settings.layers, nn.LayerNorm(settings.width), False)

    def initial_state(self, batch_size: int) -> State:
        """A window of the vocabulary's first word, ``[L, batch]``."""
        return (torch.zeros(self.unroll, batch_size, dtype=torch.long, device=self.place.weight.device),)

    def hidden(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """See the base class."""
        length = len(tokens)
        if length > self.unroll:
            raise ValueError(f"a window has at most {self.unroll} words, got {length}")
        seen = torch.cat([state[0], tokens])
        embedded = self.embedding(seen) + self.place.weight[: len(seen), None]
        mask = nn.Transformer.generate_square_subsequent_mask(len(seen), device=seen.device)
        hidden: Tensor = self.layers(self.dropout(embedded), mask, is_causal=True)
        return hidden[-length:], (seen[-self.unroll :],)
