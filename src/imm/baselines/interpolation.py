"""Mixing the two models when predicting."""

import torch
from torch import Tensor

from imm.validation import check_fraction, check_log_probabilities, check_probabilities, check_same_shape


def interpolate(log_q: Tensor, target: Tensor, ratio: float) -> Tensor:
    """``log[(1 - ratio) Q(y|x) + ratio · P̂(y|short)]``, the prediction of both models together.

    Training is not touched, and the restricted model stays needed.

    Args:
        log_q: ``[n, classes]``.
        target: ``[n, classes]``.
        ratio: the restricted model's share.
    """
    check_fraction(ratio, "ratio")
    check_same_shape(log_q, target, "log_q and target")
    check_log_probabilities(log_q)
    check_probabilities(target, "target")
    log_q = log_q.to(torch.promote_types(log_q.dtype, torch.float32))
    share = torch.tensor(ratio, dtype=log_q.dtype, device=log_q.device)
    return torch.logaddexp(log_q + torch.log1p(-share), target.to(log_q.dtype).log() + share.log())
