import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from imm.experiments import STUDIES, Study, reproduce, write_whole
from imm.files import whole_folder

CALLS = []


def run(settings, piece):
    CALLS.append(piece["n"])
    return [{"method": "imm", "n": piece["n"], "value": piece["n"] * settings["factor"]}]


STUDY = Study(
    name="toy",
    title="a toy",
    settings={"factor": 2, "sizes": [1, 2, 3]},
    quick={"sizes": [1]},
    pieces=lambda settings: [{"n": n} for n in settings["sizes"]],
    run=run,
)


def silent(done, total):
    pass


@pytest.fixture(autouse=True)
def _forget_calls():
    CALLS.clear()


def test_result_has_what_the_design_asks_for(tmp_path):
    result = reproduce(STUDY, STUDY.settings, tmp_path, 1, silent)
    assert result == json.loads((tmp_path / "toy" / "result.json").read_text())
    assert {"name", "settings", "rows", "paper", "seconds", "versions"} <= set(result)
    assert [row["value"] for row in result["rows"]] == [2, 4, 6]
    assert list((tmp_path / "toy").iterdir()) == [tmp_path / "toy" / "result.json"]


def test_interrupted_it_continues_where_it_stopped(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        reproduce(replace(STUDY, run=stop_at_one), STUDY.settings, tmp_path, 1, silent)
    assert not (tmp_path / "toy" / "result.json").exists()
    CALLS.clear()
    seen = []
    result = reproduce(STUDY, STUDY.settings, tmp_path, 1, lambda done, total: seen.append((done, total)))
    assert CALLS == [1]
    assert [row["value"] for row in result["rows"]] == [2, 4, 6]
    assert seen == [(2, 3), (3, 3)]


def test_runs_and_results_of_other_data_are_others(tmp_path):
    kept = []

    def keeps(settings, piece, folder):
        kept.append(folder)
        return run(settings, piece)

    study = replace(STUDY, run=keeps, continues=True)
    reproduce(study, {**STUDY.settings, "data": "/some"}, tmp_path, 1, silent)
    with pytest.raises(ValueError, match="was made with other settings"):
        reproduce(study, {**STUDY.settings, "data": "/other"}, tmp_path, 1, silent)
    reproduce(study, {**STUDY.settings, "data": "/other"}, tmp_path / "b", 1, silent)
    reproduce(study, STUDY.settings, tmp_path / "c", 1, silent)
    assert len({folder.name for folder in kept}) == 3


def killed_at_one(settings, piece):
    if piece["n"] == 1:
        time.sleep(0.5)  # what the other process did is written by then
        os.kill(os.getpid(), signal.SIGKILL)
    return run(settings, piece)


def test_a_process_that_is_killed_is_told_and_what_was_done_is_kept(tmp_path):
    with pytest.raises(ChildProcessError, match=r"a process was killed.* the same command continues"):
        reproduce(replace(STUDY, run=killed_at_one), STUDY.settings, tmp_path, 2, silent)
    result = reproduce(STUDY, STUDY.settings, tmp_path, 1, silent)
    assert 1 in CALLS
    assert 3 not in CALLS  # it was the first
    assert [row["value"] for row in result["rows"]] == [2, 4, 6]


def test_two_processes_give_the_same(tmp_path):
    assert reproduce(STUDY, STUDY.settings, tmp_path, 2, silent)["rows"] == [
        {"method": "imm", "n": n, "value": 2 * n} for n in (1, 2, 3)
    ]


def stop_at_one(settings, piece):
    if piece["n"] == 1:
        raise KeyboardInterrupt
    return run(settings, piece)


def test_a_result_is_kept_and_not_replaced_by_one_of_other_settings(tmp_path):
    first = reproduce(STUDY, STUDY.settings, tmp_path, 1, silent)
    CALLS.clear()
    assert reproduce(STUDY, STUDY.settings, tmp_path, 1, silent) == first
    with pytest.raises(ValueError, match=r"result\.json was made with other settings"):
        reproduce(STUDY, {**STUDY.settings, "factor": 5}, tmp_path, 1, silent)
    assert CALLS == []


def test_pieces_of_other_settings_are_not_used_and_not_lost(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        reproduce(replace(STUDY, run=stop_at_one), STUDY.settings, tmp_path, 1, silent)
    result = reproduce(STUDY, {**STUDY.settings, "factor": 5}, tmp_path, 1, silent)
    assert [row["value"] for row in result["rows"]] == [5, 10, 15]
    assert len(list((tmp_path / "toy" / "pieces").iterdir())) == 2


def test_a_place_that_cannot_be_written_is_an_error_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        reproduce(STUDY, STUDY.settings, tmp_path / "file", 1, silent)
    assert CALLS == []


def test_several_processes_give_the_same_rows(tmp_path):
    study = next(study for study in STUDIES if study.name == "counterexample")
    settings = {**study.settings, "starts": 1, "lams": [1.0]}
    alone = reproduce(study, settings, tmp_path / "1", 1, silent)
    rows = reproduce(study, settings, tmp_path / "2", 2, silent)["rows"]  # perhaps with another number of threads
    values = [row.pop("value") for row in rows]
    assert values == pytest.approx([row.pop("value") for row in alone["rows"]], rel=1e-9)
    assert rows == alone["rows"]


def test_a_file_that_cannot_be_finished_is_not_there(tmp_path):
    with pytest.raises(TypeError):
        write_whole(tmp_path / "x.json", None)
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="there is a file in the way; name another --out"):
        reproduce(STUDY, STUDY.settings, tmp_path / "file", 1, silent)
    with pytest.raises(IsADirectoryError, match="is a folder; name a file"):
        write_whole(tmp_path, "")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_options_out_of_range_are_errors(tmp_path):
    monte_carlo = replace(STUDY, settings={**STUDY.settings, "runs": 5, "seed": 0})
    with pytest.raises(ValueError, match="runs must be from 1 to 1000000, got 0"):
        monte_carlo.with_options(runs=0)
    with pytest.raises(ValueError, match="seed must be from 0 to 2147483647, got -1"):
        monte_carlo.with_options(seed=-1)
    with pytest.raises(ValueError, match="jobs must be at least 1, got 0"):
        reproduce(STUDY, STUDY.settings, tmp_path, 0, silent)
    assert monte_carlo.changed(monte_carlo.with_options(runs=7)) == {"runs": 7}


def test_a_folder_that_cannot_be_moved_leaves_the_one_before(tmp_path, monkeypatch):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "mark").write_text("before")
    rename = Path.rename

    def stopped(path, target):
        if path.name == "new":
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", stopped)
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "made", "mark") as folder:
        (folder / "mark").write_text("after")
    assert (tmp_path / "made" / "mark").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_files_may_be_read_by_those_who_may_read_others(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "a", "")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~mask


