"""The language studies on a tiny drawn text; the real one is not needed."""

import json
import math

import pytest
import torch

from imm.experiments import reproduce
from imm.experiments.data import data_file
from imm.experiments.lstm import bigram as lstm_bigram
from imm.experiments.lstm import perplexity as lstm_perplexity
from imm.experiments.lstm import regimes as lstm_regimes
from imm.experiments.lstm import runs as lstm
from imm.experiments.lstm.runs import Cell, Trained, gain
from imm.language import Run
from tests.language import tiny

SETTINGS = {**lstm.TRAINING, "batch_size": 4, "judged": 500}
TINY = lstm_regimes.cell(1, 4, (2, 2), (0.1, 0.3), tries=[1.0, 3.0])


def silent(done: int, total: int) -> None:
    pass


@pytest.fixture(autouse=True)
def _tiny(request, monkeypatch):
    text = tiny.texts(3000)
    if not request.node.name.endswith("is_the_papers"):
        monkeypatch.setattr(lstm, "texts", lambda percent, ngram_percent, judged: text)


def quick(study, out, **more):
    return reproduce(study, study.with_options(quick=True), out, 1, silent, **more)


def test_studies_share_their_pieces(tmp_path, monkeypatch):
    perplexity = quick(lstm_perplexity.STUDY, tmp_path)
    monkeypatch.setattr(Run, "step", lambda self: pytest.fail("trained again"))
    monkeypatch.setattr(Cell, "trained", lambda self, method, seed: pytest.fail("judged again"))
    bigram = quick(lstm_bigram.STUDY, tmp_path)
    induced = {(row["method"], row["split"]): row["induced"] for row in perplexity["rows"] if row["restart"]}
    found = {(row["method"], row["split"]): row["value"] for row in bigram["rows"]}
    assert {split for _, split in found} == {"train", "valid", "test"}
    for method in ("kn-noising", "imm-streaming"):
        assert found[method, "test"] == induced[method, "test"]
    assert len([row for row in bigram["rows"] if row["method"] == "none"]) == 3  # before the restart, as in the paper


def test_a_piece_that_is_added_leaves_the_others(tmp_path):
    quick(lstm_regimes.STUDY, tmp_path)
    before = sorted(path.name for path in (tmp_path / "lstm" / "pieces").iterdir())
    settings = dict(lstm_regimes.STUDY.with_options(quick=True))
    settings["cells"] = [{**settings["cells"][0], "runs": 2}]
    (tmp_path / "lstm-regimes" / "result.json").unlink()
    seen = []
    reproduce(lstm_regimes.STUDY, settings, tmp_path, 1, lambda done, total: seen.append((done, total)))
    assert seen[0] == (len(before), 2 * len(before))


def test_an_interrupted_run_continues_in_the_middle(tmp_path, monkeypatch):
    cell = {**TINY, "dropout": [0.1]}
    expected = Cell(SETTINGS, cell, tmp_path / "whole").plain(0).result
    steps, step = [], Run.step

    def stopped(self):
        steps.append(1)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(Run, "step", stopped)
    with pytest.raises(KeyboardInterrupt):
        Cell(SETTINGS, cell, tmp_path / "stopped").plain(0)
    assert Cell(SETTINGS, cell, tmp_path / "stopped").plain(0).result == expected


def test_dropout_and_strength_are_chosen_on_valid_by_the_first_seed(monkeypatch, tmp_path):
    valid = {0.1: 90.0, 0.3: 80.0, 1.0: 70.0, 3.0: 60.0}

    def first(self, rate, seed):
        assert seed == 0
        return Trained(tmp_path, None, {"valid_perplexity": valid[rate], "test_perplexity": -valid[rate]})

    def second(self, method, strength, seed):
        assert seed == 0
        return Trained(tmp_path, None, {"valid_perplexity": valid[strength], "test_perplexity": -valid[strength]})

    monkeypatch.setattr(Cell, "_first_stage", first)
    monkeypatch.setattr(Cell, "_second_stage", second)
    cell = Cell(SETTINGS, TINY, tmp_path)
    assert (cell.dropout(), cell.strength("imm-streaming")) == (0.3, 3.0)


