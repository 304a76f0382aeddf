"""Clipping the gradients of the two losses apart, before they are added."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from imm.validation import check_not_negative


@contextmanager
def clipped_apart(parameters: Iterable[nn.Parameter], max_norm: float, lam: float = 1.0) -> Iterator[None]:
    """Clips what is back-propagated inside to ``max_norm``, then adds it ``lam`` times to the gradients from before.

    The paper (Clipping): the two losses have very different scales, so each gradient is clipped before they
    are added together. Give λ here and not inside: a gradient that is clipped after it was multiplied by λ has the
    same length whatever λ is, once the clip binds. With an infinite norm nothing is clipped. Costs a second set of
    gradients. If something is raised inside, the gradients from before are left as they were.

    Example:
        >>> weight = nn.Parameter(torch.zeros(2))
        >>> (weight.sum() * 3).backward()
        >>> with clipped_apart([weight], max_norm=1.0, lam=2.0):
        ...     (weight[0] * 100).backward()
        >>> weight.grad
        tensor([5., 3.])
    """
    if max_norm != math.inf:
        check_not_negative(max_norm, "max_norm")
    check_not_negative(lam, "lam")
    held = [(p, p.grad) for p in parameters]
    for p, _ in held:
        p.grad = None
    try:
        yield
    except BaseException:
        for p, before in held:
            p.grad = before
        raise
    torch.nn.utils.clip_grad_norm_([p for p, _ in held], max_norm)
    for p, before in held:
        if p.grad is None:
            p.grad = before
            continue
        if lam != 1:
            p.grad *= lam
        if before is not None:
            p.grad += before