def test_an_option_of_one_study():
    study = replace(STUDY, options={"size": lambda settings, size: {**settings, "sizes": [size]}})
    assert study.with_options(size=7)["sizes"] == [7]
    assert study.with_options(size=None) == STUDY.settings
    with pytest.raises(ValueError, match="toy has no size to set"):
        STUDY.with_options(size=7)


def test_an_option_that_a_study_does_not_have_is_an_error():
    with pytest.raises(ValueError, match="toy has no runs to set"):
        STUDY.with_options(runs=3)
    assert STUDY.with_options(quick=True)["sizes"] == [1]


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"name": "toy"}'])
def test_a_damaged_file_is_made_again(damage, tmp_path):
    whole = reproduce(STUDY, STUDY.settings, tmp_path, 1, silent)
    (tmp_path / "toy" / "result.json").write_text(damage)
    again = reproduce(STUDY, STUDY.settings, tmp_path, 1, silent)
    assert again["rows"] == whole["rows"]
    assert json.loads((tmp_path / "toy" / "result.json").read_text()) == again


@pytest.mark.parametrize("damage", ['{"row', "{}", "[]"])
def test_a_damaged_piece_is_made_again(damage, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        reproduce(replace(STUDY, run=stop_at_one), STUDY.settings, tmp_path, 1, silent)
    for path in (tmp_path / "toy" / "pieces").iterdir():
        path.write_text(damage)
    CALLS.clear()
    result = reproduce(STUDY, STUDY.settings, tmp_path, 1, silent)
    assert CALLS == [3, 2, 1]
    assert [row["value"] for row in result["rows"]] == [2, 4, 6]