def test_all_methods_begin_with_the_same_parameters_and_have_the_same_steps(tmp_path):
    cell = Cell(SETTINGS, TINY, tmp_path)
    runs = [cell.trained(method, 1).folder for method in ("none", "imm-streaming")]
    found = [json.loads((folder / "settings.json").read_text())["settings"] for folder in runs]
    for name in ("start", "epochs", "learning_rate", "decay_after", "dropout", "seed"):
        assert found[0][name] == found[1][name], name
    assert found[0]["seed"] == 1


def test_the_gain_is_that_of_their_perplexities_and_its_error_by_lines(tmp_path):
    cell = Cell(SETTINGS, TINY, tmp_path)
    plain, trained = cell.plain(0), cell.trained("imm-streaming", 0)
    gained, error = gain(trained, plain, "test")
    assert gained == pytest.approx(
        math.log(plain.perplexities()["test"] / trained.perplexities()["test"]), rel=1e-4, abs=1e-5
    )
    lower = trained.log_likelihoods("test") - plain.log_likelihoods("test")
    lines, line = [[]], []
    for word, each in zip(plain.text.test[:-1].tolist(), lower.tolist(), strict=True):
        line = [] if word == plain.text.vocabulary.eos else line
        lines = [*lines, line] if not line else lines
        line.append(each)
    sums = torch.tensor([sum(line) - gained * len(line) for line in lines if line])
    assert error == pytest.approx(sums.square().sum().sqrt().item() / len(lower), rel=1e-4)
    assert gain(plain, plain, "valid") == (0.0, 0.0)


def test_gains_are_means_over_seeds_and_before_is_what_kneser_ney_knows_better():
    def row(method, seed, value, induced=100.0, restart=True, **more):
        cell = {"percent": 5, "ngram_percent": 5, "width": 8, "method": method, "restart": restart}
        figures = {"value": value, "induced": induced, "train_induced": 50.0, "mixed": induced / 2, "strength": 1.0}
        return {**cell, "run": seed, "split": "test", **figures, **more}

    rows = [
        row("kneser-ney", 0, 80.0, 80.0, False),
        row("none", 0, 60.0, 120.0, False),
        *(row("none", seed, 60.0) for seed in range(3)),
        *(row("imm-streaming", seed, 50.0, gain=gained, gain_error=9.0) for seed, gained in enumerate((0.1, 0.2, 0.3))),
    ]
    found = {(each["method"], each["restart"]): each for each in lstm_regimes.summarise(rows)}
    imm = found["imm-streaming", True]
    assert imm["gain"] == pytest.approx(0.2)
    assert imm["gain_error"] == pytest.approx(0.1 / math.sqrt(3))
    assert imm["before"] == pytest.approx(math.log(120 / 80))
    assert imm["room"] == pytest.approx(math.log(2))
    assert "gain" not in found["none", True]
    (alone,) = [each for each in lstm_regimes.summarise([*rows[:4], rows[-1]]) if each["method"] == "imm-streaming"]
    assert (alone["gain"], alone["gain_error"]) == (0.3, 9.0)


def test_what_is_finished_can_be_had_before_the_rest(tmp_path, monkeypatch):
    step = Run.step

    def stopped(self):
        if self.settings.method == "imm-streaming":
            raise KeyboardInterrupt
        return step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", stopped)
        with pytest.raises(KeyboardInterrupt):
            quick(lstm_regimes.STUDY, tmp_path)
        partial = quick(lstm_regimes.STUDY, tmp_path, partial=True)
    assert partial["unfinished"] == 1
    assert {row["method"] for row in partial["rows"]} == {"kneser-ney", "none", "kn-noising"}
    whole = quick(lstm_regimes.STUDY, tmp_path)
    assert "unfinished" not in whole
    assert [row for row in whole["rows"] if row in partial["rows"]] == partial["rows"]


def test_kneser_ney_of_the_penn_treebank_is_the_papers():
    try:
        data_file("ptb/ptb.train.txt")
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    found = lstm.bigram_alone(lstm.texts(100, 100, None))
    printed = {row["split"]: row["value"] for row in lstm_bigram.PAPER if row["method"] == "kneser-ney"}
    assert found["train"] == pytest.approx(printed["train"], abs=0.005)
    assert found["test"] == pytest.approx(printed["test"], abs=0.005)
    assert found["valid"] == pytest.approx(199.57, abs=0.01)  # zero counts: docs/guides/ngrams.md
