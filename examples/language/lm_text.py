"""What the three examples share: a drawn text, a small GPT-2 with random parameters, and perplexity."""

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

WORDS, LENGTH = 60, 16


def sentences(n: int, seed: int) -> Tensor:
    """Sentences in which a word depends on the two before it, ``[n, LENGTH]``; always of the same language."""
    language = torch.Generator().manual_seed(0)
    one, two = (2 * torch.randn(WORDS, WORDS, generator=language) for _ in range(2))
    generator = torch.Generator().manual_seed(seed)
    out = torch.randint(0, WORDS, (n, 2), generator=generator)
    for _ in range(LENGTH - 2):
        p = torch.softmax(one[out[:, -1]] + 0.5 * two[out[:, -2]], -1)
        out = torch.cat([out, torch.multinomial(p, 1, generator=generator)], 1)
    return out


def small_model() -> GPT2LMHeadModel:
    """The full model: it sees all words before, and has few sentences to learn from."""
    torch.manual_seed(0)
    size = {"n_positions": LENGTH, "n_embd": 64, "n_layer": 2, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, **size))


@torch.no_grad()
def perplexity(model: GPT2LMHeadModel) -> float:
    """On sentences that were not trained on."""
    text = sentences(200, seed=3).to(model.device)
    return float(model.eval()(text, labels=text).loss.exp())
