"""Time of a training step with IMM over one without, and of the multiset: what ``benchmarks.core`` reports.

A step is forward, cross-entropy, backward and SGD on 20 sequences of 35 tokens. Variants take turns, and what is
reported is the median over rounds of each round's ratio: a busy machine slows all variants of a round alike.
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from benchmarks.problem import CLASSES, LENGTH, Lstm, model_on_histories, random_target, short_contexts, tokens
from imm.inducers import Multiset
from imm.matching import Sampled, Streaming
from imm.targets import Table

SEQUENCES, MEMORY, LAM = 20, 1000.0, 0.3
SAMPLED_POSITIONS = 70
"""Of a batch's 700 positions, how many Sampled is timed on; its time is then taken tenfold."""

Progress = Callable[[str], None]


def seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def steps(progress: Progress, rounds: int = 40, sampled_rounds: int = 1, k: int = 10) -> dict[str, float]:
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = Lstm()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    target = Table.from_tensor(random_target(CLASSES))
    streaming = Streaming(target, memory=MEMORY)
    stream = tokens(1_000_000)
    sampled = Sampled(target, Multiset(short_contexts(stream)), model_on_histories(model, stream), k)

    def step(batch: Tensor, with_streaming: bool) -> None:
        optimizer.zero_grad()
        log_batch, short = model(batch[:-1]), batch[:-1].flatten()
        loss = nll_loss(log_batch, batch[1:].flatten())
        if with_streaming:
            loss = loss + LAM * streaming(log_batch, short)
        loss.backward()
        optimizer.step()

    def sampled_part(batch: Tensor) -> None:
        short = batch[:-1].flatten()[:SAMPLED_POSITIONS]
        (LAM * sampled(None, short)).backward()

    batches = stream[: (LENGTH + 1) * SEQUENCES * rounds].view(rounds, LENGTH + 1, SEQUENCES)
    step(batches[0], True)  # warm
    plain, with_streaming, ratios, sampled_ratios = [], [], [], []
    for i, batch in enumerate(batches):
        progress(f"training steps: round {i + 1} of {rounds}")
        plain.append(seconds(lambda batch=batch: step(batch, False)))
        with_streaming.append(seconds(lambda batch=batch: step(batch, True)))
        ratios.append(with_streaming[-1] / plain[-1])
        if i < sampled_rounds:
            part = seconds(lambda batch=batch: sampled_part(batch))
            scale = SEQUENCES * LENGTH / SAMPLED_POSITIONS
            sampled_ratios.append(1 + scale * part / plain[-1])
    return {
        "step_plain_ms": 1e3 * statistics.median(plain),
        "step_streaming_ms": 1e3 * statistics.median(with_streaming),
        "step_streaming_over_plain": statistics.median(ratios),
        f"step_sampled_k{k}_over_plain": statistics.median(sampled_ratios),
    }


def multiset(progress: Progress) -> dict[str, float]:
    figures = {}
    for millions in (1, 10):
        progress(f"multiset: {millions} million positions")
        short = tokens(millions * 1_000_000)
        times = [seconds(lambda short=short: Multiset(short)) for _ in range(3)]
        figures[f"multiset_build_{millions}m_s_per_million"] = statistics.median(times) / millions
    figures["multiset_build_10m_over_1m_per_position"] = (
        figures["multiset_build_10m_s_per_million"] / figures["multiset_build_1m_s_per_million"]
    )
    inducer = Multiset(short)
    figures["multiset_draw_700x10_ms"] = 1e3 * statistics.median(
        seconds(lambda: inducer.draw(short[:700], 10)) for _ in range(20)
    )
    return figures
