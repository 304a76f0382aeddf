import contextlib
import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from imm.language import METHODS, DivergenceError, Run, Vocabulary, load_model, training
from imm.language.evaluation import interpolated, log_likelihoods, perplexity
from imm.language.methods import Step
from imm.language.run_folder import Checkpoint
from imm.language.settings import VERSIONS
from imm.language.windows import Windows
from tests.language import runs, tiny
from tests.language.runs import run, train_until
from tests.processes import LIMIT

PLAIN = ("none", "kn-noising", "imm-sampled", "imm-serialized", "imm-streaming")
SMALL = {"every": 2, "n_contexts": 2, "refresh_every": 3}


@pytest.fixture(autouse=True)
def _log_often(monkeypatch):
    monkeypatch.setattr(training, "LOG_EVERY", 3)


@pytest.fixture(scope="module")
def plainly(tmp_path_factory):
    """The parameters of two epochs of plain training."""
    folder = tmp_path_factory.mktemp("plain") / "run"
    run(folder, epochs=2).train()
    return load_file(folder / "model" / "model.safetensors")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What runs give that nothing interrupted; each is made once."""
    made = {}

    def get(**changes):
        key = json.dumps(changes, sort_keys=True)
        if key not in made:
            folder = tmp_path_factory.mktemp("whole") / "run"
            run(folder, **changes).train()
            made[key] = runs.files(folder)
        return made[key]

    return get


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


RECORDED = [3, 5, 6, 9, 10, 12, 15, 18, 20, 21, 24, 25]
"""Every third of 25 steps, and the last of each epoch of five."""


class TestResult:
    def test_the_folder_after_a_run(self, tmp_path):
        result = run(tmp_path / "run").train()
        names = {path.name for path in (tmp_path / "run").iterdir()}
        assert names == {"settings.json", "metrics.jsonl", "checkpoint.safetensors", "model", "result.json"}
        assert json.loads((tmp_path / "run" / "result.json").read_text()) == result
        assert set(result) == {"epochs", "best_epoch", "valid_perplexity", "test_perplexity"}
        assert result["epochs"] == 5
        model, vocabulary, settings = load_model(tmp_path / "run" / "model")
        texts = tiny.texts()
        assert (vocabulary.words, settings) == (tiny.WORDS, tiny.settings())
        valid = log_likelihoods(model, texts.valid, 4, 3)
        assert result["valid_perplexity"] == pytest.approx(perplexity(valid), rel=1e-6)
        assert result["test_perplexity"] == pytest.approx(perplexity(log_likelihoods(model, texts.test, 4)), rel=1e-6)
        epochs = [record for record in metrics(tmp_path / "run") if "epoch" in record]
        assert [record["epoch"] for record in epochs] == [1, 2, 3, 4, 5]
        assert min(record["valid_perplexity"] for record in epochs) == pytest.approx(result["valid_perplexity"])
        steps = [record for record in metrics(tmp_path / "run") if "cross_entropy" in record]
        assert [record["step"] for record in steps] == RECORDED

    def test_it_learns(self, tmp_path):
        result = run(tmp_path / "run", epochs=40, dropout=0.0, init=0.5).train()
        assert result["valid_perplexity"] < 0.8 * len(tiny.WORDS)

    def test_without_a_test_text(self, tmp_path):
        result = run(tmp_path / "run", texts=tiny.texts(n_test=None), epochs=1).train()
        assert set(result) == {"epochs", "best_epoch", "valid_perplexity"}

    def test_interpolation_mixes_the_plain_model(self, tmp_path):
        mixed = run(tmp_path / "mixed", method="interpolation").train()
        plain = run(tmp_path / "plain").train()
        texts = tiny.texts()
        model, _, _ = load_model(tmp_path / "plain" / "model")
        expected = interpolated(log_likelihoods(model, texts.test, 4), texts.test, texts.bigram, mixed["ratio"])
        assert mixed["test_perplexity"] == pytest.approx(perplexity(expected), rel=1e-6)
        assert mixed["valid_perplexity"] <= plain["valid_perplexity"]

    def test_records_are_means_since_the_one_before(self, tmp_path):
        made, seen = run(tmp_path / "run", method="imm-sampled", every=2, n_contexts=2), []
        step = made.step
        made.step = lambda: seen.append(step()) or seen[-1]
        made.train()
        assert {name for parts in seen for name in parts} == {"cross_entropy", "matching", "mixed"}
        records = [record for record in metrics(tmp_path / "run") if "cross_entropy" in record]
        for begin, record in zip([0, *RECORDED], records, strict=False):
            for name in ("cross_entropy", "matching", "mixed"):
                values = [parts[name].item() for parts in seen[begin : record["step"]] if name in parts]
                assert record.get(name) == (pytest.approx(sum(values) / len(values)) if values else None)

    def test_the_same_seed_gives_the_same_and_another_does_not(self, tmp_path):
        for name, seed in (("a", 0), ("b", 0), ("c", 1)):
            run(tmp_path / name, epochs=2, seed=seed).train()
        a, b, c = (runs.files(tmp_path / name) for name in "abc")
        assert a == b
        assert a["model/model.safetensors"] != c["model/model.safetensors"]

    def test_the_state_goes_on_within_an_epoch_and_begins_anew(self, tmp_path):
        made = run(tmp_path / "run", dropout=0.0, learning_rate=0.0)
        state = made.model.initial_state(3)
        for number in range(5):
            assert all(map(torch.equal, made._state, state))
            made.step()
            _, state = made.model(made.windows[number].inputs, state)
        made._metrics.close()
        again = run(tmp_path / "again", epochs=2)
        train_until(again, 5)
        assert not any(part.any() for part in again._state)

    def test_a_finished_run_that_lost_its_model_says_so(self, tmp_path):
        run(tmp_path / "run", epochs=1).train()
        (tmp_path / "run" / "model" / "model.safetensors").unlink()
        with pytest.raises(FileNotFoundError, match="run has lost its model; remove it, and the same command trains"):
            run(tmp_path / "run", epochs=1).train()

    @pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
    def test_a_finished_run_with_a_damaged_model_does_not_pass_for_whole(self, tmp_path, name):
        run(tmp_path / "run", epochs=1).train()
        path = tmp_path / "run" / "model" / name
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(ValueError, match=r"run/model is not a whole language model: "):
            run(tmp_path / "run", epochs=1).train()

    @pytest.mark.parametrize("name", ["checkpoint.safetensors", "model/model.safetensors"])
    def test_a_folder_in_place_of_a_file_is_named(self, tmp_path, name):
        run(tmp_path / "run", epochs=1).train()
        path = tmp_path / "run" / name
        path.unlink()
        path.mkdir()
        with pytest.raises(IsADirectoryError, match=rf"{name} is a folder, and a file should be there"):
            run(tmp_path / "run", epochs=1).train()

    def test_progress_is_told(self, tmp_path):
        told = []
        run(tmp_path / "run", epochs=2).train(lambda *now: told.append(now))
        assert [now[:2] for now in told] == [(step, 10) for step in range(1, 11)]
        assert ", valid " in told[-1][2]
        assert ", best " in told[-1][2]


class TestTrajectories:
    """Equivalent settings must give the same run."""

    @pytest.mark.parametrize("method", [name for name in METHODS if name != "none"])
    def test_with_strength_zero_it_is_plain_training(self, method, plainly, tmp_path):
        run(tmp_path / "run", epochs=2, method=method, lam=0.0, gamma=0.0, **SMALL).train()
        found = load_file(tmp_path / "run" / "model" / "model.safetensors")
        for name, parameter in plainly.items():
            torch.testing.assert_close(found[name], parameter, rtol=1e-5, atol=1e-6)
            if method != "soft-noising" and method != "label-smoothing":  # which sum another way
                assert torch.equal(found[name], parameter)

    @pytest.mark.parametrize("method", [name for name in METHODS if name not in {"none", "interpolation"}])
    def test_and_with_more_it_is_not(self, method, plainly, tmp_path):
        run(tmp_path / "run", epochs=2, method=method, lam=0.3, gamma=0.3, **SMALL).train()
        found = load_file(tmp_path / "run" / "model" / "model.safetensors")
        assert not torch.allclose(found["output.weight"], plainly["output.weight"], atol=1e-3)

    def test_sampling_all_contexts_is_exact(self, tmp_path):
        texts = tiny.texts(8)  # every word once
        shape = {"texts": texts, "epochs": 3, "batch_size": 1, "unroll": 7}
        run(tmp_path / "a", method="imm-exact", **shape).train()
        run(tmp_path / "b", method="imm-sampled", every=1, n_contexts=3, **shape).train()
        a, b = (load_file(tmp_path / name / "model" / "model.safetensors") for name in "ab")
        for name, parameter in a.items():
            torch.testing.assert_close(b[name], parameter, rtol=1e-4, atol=1e-5)


ROOT = Path(__file__).parents[2]
AT_ROOT = {"cwd": ROOT, "env": os.environ | {"PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(ROOT)])}}

KILLED_WHILE_SAVING = """
import os, sys
from pathlib import Path
from imm.language import run_folder
from tests.language.runs import run

