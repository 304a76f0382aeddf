"""The examples of control run, each in its quick form."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch
from PIL import Image

pytest.importorskip("gymnasium", reason="the extra [control] is not installed")

FOLDER = Path(__file__).parents[2] / "examples" / "control"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_cartpole_hidden_velocities(tmp_path, capsys):
    load("cartpole_hidden_velocities").main(["--quick", "--out", str(tmp_path / "a.png")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["none", "none", "imm", "imm", "written"]
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.size == (600, 400)
        colours = {colour for _, colour in picture.convert("RGB").getcolors(2**20)}
    assert {(128, 0, 0), (46, 125, 50)} <= colours  # both curves are to be seen


def test_no_seeds_are_refused(capsys):
    with pytest.raises(SystemExit):
        load("cartpole_hidden_velocities").main(["--seeds", "0"])
    assert "--seeds must be at least 1, got 0" in capsys.readouterr().err


class TestStableBaselines3:
    @pytest.fixture
    def example(self):
        pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")
        return load("stable_baselines3_ppo")

    def test_it_runs(self, example, capsys):
        example.main(["--quick"])
        none, imm = capsys.readouterr().out.splitlines()
        assert none.startswith("λ = 0.0: mean return after 512 steps ")
        assert imm.startswith("λ = 1.0: ")

    def test_without_strength_it_is_theirs_to_the_bit(self, example):
        from stable_baselines3 import PPO

        ours, callback = example.make(0.0, n_steps=128)
        ours.learn(128, callback)
        settings = {"n_steps": 128, "batch_size": 64, "n_epochs": 4, "learning_rate": 3e-3, "ent_coef": 0.0}
        theirs = PPO("MlpPolicy", "CartPole-v1", seed=0, policy_kwargs={"net_arch": [32]}, device="cpu", **settings)
        theirs.learn(128)
        for a, b in zip(ours.policy.parameters(), theirs.policy.parameters(), strict=True):
            assert torch.equal(a, b)

    def test_the_help_is_the_matchings_gradient(self, example):
        model, callback = example.make(0.7)
        policy, at = model.policy, torch.randn(12, 4)
        callback.matching.see(at)
        callback.matching.belief.n_contexts = None  # no draws: twice the same
        _, _, bonus = policy.evaluate_actions(at, torch.zeros(12))
        risk = callback.matching(policy.log_policy, at)
        torch.testing.assert_close(-bonus.mean(), 0.7 * risk)


def test_each_block_on_the_page_runs_by_itself(capsys):
    """What ``docs/guides/control.md`` shows for users' own worlds."""
    page = (FOLDER.parents[1] / "docs" / "guides" / "control.md").read_text().split("# Your own world\n", 1)[1]
    known = []
    for code in re.findall(r"```python\n(.*?)```", page, re.S):
        known.append({})
        exec(compile(code, "control.md", "exec"), known[-1])
    assert len(known[0]["returns"]) == 3
    assert capsys.readouterr().out.splitlines()[-1].startswith("512 [")
