"""IMM in a plain PyTorch loop: ``python examples/language/lm_pytorch.py``.

Little text to train on, a bigram counted on a hundred times as much. Streaming matching: a running mean of the model's
own predictions after each word is the induced bigram, and no further pass is needed.
"""

import argparse

import torch
from lm_text import WORDS, perplexity, sentences, small_model
from torch.nn.functional import cross_entropy

from imm.matching import Streaming
from imm.ngram import Ngram


def train(lam: float, steps: int) -> float:
    """Trains with cross-entropy + λ · IMM; gives the perplexity on other sentences."""
    text, more = sentences(100, seed=1), sentences(10_000, seed=2)
    bigram = Ngram.fit(more.flatten(), WORDS, order=2)
    model = small_model()
    matching = Streaming(bigram)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        batch = text[torch.randint(0, len(text), (16,), generator=generator)]
        logits, short, word = model(batch).logits[:, :-1], batch[:, :-1], batch[:, 1:]
        loss = cross_entropy(logits.flatten(0, 1), word.flatten()) + lam * matching(logits, short)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return perplexity(model)


def main(steps: int) -> dict[float, float]:
    """Without IMM, and with it."""
    return {lam: train(lam, steps) for lam in (0.0, 1.0)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    for lam, found in main(parser.parse_args().steps).items():
        print(f"λ = {lam:g}: perplexity {found:.1f}")
