"""``imm lm train --model FOLDER``: a model of transformers is fine-tuned."""

import json
import sys

import pytest

pytest.importorskip("transformers")
from typer.testing import CliRunner

from imm.cli.app import app, main
from imm.language.huggingface import IMMTrainer
from tests.language.huggingface import tiny
from tests.language.huggingface.conftest import _little_to_collect  # noqa: F401

FEW = ("--epochs", "2", "--batch-size", "4", "--unroll", "6", "--learning-rate", "0.01")


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.gpt2().save_pretrained("model")
    tiny.tokenizer().save_pretrained("model")
    for name, n, seed in (("train", 12, 0), ("valid", 8, 1), ("big", 60, 5)):
        (tmp_path / f"{name}.txt").write_text("\n".join(tiny.texts(n, seed)) + "\n")


def run(*more, model="model", out="run"):
    options = ("--train", "train.txt", "--valid", "valid.txt", "--out", out, *FEW, *more)
    return CliRunner().invoke(app, ["lm", "train", "--model", model, "--json", *options], catch_exceptions=False)


def refused(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["imm", "lm", "train", "--train", "train.txt", "--valid", "valid.txt", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


@pytest.mark.parametrize("method", ["none", "streaming", "imm-sampled", "imm-exact"])
def test_every_method_makes_a_better_model_and_keeps_it(method, tmp_path):
    figures = json.loads(
        run("--method", method, "--epochs", "1", "--ngram-text", "big.txt", "--test", "valid.txt").stdout
    )
    assert figures["valid_perplexity"] < figures["valid_perplexity_before"]
    assert figures["test_perplexity"] == figures["valid_perplexity"]
    assert figures["bigram_valid_perplexity"] > 1
    again = json.loads(run("--method", "none", "--epochs", "1", model="run/model", out="next").stdout)
    assert again["valid_perplexity_before"] == pytest.approx(figures["valid_perplexity"], rel=1e-5)


def test_an_interrupted_run_continues_and_other_settings_are_refused(monkeypatch, capsys):
    whole = json.loads(run(out="whole").stdout)
    step, n_steps = IMMTrainer.training_step, []

    def stopped(self, *rest, **more):
        n_steps.append(1)
        if self.state.epoch >= 1:
            raise KeyboardInterrupt
        return step(self, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(IMMTrainer, "training_step", stopped)
        run()
    monkeypatch.setattr(IMMTrainer, "training_step", lambda self, *a, **m: n_steps.pop() and step(self, *a, **m))
    again = json.loads(run().stdout)
    assert len(n_steps) == 1  # as many as in the first epoch, and the one that was stopped is left
    assert {**again, "folder": "whole"} == whole
    other = ("--model", "model", "--out", "run", *FEW, "--lam", "3")
    assert "run holds a run with other settings" in refused(monkeypatch, capsys, *other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "nowhere"), "there is no folder nowhere"),
        (("--model", "model", "--width", "5"), "--width is for the models lstm and transformer"),
        (("--model", "model", "--min-count", "5"), "--min-count is for the models lstm and transformer"),
        (("--model", "model", "--method", "reverse-kd"), "method must be one of none, imm-streaming"),
        (("--model", "masked"), "masked predicts masked words"),
    ],
)
def test_what_has_no_meaning_is_refused_in_one_line(arguments, message, monkeypatch, capsys):
    tiny.bert().save_pretrained("masked")
    tiny.tokenizer(True).save_pretrained("masked")
    capsys.readouterr()
    assert message in refused(monkeypatch, capsys, *arguments)
