"""The language studies on a tiny drawn text; the real one is not needed."""

import json
from pathlib import Path

import pytest

from imm.experiments import lstm, lstm_bigram, lstm_data, lstm_epochs, lstm_perplexity, lstm_variants, reproduce
from imm.language import Run
from imm.language.data import data_file
from tests.language import tiny


def silent(done: int, total: int) -> None:
    pass


@pytest.fixture
def _tiny(monkeypatch):
    text = tiny.texts(3000)
    monkeypatch.setattr(lstm, "texts", lambda fraction, recount, judged: text)


@pytest.mark.usefixtures("_tiny")
def test_studies_share_their_runs(tmp_path, monkeypatch):
    reproduce(lstm_perplexity.STUDY, lstm_perplexity.STUDY.with_options(quick=True), tmp_path, 1, silent)
    monkeypatch.setattr(Run, "step", lambda self: pytest.fail("trained again"))
    reproduce(lstm_bigram.STUDY, lstm_bigram.STUDY.with_options(quick=True), tmp_path, 1, silent)


@pytest.mark.usefixtures("_tiny")
def test_an_interrupted_run_continues_in_the_middle(tmp_path, monkeypatch):
    settings = {**lstm.TRAINING, **lstm.QUICK, "width": 4, "seed": 0}
    piece = {"method": "none", "strength": 0.0, "fraction": 0.01, "recount": True, "restart": 0}
    expected = lstm.train(settings, piece, tmp_path / "whole").result

    steps, step = [], Run.step

    def stopped(self):
        steps.append(1)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(Run, "step", stopped)
    with pytest.raises(KeyboardInterrupt):
        lstm.train(settings, piece, tmp_path / "stopped")
    assert lstm.train(settings, piece, tmp_path / "stopped").result == expected


def test_the_best_try_and_restart_are_chosen_on_valid_and_reported_on_test():
    tries = {
        (0.2, False, 0.1): [(97.0, 92.0)],
        (0.2, True, 0.1): [(96.5, 90.0), (96.0, 95.0)],
        (0.2, True, 0.3): [(98.0, 1.0)],
    }
    rows = [
        {"method": "none", **lstm_perplexity.named(tried), "width": 200, "restart": restart}
        | {"split": split, "value": value}
        for tried, runs in tries.items()
        for restart, values in enumerate(runs)
        for split, value in zip(("valid", "test"), values, strict=True)
    ]
    test = next(row for row in lstm_perplexity.summarise(rows) if row["split"] == "test")
    assert (test["value"], test["mean_of_restarts"], test["runs"]) == (95.0, 92.5, 2)
    assert test["deviation"] == pytest.approx(5 / 2**0.5)
    assert ([test[key] for key in lstm_perplexity.TRY], test["tries"]) == ([0.2, True, 0.1], 3)
    assert test["restarts"] == [90.0, 95.0]
    assert test["tried"] == {
        "0.2, dropout 0.1": 92.0,
        "0.2 falling, dropout 0.1": 90.0,
        "0.2 falling, dropout 0.3": 1.0,
    }


def test_every_method_has_all_its_tries_and_is_restarted_at_the_best():
    study = lstm_perplexity.STUDY
    restarts = {}
    for piece in study.pieces({**study.settings, "runs": 3}):
        tried = tuple(piece[key] for key in lstm_perplexity.TRY)
        restarts.setdefault(piece["method"], {}).setdefault(tried, []).append(piece["restart"])
    for method, tries in study.settings["tries"].items():
        best = study.settings["restarted"].get(method)
        assert restarts[method] == {tuple(each): [0, 1, 2] if each == best else [0] for each in tries}


@pytest.mark.usefixtures("_tiny")
def test_what_is_tried_is_what_is_trained(tmp_path):
    study = lstm_perplexity.STUDY
    settings = study.with_options(quick=True)
    for piece in study.pieces(settings):
        lstm_perplexity.run(settings, piece, tmp_path / piece["method"])
        (folder,) = (tmp_path / piece["method"]).iterdir()
        found = json.loads((folder / "settings.json").read_text())["settings"]
        assert [found[key] for key in ("lam", "falls", "dropout")] == [piece[key] for key in lstm_perplexity.TRY]


