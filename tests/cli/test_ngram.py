import json
import sys

import pytest
from typer.testing import CliRunner

from imm.cli.app import app, main
from imm.ngram import load
from imm.ngram.arpa import read_arpa

runner = CliRunner()
TEXT = "the cat sat on the mat\nthe dog sat\n" * 6 + "a cat ran\n"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def run(*arguments):
    result = runner.invoke(app, ["ngram", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result


@pytest.mark.parametrize("convention", ["stream", "sentence"])
def test_fit_eval_export(text, tmp_path, convention):
    printed = run("fit", "--text", text, "--order", 3, "--convention", convention, "--out", tmp_path / "m")
    assert "vocabulary" in printed.stdout
    assert f"Written to {tmp_path / 'm'}" in printed.stdout
    assert load(tmp_path / "m").about.convention == convention
    result = json.loads(run("eval", tmp_path / "m", "--text", text, "--json").stdout)
    assert set(result) == {"perplexity", "tokens", "unknown", "zeros", "perplexity_without_zeros"}
    assert 1 < result["perplexity"] < 10
    assert f"{result['perplexity']:.4f}" in run("eval", tmp_path / "m", "--text", text).stdout
    run("export", tmp_path / "m", "--arpa", tmp_path / "m.arpa.gz")
    assert read_arpa(tmp_path / "m.arpa.gz").classes == load(tmp_path / "m").classes


def test_an_arpa_file_is_evaluated_as_the_model_that_it_was_written_from(text, tmp_path):
    run("fit", "--text", text, "--convention", "sentence", "--out", tmp_path / "m")
    printed = run("export", tmp_path / "m", "--arpa", tmp_path / "m.arpa")
    assert printed.stderr == ""
    mine, theirs = (json.loads(run("eval", each, "--text", text, "--json").stdout) for each in _pair(tmp_path))
    assert theirs == pytest.approx(mine, rel=1e-6)


@pytest.mark.parametrize(("ours", "theirs"), [("<unk>", "<UNK>"), ("<eos>", "</s>")])
def test_an_arpa_file_with_other_names_is_evaluated_too(text, tmp_path, ours, theirs):
    run("fit", "--text", text, "--out", tmp_path / "m")
    run("export", tmp_path / "m", "--arpa", tmp_path / "m.arpa")
    (tmp_path / "m.arpa").write_text((tmp_path / "m.arpa").read_text().replace(ours, theirs))
    mine, other = (json.loads(run("eval", each, "--text", text, "--json").stdout) for each in _pair(tmp_path))
    assert other == pytest.approx(mine, rel=1e-6)


def test_export_says_that_kenlm_wants_sentences(text, tmp_path):
    run("fit", "--text", text, "--out", tmp_path / "m")
    printed = run("export", tmp_path / "m", "--arpa", tmp_path / "m.arpa")
    assert "KenLM does not read this: it has no <s>" in printed.stderr
    kenlm = pytest.importorskip("kenlm", reason="the kenlm package is not installed (pip install '.[bench]')")
    with pytest.raises(OSError, match="missing <s>"):
        kenlm.Model(str(tmp_path / "m.arpa"))


def _pair(folder):
    return folder / "m", folder / "m.arpa"


def test_fit_says_where_discounts_could_not_be_estimated(text, tmp_path):
    printed = run("fit", "--text", text, "--out", tmp_path / "m", "--json")
    assert "Too few counts of counts for order 2: the discounts there are 0.5, 1, 1.5" in printed.stderr
    figures = json.loads(printed.stdout)
    assert [figures[f"d{j}_2"] for j in (1, 2, 3)] == [0.5, 1.0, 1.5]
    assert figures["vocabulary"] == figures["ngrams_1"] == 10


def test_vocabulary_min_count_and_zero_counts(text, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("cat dog\nzebra")
    run("fit", "--text", text, "--out", tmp_path / "m", "--vocabulary", words, "--zero-counts", "keep")
    assert load(tmp_path / "m").classes == ("<unk>", "<eos>", "cat", "dog", "zebra")
    words.write_text("zebra zebra\n")
    result = json.loads(run("eval", tmp_path / "m", "--text", words, "--json").stdout)
    assert (result["perplexity"], result["zeros"], result["tokens"]) == (None, 1, 2)
    run("fit", "--text", text, "--out", tmp_path / "m", "--min-count", 6)
    assert "ran" not in load(tmp_path / "m").classes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "--text", "nowhere.txt", "--out", "m"], "there is no file nowhere.txt"),
        (["fit", "--text", "empty.txt", "--out", "m"], "empty.txt is empty"),
        (["fit", "--text", "latin1.txt", "--out", "m"], "latin1.txt: byte 2 (0xf6) is not UTF-8"),
        (["fit", "--text", "text.txt", "--out", "m", "--order", "1"], "order must be a whole number of at least 2"),
        (
            ["fit", "--text", "text.txt", "--out", "m", "--convention", "x"],
            "convention must be one of stream, sentence",
        ),
        (["fit", "--text", "text.txt", "--out", "m", "--zero-counts", "x"], "zero_counts must be one of one, keep"),
        (
            ["fit", "--text", "text.txt", "--out", "m", "--zero-counts", "keep", "--convention", "sentence"],
            "--zero-counts is for --convention stream",
        ),
        # what is wrong with a place or an option is found before a text is read
        (["fit", "--text", "empty.txt", "--out", "text.txt"], "text.txt is there already"),
        (["fit", "--text", "empty.txt", "--out", "m", "--zero-counts", "x"], "zero_counts must be one of one, keep"),
        (
            ["fit", "--text", "text.txt", "--out", "m", "--vocabulary", "text.txt", "--min-count", "2"],
            "min_count and vocabulary both say which words are known: give one of them",
        ),
        (["eval", "m", "--text", "text.txt"], "there is no m"),
        (["export", "m", "--arpa", "x.arpa"], "there is no m"),
        (["export", "text.txt", "--arpa", "x.arpa"], "text.txt is not an n-gram model: it has no ngram.json"),
        (["export", "m", "--arpa", "text.txt/x.arpa"], "text.txt/x.arpa cannot be written, "),
    ],
)
def test_an_error_is_one_line_and_nothing_is_written(arguments, message, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").touch()
    (tmp_path / "latin1.txt").write_bytes("größe\n".encode("latin1"))
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(sys, "argv", ["imm", "ngram", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert sorted(tmp_path.iterdir()) == before


def test_ctrl_c_says_that_nothing_was_written(text, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("imm.language.fit_ngram", interrupted)
    stopped = runner.invoke(app, ["ngram", "fit", "--text", str(text), "--out", str(tmp_path / "m")])
    assert stopped.exit_code == 130
    assert "interrupted; nothing was written" in stopped.stderr
    assert not (tmp_path / "m").exists()
