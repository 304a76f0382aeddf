"""What every training method must do; the list is ``settings.METHODS``."""

import pytest
import torch
from torch.nn.functional import nll_loss

from imm.language import METHODS, Settings
from imm.language.methods import Loss, Method
from tests.language import tiny
from tests.language.methods.steps import take

MATCHING = [name for name in METHODS if name == "reverse-kd" or name.startswith("imm")]


@pytest.mark.parametrize("name", METHODS)
class TestMethod:
    def test_the_loss_is_finite_and_tells_its_parts(self, name):
        for step in take(5, method=name):
            assert isinstance(step.loss, Loss)
            assert step.loss.total.requires_grad
            assert step.loss.total.isfinite()
            parts = dict(step.loss.parts)
            if step.method.apart:
                parts["matching"] = step.apart()
            assert {"cross_entropy"} <= set(parts) <= {"cross_entropy", "matching", "mixed", "softened"}
            assert len({"matching", "mixed"} & set(parts)) == (name in MATCHING)
            assert name == "imm-sampled" or "mixed" not in parts
            for part in parts.values():
                assert part.ndim == 0
                assert part.isfinite()
                assert not part.requires_grad

    def test_the_cross_entropy_is_that_of_what_is_to_be_predicted(self, name):
        for step in take(3, method=name):
            torch.testing.assert_close(step.loss.parts["cross_entropy"], nll_loss(step.log_q, step.batch.labels))

    def test_the_short_contexts_are_those_of_the_text(self, name):
        for step in take(3, method=name, gamma=1.0):
            assert torch.equal(step.batch.short, step.given.inputs.flatten())
            assert step.batch.number == step.given.number
            assert step.batch.inputs.shape == step.given.inputs.shape

    def test_neither_the_state_nor_torchs_generator_is_touched(self, name):
        """With dropout 0 nothing is drawn from it: draws and noise have a generator of their own."""
        before = None
        for step in take(3, method=name, dropout=0.0):
            before = torch.get_rng_state() if before is None else before
            kept = [part.clone() for part in step.state]
            if step.method.apart:
                step.apart()
            assert all(map(torch.equal, kept, step.state))
            assert torch.equal(torch.get_rng_state(), before)

    def test_it_goes_on_from_its_state(self, name):
        """The fourth step is the same for one that was loaded after three."""
        *_, third = take(3, method=name)
        again = next(take(1, method=name, after=third))
        fourth = third.then()
        assert torch.equal(fourth.loss.total, again.loss.total)
        assert fourth.method.apart == again.method.apart
        for (key, a), b in zip(fourth.method.state_dict().items(), again.method.state_dict().values(), strict=True):
            assert torch.equal(a, b), key


def test_a_plain_method_has_no_second_pass():
    with pytest.raises(NotImplementedError):
        Method().backward_apart(next(take(1)).step, 1.0)


def test_the_list_is_complete():
    """A method that is not in the list cannot be named, and one without a loss fails above."""
    with pytest.raises(ValueError, match="method must be one of"):
        Settings(method="mine")
    assert {type(next(take(1, method=name)).method).__name__ for name in METHODS} == {
        *("Method", "Noising", "Softened", "ReverseKD", "Exact", "Sampled", "Serialized", "Streaming")
    }
    assert tiny.settings().method == "none"
