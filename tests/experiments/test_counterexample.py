import pytest
import torch

from imm.experiments import counterexample

JOINT = torch.tensor(counterexample.JOINT, dtype=torch.float64)


def test_g_is_the_papers_number():
    (row,) = counterexample.run(counterexample.STUDY.settings, {"quantity": "g at Q†"})
    assert f"{row['value']:.2f}" == "-1.10"


@pytest.mark.parametrize("lam", [0.2, 1.5])
def test_noising_ends_at_the_mixture_of_the_true_and_the_restricted_model(lam):
    p, restricted = JOINT / JOINT.sum(0), JOINT.sum(2) / JOINT.sum((0, 2))
    found = counterexample.minimiser(JOINT, "noising", lam, seed=3)
    torch.testing.assert_close(found, (p + lam * restricted[:, :, None]) / (1 + lam), atol=1e-6, rtol=0)
    assert (found - p).abs().max() > 0.05


@pytest.mark.parametrize("lam", [0.2, 1.5])
def test_imm_ends_at_the_true_model(lam):
    found = counterexample.minimiser(JOINT, "imm", lam, seed=3)
    torch.testing.assert_close(found, JOINT / JOINT.sum(0), atol=1e-6, rtol=0)
