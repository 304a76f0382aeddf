import builtins
import json
import sys

import pytest

from imm.language.training_log import Metrics


def records(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_one_record_a_line(tmp_path):
    metrics = Metrics(tmp_path)
    metrics.write(3, {"loss": 0.5})
    metrics.write(4, {"loss": 0.25, "epoch": 1})
    metrics.close()
    assert records(tmp_path) == [{"step": 3, "loss": 0.5}, {"step": 4, "loss": 0.25, "epoch": 1}]


def test_what_came_after_the_checkpoint_is_cut(tmp_path):
    metrics = Metrics(tmp_path)
    metrics.write(1, {"loss": 0.5})
    length = metrics.length()
    assert length == (tmp_path / "metrics.jsonl").stat().st_size
    metrics.write(2, {"loss": 0.1})
    metrics.close()
    again = Metrics(tmp_path, length)
    assert again.length() == length
    again.write(2, {"loss": 0.2})
    assert again.length() == (tmp_path / "metrics.jsonl").stat().st_size
    again.close()
    assert records(tmp_path) == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.2}]


def test_a_new_run_begins_a_new_file(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("old\n")
    metrics = Metrics(tmp_path)
    assert metrics.length() == 0
    metrics.close()
    assert records(tmp_path) == []


def test_a_file_that_lost_its_records_is_refused(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match=r"metrics\.jsonl has 3 bytes, and the checkpoint is of 10"):
        Metrics(tmp_path, 10)


def test_nothing_is_opened_before_there_is_something_to_write(tmp_path):
    Metrics(tmp_path).close()
    assert list(tmp_path.iterdir()) == []


def test_without_tensorboard_one_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match="need the package tensorboard") as refused:
        Metrics(tmp_path, 0, tensorboard=True)
    assert "\n" not in str(refused.value)


def test_tensorboard_is_not_imported_without_being_asked(tmp_path, monkeypatch):
    original = builtins.__import__

    def refuse(name, *args, **kwargs):
        assert "tensorboard" not in name
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    Metrics(tmp_path).close()
