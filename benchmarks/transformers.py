"""What IMM costs in a Hugging Face run: ``python -m benchmarks.transformers``, or with ``--json`` a flat object.

A GPT-2 with 50,257 words and a BERT with 30,522, on drawn texts; k = 5 contexts for each of 8 places of a row. Both are
so narrow (``--width``) that what is as large as the vocabulary weighs most. In the deep GPT-2, with few words and two
long rows, it is what its layers keep; with and without gradient checkpointing.

* ``step``: an optimizer step of ``IMMTrainer`` over one of the plain ``Trainer``. They take turns; a figure is the
  median over rounds.
* ``peak``: the highest memory of a process above what it had before the model was made, in MB, and over that of the
  plain trainer. The table of running means, as large as it is unless told, is within it.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from rich.console import Console

from benchmarks import printing
from benchmarks.memory import rise
from imm.huggingface import IMMConfig, IMMTrainer
from imm.ngram import Ngram


@dataclass(frozen=True)
class Case:
    """A model, and the rows that it is trained on."""

    n_words: int
    masked: bool = False
    n_layers: int = 2
    length: int = 64
    batch: int = 8
    checkpointing: bool = False


MODELS = {
    "gpt2": Case(50_257),
    "bert": Case(30_522, masked=True),
    "deep": Case(2_000, n_layers=6, length=256, batch=2),
    "deep_checkpointed": Case(2_000, n_layers=6, length=256, batch=2, checkpointing=True),
}
KINDS = ("plain", "streaming", "sampled")
BOUNDS = {f"peak_{model}_{kind}_over_plain": 1.5 for model in MODELS for kind in KINDS[1:]}
"""Figures that must not be larger than this."""

ROWS = 32


class Words:
    """Enough of a tokenizer for a masked model: numbers 0 to 4 are padding, unknown, beginning, end and mask."""

    unk_token_id, mask_token_id, all_special_ids = 1, 4, (0, 1, 2, 3, 4)


class Clock(transformers.TrainerCallback):
    """The time of each step."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Starts the clock."""
        self._begin = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Stops it."""
        self.seconds.append(time.perf_counter() - self._begin)


def texts(case: Case) -> list[dict[str, Any]]:
    """Rows of tokens by Zipf's law, each all labels; for a masked model one in seven is to be predicted."""
    generator = torch.Generator().manual_seed(0)
    frequency = 1 / torch.arange(5, case.n_words).double()
    drawn = torch.multinomial(frequency, ROWS * case.length, replacement=True, generator=generator)
    tokens = labels = drawn.view(ROWS, case.length) + 5
    if case.masked:
        hidden = torch.rand(tokens.shape, generator=generator) < 0.15
        labels, tokens = tokens.where(hidden, -100), tokens.where(~hidden, Words.mask_token_id)
    mask = torch.ones(case.length, dtype=torch.long)
    pairs = zip(tokens, labels, strict=True)
    return [{"input_ids": ids, "labels": label, "attention_mask": mask} for ids, label in pairs]


def full_model(case: Case, width: int) -> Any:
    torch.manual_seed(0)
    if case.masked:
        size = {"hidden_size": width, "intermediate_size": 4 * width, "num_attention_heads": 2}
        size |= {"num_hidden_layers": case.n_layers}
        return transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=case.n_words, **size))
    size = {"n_positions": case.length, "n_embd": width, "n_layer": case.n_layers, "n_head": 2}
    size |= {"bos_token_id": 0, "eos_token_id": 0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=case.n_words, **size))


def trainer(model: str, kind: str, width: int, n_steps: int, folder: str) -> Any:
    case = MODELS[model]
    data = texts(case)
    settings = {"report_to": [], "disable_tqdm": True, "save_strategy": "no", "use_cpu": True, "logging_steps": 1000}
    settings |= {"max_steps": n_steps, "per_device_train_batch_size": case.batch, "dataloader_pin_memory": False}
    settings |= {"gradient_checkpointing": case.checkpointing}
    settings |= {"matching": kind} if kind != "plain" else {}
    args = IMMConfig(output_dir=folder, positions=8, n_contexts=5, **settings)
    common = {"model": full_model(case, width), "args": args, "train_dataset": data}
    if kind == "plain":
        return quiet(transformers.Trainer(**common, callbacks=[Clock()]))
    stream = torch.cat([row["input_ids"].where(row["labels"] == -100, row["labels"]) for row in data])
    tokenizer = Words() if case.masked else None
    target = Ngram.fit(stream, case.n_words, 2)
    return quiet(IMMTrainer(**common, callbacks=[Clock()], target=target, processing_class=tokenizer))


def quiet(made: Any) -> Any:
    """Standard output is for the figures."""
    made.remove_callback(transformers.PrinterCallback)
    return made


def clock(made: Any) -> Clock:
    return next(each for each in made.callback_handler.callbacks if isinstance(each, Clock))


def steps(model: str, width: int, rounds: int, progress: Any) -> dict[str, float]:
    took: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        made = {kind: trainer(model, kind, width, 1, folder) for kind in KINDS}
        for number in range(rounds + 1):
            for kind, each in made.items():
                progress(f"{model}: round {number} of {rounds}, {kind}")
                each.train()
                seconds, clock(each).seconds = clock(each).seconds, []
                took[kind].append(statistics.median(seconds))
    plain = took["plain"][1:]  # the first round is warmth
    figures = {f"step_{model}_plain_s": statistics.median(plain)}
    for kind in KINDS[1:]:
        ratios = [each / other for each, other in zip(took[kind][1:], plain, strict=True)]
        figures[f"step_{model}_{kind}_over_plain"] = statistics.median(ratios)
    return figures


def peak(model: str, kind: str, width: int) -> float:
    """MB at most while it is made and trains, in this process, above what there was before."""
    with tempfile.TemporaryDirectory() as folder:
        # in the second step there are moments too
        return rise(lambda: trainer(model, kind, width, 2, folder).train()) / 1e6


def peaks(model: str, width: int, progress: Any) -> dict[str, float]:
    found = {}
    for kind in KINDS:
        progress(f"{model}: memory, {kind}")
        command = [sys.executable, "-m", "benchmarks.transformers", "--width", str(width), "--peak", model, kind]
        environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
        printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        found[kind] = float(printed)
    figures = {f"peak_{model}_{kind}_mb": megabytes for kind, megabytes in found.items()}
    for kind in KINDS[1:]:
        figures[f"peak_{model}_{kind}_over_plain"] = found[kind] / found["plain"]
    return figures


def main() -> None:
    parser = printing.options(__doc__)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak", nargs=2, metavar=("MODEL", "KIND"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak:
        print(peak(*given.peak, given.width))
        return
    console = Console(stderr=True)
    figures: dict[str, float] = {"width": float(given.width)}
    with console.status("starting") as status:
        for model in MODELS:
            figures |= peaks(model, given.width, status.update)
            figures |= steps(model, given.width, given.rounds, status.update)
    printing.show("Hugging Face training runs", figures, given.json, BOUNDS)


if __name__ == "__main__":
    main()
