"""Half precision, gradient checkpointing and compilation change how, not what."""

import pytest
import torch

pytest.importorskip("transformers")

from tests.huggingface import tiny

PLAIN = {"optim": "sgd", "learning_rate": 0.5, "max_grad_norm": 0.0, "max_steps": 2, "positions": 1, "lam": 1.0}


@pytest.mark.parametrize("matching", ["streaming", "sampled", "exact"])
def test_gradient_checkpointing_gives_the_same(tmp_path, matching):
    plain = tiny.trained(tiny.trainer(tmp_path, tiny.gpt2(dropout=0.2), matching=matching, **PLAIN))
    made = tiny.trainer(tmp_path, tiny.gpt2(dropout=0.2), matching=matching, gradient_checkpointing=True, **PLAIN)
    torch.testing.assert_close(tiny.trained(made), plain, rtol=1e-5, atol=1e-6)
    assert made.model.transformer.gradient_checkpointing


@pytest.mark.parametrize("matching", ["streaming", "sampled", "exact"])
def test_bfloat16_agrees_to_its_digits(tmp_path, matching):
    before = tiny.parameters(tiny.gpt2())
    moves = []
    for bf16 in (False, True):
        made = tiny.trainer(tmp_path, matching=matching, bf16=bf16, **PLAIN | {"max_steps": 1})
        moves.append(tiny.trained(made) - before)
        assert made.model.transformer.wte.weight.dtype == torch.float32
    assert not torch.equal(*moves)
    assert (moves[1] - moves[0]).norm() < 0.02 * moves[0].norm()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # of torch's compiler
@pytest.mark.parametrize("matching", ["streaming", "sampled"])
def test_a_compiled_model_gives_the_same(tmp_path, matching):
    plain = tiny.trained(tiny.trainer(tmp_path, matching=matching, **PLAIN))
    how = {"torch_compile": True, "torch_compile_backend": "aot_eager"}
    made = tiny.trainer(tmp_path, matching=matching, **how, **PLAIN)
    torch.testing.assert_close(tiny.trained(made), plain, rtol=1e-4, atol=1e-5)
