import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from imm.ngram import Ngram, load, save

TOKENS = [2, 3, 2, 0, 3, 2, 3, 0, 2, 2, 0]
WORDS = ["</s>", "<s>", "hund", "größe"]


def model(order=3):
    return Ngram.fit(TOKENS, WORDS, order, "sentence", eos=0, bos=1, unk=2)


@pytest.mark.parametrize(
    "saved",
    [model(2), model(4), Ngram.fit(TOKENS, 4, 3, zero_counts="keep")],
    ids=["bigram", "order 4", "numbers as classes"],
)
def test_what_is_loaded_is_what_was_saved(saved, tmp_path):
    save(saved, tmp_path / "deep" / "model")
    loaded = load(tmp_path / "deep" / "model")
    short = np.array([[2], [3], [1]])
    assert torch.equal(loaded(short), saved(short))
    assert (loaded.about, loaded.classes, loaded.order) == (saved.about, saved.classes, saved.order)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["model"]


def test_a_model_is_replaced_but_nothing_else(tmp_path):
    save(model(2), tmp_path / "a")
    save(model(3), tmp_path / "a")
    assert load(tmp_path / "a").order == 3
    (tmp_path / "b").mkdir()
    save(model(3), tmp_path / "b")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "thesis.txt").touch()
    with pytest.raises(FileExistsError, match=r"c is there already and holds no ngram\.json; name another folder"):
        save(model(3), tmp_path / "c")
    assert (tmp_path / "c" / "thesis.txt").exists()


def test_an_interrupted_save_leaves_what_was_there(tmp_path, monkeypatch):
    save(model(2), tmp_path / "a")

    def fails(*_):
        raise OSError("disk full")

    monkeypatch.setattr("imm.ngram.persistence.save_file", fails)
    with pytest.raises(OSError, match="disk full"):
        save(model(3), tmp_path / "a")
    assert load(tmp_path / "a").order == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def _no_json(folder):
    (folder / "ngram.json").unlink()


def _broken_json(folder):
    (folder / "ngram.json").write_text("{")


def _other_format(folder):
    (folder / "ngram.json").write_text('{"format": 99}')


def _no_numbers(folder):
    (folder / "ngram.safetensors").unlink()


def _half_the_numbers(folder):
    path = folder / "ngram.safetensors"
    path.write_bytes(path.read_bytes()[:-20])


def _other_order(folder):
    settings = json.loads((folder / "ngram.json").read_text(encoding="utf-8"))
    (folder / "ngram.json").write_text(json.dumps(settings | {"order": 4}))


def _numbers_are_a_folder(folder):
    (folder / "ngram.safetensors").unlink()
    (folder / "ngram.safetensors").mkdir()


def _said(**changes):
    def breaks(folder):
        settings = json.loads((folder / "ngram.json").read_text(encoding="utf-8"))
        (folder / "ngram.json").write_text(json.dumps(settings | changes))

    return breaks


def _times(name, factor):
    def breaks(folder):
        numbers = load_file(folder / "ngram.safetensors")
        numbers[name] = numbers[name] * factor
        save_file(numbers, folder / "ngram.safetensors")

    return breaks


def _no_bigrams(folder):
    numbers = load_file(folder / "ngram.safetensors")
    for name in ("keys.2", "values.2", "keys.3", "values.3", "missing.2"):
        numbers[name] = numbers[name][:0].copy()
    save_file(numbers, folder / "ngram.safetensors")


def _fewer_words(folder):
    settings = json.loads((folder / "ngram.json").read_text(encoding="utf-8"))
    (folder / "ngram.json").write_text(json.dumps(settings | {"classes": ["a", "b"]}))


def _changed(name, place, value):
    def breaks(folder):
        numbers = load_file(folder / "ngram.safetensors")
        numbers[name][place] = value
        save_file(numbers, folder / "ngram.safetensors")

    return breaks


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        (_no_json, "is not an n-gram model: it has no ngram.json"),
        (_broken_json, "ngram.json is not JSON"),
        (_other_format, "is not of format 1"),
        (_no_numbers, "has no ngram.safetensors"),
        (_half_the_numbers, "is not a whole n-gram model"),
        (_other_order, "is not a whole n-gram model: it has no keys.4"),
        (_numbers_are_a_folder, r"ngram\.safetensors is a folder, and a file should be there"),
        (_said(order=1), "a is not a whole n-gram model: order must be a whole number of at least 2, got 1"),
        (_said(order="x"), "a is not a whole n-gram model: order must be a whole number of at least 2, got 'x'"),
        (_said(convention="foo"), "a is not a whole n-gram model: convention must be one of stream, sentence"),
        (_said(bos=None), "a is not a whole n-gram model: the sentence convention needs bos"),
        (_said(classes=["a", "b", "c", "b"]), "classes must be different labels, got 'b' 2 times"),
        (_times("values.2", 5), "the shares of order 2 are negative, or do not add up to 1 but to"),
        (_times("values.3", -1), "the shares of order 3 are negative"),
        (_times("missing.1", -1), "the shares of order 2 are negative"),
        (_times("keys.2", 1.0), "the arrays of order 2 are of types float64"),
        (_no_bigrams, "the shares of order 2 are negative, or do not add up to 1"),
        (_fewer_words, "over 4 words, got 2 classes"),
        (_changed("base", 3, np.nan), "the probabilities of words are negative, or do not sum to 1 but to nan"),
        (_changed("base", 3, -1), "the probabilities of words are negative"),
        (_changed("base", 2, 1), "do not sum to 1 but to"),
        (_changed("values.2", 1, np.nan), "among the numbers of order 2 is one that is not finite"),
        (_changed("missing.2", 1, np.inf), "among the numbers of order 3 is one that is not finite"),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(breaks, message, tmp_path):
    save(model(), tmp_path / "a")
    breaks(tmp_path / "a")
    with pytest.raises((ValueError, OSError), match=message) as refused:
        load(tmp_path / "a")
    assert "\n" not in str(refused.value)


def test_arrays_that_do_not_fit_are_refused(tmp_path):
    from imm.ngram.trie import Level, Trie

    good = model(2)
    trie = Trie(good.trie.base, (Level(good.trie.levels[0].keys[::-1], good.trie.levels[0].values),), good.trie.missing)
    save(Ngram(trie, WORDS, good.about), tmp_path / "a")
    with pytest.raises(ValueError, match="the keys of order 2 are not ascending"):
        load(tmp_path / "a")


def test_a_word_that_there_is_not_is_refused(tmp_path):
    from imm.ngram.trie import Level, Trie

    good = Ngram.fit([0, 1, 2, 2, 1], 3, 2)
    keys = good.trie.levels[0].keys.copy()
    keys[-1] |= (1 << good.trie.bits) - 1
    trie = Trie(good.trie.base, (Level(keys, good.trie.levels[0].values),), good.trie.missing)
    save(Ngram(trie, good.classes, good.about), tmp_path / "a")
    with pytest.raises(ValueError, match="the n-grams of order 2 have words beyond the 3 that there are"):
        load(tmp_path / "a")


def test_what_a_kill_left_is_removed(tmp_path):
    (tmp_path / ".a.xyz.unfinished" / "new").mkdir(parents=True)
    (tmp_path / ".a.b.xyz.unfinished").mkdir()  # another's, who writes a.b now
    save(model(), tmp_path / "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.b.xyz.unfinished", "a"]
