"""What does not fit together is refused when the trainer is made, and both sides are named."""

import pytest
import torch

pytest.importorskip("transformers")
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertLMHeadModel,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    TrainingArguments,
    XLNetConfig,
    XLNetLMHeadModel,
    default_data_collator,
)

from imm.huggingface import IMMConfig, IMMTrainer, ShortContextModel, fit_token_ngram
from imm.huggingface.matcher import table_mb
from imm.targets import Table
from tests.huggingface import tiny


def make(folder, model, target, tokenizer, rows=None, **more):
    data = rows or tiny.rows()
    return IMMTrainer(model, tiny.config(folder, **more), None, data, target=target, processing_class=tokenizer)


def test_another_number_of_words(tmp_path):
    with pytest.raises(
        ValueError, match=r"the target \(Ngram\) is over 20 words, and GPT2LMHeadModel predicts 24: fit"
    ):
        make(tmp_path, tiny.gpt2(n_words=24), tiny.bigram(), tiny.tokenizer())
    wider = fit_token_ngram([row["input_ids"] for row in tiny.rows()], tiny.tokenizer(), n_words=24)
    make(tmp_path, tiny.gpt2(n_words=24), wider, tiny.tokenizer())
    short = ShortContextModel(tiny.gpt2(n_words=24), 2)
    with pytest.raises(ValueError, match=r"the target \(ShortContextModel\) is over 24 words, and GPT2LMHeadModel"):
        make(tmp_path, tiny.gpt2(), short, tiny.tokenizer())


@pytest.mark.parametrize("given", [{"processing_class": tiny.tokenizer()}, {"data_collator": tiny.collator()}])
def test_another_tokenizer(tmp_path, given):
    other = fit_token_ngram([[5, 6]], tiny.tokenizer())
    other.classes = (*other.classes[:7], "dog", *other.classes[8:])
    with pytest.raises(ValueError, match=r"another tokenizer: its word 7 is 'dog', and that of \w+ is 'w2'"):
        IMMTrainer(tiny.gpt2(), tiny.config(tmp_path), train_dataset=tiny.rows(), target=other, **given)


@pytest.mark.parametrize("model", [tiny.classifier, lambda: BertModel(tiny.bert_config())], ids=["task", "encoder"])
def test_a_model_without_a_head_for_words(tmp_path, model):
    with pytest.raises(ValueError, match=r"^Bert\w+ has no language-model head, and IMM matches predictions of words"):
        make(tmp_path, model(), tiny.bigram(masked=True), tiny.tokenizer(True))


def test_nor_one_that_the_trainer_makes(tmp_path):
    with pytest.raises(ValueError, match=r"^GPT2Model has no language-model head"):
        IMMTrainer(
            None,
            tiny.config(tmp_path),
            None,
            tiny.rows(),
            target=tiny.bigram(),
            model_init=lambda: GPT2Model(tiny.gpt2().config),
        )


def test_a_model_that_sees_what_comes_after(tmp_path):
    config = XLNetConfig(vocab_size=20, d_model=8, n_layer=1, n_head=2, d_inner=8)
    with pytest.raises(ValueError, match=r"^XLNetLMHeadModel sees the words after those that it predicts"):
        make(tmp_path, XLNetLMHeadModel(config), tiny.bigram(), tiny.tokenizer())


def test_a_model_with_an_encoder_and_a_decoder(tmp_path):
    layers = dict.fromkeys(
        ("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"), 1
    )
    config = BartConfig(vocab_size=20, d_model=8, encoder_ffn_dim=8, decoder_ffn_dim=8, forced_eos_token_id=3, **layers)
    with pytest.raises(
        ValueError, match=r"^BartForConditionalGeneration has an encoder and a decoder: IMM is for causal"
    ):
        make(tmp_path, BartForConditionalGeneration(config), tiny.bigram(masked=True), tiny.tokenizer(True))


