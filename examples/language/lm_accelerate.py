"""IMM in a loop of Accelerate: ``accelerate launch examples/language/lm_accelerate.py``, on one process or several.

Streaming matching again, by ``streaming_loss``: it takes the model's scores as they are, holds few rows of
probabilities at a time, and knows of the other processes, so that each has the induced bigram of the whole batch.
"""

import argparse

import torch
from accelerate import Accelerator
from lm_text import WORDS, perplexity, sentences, small_model
from torch.utils.data import DataLoader

from imm.huggingface import Causal, Codes, Index, Together, streaming_loss
from imm.matching.induced_table import InducedTable
from imm.ngram import Ngram


def train(lam: float, steps: int) -> float:
    """Trains with cross-entropy + λ · IMM; gives the perplexity on other sentences."""
    text, more = sentences(100, seed=1), sentences(10_000, seed=2)
    bigram = Ngram.fit(more.flatten(), WORDS, order=2)
    codes = Codes(Index([{"input_ids": row} for row in text], Causal(), m=1))
    accelerator = Accelerator(cpu=True)
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    loader = DataLoader(text, batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(0))
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    together = Together(accelerator)
    table = InducedTable(len(codes)).to(accelerator.device)
    done = 0
    while done < steps:
        for batch in loader:
            outputs = model(batch, labels=batch)
            short = codes.encode(batch[:, :-1].reshape(-1, 1))
            scores = outputs.logits[:, :-1].flatten(0, 1)
            one_each = torch.ones(len(short), device=short.device)
            total = streaming_loss(table, scores, short, one_each, bigram, codes, together=together)
            # A sum over the places of all processes, of whose gradients the mean is taken.
            matching = total * together.size / together.sum(len(short))
            accelerator.backward(outputs.loss + lam * matching)
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            if done == steps:
                break
    return perplexity(accelerator.unwrap_model(model))


def main(steps: int) -> dict[float, float]:
    """Without IMM, and with it."""
    return {lam: train(lam, steps) for lam in (0.0, 1.0)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    for lam, found in main(parser.parse_args().steps).items():
        print(f"λ = {lam:g}: perplexity {found:.1f}")
