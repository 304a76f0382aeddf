"""A head alone gives what the whole model gives, whatever the model asks of its base."""

import pytest
import torch

pytest.importorskip("transformers")
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from imm.huggingface import evaluating, head
from tests.huggingface import tiny

SIZE = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
END = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
CAUSAL = {
    "gpt_neox": SIZE,
    "gemma2": SIZE | {"num_key_value_heads": 2, "head_dim": 4},  # scores with a soft cap
    "mixtral": SIZE | {"num_key_value_heads": 2, "num_local_experts": 2},  # asks for its router's scores
    "opt": SIZE | {"ffn_dim": 16, "word_embed_proj_dim": 8, "max_position_embeddings": 16},  # asks a part of its base
    "mamba": SIZE | {"state_size": 4},  # has another kind of cache
}
MASKED = {
    "distilbert": {"vocab_size": 20, "dim": 8, "hidden_dim": 16, "n_layers": 1, "n_heads": 2},
    "electra": SIZE | {"embedding_size": 4},  # a head narrower than its base
}


@pytest.mark.parametrize("kind", [*CAUSAL, *MASKED])
def test_a_head_alone_is_that_of_the_whole_model(kind):
    auto, sizes = (AutoModelForCausalLM, CAUSAL) if kind in CAUSAL else (AutoModelForMaskedLM, MASKED)
    torch.manual_seed(0)
    model = auto.from_config(AutoConfig.for_model(kind, **sizes[kind], **END)).eval()
    ids = torch.tensor([[2, 7, 9, 8, 3]])
    with torch.no_grad():
        hidden = model.base_model(input_ids=ids).last_hidden_state[0]
        torch.testing.assert_close(head(model, hidden), model(input_ids=ids).logits[0], rtol=1e-5, atol=1e-6)
    assert model(input_ids=ids).logits.requires_grad  # the base model is where it was


def test_the_model_is_as_before_when_a_pass_in_evaluation_mode_fails():
    model = tiny.gpt2().train()
    base = model.base_model
    with pytest.raises(RuntimeError), evaluating(model):
        head(model, torch.zeros(2, 3))
    assert model.training
    assert model.base_model is base
