"""Fine-tunes a causal model on a text file, with an n-gram of the same or a larger text: ``imm lm train --model``."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, Trainer, default_data_collator, set_seed

from imm.files import whole_folder, write_whole
from imm.language.claim import claimed
from imm.language.huggingface.config import IMMConfig
from imm.language.huggingface.continuing import Progress, quietly, train
from imm.language.huggingface.kinds import reading_of
from imm.language.huggingface.loading import load_model, load_tokenizer
from imm.language.huggingface.stream import cut, log_likelihoods
from imm.language.huggingface.targets import fit_token_ngram, token_rows
from imm.language.huggingface.trainer import IMMTrainer
from imm.language.text import check_file
from imm.validation import check_count, check_not_negative

METHODS = ("none", "imm-streaming", "imm-sampled", "imm-exact")


@dataclass(frozen=True)
class FineTuning:
    """The settings of a run; those of IMM are :class:`IMMConfig`'s.

    Attributes:
        model: a folder, or a name on the hub of what was downloaded before.
        method: one of ``METHODS``.
        unroll: how many tokens of a row are predicted; one more is read.
    """

    model: str
    method: str = "imm-streaming"
    epochs: int = 3
    batch_size: int = 8
    unroll: int = 128
    learning_rate: float = 5e-5
    seed: int = 0
    lam: float = 0.2
    n_contexts: int = 5
    positions: int = 8
    memory: float = 1000.0
    lifetime: float = 30.0
    table_mb: int = 1024

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(
                f"method must be one of {', '.join(METHODS)} for a model of transformers, got {self.method!r}"
            )
        for name in ("epochs", "batch_size", "unroll"):
            check_count(getattr(self, name), name)
        check_not_negative(self.learning_rate, "learning_rate")

    def arguments(self, out: Path) -> IMMConfig:
        """For the trainer."""
        return IMMConfig(
            str(out),
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=torch.cuda.is_available(),
            save_strategy="epoch",
            save_total_limit=1,
            logging_strategy="epoch",
            num_train_epochs=self.epochs,
            per_device_train_batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=self.seed,
            lam=self.lam,
            matching=self.method.removeprefix("imm-") if self.method != "none" else "streaming",
            n_contexts=self.n_contexts,
            positions=self.positions,
            memory=self.memory,
            lifetime=self.lifetime,
            table_mb=self.table_mb,
        )


def fine_tune(
    settings: FineTuning, texts: dict[str, Path], ngram_text: Path | None, out: Path, progress: Progress | None = None
) -> dict[str, float]:
    """Trains and writes ``out/model``; interrupted, it continues after the last epoch that was over.

    Args:
        settings: of the run.
        texts: files, UTF-8: ``train``, ``valid`` and perhaps ``test``.
        ngram_text: what the bigram is counted on; the training text if None.
        out: the run's folder.
        progress: is told of every step.

    Returns:
        Perplexities per token of valid and test: of the model, of it ``before``, and of the ``bigram``.
    """
    args = settings.arguments(out)
    tokenizer = load_tokenizer(settings.model)
    tokens = {split: _tokens(path, tokenizer) for split, path in texts.items()}
    judged = {split: each for split, each in tokens.items() if split != "train"}
    with quietly():
        set_seed(settings.seed)
        # Steps as small as those of fine-tuning are lost in half precision, whatever the file has.
        model = load_model(AutoModelForCausalLM, settings.model, dtype=torch.float32)
        _check_model(model, tokenizer, settings)
        with claimed(out, asdict(settings), _fingerprint({**texts, "ngram": ngram_text or texts["train"]})):
            n_words = model.get_output_embeddings().weight.shape[0]
            counted = [tokens["train"].numpy()] if ngram_text is None else token_rows(ngram_text, tokenizer)
            bigram = fit_token_ngram(counted, tokenizer, 2, n_words)
            before = {split: _perplexity(model, each, settings) for split, each in judged.items()}
            rows = cut(tokens["train"], settings.unroll)[: (len(tokens["train"]) - 1) // settings.unroll or 1]
            given: dict[str, Any] = {"args": args, "train_dataset": rows, "data_collator": default_data_collator}
            none = settings.method == "none"
            trainer = Trainer(model, **given) if none else IMMTrainer(model, target=bigram, **given)
        figures = {f"{split}_perplexity_before": value for split, value in before.items()}
        train(trainer, out, progress)
        with whole_folder(out / "model", "config.json") as new:
            model.save_pretrained(new)
            tokenizer.save_pretrained(new)
    for split, each in judged.items():
        figures[f"{split}_perplexity"] = _perplexity(model, each, settings)
        figures[f"bigram_{split}_perplexity"] = math.exp(
            -float(bigram.score(each[:-1], each[1:]).double().log().mean())
        )
    write_whole(out / "result.json", json.dumps(figures, indent=1) + "\n")
    return figures


def _tokens(path: Path, tokenizer: Any) -> Tensor:
    parts = list(token_rows(path, tokenizer))
    tokens = torch.from_numpy(np.concatenate(parts)) if parts else torch.zeros(0)
    if len(tokens) < 2:
        raise ValueError(f"{path} has {len(tokens)} tokens: there is nothing to predict")
    return tokens


def _perplexity(model: Any, tokens: Tensor, settings: FineTuning) -> float:
    return math.exp(-float(log_likelihoods(model, tokens, settings.unroll).double().mean()))


def _check_model(model: Any, tokenizer: Any, settings: FineTuning) -> None:
    """Refuses a model that is not causal, and rows that are longer than it reads."""
    try:
        reading_of(model, tokenizer)
    except ValueError as error:
        raise ValueError(f"{settings.model} is no causal model: {error}; see docs/transformers.md") from None
    most = getattr(model.config, "max_position_embeddings", None)
    if most is not None and 0 < most <= settings.unroll:
        raise ValueError(
            f"unroll {settings.unroll} makes rows of {settings.unroll + 1} tokens, the first of which is not predicted,"
            f" and {settings.model} reads at most {most}: give at most {most - 1}"
        )


def _fingerprint(texts: Mapping[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in texts.items():
        check_file(path)
        with path.open("rb") as file:
            digest.update(name.encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
