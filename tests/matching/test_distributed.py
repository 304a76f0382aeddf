"""Sampled's replays are explicit calls: under DistributedDataParallel each of them is synchronised."""

import torch
from torch import nn
from torch.nn.functional import nll_loss
from torch.nn.parallel import DistributedDataParallel

from imm.inducers import Contexts
from imm.matching import Sampled, clipped_apart
from tests.processes import together

N, K = 16, 4


class Drawn:
    """Draws that depend on the row alone, so that one process and two see the same."""

    def draw(self, short, n_contexts, generator=None):
        index = torch.randint(0, N, (N, n_contexts), generator=torch.Generator().manual_seed(2))[short]
        return Contexts(index, torch.full(index.shape, 1 / n_contexts, dtype=torch.float64))


def gradient(model, called, rows):
    """Of cross-entropy, then of IMM clipped apart, with the model called through its wrapper."""
    source = torch.Generator().manual_seed(1)
    x = torch.randn(N, 6, generator=source, dtype=torch.float64)
    labels = torch.randint(0, 3, (N,), generator=source)
    target = torch.softmax(torch.randn(N, 3, generator=source, dtype=torch.float64), -1)

    def log_q(_rows, index):
        return torch.log_softmax(called(x[index]), -1)

    nll_loss(log_q(rows, rows), labels[rows]).backward()
    with clipped_apart(model.parameters(), max_norm=1e-2):
        Sampled(Drawn(), K).backward(log_q, rows, target[rows], lam=0.7)
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def small_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).double()


def worker(rank, out):
    model = small_model()
    found = gradient(model, DistributedDataParallel(model), torch.arange(N)[rank::2])
    if rank == 0:
        torch.save(found, out)


def test_two_processes_have_the_gradient_of_one_with_the_whole_batch(tmp_path):
    together(worker, tmp_path / "gradient.pt")
    model = small_model()
    alone = gradient(model, model, torch.arange(N))
    torch.testing.assert_close(torch.load(tmp_path / "gradient.pt", weights_only=True), alone)
