"""``imm finetune``."""

import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
from typer.testing import CliRunner

from imm.cli.app import app, main
from imm.huggingface import IMMTrainer, load_model
from imm.huggingface.fine_tuning import METHODS, METHODS_OF, FineTuning, fine_tune
from imm.language.settings import without_effect
from tests.huggingface import tiny
from tests.huggingface.conftest import _little_to_collect  # noqa: F401

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
    return CliRunner().invoke(app, ["finetune", "--model", model, "--json", *options], catch_exceptions=False)


def refused(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["imm", "finetune", "--train", "train.txt", "--valid", "valid.txt", *arguments])
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
        (("--model", "model", "--width", "5"), "No such option: --width"),
        (("--model", "model", "--unroll", "8", "--ngram", "bigram"), "there is no bigram"),
        (("--model", "model", "--ngram", "x", "--ngram-text", "big.txt"), "--ngram and --ngram-text both say"),
        (("--model", "model", "--method", "reverse-kd"), "method must be one of none, imm-streaming"),
        (("--model", "masked"), "masked is no causal model: BertLMHeadModel sees the words that it predicts"),
        (("--model", "model", "--unroll", "16"), "model reads at most 16: give at most 15"),
        (("--model", "model", "--unroll", "0"), "unroll must be a whole number of at least 1, got 0"),
        (("--model", "model", "--epochs", "0"), "epochs must be a whole number of at least 1, got 0"),
        (("--model", "model", "--lam", "-1"), "lam must be finite and not negative, got -1.0"),
        (("--model", "model", "--unroll", "8", "--ngram-text", "none.txt"), "there is no file none.txt"),
    ],
)
def test_what_has_no_meaning_is_refused_in_one_line(arguments, message, monkeypatch, capsys):
    tiny.bert().save_pretrained("masked")
    tiny.tokenizer(True).save_pretrained("masked")
    capsys.readouterr()
    assert message in refused(monkeypatch, capsys, *arguments)
    assert not Path("imm-finetune").exists()  # a run that cannot begin does not take the folder from one that can


def test_a_bigram_that_is_there_is_the_one_of_its_text(monkeypatch, capsys):
    counted = json.loads(run("--epochs", "1", "--ngram-text", "big.txt").stdout)
    fit = ("ngram", "fit", "--text", "big.txt", "--tokenizer", "model", "--out")
    CliRunner().invoke(app, [*fit, "bigram"], catch_exceptions=False)
    CliRunner().invoke(app, [*fit, "trigram", "--order", "3"], catch_exceptions=False)
    CliRunner().invoke(app, ["ngram", "export", "bigram", "--arpa", "bigram.arpa"], catch_exceptions=False)
    for number, given in enumerate(("bigram", "bigram.arpa")):
        found = json.loads(run("--epochs", "1", "--ngram", given, out=f"given{number}").stdout)
        assert found.keys() == counted.keys()
        assert found["valid_perplexity"] == pytest.approx(counted["valid_perplexity"], rel=1e-4)
    short = ("--model", "model", "--unroll", "8", "--out", "new", "--ngram")
    assert "trigram holds n-grams of order 3; a bigram is needed" in refused(monkeypatch, capsys, *short, "trigram")
    CliRunner().invoke(app, ["ngram", "fit", "--text", "big.txt", "--out", "words"], catch_exceptions=False)
    assert "words is over 17 words, and the model predicts 20: fit it with" in refused(
        monkeypatch, capsys, *short, "words"
    )


def test_a_pipe_is_refused_as_such(monkeypatch, capsys):
    os.mkfifo("pipe")
    told = refused(monkeypatch, capsys, "--model", "model", "--unroll", "8", "--train", "pipe")
    assert "pipe is a pipe, and this text is read more than once: give a file" in told


def test_weights_that_are_cut_are_named(monkeypatch, capsys):
    path = Path("model/model.safetensors")
    path.write_bytes(path.read_bytes()[:100])
    told = refused(monkeypatch, capsys, "--model", "model", "--unroll", "8")
    assert "model holds no model that can be read: " in told


