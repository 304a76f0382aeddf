"""A contract over every study."""

import json
from pathlib import Path

import pytest

from imm.experiments import STUDIES, demo
from imm.experiments.grid import strength as grid_strength
from imm.experiments.logistic import quality as logistic_quality
from imm.experiments.lstm import runs as lstm
from imm.report import records
from tests.experiments import tiny_glue
from tests.experiments.contract import check_settings, check_tiny_run
from tests.language import tiny

ALL = [*STUDIES, demo.STUDY]
TINY = {
    "counterexample": {"starts": 1, "lams": [1.0]},
    "logistic-accuracy": {"sizes": [2, 3], "beyond": [5], "runs": 4, "steps": 20},
    "logistic-restricted": {"ratios": [0.0, 0.5], "runs": 3, "steps": 20, "fresh": 20},
    "logistic-lambda": {"sizes": [2, 3], "lower_sizes": [2], "ratios": [0.0, 0.5], "runs": 4, "steps": 20},
    "logistic-quality": {"sizes": [2], "runs": 4, "steps": 20},
    "logistic-serialized": {"sizes": [3], "runs": 4, "steps": 20},
    "logistic-fixed-lambda": {"sizes": [5, 10], "runs": 4, "steps": 20},
    "logistic-alpha": {"alphas": [0.3, 1.0], "sizes": [5], "runs": 4, "steps": 20},
    "logistic-planes": {"n": 4, "runs": 4, "steps": 20, "curve": 3, "grid": 5},
    "serialized-stability": {
        "r_times_rate": [1, 10],
        "compared": [2],
        "runs": 3,
        "steps": 20,
        "record": 5,
        "at": 9,
        "few": 2,
        "streams": 3,
    },
    **{study.name: study.quick for study in STUDIES if study.name.startswith("lstm")},
    "bert-glue": {**tiny_glue.SETTINGS, "rows": {"RTE": 8}},
    "grid-heatmap": {"size": 4, "epochs": 3},
    "grid-reward": {"epochs": [2, 3], "runs": 4},
    "grid-quality": {"epochs": [2], "runs": 4},
    "grid-strength": {**grid_strength.STUDY.quick, "epochs": [2, 3], "steps": 2, "runs": 2, "size": 4},
    "grid-rivals": {"epochs": [2, 3], "runs": 4},
    "demo": {"runs": 2, "lams": [0.0, 1.0], "l2s": [1.0], "repeats": 1},
}


@pytest.fixture(autouse=True)
def _tiny_text(request, monkeypatch, tmp_path_factory):
    """The language studies need no data folder here."""
    if request.node.name.endswith("[bert-glue]") and request.node.name.startswith("test_a_tiny_run"):
        tiny_glue.use(monkeypatch, tmp_path_factory.mktemp("data"))
    monkeypatch.setattr(lstm, "texts", lambda percent, ngram_percent, judged: tiny.texts(3000))


def test_names_are_the_designs():
    assert [study.name for study in STUDIES] == list(TINY)[:-1]


@pytest.mark.parametrize("study", ALL, ids=lambda study: study.name)
def test_settings_are_json_and_quick_only_changes_them(study):
    check_settings(study)


@pytest.mark.parametrize("study", ALL, ids=lambda study: study.name)
def test_a_tiny_run_gives_rows_a_table_and_a_figure_twice_the_same(study, tmp_path):
    check_tiny_run(study, TINY[study.name], tmp_path)


@pytest.mark.parametrize("study", [study for study in STUDIES if study.paper], ids=lambda study: study.name)
def test_every_figure_of_the_paper_stands_beside_one_of_ours(study):
    """But for the wide models and BERT-base, which are not trained here: the table says so."""
    path = Path(__file__).parents[2] / "results" / study.name / "result.json"
    if not path.exists():
        pytest.skip(f"{study.name} has no committed result yet")
    committed = json.loads(path.read_text())
    compared = [record for record in records(committed) if record["paper"] and record["ours"] != "not run here"]
    assert len(compared) == sum(
        printed.get("width") != 1500 and printed.get("model") != "bert-base-uncased" for printed in study.paper
    )
    assert committed["settings"] == study.settings


def test_quality_uses_the_schedules_that_the_sweep_found():
    rows = json.loads((Path(__file__).parents[2] / "results" / "logistic-lambda" / "result.json").read_text())["rows"]
    for quality in ("medium", "low"):
        used = logistic_quality.STUDY.settings["schedules"][quality]
        for name, value in zip(("slope", "intercept"), used, strict=True):
            key = {"quality": quality, "quantity": f"schedule: {name}"}
            (found,) = [row["value"] for row in rows if key.items() <= row.items()]
            assert found == pytest.approx(value, rel=5e-3)
