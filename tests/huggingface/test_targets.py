"""Restricted models over a tokenizer's tokens."""

import pytest
import torch

pytest.importorskip("transformers")
from transformers import PreTrainedTokenizerFast

from imm.huggingface import ShortContextModel, fit_token_ngram, read_token_arpa, token_rows, tokens_of
from imm.ngram import Counter, Ngram, load, save
from imm.ngram.arpa import read_arpa, write_arpa
from tests.huggingface import tiny


def test_tokens_are_in_the_order_of_their_numbers():
    assert tokens_of(tiny.tokenizer()) == list(tiny.WORDS)
    assert tokens_of(tiny.tokenizer(), 22)[20:] == ["<no token 20>", "<no token 21>"]
    with pytest.raises(ValueError, match="tokens up to number 19, and the model predicts 18 words"):
        tokens_of(tiny.tokenizer(), 18)


def test_an_ngram_of_rows_is_that_of_their_stream():
    rows = [row["input_ids"] for row in tiny.rows(30)]
    found = fit_token_ngram(rows, tiny.tokenizer(), 3)
    wanted = Ngram.fit([token for row in rows for token in row], 20, 3)
    short = torch.tensor(rows[0][:2])[None]
    assert torch.equal(found(short), wanted(short))
    assert found.classes[:3] == tiny.WORDS[:3]
    assert (found.about.eos, found.about.unk) == (3, 1)


def test_numbers_beyond_the_tokenizers_have_no_probability():
    rows = [row["input_ids"] for row in tiny.rows(30)]
    short = torch.tensor(rows[0][:2])
    found, wanted = (fit_token_ngram(rows, tiny.tokenizer(), n_words=n)(short) for n in (24, 20))
    assert bool((found[:, 20:] == 0).all())
    torch.testing.assert_close(found[:, :20], wanted)


