"""Fine-tunes a causal model on a text file, with an n-gram of the same or a larger text: ``imm lm train --model``."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, Trainer, default_data_collator, set_seed

from imm.files import whole_folder, write_whole
from imm.language.huggingface.config import IMMConfig
from imm.language.huggingface.continuing import quietly, train
from imm.language.huggingface.loading import load_model, load_tokenizer
from imm.language.huggingface.stream import cut, log_likelihoods
from imm.language.huggingface.targets import fit_token_ngram, token_rows
from imm.language.huggingface.trainer import IMMTrainer

METHODS = ("none", "imm-streaming", "imm-sampled", "imm-exact")


@dataclass(frozen=True)
class FineTuning:
    """The settings of a run; those of IMM are :class:`IMMConfig`'s.

    Attributes:
        model: a folder, or a name on the hub of what was downloaded before.
        method: one of ``METHODS``.
        unroll: tokens of a row.
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


def fine_tune(settings: FineTuning, texts: dict[str, Path], ngram_text: Path | None, out: Path) -> dict[str, float]:
    """Trains and writes ``out/model``; interrupted, it continues after the last epoch that was over.

    Args:
        settings: of the run.
        texts: files, UTF-8: ``train``, ``valid`` and perhaps ``test``.
        ngram_text: what the bigram is counted on; the training text if None.
        out: the run's folder.

    Returns:
        Perplexities per token of valid and test: of the model, of it ``before``, and of the ``bigram``.
    """
    _claim(out, settings, {**texts, "ngram": ngram_text or texts["train"]})
    tokenizer = load_tokenizer(settings.model)
    if tokenizer.mask_token_id is not None:
        raise ValueError(
            f"{settings.model} predicts masked words: see docs/transformers.md, and give a causal model here"
        )
    tokens = {split: _tokens(path, tokenizer) for split, path in texts.items()}
    judged = {split: each for split, each in tokens.items() if split != "train"}
    with quietly():
        set_seed(settings.seed)
        model = load_model(AutoModelForCausalLM, settings.model)
        n_words = model.get_output_embeddings().weight.shape[0]
        counted = [tokens["train"].numpy()] if ngram_text is None else token_rows(ngram_text, tokenizer)
        bigram = fit_token_ngram(counted, tokenizer, 2, n_words)
        figures = {f"{split}_perplexity_before": _perplexity(model, each, settings) for split, each in judged.items()}
        args = IMMConfig(
            str(out),
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=torch.cuda.is_available(),
            save_strategy="epoch",
            save_total_limit=1,
            logging_strategy="epoch",
            num_train_epochs=settings.epochs,
            per_device_train_batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            seed=settings.seed,
            lam=settings.lam,
            matching=settings.method.removeprefix("imm-") if settings.method != "none" else "streaming",
            n_contexts=settings.n_contexts,
            positions=settings.positions,
            memory=settings.memory,
            lifetime=settings.lifetime,
            table_mb=settings.table_mb,
        )
        rows = cut(tokens["train"], settings.unroll)[: (len(tokens["train"]) - 1) // settings.unroll or 1]
        given: dict[str, Any] = {"args": args, "train_dataset": rows, "data_collator": default_data_collator}
        none = settings.method == "none"
        trainer = Trainer(model, **given) if none else IMMTrainer(model, target=bigram, **given)
        train(trainer, out)
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


def _claim(out: Path, settings: FineTuning, texts: dict[str, Path]) -> None:
    """A folder belongs to one run."""
    mine = json.loads(json.dumps({**asdict(settings), "texts": {name: str(path) for name, path in texts.items()}}))
    path = out / "settings.json"
    if path.exists():
        if json.loads(path.read_text()) != mine:
            raise ValueError(
                f"{out} holds a run with other settings or texts; give the same ones, or name another folder"
            )
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(f"{out} is there already and holds no run; name another folder")
    else:
        write_whole(path, json.dumps(mine, indent=1) + "\n")
