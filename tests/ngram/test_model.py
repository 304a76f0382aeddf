import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from imm.ngram import Counter, Discounts, Ngram, evaluate
from tests.ngram.reference import kneser_ney

EOS, BOS = 0, 1
CONVENTIONS = [("stream", None), ("sentence", BOS)]
each_convention = pytest.mark.parametrize(("convention", "bos"), CONVENTIONS)
each_order = pytest.mark.parametrize("order", [2, 3, 4, 5])


def text(seed, n, n_words=7):
    """Tokens as in text: some often, some seldom, never BOS, the last one EOS."""
    rng = np.random.default_rng(seed)
    words = np.delete(np.arange(n_words), BOS)
    p = 1 / np.arange(1.0, n_words)
    return np.append(rng.choice(words, n - 1, p=p / p.sum()), EOS)


def contexts(tokens, length, rng):
    """Contexts that occur, and some that do not."""
    seen = np.lib.stride_tricks.sliding_window_view(tokens, length)
    return np.concatenate([seen[rng.integers(len(seen), size=8)], rng.integers(tokens.max() + 1, size=(8, length))])


@each_convention
@each_order
class TestAgainstTheReference:
    @pytest.mark.parametrize("n", [2, 9, 60, 700])
    def test_rows(self, convention, bos, order, n, seed):
        tokens = text(seed, n)
        model = Ngram.fit(tokens, 7, order, convention, eos=EOS, bos=bos)
        expected = kneser_ney(tokens.tolist(), 7, order, EOS, bos)
        for length in range(1, order):
            if length > n:
                continue
            short = contexts(tokens, length, np.random.default_rng(seed))
            rows = [[expected(word, tuple(context)) for word in range(7)] for context in short.tolist()]
            torch.testing.assert_close(model(short), torch.tensor(rows), rtol=1e-6, atol=1e-7)

    def test_after_the_start_of_a_sentence(self, convention, bos, order, seed):
        tokens = text(seed, 300)
        model = Ngram.fit(tokens, 7, order, convention, eos=EOS, bos=bos)
        expected = kneser_ney(tokens.tolist(), 7, order, EOS, bos)
        first = [[BOS, *tokens[: order - 2]], [BOS] * (order - 1)]
        rows = [[expected(word, tuple(context)) for word in range(7)] for context in first]
        torch.testing.assert_close(model(np.array(first)), torch.tensor(rows), rtol=1e-6, atol=1e-7)

    def test_n_grams_too_long_for_one_integer(self, convention, bos, order, seed):
        """Seventeen bits a word: from order 4 on an n-gram takes two columns."""
        tokens, large = text(seed, 500), np.array([0, 1, 17, 40_000, 65_536, 99_998, 99_999])
        small = Ngram.fit(tokens, 7, order, convention, eos=EOS, bos=bos, zero_counts="keep")
        model = Ngram.fit(large[tokens], 100_000, order, convention, eos=EOS, bos=bos, zero_counts="keep")
        short = contexts(tokens, order - 1, np.random.default_rng(seed))
        assert [level.values.tolist() for level in model.trie.levels] == [
            level.values.tolist() for level in small.trie.levels
        ]
        if convention == "stream":  # sentence spreads over all words, and here are more
            words = np.full(len(short), 4)
            torch.testing.assert_close(model.score(large[short], large[words]), small.score(short, words))


@each_convention
@given(data=st.data())
def test_any_small_text(convention, bos, data):
    order = data.draw(st.integers(2, 5))
    words = [word for word in range(5) if word != BOS]
    tokens = data.draw(st.lists(st.sampled_from(words), min_size=2, max_size=40))
    model = Ngram.fit(tokens, 5, order, convention, eos=EOS, bos=bos)
    expected = kneser_ney(tokens, 5, order, EOS, bos)
    short = data.draw(st.lists(st.integers(0, 4), min_size=order - 1, max_size=order - 1))
    row = torch.tensor([[expected(word, tuple(short)) for word in range(5)]])
    torch.testing.assert_close(model(np.array([short])), row, rtol=1e-5, atol=1e-7)


