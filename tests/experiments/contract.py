"""What every study must do, the paper's and ours."""

import json

from imm.experiments import reproduce
from imm.report import write_all


def check_settings(study):
    """Settings are JSON, ``--quick`` only changes some, and no piece is there twice."""
    assert json.loads(json.dumps(dict(study.settings))) == study.settings
    assert set(study.quick) <= set(study.settings)
    pieces = [json.dumps(piece) for piece in study.pieces(study.settings)]
    assert len(set(pieces)) == len(pieces)


def check_tiny_run(study, tiny, folder):
    """A tiny run gives rows, a table and a figure, and the same rows the second time."""
    settings = {**study.settings, **tiny}
    result = reproduce(study, settings, folder / "a", 1, lambda done, total: None)
    again = reproduce(study, settings, folder / "b", 1, lambda done, total: None)
    assert [_without_times(row) for row in result["rows"]] == [_without_times(row) for row in again["rows"]]
    for row in result["rows"]:
        assert "method" in row
        assert "value" in row or {"mean", "runs", *(("p10", "p90") if row["runs"] > 1 else ())} <= set(row)
    paths = write_all(result, study, folder / "a" / study.name)
    assert all(path.stat().st_size > 0 for path in paths)
    assert ("figure.png" in {path.name for path in paths}) == (study.figure is not None)
    assert "Not the full study" in paths[0].read_text()


def _without_times(row):
    return {key: value for key, value in row.items() if key != "seconds"}