def killed(tensors, path, metadata):
    (path.parent / ".tmpAbC").write_bytes(b"half")
    os._exit(9)

run_folder.save_file = killed
run(Path(sys.argv[1]), 0).train()
"""


class TestResume:
    @pytest.mark.parametrize("method", PLAIN)
    def test_an_interrupted_run_ends_in_the_same_bits(self, method, whole, tmp_path):
        """Interrupted after steps that are lost, right after a checkpoint, and before the next record is written."""
        changes = {"epochs": 3, "method": method, **SMALL}
        folder = tmp_path / "run"
        for seconds, step in ((1e9, 7), (0, 6), (1e9, 13), (0, 11)):
            train_until(run(folder, seconds, **changes), step)
        run(folder, **changes).train()
        assert runs.files(folder) == whole(**changes)

    @pytest.mark.parametrize(
        "changes",
        [
            {"method": "imm-sampled", "unroll": 9},
            {"method": "imm-exact", "tied": True},
            {"method": "unigram-noising", "layers": 1},
        ],
    )
    def test_others_too(self, changes, whole, tmp_path):
        changes = {"epochs": 2, **changes}
        for step in (4, 8):
            train_until(run(tmp_path / "run", 0, **changes), step)
        run(tmp_path / "run", **changes).train()
        assert runs.files(tmp_path / "run") == whole(**changes)

    def test_a_kill_between_the_best_model_and_the_checkpoint(self, whole, tmp_path, monkeypatch):
        changes = {"epochs": 3}
        saves = []

        def save(self):
            saves.append(self.position.step)
            if len(saves) in {1, 3}:
                raise runs.Interrupted
            return original(self)

        original = Run._save
        monkeypatch.setattr(Run, "_save", save)
        for _ in range(2):
            with pytest.raises(runs.Interrupted):
                run(tmp_path / "run", **changes).train()
        run(tmp_path / "run", **changes).train()
        assert saves == [5, 5, 10, 10, 15]
        assert runs.files(tmp_path / "run") == whole(**changes)

    def test_a_finished_run_is_not_run_again(self, whole, tmp_path, monkeypatch):
        expected = whole(epochs=2)
        result = run(tmp_path / "run", epochs=2).train()
        monkeypatch.setattr(Run, "step", lambda self: pytest.fail("there is nothing to do"))
        assert run(tmp_path / "run", epochs=2).train() == result
        assert runs.files(tmp_path / "run") == expected

    def test_a_killed_process(self, tmp_path, whole):
        """SIGKILL, at any moment: while it computes, writes a checkpoint, or waits."""
        arguments = (str(tmp_path / "run"), str(torch.get_num_threads()))
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.language.runs", *arguments], stdout=subprocess.PIPE, **AT_ROOT
        )
        with child:
            try:
                for _ in range(random.randint(2, 15)):
                    assert child.stdout.readline() == b"step\n"
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(random.uniform(0, 0.1))
            finally:
                child.kill()
        assert child.returncode == -9
        found = Checkpoint.read(tmp_path / "run" / "checkpoint.safetensors")
        assert 0 < found.record["position"]["step"] < 40
        training.LOG_EVERY = 20  # as in the child
        run(tmp_path / "run", **runs.KILLED).train()
        run(tmp_path / "whole", **runs.KILLED).train()
        assert runs.files(tmp_path / "run") == runs.files(tmp_path / "whole")


class TestFolder:
    def test_other_settings_or_texts_are_refused(self, tmp_path):
        run(tmp_path / "run", epochs=1).train()
        for change in ({"seed": 1}, {"lam": 0.3}, {"epochs": 2}, {"texts": tiny.texts(60)}):
            with pytest.raises(ValueError, match=r"holds a run with other settings or texts.* name another") as refused:
                run(tmp_path / "run", **{"epochs": 1, **change})
            assert "\n" not in str(refused.value)

    def test_a_foreign_folder_is_refused_and_left_alone(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("mine")
        with pytest.raises(FileExistsError, match="is there already and holds no run; name another folder"):
            run(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]

    def test_what_a_kill_left_half_written_is_removed(self, tmp_path):
        folder = tmp_path / "run"
        folder.mkdir()
        (folder / ".settings.json.abc.unfinished").write_text("{")
        run(folder, epochs=1).train()
        (folder / ".model.abc.unfinished" / "new").mkdir(parents=True)
        run(folder, epochs=1).train()
        assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []

    def test_but_nothing_of_a_folder_that_is_refused(self, tmp_path):
        mine = {".model.bak", ".result.json.swp", ".model.abc.unfinished", "notes.txt"}
        for name in mine:
            (tmp_path / name).touch()
        with pytest.raises(FileExistsError):
            run(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == mine

    def test_a_run_that_never_began_leaves_its_folder(self, tmp_path, monkeypatch):
        def allocate(*_):
            raise RuntimeError("no memory")

        with monkeypatch.context() as patch:
            patch.setattr(training, "build", allocate)
            with pytest.raises(RuntimeError, match="no memory"):
                run(tmp_path / "run", width=7)
        run(tmp_path / "run", epochs=1).train()

    def test_settings_of_another_program_are_left_alone(self, tmp_path):
        (tmp_path / "settings.json").write_text('{"editor.fontSize": 14}')
        with pytest.raises(ValueError, match="is damaged"):
            run(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]
        assert "fontSize" in (tmp_path / "settings.json").read_text()

    def test_a_run_that_has_just_begun_keeps_its_folder(self, tmp_path):
        run(tmp_path / "run")._metrics.close()
        with pytest.raises(ValueError, match="holds a run with other settings"):
            run(tmp_path / "run", lam=0.7)

    def test_what_safetensors_left_of_a_killed_checkpoint_is_removed(self, tmp_path):
        """It writes under a name of its own first."""
        train_until(run(tmp_path / "run", 0), 2)
        command = [sys.executable, "-c", KILLED_WHILE_SAVING, str(tmp_path / "run")]
        assert subprocess.run(command, timeout=LIMIT, **AT_ROOT).returncode == 9
        run(tmp_path / "run").train()
        assert [path.name for path in (tmp_path / "run").rglob(".*")] == []

    @pytest.mark.parametrize("damaged", ["", "{}", "[1]", '{"epochs": 1}', "null", "NaN", '"abc"'])
    def test_figures_that_are_damaged_are_made_again(self, damaged, tmp_path):
        run(tmp_path / "run", epochs=1).train()
        whole = runs.files(tmp_path / "run")
        if damaged in ("null", "NaN", '"abc"'):
            damaged = json.dumps(json.loads(whole["result.json"]) | {"valid_perplexity": json.loads(damaged)})
        (tmp_path / "run" / "result.json").write_text(damaged)
        run(tmp_path / "run", epochs=1).train()
        assert runs.files(tmp_path / "run") == whole

    def test_a_damaged_model_is_refused_in_one_line(self, tmp_path):
        run(tmp_path / "run", epochs=1).train()
        (tmp_path / "run" / "result.json").unlink()
        path = tmp_path / "run" / "model" / "model.safetensors"
        path.write_bytes(path.read_bytes()[:100])
        with pytest.raises(ValueError, match=r"model\.safetensors is damaged \(.*\)") as refused:
            run(tmp_path / "run", epochs=1).train()
        assert "\n" not in str(refused.value)

    def test_an_empty_folder_is_taken(self, tmp_path):
        run(tmp_path, epochs=1).train()

    @pytest.mark.parametrize(
        "damage",
        [
            lambda path: path.write_bytes(b""),
            lambda path: path.write_bytes(b"\x80" * 200),
            lambda path: path.write_bytes(path.read_bytes()[:-9]),
            lambda path: save_file(load_file(path), path),  # without a record
            lambda path: save_file(load_file(path), path, {"record": "{}"}),
            lambda path: save_file(load_file(path), path, {"record": '{"position": {"x": 1}, "metrics": 0}'}),
            lambda path: save_file({"model.x": torch.zeros(1)}, path, {"record": _record(path)}),
            lambda path: save_file(_without(path, "generator.torch"), path, {"record": _record(path)}),
            lambda path: save_file(_without(path, "method.steps"), path, {"record": _record(path)}),
            lambda path: save_file(_without(path, "state.0"), path, {"record": _record(path)}),
        ],
    )
    def test_a_damaged_checkpoint_is_refused_in_one_line(self, damage, tmp_path):
        train_until(run(tmp_path / "run", 0, method="imm-serialized"), 3)
        damage(tmp_path / "run" / "checkpoint.safetensors")
        with pytest.raises(
            ValueError, match=r"checkpoint\.safetensors is damaged .*; remove it to begin anew"
        ) as refused:
            run(tmp_path / "run", method="imm-serialized")
        assert "\n" not in str(refused.value)

    def test_without_a_checkpoint_it_begins_anew(self, tmp_path):
        train_until(run(tmp_path / "run", epochs=2), 8)
        (tmp_path / "run" / "checkpoint.safetensors").unlink()
        run(tmp_path / "run", epochs=2).train()
        run(tmp_path / "whole", epochs=2).train()
        assert runs.files(tmp_path / "run") == runs.files(tmp_path / "whole")

    def test_and_what_it_was_judged_before_is_forgotten(self, whole, tmp_path):
        run(tmp_path / "run").train()
        (tmp_path / "run" / "checkpoint.safetensors").unlink()
        judged = {"epochs": 5, "best_epoch": 1, "valid_perplexity": 123.0, "test_perplexity": 123.0}
        (tmp_path / "run" / "result.json").write_text(json.dumps(judged))
        run(tmp_path / "run").train()
        assert runs.files(tmp_path / "run") == whole()


def _record(path):
    return json.dumps(Checkpoint.read(path).record)


def _without(path, name):
    tensors = load_file(path)
    del tensors[name]
    return tensors


class TestDivergence:
    @pytest.mark.parametrize("method", METHODS)
    def test_a_huge_rate_is_told_and_the_checkpoint_stays(self, method, tmp_path):
        made = run(tmp_path / "run", 0, method=method, learning_rate=1e4, clip=1e6, **SMALL)
        with pytest.raises(
            DivergenceError, match=r"training diverged at step \d+: .* try a learning rate below"
        ) as told:
            made.train()
        assert "\n" not in str(told.value)
        found = Checkpoint.read(tmp_path / "run" / "checkpoint.safetensors")
        assert all(tensor.isfinite().all() for tensor in found.tensors.values())

    @pytest.mark.parametrize("method", METHODS)
    def test_predictions_that_are_no_numbers(self, method, tmp_path):
        made = run(tmp_path / "run", 0, method=method, **SMALL)
        train_until(made, 4)
        made = run(tmp_path / "run", 0, method=method, **SMALL)
        with torch.no_grad():
            made.model.output.bias[2] = float("nan")
        with pytest.raises(DivergenceError, match="training diverged at step 5: cross-entropy nan; the last good"):
            made.train()
        found = Checkpoint.read(tmp_path / "run" / "checkpoint.safetensors")
        assert found.record["position"]["step"] == 4

    @pytest.mark.parametrize("epochs", [1, 3])
    def test_at_the_end_of_an_epoch(self, epochs, tmp_path, monkeypatch):
        made = run(tmp_path / "run", 0, epochs=epochs)
        nothing = torch.tensor([float("nan")])
        monkeypatch.setattr(training, "log_likelihoods", lambda *_: nothing)
        with pytest.raises(DivergenceError, match="training diverged at step 5"):
            made.train()
        assert not (tmp_path / "run" / "result.json").exists()

    def test_a_huge_second_pass(self, tmp_path):
        """An infinite gradient of the matching must not reach the parameters."""
        made = run(tmp_path / "run", 0, method="imm-exact", lam=3e38, dropout=0.0)
        told = r"training diverged at step 1: .*gradient norm (inf|nan).* rate below 1 or a λ below 3e\+38, in"
        with pytest.raises(DivergenceError, match=told):
            made.train()
        assert all(parameter.isfinite().all() for parameter in made.model.parameters())


class TestPlateau:
    def trained(self, tmp_path, monkeypatch, valid, **changes):
        """A run whose validation perplexities are given; parameters after each epoch."""
        values = iter(valid)
        before, after = [], []
        original = Run._end_epoch

        def end(self):
            before.append({name: p.clone() for name, p in self.model.state_dict().items()})
            found = original(self)
            after.append({name: p.clone() for name, p in self.model.state_dict().items()})
            return found

        monkeypatch.setattr(Run, "_end_epoch", end)
        monkeypatch.setattr(Run, "_result", lambda self: {})
        monkeypatch.setattr(training, "perplexity", lambda _: next(values))
        made = run(tmp_path / "run", learning_rate=0.8, epochs=len(valid), **changes)
        made.train()
        return made, before, after

    def test_the_rate_falls_and_the_best_parameters_come_back(self, tmp_path, monkeypatch):
        made, before, after = self.trained(tmp_path, monkeypatch, [9.0, 8.0, 8.5, 8.0, 7.0])
        for epoch, best in enumerate([0, 1, 1, 1, 4]):
            assert all(torch.equal(after[epoch][name], before[best][name]) for name in after[epoch])
        assert not torch.equal(before[2]["output.weight"], before[1]["output.weight"])
        assert (made.position.decays, made.position.rate, made.position.best) == (2, 0.2, 7.0)
        assert made.position.best_epoch == 5
        rates = {
            record["step"]: record["learning_rate"] for record in metrics(tmp_path / "run") if "learning_rate" in record
        }
        assert [rates[step] for step in (3, 9, 15, 18, 24)] == [0.8, 0.8, 0.8, 0.4, 0.2]

    def test_or_it_falls_by_a_schedule_and_nothing_comes_back(self, tmp_path, monkeypatch):
        made, before, after = self.trained(tmp_path, monkeypatch, [9.0, 9.5, 8.0, 8.5], decay_after=2)
        assert all(torch.equal(after[epoch]["output.weight"], before[epoch]["output.weight"]) for epoch in range(4))
        assert (made.position.decays, made.position.rate, made.position.best_epoch) == (0, 0.1, 3)
        rates = {
            record["step"]: record["learning_rate"] for record in metrics(tmp_path / "run") if "learning_rate" in record
        }
        assert [rates[step] for step in (3, 9, 12, 18)] == [0.8, 0.8, 0.4, 0.2]

    def test_a_schedule_does_not_end_training(self, tmp_path, monkeypatch):
        made, *_ = self.trained(tmp_path, monkeypatch, [9.0] * 8, decay_after=1, max_decays=2)
        assert made.position.epoch == 8

    def test_tied_parameters_come_back_tied(self, tmp_path, monkeypatch):
        made, before, after = self.trained(tmp_path, monkeypatch, [9.0, 9.5], tied=True)
        assert made.model.output.weight is made.model.embedding.weight
        assert torch.equal(after[1]["output.weight"], before[0]["output.weight"])

    def test_training_ends_when_the_rate_may_not_fall_any_more(self, tmp_path, monkeypatch):
        made, *_ = self.trained(tmp_path, monkeypatch, [9.0] * 8, max_decays=2)
        assert made.position.done
        assert made.position.decays == 3
        assert made.position.epoch == 4


class TestSecondPass:
    def gradients(self, tmp_path, name, **changes):
        """The parameters' gradients of the first step, when the optimizer sees them."""
        made = run(tmp_path / name, init=0.8, dropout=0.0, every=1, n_contexts=2, **changes)
        found = {}
        made._optimizer.step = lambda: found.update({n: p.grad.clone() for n, p in made.model.named_parameters()})
        made.step()
        made._metrics.close()
        return found

    @pytest.fixture
    def plain(self, tmp_path):
        return self.gradients(tmp_path, "plain", clip=1e9)

    @pytest.fixture
    def both(self, tmp_path):
        return self.gradients(tmp_path, "both", method="imm-sampled", clip=1e9)

    def norm(self, gradients):
        return torch.cat([gradient.flatten() for gradient in gradients.values()]).norm().item()

    def test_the_two_gradients_are_clipped_apart_and_then_lam_counts(self, tmp_path, plain, both):
        """Clipped after it was multiplied by λ, the second would be as long whatever λ is."""
        second = {name: both[name] - plain[name] for name in plain}
        clip = 0.1 * self.norm(second)
        assert self.norm(plain) > clip
        for lam in (0.2, 4.0):
            apart = self.gradients(tmp_path, f"apart{lam}", method="imm-sampled", clip=clip, lam=lam)
            for name in plain:
                first = plain[name] * clip / self.norm(plain)
                clipped = lam * second[name] * clip / self.norm(second)
                torch.testing.assert_close(apart[name], first + clipped, rtol=1e-3, atol=1e-5)

    def test_no_clipping_at_all(self, tmp_path, both):
        found = self.gradients(tmp_path, "run", method="imm-sampled", clip=float("inf"))
        for name, gradient in both.items():
            assert torch.equal(found[name], gradient)

    def test_the_loss_is_summed_over_the_unroll(self, tmp_path, plain):
        texts = tiny.texts()
        made = run(tmp_path / "run", init=0.8, dropout=0.0)
        made._metrics.close()
        batch = Windows(texts.train, 3, 4)[0]
        log_q, _ = made.model(batch.inputs, made.model.initial_state(3))
        loss = -log_q.gather(1, batch.labels[:, None]).sum() / 3
        for (name, parameter), gradient in zip(
            made.model.named_parameters(), torch.autograd.grad(loss, list(made.model.parameters())), strict=True
        ):
            torch.testing.assert_close(plain[name], gradient, msg=name)
            assert parameter.requires_grad

    def test_and_so_is_the_matching(self, tmp_path, plain, both):
        made = run(tmp_path / "run", init=0.8, dropout=0.0, every=1, n_contexts=2, method="imm-sampled")
        made._metrics.close()
        step = Step(made.model, made.windows[0], made._state, made.settings.lam, 1.0)
        made.method.prepare(step)
        made.method.backward_apart(step, 4.0)
        for name, parameter in made.model.named_parameters():
            expected = made.settings.lam * parameter.grad
            torch.testing.assert_close(both[name] - plain[name], expected, rtol=1e-3, atol=1e-5, msg=name)

    def test_the_mode_comes_back_after_an_error(self, tmp_path, monkeypatch):
        made = run(tmp_path / "run", method="imm-sampled", every=1)
        monkeypatch.setattr(made.method, "backward_apart", lambda *_: pytest.fail("boom"))
        with pytest.raises(pytest.fail.Exception):
            made.step()
        made._metrics.close()
        assert made.model.training


