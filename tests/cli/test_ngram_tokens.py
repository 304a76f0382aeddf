"""``imm ngram --tokenizer``: n-grams of a model's own tokens."""

import json
import math
import subprocess
import sys

import pytest
from typer.testing import CliRunner

pytest.importorskip("transformers")

from imm.cli.app import app, main
from imm.ngram import load
from tests.huggingface import tiny
from tests.processes import LIMIT

runner = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model's folder, in which the model predicts two words more than its tokenizer has."""
    path = tmp_path_factory.mktemp("model")
    tiny.tokenizer().save_pretrained(path)
    tiny.gpt2(n_words=22).config.save_pretrained(path)
    (path / "text.txt").write_text("\n".join(tiny.texts(80)))
    return path


def run(*arguments):
    result = runner.invoke(app, ["ngram", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result


def test_fit_and_eval(folder, tmp_path):
    text = folder / "text.txt"
    run("fit", "--text", text, "--tokenizer", folder, "--order", 3, "--out", tmp_path / "m")
    model = load(tmp_path / "m")
    assert (model.order, model.classes) == (3, (*tiny.WORDS, "<no token 20>", "<no token 21>"))
    result = json.loads(run("eval", tmp_path / "m", "--text", text, "--tokenizer", folder, "--json").stdout)
    ids = [token for row in tiny.tokenizer()(tiny.texts(80))["input_ids"] for token in [*row, 3]]
    first = math.log(float(model.score([ids[:1]], [ids[1]])))
    rest = model.score([ids[i : i + 2] for i in range(len(ids) - 2)], ids[2:]).log().sum().item()
    assert result["perplexity"] == pytest.approx(math.exp(-(first + rest) / (len(ids) - 1)), rel=1e-6)
    assert (result["tokens"], result["unknown"]) == (len(ids) - 1, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--tokenizer", "nowhere/none"],
            "there is no folder nowhere/none, and no tokenizer of that name was downloaded",
        ),
        (["--tokenizer", "{folder}", "--min-count", "2"], "--tokenizer has its own words: leave out"),
    ],
)
def test_an_error_is_one_line(arguments, message, folder, tmp_path, monkeypatch, capsys):
    given = [each.format(folder=folder) for each in arguments]
    monkeypatch.setattr(
        sys, "argv", ["imm", "ngram", "fit", "--text", str(folder / "text.txt"), "--out", str(tmp_path / "m"), *given]
    )
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not (tmp_path / "m").exists()


def test_the_command_imports_transformers_only_where_it_is_needed():
    code = "import sys, imm.cli.app; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=LIMIT).returncode == 0


def test_without_transformers_the_command_says_what_to_install(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imm.huggingface", None)
    for name in [name for name in sys.modules if name.startswith("imm.huggingface.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("imm.huggingface", raising=False)
    with pytest.raises(ValueError, match=r"--tokenizer needs the package .*: pip install -e '\.\[transformers\]'"):
        run("fit", "--text", folder / "text.txt", "--tokenizer", folder, "--out", tmp_path / "m")
