"""Which words are matched, and where their contexts lie in the training data; against plain loops."""

import pytest
import torch

pytest.importorskip("transformers")
from transformers import DataCollatorWithFlattening

from imm.huggingface import Causal, Index, Rows, choose, find_places, log_q_at
from imm.huggingface.forward import Masked
from tests.huggingface import tiny


@pytest.mark.parametrize("m", [1, 2, 5, 9])
def test_places_are_those_of_plain_loops_whatever_side_padding_is_on(seed, m):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 9, (5, 8), generator=generator)
    predicted = torch.rand(5, 8, generator=generator) < 0.7
    length = torch.tensor([8, 5, 1, 3, 0])
    real = torch.arange(8) < length[:, None]
    real[1] = real[1].flip(0)
    found = find_places(Rows(ids, real), predicted, m)
    wanted = [
        (row, place, ids[row, place - m : place].tolist())
        for row in range(5)
        for place in range(m, 8)
        if predicted[row, place] and real[row, place - m : place + 1].all()
    ]
    assert list(zip(found.row.tolist(), found.place.tolist(), found.short.tolist(), strict=True)) == wanted
    assert found.weight.tolist() == [1.0] * len(wanted)


def test_a_choice_has_so_many_of_each_row_and_stands_for_all():
    rows = Rows(torch.arange(40).view(4, 10), torch.ones(4, 10).bool())
    places = find_places(rows, torch.arange(10) < torch.tensor([[10], [3], [2], [6]]), 1)
    u = torch.rand(len(places), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    chosen = choose(places, 3, u)
    assert torch.bincount(chosen.row).tolist() == [3, 2, 1, 3]
    assert chosen.weight.tolist() == pytest.approx([3.0] * 3 + [1.0] * 2 + [1.0] + [5 / 3] * 3)
    assert chosen.weight.sum() == pytest.approx(len(places))
    assert ((10 * chosen.row + chosen.place).diff() > 0).all()
    part = choose(places[:9], 3, u[:9])  # the first row by itself
    assert part.place.tolist() == chosen.place[:3].tolist()
    assert choose(places, 0, u) is places


def test_a_choice_is_uniform():
    rows = Rows(torch.zeros(1, 5, dtype=torch.long), torch.ones(1, 5).bool())
    places = find_places(rows, torch.ones(1, 5).bool(), 1)
    generator = torch.Generator().manual_seed(0)
    drawn = [choose(places, 2, torch.rand(4, generator=generator)).place for _ in range(1000)]
    assert torch.bincount(torch.cat(drawn))[1:] / 1000 == pytest.approx([0.5] * 4, abs=0.05)


def data(padded):
    rows = tiny.rows(6, masked=True)
    if not padded:
        return rows
    return [
        {"input_ids": r["input_ids"] + [0] * 4, "attention_mask": [1] * len(r["input_ids"]) + [0] * 4, "other": "text"}
        for r in rows
    ]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("m", [1, 2])
def test_the_index_finds_each_short_context_where_it_stands(padded, m):
    index = Index(data(padded), Causal(), m)
    rows = [row["input_ids"] for row in tiny.rows(6, masked=True)]
    places = [(row, at) for row in rows for at in range(m, len(row))]
    assert index.short.tolist() == [row[at - m : at] for row, at in places]
    got, row, place = index.gather(torch.arange(len(places)), whole=True)
    for i, (wanted, at) in enumerate(places):
        assert got.ids[row[i]][got.real[row[i]]].tolist() == wanted
        assert place[i] == at
    cut, _, _ = index.gather(torch.tensor([1, 0]), whole=False)
    assert cut.ids.tolist() == [rows[0][: m + 1]]


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_predictions_at_places_are_those_of_one_row_at_a_time(kind):
    model = getattr(tiny, kind)().eval()
    reading = Masked(4, [0, 1, 2, 3, 4], restore=False) if kind == "bert" else Causal()
    rows = tiny.rows(5, masked=True)
    index = Index(rows, reading, 1)
    chosen = torch.tensor([4, 0, 9, 4, 12, 1])
    with torch.no_grad():
        found = log_q_at(model, reading, index, chosen)
        got, row, place = index.gather(chosen, whole=True)
        for i in range(len(chosen)):
            ids = got.ids[row[i]][got.real[row[i]]].tolist()
            at = int(place[i])
            if kind == "bert":
                seen, read = ids[:at] + [4] * (len(ids) - at - 1) + ids[-1:], at
            else:
                seen, read = ids[:at], at - 1
            wanted = torch.log_softmax(model(input_ids=torch.tensor([seen])).logits[0, read], -1)
            torch.testing.assert_close(found[i], wanted, rtol=1e-4, atol=1e-5)


def test_token_types_are_read():
    model = tiny.bert().eval()
    reading = Masked(4, [0, 1, 2, 3, 4], restore=False)
    rows = [{"input_ids": [2, 7, 3, 8, 9, 3], "token_type_ids": [0, 0, 0, 1, 1, 1]}]
    with torch.no_grad():
        found = log_q_at(model, reading, Index(rows, reading, 1), torch.tensor([1]))
        seen = {"input_ids": torch.tensor([[2, 7, 3, 8, 4, 3]]), "token_type_ids": torch.tensor([[0, 0, 0, 1, 1, 1]])}
        torch.testing.assert_close(found[0], torch.log_softmax(model(**seen).logits[0, 4], -1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("m", [1, 2])
def test_contexts_stay_in_their_text_where_positions_begin_anew(m):
    """Rows packed into one are the same places as the rows, in a batch and in the training data."""
    apart = [{"input_ids": row["input_ids"]} for row in tiny.rows(4)]
    packed = DataCollatorWithFlattening()(apart)
    found = find_places(*Causal().rows(packed), m)
    one_by_one, index = (Index(data, Causal(), m) for data in (apart, [{k: v[0] for k, v in packed.items()}]))
    assert found.short.tolist() == index.short.tolist() == one_by_one.short.tolist()
    every = torch.arange(len(index.short))
    for ours, wanted in zip(index.gather(every, True), one_by_one.gather(every, True), strict=True):
        assert torch.equal(getattr(ours, "ids", ours), getattr(wanted, "ids", wanted))


def test_data_that_cannot_be_indexed_is_refused():
    with pytest.raises(ValueError, match=r"no word to predict after 3 tokens in any of its 2 rows"):
        Index([{"input_ids": [1, 2, 3]}, {"input_ids": [1]}], Causal(), 3)
    with pytest.raises(ValueError, match="generator has no length; give one that has"):
        Index((row for row in tiny.rows(2)), Causal(), 1)
    with pytest.raises(ValueError, match="row 0 of the training data has no input_ids, only text, label"):
        Index([{"text": "a", "label": 0}], Causal(), 1)
    with pytest.raises(
        ValueError, match=r"row 0 of the training data has input_ids of shape \(1, 3\): give each row as"
    ):
        Index([{"input_ids": [[1, 2, 3]]}], Causal(), 1)
