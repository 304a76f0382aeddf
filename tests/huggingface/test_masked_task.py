"""Masked models: the past alone is seen, and a task is trained beside the words."""

import pytest
import torch

pytest.importorskip("transformers")
from torch.nn.functional import cross_entropy
from transformers import DataCollatorWithPadding, DistilBertConfig, DistilBertForMaskedLM, Trainer

from imm.huggingface import IMMTrainer, Masked, MaskingCollator, Rows, TaskWithMaskedLM, find_places, head, masked_loss
from tests.huggingface import tiny

MASK, SPECIAL = 4, [0, 1, 2, 3, 4]


def pairs(n=12):
    """Rows with a label: whether the first word is the last."""
    rows = tiny.rows(n, masked=True)
    return [row | {"label": int(row["input_ids"][1] == row["input_ids"][-2])} for row in rows]


def trainer(folder, model=None, kind=IMMTrainer, dataset=None, **changes):
    """For masked words alone, or with a task beside."""
    model = tiny.bert() if model is None else model
    task = isinstance(model, TaskWithMaskedLM)
    more = {"target": tiny.bigram(masked=True)} if kind is IMMTrainer else {}
    return kind(
        model=model,
        args=tiny.config(folder, **changes),
        train_dataset=dataset or (pairs() if task else tiny.rows(masked=True)),
        data_collator=MaskingCollator(tiny.tokenizer(True)) if task else tiny.collator(True),
        processing_class=tiny.tokenizer(True),
        **more,
    )


def log_q(model, ids, place):
    """The word at a place, from a row in which it and all words after it are masked; by hand."""
    seen = [*ids[:place], *(MASK if i not in SPECIAL else i for i in ids[place:])]
    return torch.log_softmax(model(input_ids=torch.tensor([seen])).logits[0, place].double(), -1)


@pytest.mark.parametrize("matching", ["streaming", "sampled", "exact"])
@pytest.mark.parametrize("model", [tiny.bert, tiny.task_with_words], ids=["words", "task"])
def test_with_lam_zero_the_trajectory_is_the_plain_trainers_to_the_bit(tmp_path, matching, model):
    ours = tiny.trained(trainer(tmp_path, model(dropout=0.2), matching=matching, lam=0.0, positions=1, max_steps=2))
    assert torch.equal(ours, tiny.trained(trainer(tmp_path, model(dropout=0.2), Trainer, max_steps=2)))


def test_the_word_and_all_after_it_are_masked_and_the_future_changes_nothing():
    model = tiny.bert().eval()
    rows = Rows(torch.tensor([[2, 7, 9, 8, 11, 3]]), torch.ones(1, 6).bool())
    other = Rows(torch.tensor([[2, 7, 9, 15, 16, 3]]), torch.ones(1, 6).bool())
    reading = Masked(MASK, SPECIAL, restore=False)
    row, place = torch.tensor([0, 0]), torch.tensor([1, 3])
    hidden = reading.hidden(model, rows, row, place)
    assert torch.equal(hidden, reading.hidden(model, other, row, place))
    found = torch.log_softmax(head(model, hidden).double(), -1)
    for i, at in enumerate([1, 3]):
        torch.testing.assert_close(found[i], log_q(model, [2, 7, 9, 8, 11, 3], at), rtol=1e-5, atol=1e-6)


def test_the_words_loss_has_a_weight():
    batch = MaskingCollator(tiny.tokenizer(True))(pairs())
    model = tiny.task_with_words().train()
    plain = model(**batch)
    torch.testing.assert_close(plain.loss, plain.task_loss + plain.masked_loss)
    model.words_weight = 0.25
    less = model(**batch)
    torch.testing.assert_close(less.loss, less.task_loss + 0.25 * less.masked_loss)
    with pytest.raises(ValueError, match="words_weight must be finite and not negative"):
        TaskWithMaskedLM(tiny.classifier(), tiny.bert(), -1.0)


def test_a_text_masked_for_the_mlm_loss_is_restored():
    batch = {
        "input_ids": torch.tensor([[2, 4, 9, 12, 3, 0]]),
        "labels": torch.tensor([[-100, 7, -100, 8, -100, -100]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 0]]),
    }
    rows, predicted = Masked(MASK, SPECIAL, restore=True).rows(batch)
    assert rows.ids.tolist() == [[2, 7, 9, 8, 3, 0]]
    assert predicted.tolist() == [[False, True, True, True, False, False]]
    assert Masked(MASK, SPECIAL, restore=False).rows(batch)[0].ids.tolist() == batch["input_ids"].tolist()


