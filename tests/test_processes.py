import multiprocessing
import time

import pytest
from torch.multiprocessing import ProcessRaisedException

from tests import processes


def fails(rank):
    if rank == 0:
        raise ValueError("no")
    time.sleep(10 * processes.LIMIT)


def test_an_error_in_one_is_raised_and_ends_all():
    with pytest.raises(ProcessRaisedException, match="ValueError: no"):
        processes.together(fails)
    assert multiprocessing.active_children() == []


def test_who_takes_too_long_is_killed(monkeypatch):
    monkeypatch.setattr(processes, "LIMIT", 0.1)
    with pytest.raises(TimeoutError, match=r"fails in 2 processes took more than 0\.1 seconds"):
        processes.together(fails)
    assert multiprocessing.active_children() == []
