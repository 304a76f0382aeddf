import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from imm.cli.app import app, main
from imm.language import METHODS, PRESETS, Settings, load_model
from imm.ngram import load
from tests.processes import LIMIT

runner = CliRunner()
LINES = ["the cat sat on the mat", "the dog sat", "a cat ran", "the dog saw a cat", "a dog ran on the mat"]
SMALL = ["--width", "8", "--epochs", "2", "--batch-size", "4", "--unroll", "5", "--learning-rate", "0.01"]
BASE = ["train", "--train", "a.txt", "--valid", "b.txt", *SMALL]


@pytest.fixture(autouse=True)
def texts(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("\n".join(LINES * 6))
    (tmp_path / "b.txt").write_text("the cat ran\na zebra sat on the dog\n" * 3)
    (tmp_path / "big.txt").write_text("\n".join(LINES * 9) + "\na bird sat on a dog\n")
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    result = runner.invoke(app, ["lm", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def refused(monkeypatch, capsys, *arguments):
    """The one line on standard error."""
    monkeypatch.setattr(sys, "argv", ["imm", "lm", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


def test_the_short_command(tmp_path):
    printed = run(*BASE, "--ngram-text", "big.txt", "--method", "streaming")
    assert "vocabulary: 12 words\n" in printed.stderr
    assert "train: 168 tokens, 0 unknown\nvalid: 33 tokens, 3 unknown\n" in printed.stderr
    assert "bigram: counted on 259 tokens\nToo few counts of counts for order 2: the discounts there" in printed.stderr
    assert "table of induced bigrams: 12 of 12 short contexts, float32, 0 MB\n" in printed.stderr
    assert "epoch 2 of 2, train" in printed.stderr
    assert "imm-streaming" in printed.stdout
    assert "the bigram alone" in printed.stdout
    assert "of 2 was best. Written to imm-lm\n" in printed.stdout
    assert {path.name for path in (tmp_path / "imm-lm").iterdir()} == {
        "settings.json",
        "metrics.jsonl",
        "checkpoint.safetensors",
        "result.json",
        "model",
    }


def test_json_has_the_figures_of_the_result(tmp_path):
    figures = json.loads(run(*BASE, "--test", "b.txt", "--json").stdout)
    result = json.loads((tmp_path / "imm-lm" / "result.json").read_text())
    assert result.items() <= figures.items()
    model, _, _ = load_model(tmp_path / "imm-lm" / "model")
    assert figures["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert figures["method"] == "none"
    assert figures["folder"] == "imm-lm"
    assert (figures["train_tokens"], figures["test_unknown"], figures["ngram_tokens"]) == (168, 3, 168)
    assert 1 < figures["bigram_valid_perplexity"] == figures["bigram_test_perplexity"] < 40


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains(method):
    figures = json.loads(run(*BASE, "--method", method, "--json").stdout)
    assert figures["method"] == method
    assert 1 < figures["valid_perplexity"] < 40


@pytest.mark.parametrize("name", ["exact", "sampled", "serialized", "streaming"])
def test_short_names_of_methods(name):
    assert json.loads(run(*BASE, "--method", name, "--json").stdout)["method"] == f"imm-{name}"


def test_help_names_every_choice():
    text = runner.invoke(app, ["lm", "train", "--help"], terminal_width=300, env={"COLUMNS": "300"}).output
    for name in (*METHODS, *PRESETS):
        assert name in text


def test_options_change_the_preset_and_nothing_else(tmp_path):
    given = {
        "width": 6,
        "layers": 1,
        "dropout": 0.1,
        "learning_rate": 0.02,
        "decay_after": 15,
        "epochs": 1,
        "batch_size": 3,
        "unroll": 4,
        "precision": "bf16",
        "seed": 7,
        "lam": 0.3,
        "gamma": 0.4,
        "n_contexts": 2,
        "every": 3,
        "refresh_every": 9,
        "memory": 11.0,
        "lifetime": 14.0,
        "table_mb": 12,
    }
    options = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    run("train", "--train", "a.txt", "--valid", "b.txt", "--preset", "paper", "--tied", "--falls", *options)
    found = json.loads((tmp_path / "imm-lm" / "settings.json").read_text())["settings"]
    assert found.pop("version") > 0
    assert Settings.from_json(found) == Settings.preset("paper", tied=True, falls=True, **given)
    assert found["method"] == "imm-sampled"


def test_the_memory_of_sampled_contexts_is_said():
    said = run(*BASE, "--method", "sampled").stderr
    assert re.search(r"states of [0-9]+ words: 0 MB\n", said)


def test_a_pipe_is_refused_as_such(monkeypatch, capsys):
    os.mkfifo("pipe")
    for name in ("--train", "--ngram-text"):
        told = refused(monkeypatch, capsys, *BASE, name, "pipe")
        assert "pipe is a pipe, and this text is read more than once: give a file" in told


def test_settings_that_the_method_does_not_have_are_named():
    said = run(*BASE, "--method", "kn-noising", "--gamma", "0.1", "--lam", "3", "--n-contexts", "2").stderr
    assert "method kn-noising has no --lam: it changes nothing\n" in said
    assert "method kn-noising has no --n-contexts: it changes nothing\n" in said
    assert said.count("changes nothing") == 2


def test_a_bigram_that_is_there_already(tmp_path, monkeypatch, capsys):
    for convention, name in (("stream", "folder"), ("sentence", "sentences")):
        fit = ["ngram", "fit", "--text", "big.txt", "--convention", convention, "--out", name]
        assert runner.invoke(app, fit).exit_code == 0
    assert runner.invoke(app, ["ngram", "export", "sentences", "--arpa", "b.arpa"]).exit_code == 0
    method = ["--method", "streaming", "--json"]
    texts = json.loads(run(*BASE, *method, "--ngram-text", "big.txt", "--out", "counted").stdout)
    given = run(*BASE, *method, "--ngram", "folder", "--out", "given")
    assert "bigram: 24 pairs of words, as given\n" in given.stderr
    folder = json.loads(given.stdout)
    assert folder == {name: value for name, value in texts.items() if name != "ngram_tokens"} | {"folder": "given"}
    arpa = json.loads(run(*BASE, *method, "--ngram", "b.arpa", "--out", "arpa").stdout)
    assert arpa["vocabulary"] == texts["vocabulary"]
    evaluated = json.loads(runner.invoke(app, ["ngram", "eval", "sentences", "--text", "b.txt", "--json"]).stdout)
    first = 33 / 32  # the first word of a stream is not predicted
    assert arpa["bigram_valid_perplexity"] == pytest.approx(evaluated["perplexity"] ** first, rel=0.05)
    assert "method none uses no bigram: --ngram gives words" in run(*BASE, "--ngram", "b.arpa", "--out", "none").stderr
    both = refused(monkeypatch, capsys, *BASE, "--ngram", "folder", "--ngram-text", "big.txt", "--out", "no")
    assert "a bigram has its own words and counts: give no ngram_text and no min_count" in both
    noised = refused(monkeypatch, capsys, *BASE, "--ngram", "folder", "--method", "kn-noising", "--out", "no")
    assert "kn-noising needs the counts of words: give the bigram's text" in noised
    characters = refused(monkeypatch, capsys, *BASE, "--ngram", "folder", "--level", "char", "--out", "no")
    assert "and with level char every word is one character" in characters
    assert not (tmp_path / "no").exists()


def test_words_without_probability_are_counted(tmp_path):
    (tmp_path / "known.txt").write_text("the cat sat on a dog lion ran")
    fit = ["ngram", "fit", "--text", "a.txt", "--vocabulary", "known.txt", "--zero-counts", "keep", "--out", "keep"]
    assert runner.invoke(app, fit).exit_code == 0
    base = load("keep").trie.base
    assert base[0] > 0
    said = run(*BASE, "--ngram", "keep", "--method", "streaming").stderr
    never = int((base == 0).sum())
    assert never > 0
    assert f"the bigram gives {never} words no probability: where they stand its own perplexity is infinite\n" in said


def test_a_short_text_is_noted():
    noted = "the training text does not fill 20 columns of windows of 100 words: 1 of windows of 83 instead\n"
    assert noted in run(*BASE, "--batch-size", 20, "--unroll", 100).stderr
    assert "does not fill" not in run(*BASE, "--batch-size", 3, "--out", "long").stderr


def test_characters_and_rare_words():
    figures = json.loads(run(*BASE, "--level", "char", "--json", "--out", "chars").stdout)
    assert figures["vocabulary"] == len(set("".join(LINES))) + 2
    assert figures["valid_unknown"] == 2 * 3  # z and b of zebra
    figures = json.loads(run(*BASE, "--min-count", 12, "--json", "--out", "frequent").stdout)
    assert 0 < figures["train_unknown"] < 168


def test_a_second_stage_begins_with_the_model_of_the_first(tmp_path, monkeypatch, capsys):
    first = json.loads(run(*BASE, "--json", "--out", "first").stdout)
    second = [*BASE, "--method", "streaming", "--learning-rate", "0", "--start"]
    for number, folder in enumerate(("first", "first/model")):
        figures = json.loads(run(*second, folder, "--out", f"second{number}", "--json").stdout)
        assert figures["valid_perplexity"] == pytest.approx(first["valid_perplexity"], rel=1e-6)
    error = refused(monkeypatch, capsys, *BASE, "--method", "streaming", "--learning-rate", "0", "--out", "second0")
    assert "second0 holds a run with other settings or texts (start is " in error
    monkeypatch.setattr(sys, "argv", ["imm", "lm", *second, "first", "--width", "4", "--out", "other"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err.endswith("is a model of another shape: width 8 there and 4 here\n")


def test_a_finished_run_is_not_trained_again(tmp_path, monkeypatch):
    first = run(*BASE, "--json")
    before = (tmp_path / "imm-lm" / "metrics.jsonl").read_bytes()
    monkeypatch.setattr("imm.language.Run.step", None)
    again = run(*BASE, "--json")
    assert again.stdout == first.stdout
    assert "this run is finished" in again.stderr
    assert (tmp_path / "imm-lm" / "metrics.jsonl").read_bytes() == before


@pytest.fixture
def _interruptible():
    """Started in the background of a shell, a process hears no Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("method", ["streaming", "sampled"])
def test_ctrl_c_then_the_same_command(method, tmp_path, monkeypatch):
    from imm.language import Run

    command = [*BASE, "--method", method, "--json"]
    whole = json.loads(run(*command, "--out", "whole").stdout)
    step = Run.step
    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", lambda self: step(self) if self.position.step < 11 else signal.raise_signal(2))
        stopped = runner.invoke(app, ["lm", *command, "--out", "stopped"])
    assert stopped.exit_code == 130
    assert stopped.stderr.endswith("interrupted; the same command continues from the last checkpoint\n")
    assert "Traceback" not in stopped.stderr
    assert stopped.stdout == ""
    continued = run(*command, "--out", "stopped")
    assert "continues after step 8 of 16\n" in continued.stderr
    assert json.loads(continued.stdout) | {"folder": "whole"} == whole
    assert (tmp_path / "stopped/metrics.jsonl").read_bytes() == (tmp_path / "whole/metrics.jsonl").read_bytes()


def test_a_killed_run_continues(tmp_path):
    command = [*BASE, "--epochs", "10", "--json", "--out", "run"]
    code = f"import sys, torch; torch.set_num_threads({torch.get_num_threads()})\n"
    code += f"sys.argv = ['imm', 'lm', *{command!r}]\n"
    code += "from imm.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    checkpoint, end = tmp_path / "run" / "checkpoint.safetensors", time.monotonic() + LIMIT
    try:
        while process.poll() is None and not checkpoint.exists() and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert checkpoint.exists()
    continued = run(*command)
    assert "continues after step" in continued.stderr or "this run is finished" in continued.stderr
    whole = json.loads(run(*command[:-1], "whole").stdout)
    assert json.loads(continued.stdout) | {"folder": "whole"} == whole


def test_eval(tmp_path):
    trained = json.loads(run(*BASE, "--test", "b.txt", "--json").stdout)
    figures = json.loads(run("eval", "imm-lm", "--text", "b.txt", "--json").stdout)
    likelihood = -32 * math.log(figures["perplexity"]) / len((tmp_path / "b.txt").read_text())
    assert figures == {
        "perplexity": pytest.approx(trained["test_perplexity"], rel=1e-6),
        "per_character": pytest.approx(math.exp(-likelihood), rel=1e-5),
        "tokens": 32,
        "unknown": 3,
        "vocabulary": trained["vocabulary"],
    }
    assert (
        "of other vocabularies than these 11 words compare per character"
        in run("eval", "imm-lm", "--text", "b.txt").stdout
    )
    assert run("eval", "imm-lm/model", "--text", "b.txt", "--json").stdout == json.dumps(figures, indent=1) + "\n"


def test_diagnose(monkeypatch, capsys):
    run(*BASE)
    options = ("diagnose", "imm-lm", "--train", "a.txt", "--text", "b.txt")
    figures = json.loads(run(*options, "--json").stdout)
    evaluated = json.loads(run("eval", "imm-lm", "--text", "b.txt", "--json").stdout)
    assert figures["model"] == pytest.approx(evaluated["perplexity"], rel=0.1)  # in columns, as valid when training
    assert figures["mixed"] <= min(figures["induced"], figures["old"]) + 1e-9
    assert figures["room"] == pytest.approx(math.log(figures["induced"] / figures["mixed"]))
    printed = run(*options).stdout
    assert "the bigram that it induces" in printed
    assert re.search(r"it takes [0-9.]+ nats off: this is what IMM can teach", printed)
    fit = ["ngram", "fit", "--text", "a.txt", "--out", "bigram"]
    assert runner.invoke(app, fit).exit_code == 0
    given = json.loads(run(*options, "--ngram", "bigram", "--json").stdout)
    assert given == pytest.approx(figures, rel=1e-5)
    assert runner.invoke(app, [*fit[:3], "big.txt", "--out", "other"]).exit_code == 0
    told = refused(monkeypatch, capsys, *options, "--ngram", "other")
    assert "other has 12 words and the model 11, and they are not the same: bird" in told
    both = refused(monkeypatch, capsys, *options, "--ngram", "bigram", "--ngram-text", "big.txt")
    assert "--ngram and --ngram-text both say what the bigram is" in both
    assert "takes 0 MB, more than --table-mb 0" in refused(monkeypatch, capsys, *options, "--table-mb", "0")


def test_eval_says_that_interpolation_is_not_part_of_the_model():
    run(*BASE, "--method", "interpolation")
    assert "without the bigram" in run("eval", "imm-lm", "--text", "b.txt").stderr


FILES = {
    "empty.txt": b"",
    "blank.txt": b"\n\n\n",
    "latin1.txt": "größe\n".encode("latin1"),
    "utf16.txt": "the cat\n".encode("utf-16"),
    "binary.txt": b"the\0cat\n",
    "eos.txt": b"the cat\nthe <eos> dog\n",
    "word.txt": b"hello\n",
    "one.txt": b"a\na a\n",
    "unknown.txt": b"xx yy\nzz\n",
}


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("nowhere.txt", "there is no file nowhere.txt"),
        (".", ". is a folder, not a text file"),
        ("empty.txt", "empty.txt is empty"),
        ("blank.txt", "blank.txt has no words, only 3 empty lines"),
        ("latin1.txt", "latin1.txt: byte 2 (0xf6) is not UTF-8"),
        ("utf16.txt", "utf16.txt: byte 3 is zero, so this is no UTF-8 text, perhaps UTF-16; convert it first"),
        ("binary.txt", "binary.txt: byte 3 is zero"),
        ("eos.txt", "eos.txt: line 2 has the word <eos>"),
    ],
)
@pytest.mark.parametrize("option", ["--train", "--valid", "--test", "--ngram-text"])
def test_a_bad_file_is_one_line(file, message, option, tmp_path, monkeypatch, capsys):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    assert message in refused(monkeypatch, capsys, *BASE, option, file)
    assert not (tmp_path / "imm-lm").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "x"], "method must be one of none, kn-noising"),
        (["--preset", "x"], "preset must be one of small, paper, got 'x'"),
        (["--level", "x"], "level must be one of word, char, got 'x'"),
        (["--precision", "x"], "precision must be one of 32, bf16, got 'x'"),
        (["--start", "x"], "there is no file x/model.safetensors"),
        (["--n-contexts", "0"], "n_contexts must be a whole number of at least 1, got 0"),
        (["--lam", "nan"], "lam must be finite and not negative, got nan"),
        (["--learning-rate", "-1"], "learning_rate must be finite and not negative, got -1.0"),
        (["--epochs", "-3"], "epochs must be a whole number of at least 1, got -3"),
        (["--dropout", "1"], "dropout must be at least 0 and below 1, got 1.0"),
        (["--seed", str(2**63)], "seed must be below 2**63"),
        (["--min-count", "0"], "min_count must be a whole number of at least 1, got 0"),
        (["--min-count", "999"], "a.txt has fewer than two different words with min_count 999"),
        (["--min-count", "999", "--ngram-text", "big.txt"], "a.txt and big.txt together have fewer than two different"),
        (["--train", "word.txt"], "word.txt has fewer than two different words"),
        (["--train", "one.txt"], "one.txt has fewer than two different words"),
        (["--valid", "unknown.txt"], "unknown.txt: none of its 3 words is in the vocabulary"),
        (["--test", "unknown.txt"], "unknown.txt: none of its 3 words is in the vocabulary"),
        (["--out", "a.txt"], "a.txt is a file; name a folder"),
        (["--out", "a.txt/run"], "a.txt/run cannot be written to: Not a directory"),
        (["--out", "."], ". is there already and holds no run; name another folder"),
    ],
)
def test_bad_options_are_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    assert message in refused(monkeypatch, capsys, *BASE, *arguments)
    assert not (tmp_path / "imm-lm").exists()


def test_a_run_does_not_go_on_where_nothing_can_be_written(monkeypatch, capsys):
    run(*BASE)
    Path("imm-lm/result.json").unlink()

    def denied(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", denied)
    error = refused(monkeypatch, capsys, *BASE)
    assert "imm-lm/checkpoint.safetensors cannot be written, " in error
    assert "takes no file: Permission denied" in error


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of resources")
def test_a_file_that_cannot_be_written_is_the_last_line(tmp_path):
    """The disk is full, or, as here, a file may not be as large."""
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000));"
    limited += "from imm.cli.app import main; main()"
    more = {"preexec_fn": lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN), "timeout": LIMIT}
    command = [sys.executable, "-c", limited, "lm", *BASE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 2
    assert "cannot be written: " in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch, capsys):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "cannot be written to: Permission denied" in refused(monkeypatch, capsys, *BASE, "--out", "locked/run")


def test_another_run_in_the_folder(monkeypatch, capsys):
    run(*BASE)
    error = refused(monkeypatch, capsys, *BASE, "--lam", "0.5")
    assert "imm-lm holds a run with other settings or texts (lam is 1.0 there and 0.5 here)" in error
    assert "give the same ones to continue it, or name another folder" in error
    assert "(the texts differ)" in refused(monkeypatch, capsys, *BASE, "--ngram-text", "big.txt")


def test_few_words_are_no_divergence(tmp_path):
    """Each surprise costs much where the next word is nearly sure, and the run comes back from it."""
    (tmp_path / "yes.txt").write_text("yes no " * 60 + "\n")
    run("train", "--train", "yes.txt", "--valid", "yes.txt", "--out", "yes")


def test_divergence_is_the_last_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["imm", "lm", *BASE, "--learning-rate", "1e6"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("imm: training diverged at step")
    assert "try a learning rate below" in last


def test_too_little_memory_is_the_last_line(monkeypatch, capsys):
    def allocate(*_):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")

    monkeypatch.setattr("imm.language.training.build", allocate)
    monkeypatch.setattr(sys, "argv", ["imm", "lm", *BASE])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.endswith("imm: there is not enough memory: you tried to allocate 9 bytes.\n")


def test_bad_evaluations_are_one_line(monkeypatch, capsys, tmp_path):
    assert "nowhere does not exist" in refused(monkeypatch, capsys, "eval", "nowhere", "--text", "b.txt")
    run(*BASE)
    (tmp_path / "unknown.txt").write_bytes(FILES["unknown.txt"])
    for text, message in {
        "nowhere.txt": "there is no file nowhere.txt",
        "unknown.txt": "unknown.txt: none of its 3 words is in the vocabulary of 11",
    }.items():
        assert message in refused(monkeypatch, capsys, "eval", "imm-lm", "--text", text)
        assert message in refused(monkeypatch, capsys, "diagnose", "imm-lm", "--train", text, "--text", "b.txt")
    (tmp_path / "imm-lm" / "model" / "model.safetensors").write_bytes(b"torn")
    assert "is not a whole language model" in refused(monkeypatch, capsys, "eval", "imm-lm", "--text", "b.txt")
    (tmp_path / "tuned" / "model").mkdir(parents=True)
    (tmp_path / "tuned" / "model" / "config.json").touch()
    for folder in ("tuned", "tuned/model"):
        assert f"{folder} holds a model of transformers: its run has the figures" in refused(
            monkeypatch, capsys, "eval", folder, "--text", "b.txt"
        )
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "settings.json").touch()
    assert "begun holds a run that has no model yet" in refused(monkeypatch, capsys, "eval", "begun", "--text", "b.txt")
    (tmp_path / "begun" / "result.json").touch()
    assert "begun holds a run that has lost its model" in refused(
        monkeypatch, capsys, "eval", "begun", "--text", "b.txt"
    )


def test_tensorboard(tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch.utils.tensorboard", None)
        assert "pip install -e '.[tensorboard]'" in refused(patch, capsys, *BASE, "--tensorboard")
    assert not (tmp_path / "imm-lm").exists()
    run(*BASE, "--tensorboard")
    assert len(list((tmp_path / "imm-lm").glob("events.out.tfevents.*"))) == 1