def test_a_causal_model_may_have_a_mask_token_and_its_longest_rows_are_read():
    tiny.tokenizer(True).save_pretrained("model")
    assert json.loads(run("--epochs", "1", "--unroll", "15").stdout)["valid_perplexity"] > 1


def test_other_weights_under_the_same_name_are_refused(monkeypatch, capsys):
    run("--epochs", "1")
    tiny.gpt2(seed=1).save_pretrained("model")
    capsys.readouterr()
    told = refused(monkeypatch, capsys, "--model", "model", "--out", "run", *FEW, "--epochs", "1")
    assert "run holds a run with other settings or texts (weights is " in told


def test_weights_that_are_not_there_are_not_made_up(monkeypatch, capsys):
    path = Path("model/model.safetensors")
    whole = load_file(path)
    lacking = {name: each for name, each in whole.items() if not name.startswith("transformer.h.0.mlp.")}
    save_file(lacking, path, {"format": "pt"})
    told = refused(monkeypatch, capsys, "--model", "model", "--unroll", "8")
    assert "model is not a whole GPT2LMHeadModel: its weights lack transformer.h.0.mlp.c_fc.bias and 3 more" in told


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("config.json", {"vocab_size": 30}, r"transformer.wte.weight is (20, 8), and (30, 8) by its config.json"),
        ("config.json", {"n_embd": "x"}, "model holds no "),
        ("config.json", None, "model holds no "),
        ("tokenizer.json", {"model": 3}, "model holds no tokenizer that can be read"),
        ("tokenizer_config.json", None, "model holds no tokenizer that can be read"),
    ],
)
def test_damaged_folders_are_one_line(name, changes, message, monkeypatch, capsys):
    path = Path("model") / name
    path.write_text("[1, 2]" if changes is None else json.dumps(json.loads(path.read_text()) | changes))
    assert message in refused(monkeypatch, capsys, "--model", "model", "--unroll", "8")


OTHER_VALUES = {"lam": 5.0, "n_contexts": 1, "positions": 2, "memory": 0.0, "lifetime": 0.5}


@pytest.mark.parametrize("method", METHODS)
def test_a_setting_is_without_effect_where_it_is_said_to_be(method, tmp_path):
    def trained(**changes):
        settings = FineTuning("model", method, 1, 4, 6, 0.01, **{"positions": 1, **changes})
        files = {"train": Path("train.txt"), "valid": Path("valid.txt")}
        return fine_tune(settings, files, tmp_path / "-".join(["run", *changes]))["valid_perplexity"]

    alone, unused = trained(), without_effect(method, OTHER_VALUES, METHODS_OF)
    assert [name for name, value in OTHER_VALUES.items() if trained(**{name: value}) == alone] == unused


def test_other_texts_under_the_same_names_are_refused(monkeypatch, capsys):
    run("--epochs", "1")
    with Path("valid.txt").open("a") as file:
        file.write("w1 w2\n")
    capsys.readouterr()
    told = refused(monkeypatch, capsys, "--model", "model", "--out", "run", *FEW, "--epochs", "1")
    assert "run holds a run with other settings or texts (the texts differ)" in told


def test_a_model_in_half_precision_is_trained_in_single():
    """A step of this size changes no bfloat16 number above 0.01."""
    tiny.gpt2().bfloat16().save_pretrained("half")
    tiny.tokenizer().save_pretrained("half")
    run("--epochs", "1", "--learning-rate", "1e-5", model="half")
    before, after = (tiny.parameters(load_model(AutoModelForCausalLM, name)) for name in ("half", "run/model"))
    large = before.abs() > 0.01
    assert (after[large] != before[large]).float().mean() > 0.9


def test_a_model_that_is_smaller_than_its_tokenizer_is_refused_and_takes_no_folder(monkeypatch, capsys, tmp_path):
    tiny.gpt2(n_words=16).save_pretrained("small")
    tiny.tokenizer().save_pretrained("small")
    capsys.readouterr()  # what they say
    error = refused(monkeypatch, capsys, "--model", "small", *FEW, "--out", "run")
    assert "the tokenizer has tokens up to number 19, and the model predicts 16 words" in error
    assert not (tmp_path / "run").exists()
