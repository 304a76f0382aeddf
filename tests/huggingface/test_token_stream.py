"""A stream of tokens in rows: each is predicted once, from those before it in its row."""

import pytest
import torch

pytest.importorskip("transformers")

from imm.huggingface import cut, log_likelihoods
from tests.huggingface import tiny

TOKENS = torch.tensor([3, 5, 9, 7, 5, 6, 8, 19, 11, 3, 5])


@pytest.mark.parametrize("context", [1, 4, 5, 10, 15])
def test_each_token_is_predicted_once_from_those_before_it_in_its_row(context):
    rows = cut(TOKENS, context)
    assert [token for row in rows for token in row["labels"][1:].tolist()] == TOKENS[1:].tolist()
    model, wanted = tiny.gpt2(dropout=0.5).train(), []
    found = log_likelihoods(model, TOKENS, context)
    assert model.training  # as it was
    with torch.no_grad():
        for row in rows:
            ids = row["input_ids"]
            log_q = torch.log_softmax(model.eval()(ids[None]).logits[0], -1)
            wanted += [log_q[i, ids[i + 1]] for i in range(len(ids) - 1)]
    torch.testing.assert_close(found, torch.stack(wanted), rtol=1e-5, atol=1e-6)