def test_a_causal_model_that_sees_both_sides(tmp_path):
    config = tiny.bert_config()
    with pytest.raises(
        ValueError, match=r"^BertLMHeadModel sees the words that it predicts, .* is_decoder=False: set it"
    ):
        make(tmp_path, BertLMHeadModel(config), tiny.bigram(masked=True), tiny.tokenizer(True))
    config.is_decoder = True
    make(tmp_path, BertLMHeadModel(config), tiny.bigram(masked=True), tiny.tokenizer(True))


def test_a_masked_model_without_its_tokenizer(tmp_path):
    target = tiny.bigram(masked=True)
    with pytest.raises(
        ValueError, match="BertForMaskedLM predicts masked words: give its tokenizer, got no processing"
    ):
        make(tmp_path, tiny.bert(), target, None, tiny.rows(masked=True))
    with pytest.raises(ValueError, match="which has no mask token"):
        make(tmp_path, tiny.bert(), target, tiny.tokenizer(), tiny.rows(masked=True))


def test_smoothed_labels_of_a_task(tmp_path):
    with pytest.raises(ValueError, match="label_smoothing_factor takes the labels from the model: TaskWithMaskedLM"):
        make(
            tmp_path,
            tiny.task_with_words(),
            tiny.bigram(masked=True),
            tiny.tokenizer(True),
            tiny.rows(masked=True),
            label_smoothing_factor=0.1,
        )


@pytest.mark.parametrize("weak", [False, True])
def test_a_target_that_is_the_model_itself(tmp_path, weak):
    """It would be trained while it informs, and as a target it does not learn."""
    model = tiny.gpt2()
    target = ShortContextModel(model, 1)
    with pytest.raises(ValueError, match=r"\(\w+\) is the GPT2LMHeadModel that is trained: give it another"):
        make(tmp_path, model, target.weakened(0.2) if weak else target, tiny.tokenizer())


class Shared(IMMTrainer):
    """As with FSDP."""

    def create_accelerator_and_postprocess(self):
        super().create_accelerator_and_postprocess()
        self.is_fsdp_enabled = True


@pytest.mark.parametrize("matching", ["streaming", "sampled", "exact"])
def test_passes_over_parameters_that_are_shared_out(tmp_path, matching):
    def make(model, masked):
        data, tokens = tiny.rows(masked=masked), tiny.tokenizer(masked)
        args = tiny.config(tmp_path, matching=matching)
        return Shared(model, args, None, data, target=tiny.bigram(masked=masked), processing_class=tokens)

    with pytest.raises(ValueError, match=f"{matching} matching of BertForMaskedLM needs whole parameters"):
        make(tiny.bert(), True)
    if matching == "streaming":
        make(tiny.gpt2(), False)
    else:
        with pytest.raises(ValueError, match=f"{matching} matching of GPT2LMHeadModel needs whole parameters"):
            make(tiny.gpt2(), False)


def test_settings(tmp_path):
    with pytest.raises(TypeError, match="args must be an IMMConfig, got TrainingArguments"):
        IMMTrainer(tiny.gpt2(), TrainingArguments(output_dir=str(tmp_path), use_cpu=True), target=tiny.bigram())
    with pytest.raises(ValueError, match="IMM needs train_dataset"):
        IMMTrainer(tiny.gpt2(), tiny.config(tmp_path), target=tiny.bigram())
    for wrong, said in [
        ({"lam": -1.0}, "lam must be finite and not negative"),
        ({"matching": "best"}, "matching must be one of streaming, sampled, exact, got 'best'"),
        ({"n_contexts": 0}, "n_contexts must be a whole number of at least 1"),
        ({"memory": -2.0}, "memory must be finite and not negative"),
        ({"matching": "sampled", "fp16": True}, "use bf16, not fp16"),
    ]:
        with pytest.raises(ValueError, match=said):
            tiny.config(tmp_path, **wrong)
    assert IMMConfig(output_dir=str(tmp_path), use_cpu=True).lam == 0.2