class TestStart:
    """A run that begins with the parameters of another."""

    @pytest.fixture
    def first(self, tmp_path):
        run(tmp_path / "first", epochs=2).train()
        return tmp_path / "first" / "model"

    def test_it_begins_with_the_other_runs_parameters(self, first, tmp_path):
        made = run(tmp_path / "run", start=first)
        for name, parameter in load_file(first / "model.safetensors").items():
            assert torch.equal(made.model.state_dict()[name], parameter)

    def test_interrupted_it_ends_in_the_same_bits(self, first, tmp_path):
        changes = {"epochs": 2, "method": "imm-sampled", "start": first, "learning_rate": 0.5, **SMALL}
        for step in (4, 8):
            train_until(run(tmp_path / "run", 0, **changes), step)
        run(tmp_path / "run", **changes).train()
        run(tmp_path / "whole", **changes).train()
        assert runs.files(tmp_path / "run") == runs.files(tmp_path / "whole")

    def test_the_dropout_masks_are_not_those_of_the_first_stage(self, first, tmp_path):
        """With the same seed the same units would be left out in the same order."""
        run(tmp_path / "new")._metrics.close()
        before = torch.rand(3)
        run(tmp_path / "run", start=first)._metrics.close()
        after = torch.rand(3)
        run(tmp_path / "again", start=first)._metrics.close()
        assert torch.equal(torch.rand(3), after)
        assert not torch.equal(before, after)

    def test_it_belongs_to_these_parameters(self, first, tmp_path):
        run(tmp_path / "run", epochs=1, start=first).train()
        with pytest.raises(ValueError, match=r"holds a run with other settings or texts .start is .* there and None"):
            run(tmp_path / "run", epochs=1)

    def test_a_model_of_another_shape_or_vocabulary_is_refused(self, first, tmp_path):
        with pytest.raises(ValueError, match="first/model is a model of another shape: width 8 there and 6 here"):
            run(tmp_path / "run", width=6, start=first)
        other = replace(tiny.texts(), vocabulary=Vocabulary([*tiny.WORDS[:-1], "f"]))
        with pytest.raises(ValueError, match="first/model has another vocabulary than these texts: 7 words there, 7"):
            run(tmp_path / "run", texts=other, start=first)


def test_a_method_whose_mathematics_changed_does_not_continue_its_old_runs(tmp_path, monkeypatch):
    run(tmp_path / "run", method="imm-sampled", epochs=1, **SMALL).train()
    monkeypatch.setitem(VERSIONS, "imm-sampled", VERSIONS["imm-sampled"] + 1)
    with pytest.raises(ValueError, match=r"holds a run with other settings or texts .version is 2 there and 3 here"):
        run(tmp_path / "run", method="imm-sampled", epochs=1, **SMALL)


@pytest.mark.parametrize("method", ["none", "imm-sampled", "imm-streaming"])
def test_bfloat16_is_for_training_and_hardly_changes_it(method, tmp_path):
    found = {p: run(tmp_path / p, method=method, precision=p, epochs=3, **SMALL).train() for p in ("32", "bf16")}
    assert found["bf16"]["test_perplexity"] == pytest.approx(found["32"]["test_perplexity"], rel=0.03)
    assert found["bf16"]["test_perplexity"] != found["32"]["test_perplexity"]
    made = run(tmp_path / "bf16", method=method, precision="bf16", epochs=3, **SMALL)
    assert made.model.output_dtype is None
