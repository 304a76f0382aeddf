"""IMM in Lightning, with manual optimization: ``python examples/language/lm_lightning.py``.

Sampled matching, the paper's: for some words, k contexts of the training text that end in the same word are run in
evaluation mode, and the gradient is clipped apart from that of the cross-entropy.
"""

import argparse
from typing import Any

import lightning
import torch
from lm_text import WORDS, perplexity, sentences, small_model
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader

from imm.huggingface import Causal, Index, evaluating, log_q_at
from imm.matching import Sampled, clipped_apart
from imm.ngram import Ngram

WORDS_AT_ONCE, K, CLIP = 8, 5, 1.0


class Matched(lightning.LightningModule):
    """A language model trained with cross-entropy + λ · IMM."""

    def __init__(self, text: Tensor, bigram: Ngram, lam: float) -> None:
        super().__init__()
        self.automatic_optimization = False  # its gradient is clipped apart
        self.model, self.lam = small_model(), lam
        self.index = Index([{"input_ids": row} for row in text], Causal(), m=1)
        self.generator = torch.Generator().manual_seed(0)
        self.matching = Sampled(bigram, self.index.multiset, self.predict, K, K, self.generator)

    def configure_optimizers(self) -> Any:
        """Adam."""
        return torch.optim.AdamW(self.model.parameters(), 3e-3)

    def training_step(self, batch: Tensor) -> None:
        """The cross-entropy's gradient, then IMM's, then the optimizer sees their sum."""
        optimizer: Any = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(self.model(batch, labels=batch).loss)
        clip_grad_norm_(self.model.parameters(), CLIP)
        words = batch[:, :-1].flatten()
        some = words[torch.randperm(len(words), generator=self.generator)[:WORDS_AT_ONCE]]
        with clipped_apart(self.model.parameters(), CLIP, self.lam):
            self.manual_backward(self.matching(None, some))
        optimizer.step()

    def predict(self, _: Tensor, places: Tensor) -> Tensor:
        """The model at places of the training text."""
        with evaluating(self.model):
            return log_q_at(self.model, Causal(), self.index, places)


def main(steps: int) -> dict[float, float]:
    """Without IMM, and with it."""
    text, bigram = sentences(100, seed=1), Ngram.fit(sentences(10_000, seed=2).flatten(), WORDS, order=2)
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    out = {}
    for lam in (0.0, 1.0):
        matched = Matched(text, bigram, lam)
        loader = DataLoader(text, 16, shuffle=True, generator=torch.Generator().manual_seed(0))
        lightning.Trainer(max_steps=steps, accelerator="cpu", **quiet).fit(matched, loader)
        out[lam] = perplexity(matched.model)
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    for lam, found in main(parser.parse_args().steps).items():
        print(f"λ = {lam:g}: perplexity {found:.1f}")
