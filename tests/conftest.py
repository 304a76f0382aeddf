"""One thread and one seed by default and more on demand, and the same hypothesis examples at every run."""

import os

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(int(os.environ.get("IMM_TEST_THREADS", "1")))
settings.register_profile("imm", deadline=None, derandomize=True, max_examples=30, database=None)
settings.load_profile("imm")


def _seeds() -> list[int]:
    """``IMM_TEST_SEEDS``: one number, or a range such as ``0-19`` (both ends included); 0 if unset."""
    given = os.environ.get("IMM_TEST_SEEDS", "0")
    first, _, last = given.partition("-")
    try:
        return list(range(int(first), int(last or first) + 1))
    except ValueError:
        raise pytest.UsageError(f"IMM_TEST_SEEDS must be a number or a range such as 0-19, got {given!r}") from None


@pytest.fixture(params=_seeds(), ids=lambda seed: f"seed{seed}")
def seed(request: pytest.FixtureRequest) -> int:
    """A test that takes this must pass with any seed."""
    return int(request.param)


@pytest.fixture
def generator(seed: int) -> torch.Generator:
    """A generator of random numbers with the test's seed."""
    return torch.Generator().manual_seed(seed)
