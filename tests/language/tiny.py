"""A text, a vocabulary and models so small that plain loops can follow them."""

from functools import cache

import torch
from torch import Tensor

from imm.language import Settings, Texts, Vocabulary
from imm.language.model import LanguageModel, build
from imm.ngram import Ngram

WORDS = ("<unk>", "<eos>", "a", "b", "c", "d", "e")


def tokens(n: int, seed: int = 0) -> Tensor:
    """A text in which words depend on the one before; the first ones have every word."""
    generator = torch.Generator().manual_seed(0)
    table = torch.softmax(2 * torch.randn(len(WORDS), len(WORDS), generator=generator), -1)
    generator.manual_seed(seed)
    out = list(range(len(WORDS)))
    while len(out) < n:
        out.append(int(torch.multinomial(table[out[-1]], 1, generator=generator)))
    return torch.tensor(out[:n])


@cache
def texts(n: int = 61, seed: int = 0, n_test: int | None = 17) -> Texts:
    """Training text, validation text, test text, and the bigram of the first."""
    train = tokens(n, seed)
    return Texts(
        vocabulary=Vocabulary(WORDS),
        bigram=Ngram.fit(train.numpy(), WORDS, 2, eos=1, unk=0),
        counts=torch.bincount(train, minlength=len(WORDS)),
        train=train,
        valid=tokens(23, seed + 1),
        test=None if n_test is None else tokens(n_test, seed + 2),
        unknown={"train": 0, "valid": 0, "test": 0},
    )


def settings(**changes: object) -> Settings:
    """Twenty-five steps of four words in three columns, five an epoch, of a model with a few hundred parameters."""
    small = {"width": 8, "layers": 2, "batch_size": 3, "unroll": 4, "epochs": 5, "dropout": 0.3}
    # λ is not 1, the default: a factor that is forgotten must show
    steered = {"decay_after": 0, "table_mb": 1, "lam": 0.2}
    return Settings(**{**steered, **small, **changes})  # type: ignore[arg-type]


def model(seed: int = 0, **changes: object) -> LanguageModel:
    """A model with random parameters, in evaluation mode, whose predictions differ a lot."""
    torch.manual_seed(seed)
    return build(len(WORDS), settings(init=0.8, **changes)).eval()
