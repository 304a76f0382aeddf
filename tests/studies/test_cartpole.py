"""The cart-pole study: what its parts are, and what the committed run says."""

import json
import sys
from pathlib import Path

import pytest
import torch
from studies.cartpole import velocities as study

from imm.control import PolicyMatching

SETTINGS = {**study.STUDY.settings, "points": [64, 128], "steps": 8, "runs": 2, "episodes": 2}


def test_the_old_policy_sees_positions_only():
    angle = torch.tensor([[5.0, 0.0], [-5.0, 0.1], [0.0, -0.1]])
    right = study.old_policy(20.0)(angle)[:, 1]
    torch.testing.assert_close(right, torch.tensor([0.5, 0.880797, 0.119203]))


def test_help(generator):
    at = torch.randn(20, 4, generator=generator)
    at[:, 1::2] = at[0, 1::2]  # one pair of velocities for all: the belief has nothing to average

    def log_policy(observations):
        return torch.log_softmax(observations[:, :2], -1)

    imm, kd = (study.help_of({**SETTINGS, "n_contexts": 4}, method, 0) for method in ("imm", "reverse-kd"))
    assert isinstance(imm, PolicyMatching)
    imm.see(at)
    target = study.old_policy(20.0)(at[:, [0, 2]])
    entropy = -torch.special.xlogy(target, target).sum(1).mean()
    torch.testing.assert_close(imm(log_policy, at), kd(log_policy, at) + entropy)
    assert study.help_of(SETTINGS, "none", 0) is None


def test_all_methods_of_a_run_start_alike():
    """With λ = 0 they are the same training."""
    settings = {**SETTINGS, "lams": dict.fromkeys(SETTINGS["lams"], 0.0)}
    values = [
        [row["value"] for row in study.run(settings, {"method": method, "run": 1})] for method in settings["lams"]
    ]
    assert values[0] == values[1] == values[2]
    assert values[0] != [row["value"] for row in study.run(settings, {"method": "none", "run": 0})]


def test_without_gymnasium_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ValueError, match=r"cartpole-velocities needs Gymnasium: pip install -e '\.\[control\]'"):
        study.run(SETTINGS, {"method": "old", "run": 0})


def test_the_page_shows_the_committed_run():
    root = Path(__file__).parents[2]
    found = json.loads((root / "results" / "cartpole-velocities" / "result.json").read_text())
    assert found["settings"] == study.STUDY.settings
    page = (root / "docs" / "guides" / "control.md").read_text().split("## cartpole-velocities\n", 1)[1].splitlines()
    header, _, *lines = (line for line in page if line.startswith("|"))
    methods = [cell.strip() for cell in header.strip("|").split("|")][1:]
    assert len(lines) == len(found["settings"]["points"])
    for line in lines:
        steps, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for method, cell in zip(methods, cells, strict=True):
            (row,) = [r for r in found["rows"] if (r["method"], f"{r['steps']:,}") == (method, steps)]
            assert cell == f"{row['mean']:.0f} [{row['p10']:.0f}, {row['p90']:.0f}]"
