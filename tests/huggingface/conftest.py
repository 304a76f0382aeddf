"""The trainer collects garbage at each start, which takes long in a heap as large as that of transformers."""

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def _little_to_collect():
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
