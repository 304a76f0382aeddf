"""The engine of the GLUE study: a model fine-tuned on some rows of a task, with or without words and IMM beside."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    Trainer,
    set_seed,
)

from imm.experiments.glue import rows as glue_rows
from imm.experiments.glue.wikipedia import bigram, model_folder, with_head
from imm.experiments.study import Row, Settings
from imm.files import digest
from imm.huggingface import (
    IMMConfig,
    IMMTrainer,
    MaskingCollator,
    TaskWithMaskedLM,
    load_model,
    load_tokenizer,
    resumable_training,
)

SHARED = ("model", "head", "rows", "judged", "length", "epochs", "batch_size", "learning_rate", "warmup")
OF_METHOD = {
    "none": (),
    "mlm": ("words_weight",),
    "imm-sampled": ("words_weight", "lam", "ngram_lines", "positions", "n_contexts"),
}
"""The settings that an arm has: a run of another is the same run whatever they are."""


def fine_tune(settings: Settings, piece: Row, kept: Path) -> dict[str, Any]:
    """One run, continued from its last epoch if it was interrupted; one that is over is read.

    Args:
        settings: of the study.
        piece: ``task``, ``method`` and ``restart``.
        kept: where runs are kept.

    Returns:
        ``value``, the task's figure on dev, and what was logged.
    """
    chosen = {name: settings[name] for name in (*SHARED, *OF_METHOD[piece["method"]])}
    chosen["rows"] = settings["rows"][piece["task"]]
    seed = settings["seed"] + piece["restart"]
    folder = kept / f"glue-{digest(piece['task'], piece['method'], seed, chosen)}"
    found = resumable_training.finished(folder)
    if found is None:
        with resumable_training.quietly():
            trainer = _trainer(settings, piece, seed, folder, kept)
            resumable_training.train(trainer, folder)
            judged = tokenised(settings["model"], piece["task"], "dev", settings["length"])[: settings["judged"]]
            predicted = np.argmax(trainer.predict(judged).predictions, -1)
        value = glue_rows.score(piece["task"], [row["label"] for row in judged], predicted)
        found = resumable_training.finish(folder, trainer, {"value": value})
    return found


@lru_cache(maxsize=8)
def tokenised(model: str, task: str, split: str, length: int) -> list[dict[str, Any]]:
    """All rows of a task, cut to ``length`` tokens."""
    tokenizer = load_tokenizer(model_folder(model))
    return [
        {**tokenizer(*texts, truncation=True, max_length=length), "label": label}
        for texts, label in glue_rows.read(task, split)
    ]


def _trainer(settings: Settings, piece: Row, seed: int, folder: Path, kept: Path) -> Trainer:
    where, method = model_folder(settings["model"]), piece["method"]
    tokenizer = load_tokenizer(where)
    every = tokenised(settings["model"], piece["task"], "train", settings["length"])
    # Other rows in each restart: their choice is part of the chance that restarts are to show.
    some = np.random.default_rng(seed).permutation(len(every))[: settings["rows"][piece["task"]]]
    args = IMMConfig(
        **resumable_training.common(folder),
        seed=seed,
        num_train_epochs=settings["epochs"],
        per_device_train_batch_size=settings["batch_size"],
        per_device_eval_batch_size=64,
        learning_rate=settings["learning_rate"],
        warmup_steps=settings["warmup"],
        save_strategy="epoch",
        logging_strategy="epoch",
        lam=settings["words_weight"] * settings["lam"],
        matching="sampled",
        n_contexts=settings["n_contexts"],
        positions=settings["positions"],
        rows_at_once=settings["n_contexts"] * settings["batch_size"],
    )
    masked = load_model(AutoModelForMaskedLM, with_head(settings, kept))
    # The same seed before each: the classifier's first weights and the order of rows are those of the other arms.
    set_seed(seed)
    task = load_model(AutoModelForSequenceClassification, where)
    task.base_model.load_state_dict(masked.base_model.state_dict(), strict=False)  # it has no pooler
    given = {"args": args, "train_dataset": [every[i] for i in some], "processing_class": tokenizer}
    if method == "none":
        return Trainer(task, data_collator=DataCollatorWithPadding(tokenizer), **given)
    model = TaskWithMaskedLM(task, masked, settings["words_weight"])
    given["data_collator"] = resumable_training.Steady(MaskingCollator(tokenizer), seed)
    set_seed(seed)
    if method == "mlm":
        return Trainer(model, **given)
    return IMMTrainer(model, target=bigram(settings["model"], settings["ngram_lines"], kept), **given)
