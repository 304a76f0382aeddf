"""Configurations that mean the same give the same parameters; and the whole loss against plain loops."""

import math

import pytest
import torch

pytest.importorskip("transformers")
from torch.nn.functional import cross_entropy
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback

from imm.huggingface import IMMTrainer
from tests.huggingface import tiny

MATCHINGS = ("streaming", "sampled", "exact")
PLAIN = {"optim": "sgd", "learning_rate": 1.0, "max_grad_norm": 0.0, "train_sampling_strategy": "sequential"}
"""One step moves the parameters by the gradient, and rows come as they are."""


def gradient(made):
    """Of the one step that ``made`` takes with ``PLAIN``."""
    before = tiny.parameters(made.model)
    return before - tiny.trained(made)


def history(made, name):
    return [record[name] for record in made.state.log_history if name in record]


@pytest.mark.parametrize("matching", MATCHINGS)
def test_with_lam_zero_the_trajectory_is_the_plain_trainers_to_the_bit(tmp_path, matching):
    changes = {"dataset": tiny.rows(8), "lam": 0.0, "positions": 1}
    ours = tiny.trainer(tmp_path, tiny.gpt2(dropout=0.2), matching=matching, **changes)
    found = tiny.trained(ours)
    plain = tiny.trainer(tmp_path, tiny.gpt2(dropout=0.2), kind=Trainer, **changes)
    assert torch.equal(found, tiny.trained(plain))
    assert history(ours, "loss") == history(plain, "loss")
    assert len(history(ours, "matching")) == 3


def places_of(rows, order=2):
    """Each place with a whole short context: its row's words before it, and the last of them."""
    for row in rows:
        ids = row["input_ids"]
        for place in range(order - 1, len(ids)):
            yield ids[:place], ids[place - order + 1 : place]


def log_q(model, before):
    return torch.log_softmax(model(torch.tensor([before])).logits[0, -1].double(), -1)


def primary(model, rows):
    """What GPT-2's loss is: the sum over predicted words by the number of labels, one a row too many."""
    losses = [
        -log_q(model, row["input_ids"][:i])[row["input_ids"][i]]
        for row in rows
        for i in range(1, len(row["input_ids"]))
    ]
    return sum(losses) / sum(len(row["input_ids"]) for row in rows)


def flat_gradient(loss, model):
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))]).float()


def induced(model, rows, short, order=2):
    """The mean over all places of these rows with the same short context, by plain loops."""
    q = [log_q(model, before).exp() for before, last in places_of(rows, order) if last == short]
    return sum(q) / len(q)


def expected(model, batch, data, target, lam, order=2):
    places = list(places_of(batch, order))
    risk = 0.0
    for _, short in places:
        row = target(torch.tensor([short]))[0].double()
        risk = risk - (row * induced(model, data, short, order).log()).sum()
    return flat_gradient(primary(model, batch) + lam * risk / len(places), model)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("matching", ["streaming", "exact"])
def test_the_whole_gradient_is_that_of_plain_loops(tmp_path, matching, order):
    rows, target = tiny.rows(6), tiny.bigram(order=order)
    changes = PLAIN | {"matching": matching, "max_steps": 1, "lam": 0.7, "memory": 0.0, "positions": 0}
    made = tiny.trainer(tmp_path, dataset=rows, target=target, per_device_train_batch_size=4, rows_at_once=3, **changes)
    contexts = rows if matching == "exact" else rows[:4]  # a running mean without memory is that of the batch
    wanted = expected(tiny.gpt2(), rows[:4], contexts, target, 0.7, order)
    torch.testing.assert_close(gradient(made), wanted, rtol=2e-4, atol=2e-5)