@each_convention
@each_order
class TestViews:
    """All ways to ask give the same answer."""

    def test_parts_make_up_the_rows(self, convention, bos, order, seed):
        tokens = text(seed, 400)
        model = Ngram.fit(tokens, 7, order, convention, eos=EOS, bos=bos)
        short = contexts(tokens, order - 1, np.random.default_rng(seed))
        parts = model.parts(short)
        torch.testing.assert_close(parts.dense(), model(short))
        assert (parts.discounted.coalesce().values() >= 0).all()
        assert parts.missing.shape == (len(short),)
        torch.testing.assert_close(parts.backoff.sum(), torch.tensor(1.0))
        torch.testing.assert_close(parts.discounted.to_dense().sum(1) + parts.missing, torch.ones(len(short)))

    def test_log_probabilities_and_scores(self, convention, bos, order, seed):
        tokens = text(seed, 400)
        model = Ngram.fit(tokens, 7, order, convention, eos=EOS, bos=bos)
        short = contexts(tokens, order - 1, np.random.default_rng(seed))
        rows = model(short)
        torch.testing.assert_close(model.log_probabilities(short), rows.log())
        for word in range(7):
            torch.testing.assert_close(model.score(short, np.full(len(short), word)).float(), rows[:, word])

    def test_perplexity_is_the_mean_of_what_the_reference_says(self, convention, bos, order, seed):
        tokens, other = text(seed, 400), text(seed + 1000, 50)
        model = Ngram.fit(tokens, 7, order, convention, eos=EOS, bos=bos)
        expected = kneser_ney(tokens.tolist(), 7, order, EOS, bos)
        logs, before = [], [] if bos is None else [bos]
        for token in other.tolist():
            if before:
                logs.append(math.log(expected(token, tuple(before[-order + 1 :]))))
            before.append(token)
            if bos is not None and token == EOS:
                before = [bos]
        whole = evaluate(model, [other])
        assert whole.tokens == len(logs) == (50 if bos is not None else 49)
        assert whole.perplexity == pytest.approx(math.exp(-sum(logs) / len(logs)), rel=1e-6)
        pieces = evaluate(model, [other[:1], other[1:1], other[1:7], other[7:]])
        assert pieces.tokens == whole.tokens
        assert pieces.log_likelihood == pytest.approx(whole.log_likelihood)


class TestBigram:
    """The paper's: sparse counts, discounted, and ν(x) · N1+(·, y) / N1+(·, ·)."""

    TOKENS = (0, 1, 0, 2, 0, 1, 0, 1, 3)

    def test_by_hand(self):
        model = Ngram.fit(self.TOKENS, 4, 2)
        # Bigrams: 01 three times, 10 twice, 02, 20 and 13 once; no count of four, but those of 1, 2, 3.
        y = 3 / 5
        d = [1 - 2 * y / 3, 2 - 3 * y, 3.0]
        assert model.about.discounts[0] is None
        assert model.about.discounts[1].amounts == pytest.approx(d)
        assert model.about.fallback_orders == ()
        b = torch.tensor([2, 1, 1, 1]) / 5
        nu = (d[2] + d[0]) / 4
        expected = nu * b + torch.tensor([0, (3 - d[2]) / 4, (1 - d[0]) / 4, 0])
        torch.testing.assert_close(model(torch.tensor([0]))[0], expected)

    def test_a_context_that_was_never_seen_is_answered_by_the_backoff(self):
        model = Ngram.fit(self.TOKENS, 4, 2)
        torch.testing.assert_close(model([3])[0], torch.tensor([0.4, 0.2, 0.2, 0.2]))

    def test_a_word_without_continuation_count(self):
        """Word 4 stands only at the very beginning, word 5 nowhere."""
        tokens = [4, *self.TOKENS]
        one = Ngram.fit(tokens, 6, 2, zero_counts="one")
        keep = Ngram.fit(tokens, 6, 2, zero_counts="keep")
        assert (one.about.zero_counts, keep.about.zero_counts) == ("one", "keep")
        torch.testing.assert_close(one.parts([3]).backoff, torch.tensor([3, 1, 1, 1, 1, 1]) / 8)
        torch.testing.assert_close(keep.parts([3]).backoff, torch.tensor([3, 1, 1, 1, 0, 0]) / 6)
        result = evaluate(keep, [[0, 1, 4, 0]])
        assert (result.perplexity, result.zeros, result.tokens) == (math.inf, 1, 3)
        p = keep.score([0, 4], [1, 0]).log().mean().item()
        assert result.perplexity_without_zeros == pytest.approx(math.exp(-p))
        assert keep.log_probabilities([0])[0, 4] == -math.inf

    def test_shapes_of_contexts(self):
        model = Ngram.fit(self.TOKENS, 4, 2)
        for short in ([0, 1], torch.tensor([0, 1]), np.array([[0], [1]], np.int32), torch.tensor([[0], [1]])):
            assert torch.equal(model(short), model([0, 1]))


