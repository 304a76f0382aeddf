"""Fine-tunes a causal model on a text file, with an n-gram of the same or a larger text: ``imm finetune``."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, Trainer, default_data_collator, set_seed

from imm.files import whole_folder, write_whole
from imm.huggingface.config import IMMConfig
from imm.huggingface.model_files import load_tokenizer, load_whole_model
from imm.huggingface.model_kinds import reading_of
from imm.huggingface.resumable_training import quietly, train
from imm.huggingface.targets import check_tokens, fit_token_ngram, read_token_arpa, token_rows
from imm.huggingface.token_stream import cut, log_likelihoods
from imm.huggingface.trainer import IMMTrainer
from imm.language.evaluation import perplexity
from imm.language.run_folder import claimed
from imm.language.text_file import check_read_again
from imm.ngram import Ngram, load
from imm.ngram.persistence import NUMBERS
from imm.progress import Progress
from imm.validation import check_count, check_not_negative

METHODS = ("none", "imm-streaming", "imm-sampled", "imm-exact")

METHODS_OF = {
    "lam": METHODS[1:],
    "n_contexts": ("imm-sampled",),
    "positions": ("imm-sampled", "imm-exact"),
    "memory": ("imm-streaming",),
    "lifetime": ("imm-streaming",),
    "table_mb": ("imm-streaming",),
}
"""Of settings that only some methods have: which."""


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
    table_mb: int = 0

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
    settings: FineTuning,
    texts: dict[str, Path],
    out: Path,
    ngram_text: Path | None = None,
    ngram: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, float]:
    """Trains and writes ``out/model``; interrupted, it continues after the last epoch that was over.

    Args:
        settings: of the run.
        texts: files, UTF-8: ``train``, ``valid`` and perhaps ``test``.
        out: the run's folder.
        ngram_text: what the bigram is counted on; the training text if None.
        ngram: a bigram of the model's tokens instead: what ``imm ngram fit --tokenizer`` wrote, or an ARPA file.
        progress: is told of every step.

    Returns:
        Perplexities per token of valid and test: of the model, of it ``before``, and of the ``bigram``.
    """
    args = settings.arguments(out)
    tokenizer = load_tokenizer(settings.model)
    for path in texts.values():
        check_read_again(path)
    tokens = {split: _tokens(path, tokenizer) for split, path in texts.items()}
    judged = {split: each for split, each in tokens.items() if split != "train"}
    with quietly():
        set_seed(settings.seed)
        # Steps as small as those of fine-tuning are lost in half precision, whatever the file has.
        model = load_whole_model(AutoModelForCausalLM, settings.model, dtype=torch.float32)
        _check_model(model, tokenizer, settings)
        n_words = model.get_output_embeddings().weight.shape[0]
        given_bigram = None if ngram is None else _read_bigram(ngram, tokenizer, n_words)
        files = {**texts, "ngram": _content(ngram) if ngram else ngram_text or texts["train"]}
        # Under the same name there may be another model the next time.
        with claimed(out, {**asdict(settings), "weights": _weights(model)}, _fingerprint(files)):
            counted = [tokens["train"].numpy()] if ngram_text is None else token_rows(ngram_text, tokenizer)
            bigram = given_bigram or fit_token_ngram(counted, tokenizer, 2, n_words)
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
        figures[f"bigram_{split}_perplexity"] = perplexity(bigram.score(each[:-1], each[1:]).double().log())
    write_whole(out / "result.json", json.dumps(figures, indent=1) + "\n")
    return figures


def _tokens(path: Path, tokenizer: Any) -> Tensor:
    parts = list(token_rows(path, tokenizer))
    tokens = torch.from_numpy(np.concatenate(parts)) if parts else torch.zeros(0)
    if len(tokens) < 2:
        raise ValueError(f"{path} has {len(tokens)} tokens: there is nothing to predict")
    return tokens


def _read_bigram(path: Path, tokenizer: Any, n_words: int) -> Ngram:
    """Of a folder or an ARPA file; refuses one of other words than the model's."""
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}")
    bigram = load(path) if path.is_dir() else read_token_arpa(path, tokenizer, n_words)
    if bigram.order != 2:
        raise ValueError(f"{path} holds n-grams of order {bigram.order}; a bigram is needed")
    if len(bigram.classes) != n_words:
        raise ValueError(
            f"{path} is over {len(bigram.classes):,} words, and the model predicts {n_words:,}: fit it with the"
            " tokenizer in the model's own folder"
        )
    check_tokens(bigram, tokenizer)
    return bigram


def _content(ngram: Path) -> Path:
    """The file that tells a bigram from others."""
    return ngram / NUMBERS if ngram.is_dir() else ngram


def _perplexity(model: Any, tokens: Tensor, settings: FineTuning) -> float:
    return perplexity(log_likelihoods(model, tokens, settings.unroll))


def _check_model(model: Any, tokenizer: Any, settings: FineTuning) -> None:
    """Refuses a model that is not causal, and rows that are longer than it reads."""
    try:
        reading_of(model, tokenizer)
    except ValueError as error:
        raise ValueError(f"{settings.model} is no causal model: {error}; see docs/guides/huggingface.md") from None
    most = getattr(model.config, "max_position_embeddings", None)
    if most is not None and 0 < most <= settings.unroll:
        raise ValueError(
            f"unroll {settings.unroll} makes rows of {settings.unroll + 1} tokens, the first of which is not predicted,"
            f" and {settings.model} reads at most {most}: give at most {most - 1}"
        )


def _weights(model: Any) -> str:
    """What tells a model from others."""
    digest = hashlib.sha256(model.config.to_json_string().encode())
    for name, tensor in model.state_dict().items():
        digest.update(name.encode() + tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def _fingerprint(texts: Mapping[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in texts.items():
        check_read_again(path)
        with path.open("rb") as file:
            digest.update(name.encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