def test_an_unknown_word_is_a_word(tmp_path):
    """It is masked as the others are: to see it would be to see the future."""
    made = trainer(tmp_path)
    reading, unknown = made.matcher.reading, torch.tensor([[2, 7, 9, 1, 3]])
    rows, predicted = reading.rows({"input_ids": unknown})
    assert predicted.tolist() == [[False, True, True, True, False]]
    known = Rows(torch.tensor([[2, 7, 9, 8, 3]]), rows.real)
    model, at = made.model.eval(), (torch.tensor([0]), torch.tensor([2]))
    assert torch.equal(reading.hidden(model, rows, *at), reading.hidden(model, known, *at))


@pytest.mark.parametrize("left", [0, 2])
def test_the_first_word_of_a_second_sentence_is_not_matched(left):
    """Counted on texts, the bigram says that ``[CLS]`` follows ``[SEP]``."""
    assert tiny.bigram(masked=True)(torch.tensor([3]))[0, 2] > 0.9
    ids = torch.tensor([[0] * left + [2, 7, 9, 3, 8, 11, 3]])
    batch = {"input_ids": ids, "attention_mask": (ids != 0).long()}
    rows, predicted = Masked(MASK, SPECIAL, restore=False).rows(batch)
    assert find_places(rows, predicted, 1).place.tolist() == [left + at for at in (1, 2, 5)]


@pytest.mark.parametrize("matching", ["streaming", "exact", "sampled"])
def test_the_gradient_is_that_of_the_three_losses_by_plain_loops(tmp_path, matching):
    plain = {"optim": "sgd", "learning_rate": 1.0, "max_grad_norm": 0.0, "max_steps": 1, "positions": 0}
    rows = pairs(4)
    changes = plain | {"memory": 0.0, "per_device_train_batch_size": 5, "n_contexts": 1, "rows_at_once": 4}
    if matching == "sampled":  # [CLS] has five contexts to draw from, each other short context one
        rows = [{"input_ids": [2, 5 + i, 10 + i, 3], "label": i % 2} for i in range(5)]
    made = trainer(tmp_path, tiny.task_with_words(), dataset=rows, matching=matching, lam=0.7, **changes)
    batches = []
    made.data_collator, collate = lambda given: batches.append(collate(given)) or batches[-1], made.data_collator
    before = tiny.parameters(made.model)
    found = before - tiny.trained(made)

    model, target, batch = tiny.task_with_words().eval(), tiny.bigram(masked=True), batches[0]
    more = {"attention_mask": batch["attention_mask"]}
    loss = cross_entropy(model.task(batch["input_ids"], **more).logits, batch["labels"])
    words = model.masked(batch["masked_input_ids"], **more).logits
    loss = loss + cross_entropy(words.flatten(0, 1), batch["masked_words"].flatten())
    places = [(row["input_ids"], at) for row in rows for at in range(1, len(row["input_ids"]) - 1)]
    risk = 0.0
    for ids, at in places:
        same = [(other, i) for other, i in places if other[i - 1] == ids[at - 1]]
        if matching == "sampled" and ids[at - 1] == 2:  # below
            continue
        induced = sum(log_q(model.masked, *each).exp() for each in same) / len(same)
        risk = risk - (target(torch.tensor([ids[at - 1]]))[0] * induced.log()).sum()
    if matching == "sampled":
        order = [tuple(row.tolist()) for row in batch["input_ids"]]
        short = torch.tensor([ids[at] for ids in order for at in (0, 1)])
        generator = torch.Generator().manual_seed(made.args.seed)
        drawn = made.matcher.index.multiset.draw(short, 1, generator).index[:, 0]
        for i in range(0, 10, 2):
            ids, at = places[int(drawn[i])]
            risk = risk - (target(torch.tensor([2]))[0] * log_q(model.masked, ids, at)).sum()
    gradients = torch.autograd.grad(loss + 0.7 * risk / len(places), list(model.parameters()), allow_unused=True)
    wanted = torch.cat(
        [
            (torch.zeros_like(p) if g is None else g).flatten()
            for g, p in zip(gradients, model.parameters(), strict=True)
        ]
    )
    torch.testing.assert_close(found, wanted.float(), rtol=2e-4, atol=2e-5)


def test_all_three_losses_are_logged_and_add_up(tmp_path):
    made = trainer(tmp_path, tiny.task_with_words(), lam=0.5, gradient_accumulation_steps=2, logging_steps=2)
    made.train()
    record = made.state.log_history[0]
    assert record["loss"] == pytest.approx(
        record["task_loss"] + record["masked_loss"] + 0.5 * record["matching"], rel=1e-5
    )