def test_the_gradient_of_the_whole_loss_is_right_numerically(tmp_path):
    def in_double(outputs, labels, num_items_in_batch=None):  # the model's own loss is single precision
        return cross_entropy(outputs.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    model = tiny.gpt2().double()
    made = tiny.trainer(
        tmp_path, model, dataset=tiny.rows(6), compute_loss_func=in_double, matching="exact", lam=0.7, positions=0
    )
    batch = tiny.collator()(tiny.rows(3))
    made.compute_loss(model.train(), dict(batch)).backward()
    generator = torch.Generator().manual_seed(0)
    for parameter in (model.transformer.wte.weight, model.transformer.h[0].attn.c_attn.weight):
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        either = []
        for step in (1e-5, -2e-5):
            parameter.data += step * direction
            either.append(made.compute_loss(model, dict(batch)).item())
        parameter.data += 1e-5 * direction
        found = (either[0] - either[1]) / 2e-5
        assert found == pytest.approx((parameter.grad * direction).sum().item(), rel=1e-6)


def test_one_sampled_context_is_reverse_kd_there(tmp_path):
    rows, target = tiny.rows(6), tiny.bigram()
    changes = PLAIN | {"matching": "sampled", "max_steps": 1, "lam": 0.7, "n_contexts": 1, "positions": 0}
    made = tiny.trainer(tmp_path, dataset=rows, target=target, per_device_train_batch_size=4, **changes)
    before, short = zip(*places_of(rows), strict=True)
    n = len(list(places_of(rows[:4])))
    generator = torch.Generator().manual_seed(made.args.seed)
    drawn = made.matcher.index.multiset.draw(torch.tensor(short[:n])[:, 0], 1, generator).index[:, 0].tolist()
    model = tiny.gpt2()
    risk = 0.0
    for i, context in enumerate(drawn):
        assert before[context][-1] == short[i][0]
        risk = risk - (target(torch.tensor([short[i]]))[0] * log_q(model, before[context])).sum()
    wanted = flat_gradient(primary(model, rows[:4]) + 0.7 * risk / n, model)
    torch.testing.assert_close(gradient(made), wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("model", "matching"), [(tiny.gpt2, "sampled"), (tiny.llama, "sampled"), (tiny.llama, "exact")]
)
def test_one_row_eight_times_is_eight_rows_at_once(tmp_path, model, matching):
    changes = PLAIN | {"matching": matching, "learning_rate": 0.1, "lam": 1.0, "dataset": tiny.rows(8)}
    changes |= {"positions": 3, "max_steps": 2} if matching == "sampled" else {"positions": 1, "max_steps": 1}
    some = tiny.trainer(tmp_path, model(), per_device_train_batch_size=1, gradient_accumulation_steps=8, **changes)
    whole = tiny.trainer(tmp_path, model(), per_device_train_batch_size=8, **changes)
    torch.testing.assert_close(tiny.trained(some), tiny.trained(whole), rtol=1e-4, atol=1e-5)
    assert history(some, "matching") == pytest.approx(history(whole, "matching"), rel=1e-5)


class Mine(GPT2LMHeadModel):
    """With a forward of its own, which leaves the loss to the class above."""

    def forward(self, input_ids=None, attention_mask=None, labels=None, **more):
        return super().forward(input_ids=input_ids, attention_mask=attention_mask, labels=labels, **more)


def test_a_subclass_is_trained_as_what_it_is_of(tmp_path):
    changes = PLAIN | {"matching": "sampled", "lam": 1.0, "positions": 3, "max_steps": 1, "dataset": tiny.rows(8)}
    changes |= {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 8}
    mine = Mine(tiny.gpt2().config)
    mine.load_state_dict(tiny.gpt2().state_dict())
    assert torch.equal(*(tiny.trained(tiny.trainer(tmp_path, model, **changes)) for model in (mine, tiny.gpt2())))


@pytest.mark.parametrize("matching", ["sampled", "exact"])
def test_masked_models_accumulate_too(tmp_path, matching):
    """BERT's loss is a mean over its batch, which the trainer adds up: eight times the loss, IMM's share as before."""
    changes = PLAIN | {"matching": matching, "max_steps": 2, "lam": 1.0, "positions": 0}
    found = []
    for size, rate in ((8, 0.4), (1, 0.05)):
        sizes = {"per_device_train_batch_size": size, "gradient_accumulation_steps": 8 // size, "learning_rate": rate}
        made = tiny.masked_trainer(tmp_path, tiny.masked_rows(8), **(changes | sizes))
        found.append((tiny.trained(made), history(made, "matching"), history(made, "cross_entropy")))
    whole, some = found
    torch.testing.assert_close(some[0], whole[0], rtol=1e-4, atol=1e-5)
    assert some[1] == pytest.approx(whole[1], rel=1e-5)
    assert some[2] == pytest.approx(whole[2], rel=1e-5)


class OwnMean(GPT2LMHeadModel):
    """A model that takes the mean over its own batch, whatever it is told."""

    def forward(self, input_ids, attention_mask=None, labels=None, **_):
        found = GPT2LMHeadModel.forward(self, input_ids, attention_mask=attention_mask)
        if labels is not None:
            found["loss"] = cross_entropy(found.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return found


def test_a_model_with_a_loss_of_its_own_has_the_same_lam(tmp_path):
    rows = [{"input_ids": [5 + (i * j) % 7 for j in range(1, 6)]} for i in range(1, 9)]
    found = []
    for size in (8, 1):
        model = OwnMean(tiny.gpt2().config)
        model.load_state_dict(tiny.gpt2().state_dict())
        changes = {"per_device_train_batch_size": size, "gradient_accumulation_steps": 8 // size, "max_steps": 1}
        made = tiny.trainer(tmp_path, model, dataset=rows, matching="exact", positions=0, **changes)
        made.train()
        found.append([history(made, name)[0] for name in ("cross_entropy", "matching")])
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_streaming_accumulates_too_where_the_batches_share_no_short_context(tmp_path):
    rows = [{"input_ids": [5 + i] * (3 + i % 2)} for i in range(8)]
    changes = PLAIN | {"learning_rate": 0.1, "max_steps": 1, "lam": 1.0}
    some = tiny.trainer(tmp_path, dataset=rows, per_device_train_batch_size=1, gradient_accumulation_steps=8, **changes)
    whole = tiny.trainer(tmp_path, dataset=rows, per_device_train_batch_size=8, **changes)
    torch.testing.assert_close(tiny.trained(some), tiny.trained(whole), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("matching", ["streaming", "sampled"])
def test_a_run_that_continues_from_a_checkpoint_is_the_same_to_the_bit(tmp_path, matching):
    changes = {"matching": matching, "max_steps": 6, "positions": 2, "lam": 1.0}
    straight = tiny.trained(tiny.trainer(tmp_path / "a", tiny.gpt2(dropout=0.2), **changes))
    saved = {"save_strategy": "steps", "save_steps": 3}
    made = tiny.trainer(tmp_path / "b", tiny.gpt2(dropout=0.2), **changes, **saved)
    made.train()
    again = tiny.trainer(tmp_path / "b", tiny.gpt2(seed=1, dropout=0.2), **changes)
    again.train(resume_from_checkpoint=str(tmp_path / "b" / "checkpoint-3"))
    assert torch.equal(tiny.parameters(made.model), straight)
    assert torch.equal(tiny.parameters(again.model), straight)
    assert history(again, "matching") == history(made, "matching")


def test_a_checkpoint_without_matching_or_of_another_is_refused(tmp_path):
    changes = {"max_steps": 1, "save_strategy": "steps", "save_steps": 1}
    tiny.trainer(tmp_path, matching="sampled", **changes).train()
    with pytest.raises(ValueError, match="is of sampled matching, and this run's is streaming"):
        tiny.trainer(tmp_path, **changes).train(resume_from_checkpoint=True)
    (tmp_path / "checkpoint-1" / "matching.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no matching\.safetensors: it is no checkpoint of an IMMTrainer"):
        tiny.trainer(tmp_path, matching="sampled", **changes).train(resume_from_checkpoint=True)


def test_a_checkpoint_of_running_means_of_other_data_is_refused(tmp_path):
    changes = {"save_strategy": "steps", "save_steps": 1, "max_steps": 2}
    tiny.trainer(tmp_path, **changes).train()
    other = [{"input_ids": row["input_ids"][::-1]} for row in tiny.rows()]
    made = tiny.trainer(tmp_path, dataset=other, **changes | {"max_steps": 3})
    with pytest.raises(ValueError, match="holds running means of other training data"):
        made.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))


def test_a_checkpoint_of_parameters_only_goes_on_with_a_new_table(tmp_path):
    changes = {"save_strategy": "steps", "save_steps": 2, "save_only_model": True}
    tiny.trainer(tmp_path, max_steps=2, **changes).train()
    again = tiny.trainer(tmp_path, max_steps=3, **changes)
    with pytest.warns(UserWarning, match=r"has parameters only \(save_only_model\): matching begins anew"):
        again.train(resume_from_checkpoint=True)
    assert int(again.matcher.table.steps) == 1


def test_passes_of_masked_models_are_bounded(tmp_path):
    found, sizes, modes = [], [], []
    for at_once in (3, 1000):
        args = tiny.config(tmp_path, positions=0, rows_at_once=at_once, max_steps=1, lam=1.0)
        model, more = tiny.bert(), {"processing_class": tiny.tokenizer(masked=True)}
        model.base_model.register_forward_hook(lambda _, __, out: sizes.append(len(out.last_hidden_state)))
        model.cls.register_forward_hook(lambda head, *_: modes.append(head.training))
        rows = tiny.rows(4, masked=True)
        collator = tiny.collator(masked=True)
        torch.manual_seed(0)
        made = IMMTrainer(model, args, collator, rows, target=tiny.bigram(masked=True), **more)
        found.append(tiny.trained(made))
        assert max(sizes) <= 4 if at_once == 3 else max(sizes) > 10
    torch.testing.assert_close(*found, rtol=1e-4, atol=3e-5)
    assert modes == [True, False] * 2  # the primary pass, and matching


@pytest.mark.parametrize(
    ("width", "changes", "most"),
    [
        (8, {}, 8),
        (8, {"per_device_train_batch_size": 1}, 1),
        (8, {"gradient_checkpointing": True}, 2),
        (8, {"rows_at_once": 7}, 7),
        (2, {}, 9),
    ],
)
def test_passes_are_no_larger_than_the_primary_one(tmp_path, width, changes, most):
    """A batch is eight rows of ten tokens; with checkpoints the primary pass keeps about one of four layers.

    The narrower a model is, the more of its memory is for scores, and fits for contexts.
    """
    rows = [{"input_ids": [5 + (i * j) % 7 for j in range(10)]} for i in range(1, 17)]
    given = {"per_device_train_batch_size": 8, "matching": "sampled", "max_steps": 1, "lam": 1.0} | changes
    found = []
    for more in ({}, {"rows_at_once": 1000}):
        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config(**{**tiny.gpt2().config.to_dict(), "n_layer": 4, "n_embd": width}))
        made = tiny.trainer(tmp_path, model, dataset=rows, **(given | more))
        batch = made.matcher.batch(tiny.collator()(rows[: given["per_device_train_batch_size"]]))
        assert made.matcher._contexts_at_once(batch) == more.get("rows_at_once", most)
        found.append(tiny.trained(made))
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


def test_parameters_that_thaw_are_clipped_apart_too(tmp_path):
    class Thaw(TrainerCallback):
        def on_step_begin(self, *_, model, **__):
            model.requires_grad_(True)

    found = []
    for frozen in (False, True):
        model = tiny.gpt2()
        model.transformer.requires_grad_(not frozen)
        made = tiny.trainer(tmp_path, model, matching="sampled", lam=1.0, max_steps=1, max_grad_norm=0.1, optim="sgd")
        made.create_optimizer = lambda *_, made=made: setattr(
            made, "optimizer", torch.optim.SGD(made.model.parameters(), 1)
        )
        made.add_callback(Thaw())
        found.append(tiny.trained(made))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_batch_with_nothing_to_predict_leaves_the_log_in_numbers(tmp_path, steps):
    """Where it has no cross-entropy, it is taken for the mean of the others."""
    nothing = [{"input_ids": [2, 5, 6, 3], "labels": [-100] * 4, "attention_mask": [1] * 4}] * 4
    changes = {"logging_steps": 2, "max_steps": 2, "train_sampling_strategy": "sequential", "learning_rate": 0.0}
    changes |= {"gradient_accumulation_steps": steps, "positions": 1}
    few = [{**row, "input_ids": row["input_ids"][:4], "labels": row["labels"][:4]} for row in tiny.masked_rows(4)]
    few = [{**row, "attention_mask": [1] * 4} for row in few]
    found = []
    for rows in ((nothing + few) * steps, few * 2 * steps):
        made = tiny.masked_trainer(tmp_path, rows, **changes)
        made.train()
        (record,) = [record for record in made.state.log_history if "cross_entropy" in record]
        found.append(record)
    assert found[0]["cross_entropy"] == pytest.approx(found[1]["cross_entropy"], rel=1e-5)
    assert math.isfinite(found[0]["matching"])


@pytest.mark.parametrize("matching", MATCHINGS)
def test_each_term_is_logged_and_they_add_up(tmp_path, matching):
    changes = {"logging_steps": 2, "gradient_accumulation_steps": 2, "positions": 1, "max_steps": 2}
    made = tiny.trainer(tmp_path, matching=matching, lam=0.5, dataset=tiny.rows(8), **changes)
    made.train()
    for loss, primary, matched in zip(
        *(history(made, name) for name in ("loss", "cross_entropy", "matching")), strict=True
    ):
        assert loss == pytest.approx(primary + 0.5 * matched, rel=1e-5)


@pytest.mark.parametrize("matching", MATCHINGS)
def test_evaluation_has_the_primary_loss_only(tmp_path, matching):
    made = tiny.trainer(tmp_path, matching=matching)
    plain = tiny.trainer(tmp_path, kind=Trainer)
    assert made.evaluate(tiny.rows(5))["eval_loss"] == plain.evaluate(tiny.rows(5))["eval_loss"]


def test_the_two_gradients_of_sampled_are_clipped_apart(tmp_path):
    changes = PLAIN | {"matching": "sampled", "max_steps": 1, "positions": 0, "per_device_train_batch_size": 6}
    rows = tiny.rows(6)
    primary = gradient(tiny.trainer(tmp_path, dataset=rows, **changes | {"lam": 0.0}))
    both = gradient(tiny.trainer(tmp_path, dataset=rows, **changes | {"lam": 50.0}))
    clipped = gradient(tiny.trainer(tmp_path, dataset=rows, **changes | {"lam": 50.0, "max_grad_norm": 0.1}))
    matched = both - primary
    assert primary.norm() > 0.1
    assert matched.norm() > 0.1
    wanted = 0.1 * primary / primary.norm() + 50.0 * 0.1 * matched / matched.norm()
    torch.testing.assert_close(clipped, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("matching", ["streaming", "sampled"])
def test_smoothed_labels_leave_the_matching_as_it_is(tmp_path, matching):
    made = tiny.trainer(tmp_path, matching=matching, max_steps=1, positions=0)
    smooth = tiny.trainer(tmp_path, matching=matching, max_steps=1, positions=0, label_smoothing_factor=0.5)
    for each in (made, smooth):
        each.train()
    assert history(made, "matching") == history(smooth, "matching")
    assert history(made, "loss") != history(smooth, "loss")


@pytest.mark.parametrize("matching", ["streaming", "sampled"])
def test_a_second_training_with_a_new_model_is_the_first(tmp_path, matching):
    made = IMMTrainer(
        args=tiny.config(tmp_path, matching=matching, positions=1, max_steps=2, lam=1.0),
        target=tiny.bigram(),
        train_dataset=tiny.rows(),
        data_collator=tiny.collator(),
        model_init=lambda: tiny.gpt2(),
    )
    once = tiny.trained(made)
    assert not torch.equal(once, tiny.parameters(tiny.gpt2()))
    assert torch.equal(tiny.trained(made), once)


def test_settings_that_come_with_a_new_model_are_used(tmp_path):
    """As in a search over them."""

    def trained(**changes):
        made = IMMTrainer(
            args=tiny.config(tmp_path, max_steps=2, lam=1.0),
            target=tiny.bigram(),
            train_dataset=tiny.rows(),
            data_collator=tiny.collator(),
            model_init=lambda: tiny.gpt2(),
        )
        for name, value in changes.items():
            setattr(made.args, name, value)
        return tiny.trained(made)

    plain = trained()
    for changes in ({"matching": "sampled"}, {"memory": 0.0}, {"lifetime": 0.5}):
        assert not torch.equal(trained(**changes), plain), changes


def test_settings_that_come_too_late_are_refused(tmp_path):
    made = tiny.trainer(tmp_path, max_steps=1)
    made.args.lifetime = 1.0
    with pytest.raises(ValueError, match=r"lifetime was 30\.0 when the trainer was made, and is 1\.0 now, too late"):
        made.train()


@pytest.mark.parametrize("matching", MATCHINGS)
def test_a_batch_without_places_is_trained_plainly(tmp_path, matching):
    rows = [{"input_ids": [5]}, *tiny.rows(2)]
    changes = {"matching": matching, "per_device_train_batch_size": 1, "train_sampling_strategy": "sequential"}
    made = tiny.trainer(tmp_path, dataset=rows, **changes)
    made.train()
    assert history(made, "matching")[0] == 0
    assert history(made, "matching")[1] > 0