class TestDiscounts:
    @pytest.mark.parametrize(
        "counts", [[], [1, 1, 1], [1, 1, 3, 3, 4], [2, 2, 3, 3], [1, 2, 3] + [4] * 10, [1] * 9 + [2] + [3] * 9]
    )
    def test_where_counts_of_counts_are_missing_or_make_no_sense(self, counts):
        discounts = Discounts.estimate(np.array(counts, np.int64))
        assert discounts == Discounts((0.5, 1.0, 1.5), estimated=False)

    def test_the_model_says_so(self):
        model = Ngram.fit([0, 1, 2, 0], 3, 3)
        assert model.about.fallback_orders == (2, 3)

    def test_zero_counts_do_not_matter(self):
        counts = np.array([1] * 8 + [2] * 4 + [3] * 2 + [4, 9])
        assert Discounts.estimate(counts) == Discounts.estimate(np.append(counts, [0, 0]))
        assert Discounts.estimate(counts).amounts == pytest.approx((0.5, 1.25, 2.0))
        assert Discounts.estimate(counts).of(np.array([0, 1, 2, 3, 4, 100])).tolist() == [0, 0.5, 1.25, 2, 2, 2]


@each_convention
@each_order
class TestCounter:
    def test_pieces_make_the_same_counts(self, convention, bos, order, seed):
        tokens = text(seed, 500, n_words=300)
        rng = np.random.default_rng(seed)
        whole, pieces = Counter(order, EOS, bos), Counter(order, EOS, bos)
        whole.add(tokens)
        for piece in np.split(tokens, np.sort(rng.integers(500, size=40))):
            pieces.add(piece)
        expected, got = whole.counts(), pieces.counts()
        assert got.counts.sum() == 500
        assert np.array_equal(expected.counts, got.counts)
        assert all(map(np.array_equal, expected.columns, got.columns))

    def test_larger_tokens_may_come_later(self, convention, bos, order):
        """Symbols get more bits on the way, and n-grams more columns."""
        tokens = np.array([2, 3, 2, 0, 2, 3, 900, 3, 70_000, 0, 2, 2**25, 3])
        whole, pieces = Counter(order, EOS, bos), Counter(order, EOS, bos)
        whole.add(tokens)
        for token in tokens:
            pieces.add([token])
        assert all(map(np.array_equal, whole.counts().symbols(), pieces.counts().symbols()))

    def test_renamed(self, convention, bos, order, seed):
        """Names that put words in another order, and take two together."""
        tokens = text(seed, 300)
        names = np.array([5, 1, 0, 2, 2, 3, 4])
        before, after = Counter(order, EOS, bos), Counter(order, names[EOS], bos)
        before.add(tokens)
        after.add(names[tokens])
        renamed, expected = before.counts().renamed(names), after.counts()
        assert (renamed.eos, renamed.bos) == (expected.eos, expected.bos)
        assert np.array_equal(renamed.counts, expected.counts)
        assert all(map(np.array_equal, renamed.symbols(), expected.symbols()))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Ngram.fit([0, 1], 2, 1), "order must be a whole number of at least 2, got 1"),
        (lambda: Ngram.fit([0, 1], 2, 0), "order must be a whole number of at least 2, got 0"),
        (lambda: Ngram.fit([0, 1], 2, 2.5), "order must be a whole number of at least 2, got 2.5"),
        (lambda: Ngram.fit([], 2, 2), "there are no tokens to count"),
        (lambda: Ngram.fit([0, 5], 3, 2), "token 5 is not below the number of classes, 3"),
        (lambda: Ngram.fit([5], 3, 2), "token 5 is not below the number of classes, 3"),
        (lambda: Ngram.fit([0, 1], 3, 2, eos=4), "token 4 is not below the number of classes, 3"),
        (lambda: Ngram.fit([1], 3, 2, zero_counts="keep"), "no token stands after another"),
        (lambda: Ngram.fit([0, -1], 3, 2), "tokens must not be negative, got -1"),
        (lambda: Ngram.fit([0.5, 1], 3, 2), "tokens must be integers"),
        (lambda: Ngram.fit([[0, 1]], 3, 2), r"tokens must be integers \[n\], got int64 of shape \(1, 2\)"),
        (lambda: Ngram.fit([0, 1], 3, 2, "poem"), "convention must be one of stream, sentence, got 'poem'"),
        (lambda: Ngram.fit([0, 1], 3, 2, "sentence", eos=0), "the sentence convention needs bos"),
        (lambda: Ngram.fit([0, 1], 3, 2, "stream", bos=0), "stream has none; got stream and bos 0"),
        (lambda: Ngram.fit([0], 3, 2, "sentence", bos=1), "two different tokens eos and bos, got None and 1"),
        (lambda: Ngram.fit([1, 0], 3, 2, "sentence", eos=0, bos=1), "token 1 is bos, which is put before each"),
        (lambda: Ngram.fit([0, 1], 3, 2, zero_counts="two"), "zero_counts must be one of one, keep, got 'two'"),
        (lambda: Ngram.fit([0, 1], 3, 2)([3]), "token 3 is not one of the 3 classes"),
        (lambda: Ngram.fit([0, 1], 3, 2)([-1]), "token -1 is not one of the 3 classes"),
        (lambda: Ngram.fit([0, 1], 3, 2)([[0, 1]]), r"with m at most 1, got int64 of shape \(1, 2\)"),
        (lambda: Ngram.fit([0, 1], 3, 2)([0.5]), "short must be integers"),
        (lambda: Ngram.fit([0, 1], 3, 2).score([0], [3]), "token 3 is not one of the 3 classes"),
        (lambda: Ngram.fit([0, 1], 3, 2).score([0], [1, 1]), "equally many, got 1 and 2"),
        (lambda: evaluate(Ngram.fit([0, 1], 3, 2), [[0]]), "there is nothing to predict"),
        (lambda: evaluate(Ngram.fit([0, 1], 3, 2), [[0, 7]]), "token 7 is not one of the 3 classes"),
    ],
)
def test_bad_input_is_one_line_that_repeats_it(call, message):
    with pytest.raises(ValueError, match=message) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_both_ways_to_sort_count_alike(monkeypatch):
    tokens = text(0, 500)
    by_digits = Ngram.fit(tokens, 10, 3)
    monkeypatch.setattr("imm.ngram.keys.RADIX", 0)
    by_comparing = Ngram.fit(tokens, 10, 3)
    for one, other in zip(by_digits.trie.levels, by_comparing.trie.levels, strict=True):
        np.testing.assert_array_equal(one.keys, other.keys)
        np.testing.assert_array_equal(one.values, other.values)


@each_convention
def test_smoothing_in_pieces_is_smoothing_at_once(monkeypatch, convention, bos):
    """A word whose followers are in two pieces has what is taken from both."""
    at_once = Ngram.fit(text(0, 300), 7, 3, convention, eos=EOS, bos=bos)
    monkeypatch.setattr("imm.ngram.smoothing.PIECE", 3)
    in_pieces = Ngram.fit(text(0, 300), 7, 3, convention, eos=EOS, bos=bos)
    for one, other in zip(at_once.trie.missing, in_pieces.trie.missing, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    for one, other in zip(at_once.trie.levels, in_pieces.trie.levels, strict=True):
        np.testing.assert_allclose(one.values, other.values, rtol=1e-6)


@each_convention
def test_an_order_larger_than_the_text_is_no_error(convention, bos):
    tokens = [2, 3, 0]
    model = Ngram.fit(tokens, 4, 5, convention, eos=EOS, bos=bos)
    expected = kneser_ney(tokens, 4, 5, EOS, bos)
    rows = torch.tensor([[expected(word, (2, 3)) for word in range(4)]])
    torch.testing.assert_close(model(np.array([[2, 3]])), rows)