def test_any_target_over_single_tokens_will_do(tmp_path):
    uniform = Table({token: [1 / 20] * 20 for token in range(20)}, classes=range(20))
    made = tiny.trainer(tmp_path, target=uniform, max_steps=1)
    made.train()
    assert "matching" in made.state.log_history[0]
    turned = Table({token: [1 / 20] * 20 for token in range(20)}, classes=range(19, -1, -1))
    with pytest.raises(ValueError, match=r"\(Table\) must have the numbers of the 20 words .* order: class 0 is 19"):
        tiny.trainer(tmp_path, target=turned)
    with pytest.raises(
        TypeError, match=r"target must be an imm\.targets\.Target over the words of GPT2LM\w+, got dict"
    ):
        tiny.trainer(tmp_path, target={5: [1.0]})


@pytest.mark.parametrize("weak", [False, True])
def test_short_contexts_are_as_long_as_the_targets(tmp_path, weak):
    for target in (tiny.bigram(order=3), ShortContextModel(tiny.gpt2(seed=1), 2, tiny.tokenizer())):
        made = tiny.trainer(tmp_path, target=target.weakened(0.2) if weak else target)
        assert made.matcher.m == 2


class Bare(GPT2LMHeadModel):
    """Takes no attention mask."""

    def forward(self, input_ids=None, labels=None, num_items_in_batch=None, logits_to_keep=0):
        return super().forward(input_ids=input_ids, labels=labels, logits_to_keep=logits_to_keep)


@pytest.mark.parametrize("remove", [True, False])
def test_columns_that_matching_needs_are_kept(tmp_path, remove):
    """Padding is not matched, though the model knows nothing of it."""
    rows = [
        {"input_ids": ids + [0] * (9 - len(ids)), "attention_mask": [1] * len(ids) + [0] * (9 - len(ids))}
        for ids in (row["input_ids"] for row in tiny.rows())
    ]
    rows = [row | {"labels": row["input_ids"]} | ({"other": 1} if remove else {}) for row in rows]
    config = GPT2Config(vocab_size=20, n_positions=16, n_embd=8, n_layer=1, n_head=2, bos_token_id=3, eos_token_id=3)
    torch.manual_seed(0)
    made = make(tmp_path, Bare(config), tiny.bigram(), None, rows, remove_unused_columns=remove, max_steps=1)
    assert made.data_collator is default_data_collator
    batch = next(iter(made.get_train_dataloader()))
    assert "other" not in batch
    places = made.matcher.batch(batch).places
    assert len(places) == int((batch["attention_mask"].sum(1) - 1).sum())
    made.train()
    made.evaluate(rows)
    assert "matching" in made.state.log_history[0]


@pytest.mark.parametrize("matching", ["sampled", "exact"])
def test_rows_that_are_longer_than_the_model_reads(tmp_path, matching):
    rows = [*tiny.rows(), {"input_ids": [5, 6] * 9}]
    with pytest.raises(ValueError, match=r"a row of train_dataset has 18 tokens, and GPT2LMHeadModel reads 16"):
        tiny.trainer(tmp_path, dataset=rows, matching=matching)
    tiny.trainer(tmp_path, dataset=rows)  # streaming takes them from the collator, which may cut them


def test_a_model_that_gives_no_logits(tmp_path):
    class Fused(GPT2LMHeadModel):
        def forward(self, input_ids, attention_mask=None, labels=None, **more):
            found = super().forward(input_ids, attention_mask=attention_mask, labels=labels, **more)
            return {"loss": found.loss}

    made = tiny.trainer(tmp_path, Fused(tiny.gpt2().config))
    with pytest.raises(ValueError, match="Fused gives no logits in training"):
        made.train()


def test_running_means_take_half_of_what_training_takes():
    model = torch.nn.Linear(1000, 25_000, bias=False)  # 100 MB, with gradient and moments 400
    assert table_mb(model) == 200
    assert table_mb(model.requires_grad_(False)) == 64
