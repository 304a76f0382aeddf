"""The study of little text with a tiny model and made-up text."""

import math

import pytest

pytest.importorskip("transformers")
import torch
from studies.little_text import runs as low_data
from studies.little_text import study as lm_low_data
from transformers import default_data_collator

from imm.huggingface import IMMConfig, resumable_training
from tests.huggingface import tiny
from tests.huggingface.conftest import _little_to_collect  # noqa: F401
from tests.studies import tiny_wiki

SETTINGS = {**lm_low_data.STUDY.settings, **tiny_wiki.SETTINGS}


@pytest.fixture(autouse=True)
def _tiny(monkeypatch, tmp_path_factory):
    tiny_wiki.use(monkeypatch, tmp_path_factory.mktemp("wiki"))


def piece(method, strength=0.5):
    return {"method": method, "fraction": 0.1, "strength": strength, "restart": 0}


def test_every_token_but_the_first_is_predicted_once_from_those_before_it_in_its_row():
    model, tokens = tiny.gpt2().eval(), torch.randint(20, (12,), generator=torch.Generator().manual_seed(0))
    found = low_data.log_likelihoods(model, tokens, context=4)
    for i in range(1, 12):
        begin = (i - 1) // 4 * 4
        log_q = torch.log_softmax(model(tokens[None, begin:i]).logits[0, -1], -1)
        assert found[i - 1].item() == pytest.approx(log_q[tokens[i]].item(), abs=1e-5)
    assert len(found) == 11


def test_perplexity_is_per_word_and_line_ends_are_words(tmp_path):
    text = low_data.words(280, None, tmp_path)
    assert text.words == {"train": 60 * 9, "valid": 12 * 9, "test": 12 * 9}
    assert low_data.words(280, 40, tmp_path).words["valid"] == 5 * 9  # to the end of the line
    tokens = text.tokens["test"]
    assert text.tokenizer.decode(tokens[1:12]).split()[0] in ("the", "cat", "sat", "mats", "<unk>")
    assert (tokens == text.tokenizer.unk_token_id).sum() > 0
    assert low_data.per_word(torch.full((6,), 0.1), 3) == pytest.approx(100)
    total = sum(text.bigram(tokens[i : i + 1])[0, tokens[i + 1]].log().item() for i in range(len(tokens) - 1))
    alone = low_data.bigram_alone({"tokens": 280, "judged": None}, "test", tmp_path)
    assert alone == pytest.approx(math.exp(-total / (12 * 9)), rel=1e-5)


def test_reverse_kd_is_added_in_training_alone(tmp_path):
    target, rows = tiny.bigram(), [{"input_ids": torch.tensor([5, 7, 9]), "labels": torch.tensor([5, 7, 9])}] * 2
    quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "dataloader_pin_memory": False}
    made = low_data.ReverseKDTrainer(
        tiny.gpt2(), IMMConfig(str(tmp_path), lam=0.7, **quiet), default_data_collator, rows, target=target
    )
    batch = default_data_collator(rows)
    log_q = torch.log_softmax(made.model(batch["input_ids"]).logits[0, :-1], -1)
    teacher = target(torch.tensor([5, 7]))
    plain = -(log_q[0, 7] + log_q[1, 9]) / 2
    pulled = (teacher * (teacher.log() - log_q)).nansum(-1).mean()
    torch.testing.assert_close(made.compute_loss(made.model.train(), batch), plain + 0.7 * pulled)
    torch.testing.assert_close(made.compute_loss(made.model.eval(), batch), plain)


def test_mixing_with_all_of_the_bigram_is_the_bigram(tmp_path):
    settings = {**SETTINGS, "shares": [0.5, 1.0]}
    found = low_data.train(settings, piece("none", 0.0), tmp_path)
    for split in ("valid", "test"):
        alone = low_data.bigram_alone(settings, split, tmp_path)
        assert found[split]["1.0"] == pytest.approx(alone)
        assert found[split]["0.5"] < max(alone, found[split]["0.0"])


@pytest.mark.parametrize("method", ["reverse-kd", "imm-streaming"])
def test_an_interrupted_run_continues_after_its_last_epoch(tmp_path, monkeypatch, method):
    whole = low_data.train(SETTINGS, piece(method), tmp_path / "whole")
    n_epochs, train = [], resumable_training.train

    def stops(trainer, folder):
        step = trainer.training_step

        def stopped(*rest):
            if trainer.state.epoch >= 1:
                raise KeyboardInterrupt
            n_epochs.append(1)
            return step(*rest)

        trainer.training_step = stopped
        train(trainer, folder)

    monkeypatch.setattr(resumable_training, "train", stops)
    with pytest.raises(KeyboardInterrupt):
        low_data.train(SETTINGS, piece(method), tmp_path / "stopped")
    monkeypatch.setattr(resumable_training, "train", train)
    assert n_epochs
    again = low_data.train(SETTINGS, piece(method), tmp_path / "stopped")
    assert {split: again[split] for split in ("valid", "test")} == {split: whole[split] for split in ("valid", "test")}


def test_strengths_are_chosen_on_valid_and_reported_on_test():
    rows = [
        {"method": "imm-streaming", "fraction": 0.05, "strength": strength, "split": split, "value": value}
        for strength, both in {0.3: (90.0, 80.0), 1.0: (91.0, 70.0)}.items()
        for split, value in zip(("valid", "test"), both, strict=True)
    ]
    valid, test = lm_low_data.summarise(rows)
    assert (valid["mean"], test["mean"], test["strength"], test["tries"], test["percent"]) == (90.0, 80.0, 0.3, 2, 5.0)


def test_each_method_with_a_strength_has_as_many_tries():
    settings = lm_low_data.STUDY.settings
    tries = {len(each) for method, each in settings["strengths"].items() if method != "none"}
    assert tries == {len(settings["shares"])}