def test_evaluation_is_that_of_the_task(tmp_path):
    model = tiny.task_with_words()
    made = trainer(tmp_path, model)
    result = made.predict(pairs(6))
    assert result.predictions.shape == (6, 2)
    batch = tiny.tokenizer(True).pad([{"input_ids": row["input_ids"]} for row in pairs(6)], return_tensors="pt")
    scores = model.task.eval()(**batch).logits
    wanted = cross_entropy(scores, torch.tensor([row["label"] for row in pairs(6)]))
    assert result.metrics["test_loss"] == pytest.approx(wanted.item(), rel=1e-5)


def test_a_batch_without_masks_or_without_labels_is_refused_in_training(tmp_path):
    """Without masks the loss of words was left out in silence."""
    made = trainer(tmp_path, tiny.task_with_words())
    made.data_collator = DataCollatorWithPadding(tiny.tokenizer(True))
    with pytest.raises(ValueError, match="learns from a text and the same with masks: take a MaskingCollator"):
        made.train()
    made = trainer(tmp_path, tiny.task_with_words(), dataset=tiny.rows(masked=True))
    with pytest.raises(ValueError, match="has no labels for BertForSequenceClassification: rows need a label"):
        made.train()


class SameMasks(MaskingCollator):
    """Masks that depend on the text alone: the trainer draws a batch ahead, which a checkpoint does not know."""

    def __call__(self, features):
        with torch.random.fork_rng():
            torch.manual_seed(sum(features[0]["input_ids"]))
            return super().__call__(features)


def test_a_run_with_a_task_continues_from_a_checkpoint(tmp_path):
    changes = {"matching": "sampled", "max_steps": 4, "positions": 1, "save_strategy": "steps", "save_steps": 2}
    made = trainer(tmp_path, tiny.task_with_words(dropout=0.2), **changes)
    made.data_collator = SameMasks(tiny.tokenizer(True))
    made.train()
    again = trainer(tmp_path, tiny.task_with_words(seed=5, dropout=0.2), **changes)
    again.data_collator = made.data_collator
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert torch.equal(tiny.parameters(again.model), tiny.parameters(made.model))


def test_a_task_and_words_share_their_encoder_and_the_parts_can_be_kept(tmp_path):
    model = tiny.task_with_words()
    assert model.masked.base_model is model.task.base_model
    words = model.task.get_input_embeddings().weight
    assert model.masked.get_output_embeddings().weight is words
    assert sum(p is words for p in model.parameters()) == 1
    model.masked.save_pretrained(tmp_path)
    kept = type(model.masked).from_pretrained(tmp_path)
    ids = torch.tensor([[2, 7, 4, 3]])
    torch.testing.assert_close(kept.eval()(ids).logits, model.masked.eval()(ids).logits)


def test_other_encoders_are_refused():
    other = DistilBertForMaskedLM(DistilBertConfig(vocab_size=20, dim=8, hidden_dim=8, n_layers=1, n_heads=2))
    with pytest.raises(ValueError, match=r"same encoder, got BertModel with embeddings \(20, 8\) and DistilBertModel"):
        TaskWithMaskedLM(tiny.classifier(), other)


@pytest.mark.parametrize("matching", ["streaming", "sampled", "exact"])
def test_a_row_without_words_is_trained_plainly(tmp_path, matching):
    rows = [{"input_ids": [2, 3], "label": 0}, *pairs(1)]
    changes = {"per_device_train_batch_size": 1, "train_sampling_strategy": "sequential", "max_steps": 2}
    model = tiny.task_with_words()
    made = trainer(tmp_path, model, dataset=rows, matching=matching, positions=1, **changes)
    made.data_collator = lambda given: collate(given) | {"masked_words": collate(given)["input_ids"]}  # nothing masked
    collate = MaskingCollator(tiny.tokenizer(True))
    made.train()
    found = [record["matching"] for record in made.state.log_history if "matching" in record]
    assert found[0] == 0
    assert found[1] > 0


def test_the_loss_of_masked_words_is_the_models_own_and_zero_without_any():
    model, words = tiny.bert().eval(), torch.tensor([[-100, 7, -100, -100], [-100, -100, 9, -100]])
    ids, more = torch.tensor([[2, 4, 9, 3], [2, 6, 4, 3]]), {"attention_mask": torch.ones(2, 4)}
    torch.testing.assert_close(masked_loss(model, ids, words, **more), model(ids, labels=words, **more).loss)
    assert masked_loss(model, ids, torch.full_like(words, -100), **more) == 0