def test_a_token_for_unknown_words_that_is_another_too_is_none(tmp_path):
    both = {"unk_token": "[SEP]", "eos_token": "[SEP]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tiny.tokenizer()._tokenizer, **both)
    made = fit_token_ngram([row["input_ids"] for row in tiny.rows(30)], tokenizer)
    assert (made.about.eos, made.about.unk) == (3, None)
    save(made, tmp_path / "m")
    assert torch.equal(load(tmp_path / "m")([5, 6]), made([5, 6]))


@pytest.mark.parametrize("masked", [False, True])
def test_lines_are_tokenised_each_with_its_special_tokens(tmp_path, masked):
    path = tmp_path / "text"
    path.write_text("w0 w1\n\n  w2 what\n" * 3)
    found = [int(i) for piece in token_rows(path, tiny.tokenizer(masked)) for i in piece]
    line, other = ([2, 5, 6, 3], [2, 7, 1, 3]) if masked else ([5, 6, 3], [7, 1, 3])
    assert found == (line + other) * 3


def arpa(tmp_path, names):
    """An n-gram with ``<s>`` and ``</s>`` over other names, as a file, and as it was."""
    rows = [row["input_ids"] for row in tiny.rows(30)]
    counter = Counter(3, eos=1, bos=2)
    for row in rows:
        counter.add([token - 2 for token in row] + [1])  # 5 … 19 become 3 … 17
    model = Ngram.from_counts(counter.counts(), names, unk=0)
    write_arpa(model, tmp_path / "m.arpa")
    return tmp_path / "m.arpa", read_arpa(tmp_path / "m.arpa")


NAMES = ["<unk>", "</s>", "<s>", *tiny.WORDS[5:]]


def test_an_arpa_file_is_numbered_as_the_tokenizer(tmp_path):
    path, given = arpa(tmp_path, NAMES)
    found = read_token_arpa(path, tiny.tokenizer(masked=True))
    assert found.classes == tiny.WORDS
    assert (found.about.eos, found.about.bos, found.about.unk) == (3, 2, 1)
    place = {word: i for i, word in enumerate(given.classes)}
    ours = {"[UNK]": "<unk>", "[CLS]": "<s>", "[SEP]": "</s>"}
    columns = [place.get(ours.get(word, word), -1) for word in tiny.WORDS]
    for short in ([5, 9], [2, 11], [13, 13], [4, 6]):  # a sentence's beginning, one not seen, one not in the file
        theirs = [columns[token] for token in short]
        row = given(torch.tensor([theirs if theirs[0] >= 0 else theirs[1:]]))[0]
        wanted = torch.tensor([0.0 if column < 0 else row[column] for column in columns])
        torch.testing.assert_close(found(torch.tensor([short]))[0], wanted)


def test_an_arpa_file_without_place_for_unknown_words_has_the_others_add_up(tmp_path):
    path, given = arpa(tmp_path, NAMES)
    tokenizer = tiny.tokenizer(masked=True)
    end = tokenizer.unk_token
    try:
        tokenizer.unk_token = "[SEP]"  # as GPT-2, one token for both
        found = read_token_arpa(path, tokenizer)
    finally:
        tokenizer.unk_token = end
    short = torch.tensor([[5, 9], [2, 11]])
    assert found(short).sum(-1).tolist() == pytest.approx([1.0, 1.0])  # checked to be probabilities, too
    assert found(short)[:, 1].tolist() == [0.0, 0.0]
    base = given.trie.base
    assert base[0] > 0
    before = given(torch.tensor([[3, 7], [2, 9]])).double()  # the same contexts, numbered as in the file
    missing = before[:, 0] / base[0]  # <unk> has the last back-off alone
    wanted = before[:, 1] + missing * base[1] * (1 / (1 - base[0]) - 1)
    torch.testing.assert_close(found(short)[:, 3].double(), wanted, rtol=1e-4, atol=1e-7)


def test_an_arpa_file_of_other_words_is_refused(tmp_path):
    path, _ = arpa(tmp_path, [*NAMES[:-2], "dog", "cat"])
    with pytest.raises(ValueError, match=r"has 2 words that are no tokens of .*, 'dog' the first of them"):
        read_token_arpa(path, tiny.tokenizer(masked=True))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_short_context_model_sees_the_last_tokens_only(kind):
    model = getattr(tiny, kind)()
    target = ShortContextModel(model, 2, tiny.tokenizer(), rows_at_once=2)
    short = torch.tensor([[7, 9], [8, 9], [5, 5]])
    with torch.no_grad():
        wanted = torch.stack([torch.softmax(model(row[None]).logits[0, -1], -1) for row in short])
    torch.testing.assert_close(target(short), wanted)
    assert target.classes == tiny.WORDS
    with pytest.raises(ValueError, match=r"short must be \[n, 2\], got shape \(3, 1\)"):
        target(torch.tensor([1, 2, 3]))


def test_the_head_of_a_short_context_model_reads_the_last_token_alone():
    model, seen = tiny.gpt2(), []
    model.lm_head.register_forward_hook(lambda _, given, __: seen.append(tuple(given[0].shape)))
    ShortContextModel(model, 3)(torch.tensor([[5, 6, 7], [7, 6, 5]]))
    assert seen == [(1, 2, 8)]


@pytest.mark.parametrize(
    ("model", "length", "message"),
    [
        (lambda: tiny.bert(), 1, "BertForMaskedLM predicts masked words: a short-context model must be causal"),
        (lambda: tiny.classifier(), 1, "BertForSequenceClassification has no language-model head"),
        (lambda: tiny.gpt2().transformer, 1, "GPT2Model has no language-model head"),
        (lambda: tiny.gpt2(), 17, "GPT2LMHeadModel reads at most 16 tokens, and short contexts are to have 17"),
    ],
)
def test_a_short_context_model_that_cannot_be_one(model, length, message):
    with pytest.raises(ValueError, match=message):
        ShortContextModel(model(), length)


def test_a_model_that_has_no_limit_is_taken():
    model = tiny.gpt2()
    model.config.max_position_embeddings = -1  # as XLNet's
    assert ShortContextModel(model, 5).length == 5


def test_padding_is_not_counted():
    plain = tiny.rows(20)
    padded = tiny.tokenizer()(tiny.texts(20), padding="max_length", max_length=12)
    rows = [{name: padded[name][i] for name in ("input_ids", "attention_mask")} for i in range(20)]
    short = torch.arange(20)
    found = fit_token_ngram(rows, tiny.tokenizer())(short)
    torch.testing.assert_close(found, fit_token_ngram((row["input_ids"] for row in plain), tiny.tokenizer())(short))
    torch.testing.assert_close(found, fit_token_ngram(plain, tiny.tokenizer())(short))


def test_a_longer_model_learns_from_a_shorter_one(tmp_path):
    teacher = ShortContextModel(tiny.gpt2(seed=3), 2, tiny.tokenizer())
    last = {}
    for lam in (0.0, 100.0):
        changes = {"lam": lam, "learning_rate": 0.05, "max_steps": 12, "logging_steps": 12}
        made = tiny.trainer(tmp_path, target=teacher, **changes)
        made.train()
        last[lam] = made.state.log_history[-2]["matching"]
    assert last[100.0] < last[0.0] - 0.05
    assert not teacher.model.transformer.wte.weight.requires_grad
