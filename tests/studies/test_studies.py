"""The contract of a study, for our own."""

import pytest
from studies import STUDIES

from tests.experiments.contract import check_settings, check_tiny_run
from tests.studies import tiny_wiki

TINY = {
    "lm-low-data": tiny_wiki.SETTINGS,
    "tabular-rivals": {
        "sizes": [50],
        "models": {
            "linear": {
                "sets": ["diabetes"],
                "methods": {"good": ["full-only", "imm", "pooled"], "wrong": ["full-only", "offset"]},
            }
        },
        "runs": 2,
    },
    "cartpole-velocities": {"points": [64], "steps": 8, "runs": 2, "episodes": 2},
}


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_settings_are_json_and_quick_only_changes_them(study):
    check_settings(study)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_tiny_run_gives_rows_a_table_and_a_figure_twice_the_same(study, tmp_path, monkeypatch):
    if study.name == "lm-low-data":
        tiny_wiki.use(monkeypatch, tmp_path)
    check_tiny_run(study, TINY[study.name], tmp_path / "out")
