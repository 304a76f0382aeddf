"""The gradients of IMM's methods against plain differentiation of the definition."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import nll_loss

from imm.language.methods.noising import kneser_ney_noise
from imm.language.methods.serialized import Serialized
from imm.language.windows import Windows
from tests.language import tiny
from tests.language.methods.steps import take

LAM = 0.2
ONE_WINDOW = {"unroll": 5, "texts": tiny.texts(16)}
"""The three columns of the text are read at once: every position's state is the initial one."""


def risk(log_q, short, bigram):
    """``-(1/n) Σ_t Σ_y P̂ log mean Q`` over the rows that share a short context, row by row."""
    target, total = bigram(short), 0.0
    for t in range(len(short)):
        induced = log_q[short == short[t]].exp().mean(0)
        total = total - (target[t] * induced.log()).sum()
    return total / len(short)


def gradient(model, loss):
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)])


def left(model):
    """What is in the ``.grad``."""
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    model.zero_grad()
    return flat


def passes(step, n=None):
    """``n`` more steps with the same model: all of the text's log-probabilities, and its short contexts."""
    taken = [step]
    for _ in range((n or len(step.windows)) - 1):
        taken.append(taken[-1].then())
    return taken, torch.cat([s.log_q for s in taken]), torch.cat([s.batch.short for s in taken])