@pytest.mark.usefixtures("_tiny")
def test_epochs_are_all_there_and_the_best_of_them_is_judged(tmp_path):
    study = lstm_epochs.STUDY
    settings = {**study.with_options(quick=True), "width": 4}
    rows = lstm_epochs.run(settings, study.pieces(settings)[0], tmp_path)
    final = {row["split"]: row["value"] for row in rows if "epoch" not in row}
    epochs = {row["epoch"]: row["value"] for row in rows if "epoch" in row}
    assert list(epochs) == [1, 2, 3, 4]
    assert final == {"valid": min(epochs.values()), "test": final["test"]}


def test_curves_are_those_of_the_best_try_against_none():
    runs = {
        ("none", 0.0): [[12.0, 8.0], [8.0, 4.0]],
        ("imm-streaming", 1.0): [[9.0, 5.0], [10.0, 7.0]],
        ("imm-streaming", 2.0): [[8.0, 6.0]],
    }
    rows = [
        {"method": method, **lstm_perplexity.named((lam, True, 0.2)), "width": 200, "restart": restart} | found
        for (method, lam), restarts in runs.items()
        for restart, values in enumerate(restarts)
        for found in [
            {"split": "valid", "value": values[-1]},
            *({"split": "valid", "epoch": n, "value": value} for n, value in enumerate(values, 1)),
        ]
    ]
    found = [row for row in lstm_epochs.summarise(rows) if "epoch" in row]
    curves = {(row["method"], row["epoch"]): (row["mean"], row["runs"], row["against_none"]) for row in found}
    assert curves == {
        ("none", 1): (10.0, 2, 0.0),
        ("none", 2): (6.0, 2, 0.0),
        ("imm-streaming", 1): (9.5, 2, pytest.approx(-5.0)),
        ("imm-streaming", 2): (6.0, 2, 0.0),
    }


def test_studies_use_the_strengths_that_were_best():
    def rows(name):
        return json.loads((Path(__file__).parents[2] / "results" / name / "result.json").read_text())["rows"]

    best = {}
    for row in sorted(rows("lstm-strength"), key=lambda row: -row["mean"]):
        best[row["method"]] = row["strength"]
    assert lstm_data.STUDY.settings["strengths"].items() <= best.items()
    assert lstm_variants.STUDY.settings["strength"] == best["imm-streaming"]
    for study in (lstm_perplexity, lstm_epochs):
        of_all = [row for row in rows(study.STUDY.name) if "epoch" not in row]
        assert {row["method"]: [row[key] for key in lstm_perplexity.TRY] for row in of_all} == study.BEST


def test_interpolation_is_as_good_as_either_model_on_valid(tmp_path):
    """The share of the bigram is chosen there, 0 among the choices."""
    with pytest.MonkeyPatch.context() as patch:
        text = tiny.texts(3000)
        patch.setattr(lstm, "texts", lambda fraction, recount, judged: text)
        piece = {"method": "none", "strength": 0.0, "fraction": 0.01, "recount": True, "restart": 0}
        trained = lstm.train({**lstm.TRAINING, **lstm.QUICK, "width": 4, "seed": 0}, piece, tmp_path)
    assert trained.interpolated()["valid"] <= trained.perplexity()["valid"] * (1 + 1e-6)


def test_kneser_ney_of_the_penn_treebank_is_the_papers():
    try:
        data_file("ptb/ptb.train.txt")
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    settings = lstm_bigram.STUDY.settings
    rows = lstm_bigram.run(settings, {"method": "kneser-ney"}, Path("unused"))
    found = {row["split"]: row["value"] for row in rows}
    printed = {row["split"]: row["value"] for row in lstm_bigram.PAPER if row["method"] == "kneser-ney"}
    assert found["train"] == pytest.approx(printed["train"], abs=0.005)
    assert found["test"] == pytest.approx(printed["test"], abs=0.005)
    assert found["valid"] == pytest.approx(199.57, abs=0.01)  # zero continuation counts are taken as one: docs/ngram.md
