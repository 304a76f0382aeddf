"""The engine of the study of little text: a small GPT-2 on a part of WikiText-2, a bigram of all of it beside."""

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, Trainer, default_data_collator, set_seed

from imm.baselines import reverse_kd
from imm.experiments.data import data_file
from imm.experiments.study import Row, Settings
from imm.files import digest, write_whole
from imm.huggingface import IMMConfig, IMMTrainer, cut, fit_token_ngram, log_likelihoods, resumable_training
from imm.ngram import Ngram
from imm.targets import Target

SHARED = ("tokens", "context", "width", "layers", "heads", "dropout", "batch_size", "learning_rate", "judged")
OF_METHOD = {"none": ("shares",), "reverse-kd": (), "imm-streaming": ("memory", "lifetime")}


@dataclass(frozen=True)
class Words:
    """What all runs share.

    Attributes:
        tokenizer: byte-pair encoding of the training text.
        tokens: of ``train``, ``valid`` and ``test``, one stream each, begun by an end of line.
        words: how many words each has, ends of lines among them.
        bigram: Kneser-Ney, of all of ``train``.
    """

    tokenizer: Any
    tokens: dict[str, Tensor]
    words: dict[str, int]
    bigram: Ngram


@lru_cache(maxsize=1)
def words(n_tokens: int, judged: int | None, kept: Path) -> Words:
    """WikiText-2 in ``n_tokens`` different tokens; the first ``judged`` words of valid and test, all if None."""
    tokenizer = _tokenizer(n_tokens, kept)
    tokens, counts = {}, {}
    for split in ("train", "valid", "test"):
        lines = _lines(split)
        if split != "train" and judged is not None:
            ends = np.cumsum([len(line.split()) + 1 for line in lines])
            lines = lines[: int(np.searchsorted(ends, judged)) + 1]
        rows = tokenizer(lines, return_attention_mask=False, verbose=False)["input_ids"]
        end = tokenizer.eos_token_id
        tokens[split] = torch.tensor([end, *(number for row in rows for number in (*row, end))])
        counts[split] = sum(len(line.split()) + 1 for line in lines)
    return Words(tokenizer, tokens, counts, fit_token_ngram([tokens["train"].numpy()], tokenizer, 2))


def train(settings: Settings, piece: Row, kept: Path) -> dict[str, Any]:
    """One run, continued from its last epoch if it was interrupted; one that is over is read.

    Args:
        settings: of the study.
        piece: ``method``, ``fraction``, ``strength`` (λ) and ``restart``.
        kept: where runs are kept.

    Returns:
        The perplexity per word of ``valid`` and ``test``, and for ``none`` of mixtures with the bigram, by its share.
    """
    seed, epochs = settings["seed"] + piece["restart"], settings["epochs"][str(piece["fraction"])]
    chosen = {name: settings[name] for name in (*SHARED, *OF_METHOD[piece["method"]])} | {"epochs": epochs}
    which = [piece[name] for name in ("method", "fraction", "strength")]
    folder = kept / f"low-data-{digest(which, seed, chosen)}"
    found = resumable_training.finished(folder)
    if found is None:
        text = words(settings["tokens"], settings["judged"], kept)
        with resumable_training.quietly():
            trainer = _trainer(settings, piece, seed, folder, text)
            resumable_training.train(trainer, folder)
        shares = (0.0, *settings["shares"]) if piece["method"] == "none" else (0.0,)
        figures: dict[str, Any] = {}
        for split in ("valid", "test"):
            tokens = text.tokens[split]
            likelihood = log_likelihoods(trainer.model, tokens, settings["context"]).double().exp()
            restricted = text.bigram.score(tokens[:-1], tokens[1:]).double()
            figures[split] = {
                str(share): per_word((1 - share) * likelihood + share * restricted, text.words[split])
                for share in shares
            }
        found = resumable_training.finish(folder, trainer, figures)
    return found


def per_word(probabilities: Tensor, n_words: int) -> float:
    """``exp(- Σ_t log p_t / words)``: tokens are counted, words are what one divides by."""
    return math.exp(-float(probabilities.log().sum()) / n_words)


def bigram_alone(settings: Settings, split: str, kept: Path) -> float:
    """The bigram's perplexity per word."""
    text = words(settings["tokens"], settings["judged"], kept)
    tokens = text.tokens[split]
    return per_word(text.bigram.score(tokens[:-1], tokens[1:]).double(), text.words[split])


class ReverseKDTrainer(Trainer):
    """``loss + λ · reverse KD``: the model itself, and not what it induces, is pulled towards the restricted one."""

    def __init__(self, *rest: Any, target: Target, **more: Any) -> None:
        super().__init__(*rest, **more)
        self._restricted = target

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Of each predicted token, given the one before."""
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        if model.training:
            log_q = torch.log_softmax(outputs.logits[:, :-1].flatten(0, 1).float(), -1)
            rows = self._restricted(inputs["input_ids"][:, :-1].flatten().cpu()).to(log_q.device)
            loss = loss + self.args.lam * reverse_kd(log_q, rows)
        return (loss, outputs) if return_outputs else loss


def _trainer(settings: Settings, piece: Row, seed: int, folder: Path, text: Words) -> Trainer:
    tokens, context = text.tokens["train"], settings["context"]
    part = tokens[: round(piece["fraction"] * (len(tokens) - 1) / context) * context + 1]  # whole rows
    args = IMMConfig(
        **resumable_training.common(folder),
        seed=seed,
        num_train_epochs=settings["epochs"][str(piece["fraction"])],
        per_device_train_batch_size=settings["batch_size"],
        per_device_eval_batch_size=32,
        learning_rate=settings["learning_rate"],
        weight_decay=0.1,
        warmup_steps=20,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        load_best_model_at_end=True,
        prediction_loss_only=True,
        lam=piece["strength"],
        matching="streaming",
        memory=settings["memory"],
        lifetime=settings["lifetime"],
        rows_at_once=256,
    )
    set_seed(seed)
    end = text.tokenizer.eos_token_id
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(text.tokenizer),
            n_positions=context + 1,
            n_embd=settings["width"],
            n_layer=settings["layers"],
            n_head=settings["heads"],
            **dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), settings["dropout"]),
            bos_token_id=end,
            eos_token_id=end,
        )
    )
    given: dict[str, Any] = {
        "train_dataset": cut(part, context),
        "eval_dataset": cut(text.tokens["valid"], context)[:-1],
    }
    given |= {"args": args, "data_collator": default_data_collator}
    if piece["method"] == "none":
        return Trainer(model, **given)
    kind = ReverseKDTrainer if piece["method"] == "reverse-kd" else IMMTrainer
    return kind(model, target=text.bigram, **given)


def _lines(split: str) -> list[str]:
    return [line.strip() for line in data_file(f"wikitext-2/{split}.txt").read_text("utf-8").split("\n")[:-1]]


def _tokenizer(n_tokens: int, kept: Path) -> Any:
    path = kept / f"bpe-{digest(n_tokens)}.json"
    if not path.exists():
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        made.decoder = decoders.ByteLevel()
        special = [AddedToken("<eos>", special=True), AddedToken("<unk>", lstrip=True, special=True)]
        letters = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=n_tokens, special_tokens=special, initial_alphabet=letters, show_progress=False
        )
        made.train_from_iterator(_lines("train"), trainer)
        write_whole(path, made.to_str())
    return PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token="<eos>", unk_token="<unk>")
