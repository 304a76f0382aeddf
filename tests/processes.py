"""Processes that tests start: each has a time limit, and none outlives its test."""

import gc
import os
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

LIMIT = 300
"""Seconds that a process of a test may take: many times what it needs, because the machine may be busy."""


def together(worker: Callable[..., None], *args: Any, n: int = 2) -> None:
    """Runs ``worker(rank, *args)`` in ``n`` processes of one gloo group.

    An error in one of them, or the end of :data:`LIMIT`, ends all and is raised here.
    """
    with tempfile.TemporaryDirectory() as folder:
        given = (worker, args, n, f"{folder}/meet", torch.get_num_threads())
        made = mp.spawn(_member, given, nprocs=n, join=False)
        try:
            end = time.monotonic() + LIMIT
            while not made.join(max(0.0, end - time.monotonic())):
                if time.monotonic() >= end:
                    raise TimeoutError(f"{worker.__name__} in {n} processes took more than {LIMIT} seconds")
        finally:
            for process in made.processes:
                process.kill()
                process.join()


def _member(rank: int, worker: Callable[..., None], args: tuple[Any, ...], n: int, meet: str, threads: int) -> None:
    torch.set_num_threads(threads)
    # Accelerate asks the environment how many there are, even if the group is there already.
    sizes = {"WORLD_SIZE": n, "LOCAL_WORLD_SIZE": n, "RANK": rank, "LOCAL_RANK": rank}
    os.environ.update({"MASTER_ADDR": "127.0.0.1"} | {name: str(value) for name, value in sizes.items()})
    limit = timedelta(seconds=LIMIT)
    dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=n, timeout=limit)
    worker(rank, *args)
    # Nobody leaves while another still talks to it, or while a thread of the group still holds tensors.
    gc.collect()
    dist.barrier()
    dist.destroy_process_group()