class TestExact:
    def test_the_gradient_is_that_of_the_definition(self):
        step = next(take(1, method="imm-exact", **ONE_WINDOW))
        definition = risk(step.log_q, step.batch.short, step.texts.bigram)
        value = step.apart(scale=3.0)
        torch.testing.assert_close(left(step.model), 3 * gradient(step.model, definition), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(value, definition.detach())

    def test_a_batch_is_matched_over_the_whole_text(self):
        """Of a text of two windows the first; the second begins in the state that the pass before left."""
        *_, step = take(3, method="imm-exact", unroll=5, texts=tiny.texts(31))
        assert len(step.windows) == 2
        log_q, short = [], []
        state = step.model.initial_state(3)
        for number in range(2):
            batch = step.windows[number]
            row, state = step.model(batch.inputs, tuple(part.half().float() for part in state))
            log_q.append(row)
            short.append(batch.short)
        log_q, short = torch.cat(log_q), torch.cat(short)
        taken = step.batch.short
        target = step.texts.bigram(taken)
        induced = torch.stack([log_q[short == word].exp().mean(0) for word in taken])
        definition = -(target * induced.log()).sum(-1).mean()
        step.apart()
        torch.testing.assert_close(left(step.model), gradient(step.model, definition), rtol=1e-3, atol=1e-5)

    def test_every_batch_has_a_second_pass(self):
        assert all(step.method.apart for step in take(4, method="imm-exact", every=3))


def pooled_gradient(step, generator):
    """One draw for each position, pooled over positions with the same word: what sampling must not be."""
    short = step.batch.short
    places = [torch.nonzero(step.windows.short == word)[:, 0] for word in short]
    drawn = torch.stack([each[torch.randint(len(each), (1,), generator=generator)[0]] for each in places])
    log_q = step.method.states.log_q_at(step.model, drawn)
    return gradient(step.model, risk(log_q, short, step.texts.bigram))


class TestSampled:
    def test_with_all_contexts_it_is_exact(self):
        exact = next(take(1, method="imm-exact"))
        exact.apart()
        step = next(take(1, method="imm-sampled"))
        step.method.matching.n_contexts = None
        step.apart()
        torch.testing.assert_close(left(step.model), left(exact.model), rtol=1e-4, atol=1e-6)

    def test_the_bias_falls_as_one_over_k_and_pooled_single_draws_have_more(self):
        """The expected gradient over many draws, against the exact one."""
        changes = {"texts": tiny.texts(400), "init": 2.0}
        exact = next(take(1, method="imm-exact", **changes))
        exact.apart()
        expected = left(exact.model)

        def bias(gradients):
            return ((torch.stack(gradients).mean(0) - expected).norm() / expected.norm()).item()

        step = next(take(1, method="imm-sampled", n_contexts=1, **changes))
        found = {}
        for k in (1, 3, 10):
            step.method.matching.n_contexts, gradients = k, []
            for _ in range(400):
                step.apart()
                gradients.append(left(step.model))
            found[k] = bias(gradients)
        generator = torch.Generator().manual_seed(0)
        pooled = bias([pooled_gradient(step, generator) for _ in range(400)])
        assert found[10] < found[3] < found[1]
        assert found[10] < 0.1
        assert pooled > 2 * found[10]

    def test_every_jth_batch_has_a_second_pass(self):
        apart = [step.method.apart for step in take(7, method="imm-sampled", every=3)]
        assert apart == [True, False, False, True, False, False, True]

    def test_on_the_others_the_label_is_mixed_with_the_continuation_probability(self):
        for step in take(4, method="imm-sampled", every=2, gamma=0.3):
            plain = nll_loss(step.log_q, step.batch.labels)
            if step.method.apart:
                assert torch.equal(step.loss.total, plain)
            else:
                noise = kneser_ney_noise(step.texts.bigram, step.texts.counts, 0.3)
                gamma = noise.gamma[step.batch.short]
                assert 0 < gamma.max() < 1
                one_hot = torch.nn.functional.one_hot(step.batch.labels, len(tiny.WORDS))
                soft = (1 - gamma[:, None]) * one_hot + gamma[:, None] * noise.q
                torch.testing.assert_close(step.loss.total, -(soft * step.log_q).sum(-1).mean())
                assert not torch.isclose(step.loss.total, plain)

    def test_with_every_batch_there_is_no_other(self):
        for step in take(3, method="imm-sampled", every=1, gamma=0.3):
            assert step.method.apart
            assert torch.equal(step.loss.total, nll_loss(step.log_q, step.batch.labels))

    def test_each_word_of_the_batch_has_k_draws_that_its_positions_share(self):
        step = next(take(1, method="imm-sampled", n_contexts=7))
        run, predict = [], step.method.matching.predict
        object.__setattr__(
            step.method.matching, "predict", lambda short, index: run.append(short) or predict(short, index)
        )
        step.apart()
        counts = torch.bincount(torch.cat(run)[: 7 * len(step.batch.short.unique())])
        assert counts[counts > 0].unique().tolist() == [7]
        assert counts.nonzero()[:, 0].tolist() == step.batch.short.unique().tolist()


class TestSerialized:
    @pytest.mark.parametrize("shape", [ONE_WINDOW, {"unroll": 4}])
    @pytest.mark.parametrize("refresh_every", [0, 1, 2])
    def test_over_the_whole_text_the_gradient_is_the_exact_one(self, shape, refresh_every):
        """The model stays, so a refresh in the midst of the text changes nothing."""
        taken, log_q, short = passes(next(take(1, method="imm-serialized", refresh_every=refresh_every, **shape)))
        model = taken[0].model
        labels = torch.cat([step.batch.labels for step in taken])
        definition = risk(log_q, short, taken[0].texts.bigram)
        expected = gradient(model, nll_loss(log_q, labels) + LAM * definition)
        sum(step.loss.total for step in taken).backward()
        torch.testing.assert_close(left(model) / len(taken), expected, rtol=1e-4, atol=1e-6)
        value = torch.stack([step.loss.parts["matching"] for step in taken]).mean()
        torch.testing.assert_close(value, definition.detach())

    def test_between_refreshes_the_factor_is_the_old_models(self):
        """Also where the old model's state comes from windows that were read since."""
        step = next(take(1, method="imm-serialized", refresh_every=0))
        old = copy.deepcopy(step.model)
        with torch.no_grad():
            for parameter in step.model.parameters():
                parameter += 0.3 * torch.randn(parameter.shape, generator=step.generator)
        *_, step = passes(step, 4)[0]
        state, stale = old.initial_state(3), []
        with torch.no_grad():
            for number in range(5):
                log_q, state = old(step.windows[number].inputs, state)
                stale.append(log_q.exp())
        short = torch.cat([step.windows[number].short for number in range(5)])
        induced = torch.stack([torch.cat(stale)[short == word].mean(0) for word in step.batch.short])
        factor = stale[3] / induced
        target = step.texts.bigram(step.batch.short)
        tampered = nll_loss(step.log_q, step.batch.labels) - LAM * (target * factor * step.log_q).sum(-1).mean()
        expected = gradient(step.model, tampered)
        step.loss.total.backward()
        torch.testing.assert_close(left(step.model), expected, rtol=1e-4, atol=1e-6)

    def test_a_refresh_forgets_the_model_before(self):
        step = next(take(1, method="imm-serialized", refresh_every=1, **ONE_WINDOW))
        with torch.no_grad():
            for parameter in step.model.parameters():
                parameter += 0.3 * torch.randn(parameter.shape, generator=step.generator)
        step = step.then()
        definition = risk(step.log_q, step.batch.short, step.texts.bigram)
        torch.testing.assert_close(step.loss.parts["matching"], definition.detach())

    def test_refreshes_come_every_r_steps(self, monkeypatch):
        first = next(take(1, method="imm-serialized", refresh_every=3))
        refreshed = []
        monkeypatch.setattr(first.method, "refresh", lambda model, number: refreshed.append(number))
        passes(first, 8)
        assert refreshed == [3, 1]  # steps 3 and 6 of five a pass

    def test_a_table_that_does_not_hold_all_words_is_refused(self):
        texts, few = tiny.texts(), SimpleNamespace(refresh_every=1, table_mb=0)
        with pytest.raises(ValueError, match=r"serialized IMM needs the induced bigrams of all .* more than table_mb"):
            Serialized(texts.bigram, Windows(texts.train, 3, 4), tiny.model(), few)

    def test_a_prediction_too_small_for_the_table_keeps_the_gradient_finite(self):
        first = next(take(1, method="imm-serialized", refresh_every=1))
        with torch.no_grad():
            first.model.output.bias[3] = -200.0
        step = first.then()
        step.loss.total.backward()
        assert step.loss.total.isfinite()
        assert left(step.model).isfinite().all()

    def test_the_old_model_is_not_trained(self):
        step = next(take(1, method="imm-serialized", dropout=0.5))
        assert not any(p.requires_grad for p in step.method.stale.parameters())
        assert not step.method.stale.training


class TestStreaming:
    def test_without_memory_it_matches_within_the_batch(self):
        for step in take(3, method="imm-streaming", memory=0.0):
            definition = risk(step.log_q, step.batch.short, step.texts.bigram)
            expected = gradient(step.model, nll_loss(step.log_q, step.batch.labels) + LAM * definition)
            torch.testing.assert_close(step.loss.parts["matching"], definition.detach())
            step.loss.total.backward()
            torch.testing.assert_close(left(step.model), expected, rtol=1e-4, atol=1e-6)

    def test_with_a_long_memory_and_the_same_model_it_is_exact(self):
        """On the second pass over the text: the first has filled the table."""
        first, log_q, short = passes(next(take(1, method="imm-streaming", memory=1e9, lifetime=1e9)))
        second, _, _ = passes(first[-1].then())
        definition = risk(log_q, short, first[0].texts.bigram)
        labels = torch.cat([step.batch.labels for step in first])
        expected = gradient(first[0].model, nll_loss(log_q, labels) + LAM * definition)
        sum(step.loss.total for step in second).backward()
        found = left(first[0].model) / len(second)
        # What a batch feeds is in the table before it is used: its words weigh a little more.
        assert (found - expected).norm() < 0.05 * expected.norm()
