"""Two processes with gloo have the parameters of one with the whole batch."""

import math

import pytest
import torch

from tests.processes import together

pytest.importorskip("transformers")

MATCHINGS = ("streaming", "sampled", "exact")


def run(folder, rows):
    """Three steps with each matching; the whole batch is eight rows."""
    from tests.huggingface import tiny

    changes = {"optim": "sgd", "learning_rate": 0.2, "max_grad_norm": 0.3, "max_steps": 3, "positions": 2, "lam": 1.0}
    changes |= {"train_sampling_strategy": "sequential", "per_device_train_batch_size": rows, "n_contexts": 2}
    out = {}
    for matching in MATCHINGS:
        for kind, made in (
            ("llama", tiny.trainer(folder, tiny.llama(), dataset=tiny.rows(24), matching=matching, **changes)),
            ("bert", tiny.masked_trainer(folder, tiny.masked_rows(24), matching=matching, **changes)),
        ):
            out[f"{kind} {matching}"] = tiny.trained(made)
            logged = [record["matching"] for record in made.state.log_history if "matching" in record]
            out[f"{kind} {matching} logged"] = torch.tensor(logged)
    # The second process has nothing to predict in the first step, so no cross-entropy.
    first, rest = tiny.masked_rows(4), tiny.masked_rows(16)
    nothing = [{**row, "labels": [-100] * 5} for row in first]
    made = tiny.masked_trainer(folder, first + nothing + rest, **changes | {"learning_rate": 0.0, "logging_steps": 3})
    made.train()
    records = [record for record in made.state.log_history if "matching" in record]
    assert all(math.isfinite(record["cross_entropy"]) for record in records)
    out["nothing to predict, logged"] = torch.tensor([record["matching"] for record in records])
    return out


def worker(rank, folder):
    torch.save(run(folder, 4), folder / f"found{rank}.pt")


@pytest.mark.slow
def test_two_processes_are_one_with_the_whole_batch(tmp_path):
    together(worker, tmp_path)
    alone = run(tmp_path, 8)
    for rank in (0, 1):
        found = torch.load(tmp_path / f"found{rank}.pt", weights_only=True)
        for name in alone if rank == 0 else (name for name in alone if "logged" not in name):  # the first one logs
            torch.testing.assert_close(
                found[name], alone[name], rtol=1e-4, atol=1e-5, msg=lambda text, n=name: f"{n}: {text}"
            )
