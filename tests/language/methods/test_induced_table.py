import math

import pytest
import torch

from imm.language.methods import describe_table
from imm.language.methods.induced_table import table_size
from imm.matching.induced_table import InducedTable
from tests.matching.test_induced_table import feed


@pytest.mark.parametrize("n_words", [10, 500, 501, 700, 2000])
@pytest.mark.parametrize(("memory", "lifetime"), [(0.0, 30.0), (1e4, 30.0), (10.0, math.inf), (math.inf, math.inf)])
def test_a_table_stays_within_its_limit(n_words, memory, lifetime):
    n_held, dtype = table_size(n_words, 1, min(memory, lifetime))
    assert n_held * n_words * dtype.itemsize <= 1_000_000
    assert (n_held + 1) * n_words * dtype.itemsize > 1_000_000 or n_held == n_words
    assert (dtype == torch.bfloat16) == (n_words > 500 and min(memory, lifetime) <= 100)


def test_at_least_one_short_context_is_held():
    assert table_size(600_000, 1)[0] == 1


def test_the_table_is_described():
    assert describe_table(50_000, 1024) == (
        "table of induced bigrams: 10,240 of 50,000 short contexts, bfloat16, 1,024 MB"
    )
    assert "5,120 of 50,000 short contexts, float32" in describe_table(50_000, 1024, math.inf)


def test_a_coarse_table_survives_a_long_text(generator):
    """Predictions that drift: rounding makes the sum of a long mean drift too, which is no fault of theirs."""
    coarse, fine = (InducedTable(1, 1000.0, 30.0, dtype=dtype) for dtype in (torch.bfloat16, torch.float32))
    endless = InducedTable(1, math.inf, math.inf, dtype=torch.bfloat16)
    for step in range(400):
        drift = torch.sin(torch.arange(50.0) + step / 100)
        q = torch.softmax(2 * drift + torch.randn(3, 50, generator=generator), -1)
        for matching in (coarse, fine, endless) if step > 300 else (endless,):
            feed(matching, q, torch.zeros(3, dtype=torch.int64))
    torch.testing.assert_close(coarse.induced[:1].float(), fine.induced[:1], rtol=0.05, atol=1e-3)
