import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from imm import __version__
from imm.cli.app import app, main
from imm.experiments import STUDIES
from tests.processes import LIMIT

runner = CliRunner()


def run_main(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["imm", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["reproduce", "--list"], ["ngram", "fit", "--help"], ["lm", "train", "--help"]],
)
def test_quick_answers_do_not_import_torch(arguments):
    code = (
        f"import sys; sys.argv = ['imm', *{arguments!r}]\n"
        "from imm.cli import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        "heavy = {'torch', 'sklearn', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=LIMIT)


def test_version_and_list():
    assert runner.invoke(app, ["--version"]).output == f"imm {__version__}\n"
    assert "logistic-accuracy" in runner.invoke(app, ["reproduce", "--list"]).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "nonsense"], "no study is called 'nonsense'; there are counterexample"),
        (["reproduce"], "name at least one study"),
        (["reproduce", "counterexample", "--runs", "3"], "counterexample has no runs to set"),
        (["report", "/nowhere"], "there is no result.json below /nowhere"),
        (["reproduce", "logistic-accuracy", "--runs", "0"], "runs must be from 1 to 1000000, got 0"),
        (["nonsense"], "No such command 'nonsense'; see imm --help"),
        (["ngram", "fit"], "Missing option '--text'; see imm ngram fit --help"),
        (["ngram", "fit", "--text"], "Option '--text' requires an argument; see imm --help"),
        (["reproduce", "counterexample", "--jobs", "0"], "jobs must be at least 1, got 0"),
        (["lm", "train", "--nonsense"], "--nonsense"),
        (["demo", "--seed", "-1"], "seed must be from 0 to 2147483647, got -1"),
    ],
)
def test_an_error_is_one_line_that_says_what_was_given(arguments, message, monkeypatch, capsys):
    assert run_main(monkeypatch, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_no_command_shows_the_help(monkeypatch, capsys):
    assert run_main(monkeypatch, "ngram") == 2
    printed = capsys.readouterr()
    assert "Usage: imm ngram" in printed.out + printed.err
    assert "imm: " not in printed.err


def test_ctrl_c_says_that_the_work_is_kept(monkeypatch, capsys, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("imm.experiments.reproduce", interrupted)
    assert run_main(monkeypatch, "reproduce", "counterexample", "--out", str(tmp_path)) == 130
    assert "the same command continues" in capsys.readouterr().err


def test_reproduce_writes_and_prints(tmp_path):
    arguments = ["reproduce", "counterexample", "--quick", "--jobs", "1", "--out", str(tmp_path)]
    printed = runner.invoke(app, arguments)
    assert printed.exit_code == 0
    assert "-1.098 | -1.1" in printed.stdout
    assert {path.name for path in (tmp_path / "counterexample").iterdir()} == {"result.json", "table.md"}
    as_json = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)
    assert as_json == json.loads((tmp_path / "counterexample" / "result.json").read_text())
    assert "index.html" in runner.invoke(app, ["report", str(tmp_path)]).output


def test_another_folder_of_data_is_a_setting_of_studies_that_read_some(tmp_path, monkeypatch):
    seen = {}

    def reproduce(study, settings, *_):
        seen[study.name] = settings.get("data")
        raise ValueError("enough")

    monkeypatch.setenv("IMM_DATA", "")  # put back afterwards
    monkeypatch.setattr("imm.experiments.reproduce", reproduce)
    for name in ("tabular-rivals", "lstm-data", "bert-glue", "counterexample"):
        assert run_main(monkeypatch, "reproduce", name, "--out", str(tmp_path), "--data", str(tmp_path)) == 2
    where = str(tmp_path.resolve())
    assert seen == {"tabular-rivals": where, "lstm-data": where, "bert-glue": where, "counterexample": None}


def test_data_that_is_not_there_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("IMM_DATA", str(tmp_path / "nowhere"))
    assert run_main(monkeypatch, "reproduce", "lstm-bigram", "--quick", "--out", str(tmp_path)) == 2
    error = capsys.readouterr().err
    assert error.startswith("imm: ")
    assert error.count("\n") == 1


def test_data_from_another_folder_is_still_the_full_study():
    study = next(study for study in STUDIES if study.name == "tabular-rivals")
    assert study.changed({**study.settings, "data": "/some"}) == {}
