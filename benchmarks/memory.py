"""Peak memory of one matching step, in a process of its own: ``python -m benchmarks.memory sampled 8``.

What is printed, in bytes, is how far the process's resident memory rises during the step above what it was just
before, after a warm step with one context. ``VmHWM`` of /proc/self/status is what is read: the highest resident
size, set back to the present one by writing 5 to /proc/self/clear_refs. Nothing of the allocator or of a library's
work space is missed, as it would be if only tensors were counted. Blocks over 64 kB are mapped one by one
(MALLOC_MMAP_THRESHOLD_), so that a freed one counts no more: without that, holes in the heap are measured too.
"""

import argparse
import ctypes
import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.problem import Lstm, model_on_histories, random_target, short_contexts, tokens
from imm import functional
from imm.inducers import Multiset
from imm.matching import Sampled

POSITIONS, CONTEXTS = 32, (2, 8, 32)


def resident(which: str) -> int:
    """``VmRSS`` (now) or ``VmHWM`` (highest) in bytes."""
    found = re.search(rf"{which}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def rise(call: Callable[[], object]) -> int:
    """How far the resident size is at most, while ``call`` runs, above what it was just before, in bytes."""
    gc.collect()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    call()
    return resident("VmHWM") - before


def peak(method: str, n_contexts: int) -> int:
    """Bytes that one gradient of the IMM risk takes, by ``sampled`` or by ``autograd`` through all contexts."""
    torch.manual_seed(0)
    torch.set_num_threads(2)
    stream = tokens(100_000)
    inducer = Multiset(short_contexts(stream))
    # Each short context once, so that both ways have as many contexts.
    short = short_contexts(stream).unique()[:POSITIONS]
    table = random_target(int(short.max()) + 1)
    target = table[short]
    log_q = model_on_histories(Lstm().eval(), stream)

    def step(k: int) -> None:
        if method == "sampled":
            Sampled(lambda some: table[some], inducer, log_q, k)(None, short).backward()
        else:
            index = inducer.draw(short, k).index
            log_each = log_q(index, index.flatten()).view(*index.shape, -1)
            functional.matching_loss(functional.induce(log_each), target).backward()

    step(1)  # gradients are there, libraries have their work space
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return rise(lambda: step(n_contexts))


def peak_in_new_process(method: str, n_contexts: int) -> int:
    command = [sys.executable, "-m", "benchmarks.memory", method, str(n_contexts)]
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    return int(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    figures = {}
    for method in ("sampled", "autograd"):
        for k in CONTEXTS:
            progress(f"memory: {method}, k = {k}")
            figures[f"memory_{method}_k{k}_mb"] = peak_in_new_process(method, k) / 1e6
    sampled = [figures[f"memory_sampled_k{k}_mb"] for k in CONTEXTS]
    figures["memory_sampled_max_over_min"] = max(sampled) / min(sampled)
    for k in CONTEXTS:
        ratio = figures[f"memory_autograd_k{k}_mb"] / figures[f"memory_sampled_k{k}_mb"]
        figures[f"memory_autograd_over_sampled_k{k}"] = ratio
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", choices=["sampled", "autograd"])
    parser.add_argument("n_contexts", type=int)
    print(peak(**vars(parser.parse_args())))
