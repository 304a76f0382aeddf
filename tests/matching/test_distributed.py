"""Each matching in two processes has the gradient of one process with the whole batch: under DDP and under FSDP2."""

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from imm.inducers import Contexts, Multiset
from imm.matching import Exact, Sampled, Serialized
from imm.targets import Table
from tests.processes import together

N, K = 16, 4
MATCHINGS = ("Exact", "Sampled", "Serialized")
"""Streaming's table is that of each process's own rows."""


class Drawn(Multiset):
    """Draws that depend on the short context alone, so that one process and two see the same."""

    def draw(self, short, n_contexts, generator=None):
        table = torch.randint(0, N, (4, n_contexts), generator=torch.Generator().manual_seed(2))
        return Contexts(table[short], torch.full((len(short), n_contexts), 1 / n_contexts, dtype=torch.float64))


def problem():
    source = torch.Generator().manual_seed(1)
    x = torch.randn(N, 6, generator=source, dtype=torch.float64)
    labels = torch.randint(0, 3, (N,), generator=source)
    short = torch.arange(N) // 2 % 4  # each of two processes has each short context as often
    target = Table.from_tensor(torch.softmax(torch.randn(4, 3, generator=source, dtype=torch.float64), -1))
    return x, labels, short, target


def matching(name, predict):
    x, _, short, target = problem()
    inducer = Drawn(short)
    if name == "Exact":
        return Exact(target, inducer, lambda _, index: predict(x[index]))
    if name == "Sampled":
        return Sampled(target, inducer, lambda _, index: predict(x[index]), K)
    return Serialized(target, inducer, lambda _, index: predict(x[index]))


def step(called, predict, name, rows, parts):
    """The gradients of cross-entropy + λ · IMM, over ``parts`` accumulation steps."""
    x, labels, short, _ = problem()
    loss_of = matching(name, predict)
    for some in rows.chunk(parts):
        logits = called(x[some])
        loss = cross_entropy(logits, labels[some]) + 0.7 * loss_of(logits, short[some], some)
        (loss / parts).backward()


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).double()


def gradients(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def worker(rank, out):
    found, rows = {}, torch.arange(N)[rank::2]
    for name in MATCHINGS:
        model = small_model()
        step(DistributedDataParallel(model), model, name, rows, 1)
        found["ddp", name] = gradients(model)
        model = small_model()
        wrapped = DistributedDataParallel(model)
        step(wrapped, model, name, rows, 2)  # each backward is synchronised: gradients add up all the same
        found["ddp, accumulated", name] = gradients(model)
        model = small_model()
        fully_shard(model)
        step(model, model, name, rows, 1)
        found["fsdp", name] = torch.cat([p.grad.full_tensor().flatten() for p in model.parameters()])
    if rank == 0:
        torch.save(found, out)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_two_processes_have_the_gradient_of_one_with_the_whole_batch(tmp_path):
    together(worker, tmp_path / "found.pt")
    found = torch.load(tmp_path / "found.pt", weights_only=True)
    for (kind, name), gradient in found.items():
        model = small_model()
        step(model, model, name, torch.arange(N), 1)
        torch.testing.assert_close(gradient, gradients(model), rtol=1e-10, atol=1e-12, msg=f"{kind}, {name}")
