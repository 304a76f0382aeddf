"""A Hugging Face trainer whose loss has IMM in it."""

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import Trainer, TrainerCallback

from imm.huggingface.checkpoint import load_matching, save_matching
from imm.huggingface.config import IMMConfig
from imm.huggingface.distributed import Together
from imm.huggingface.forward import Causal, Reading
from imm.huggingface.gradients import Apart
from imm.huggingface.masked_task import TaskWithMaskedLM
from imm.huggingface.matcher import MATCHERS, Batch, Matcher
from imm.huggingface.model_checks import check_lengths, check_words, context_length
from imm.huggingface.model_kinds import check_head, language_model, reading_of
from imm.targets import Target

NEEDED = ("input_ids", "attention_mask", "token_type_ids")
"""Columns that IMM reads, whether the model does or not."""

MADE_WITH = ("matching", "memory", "lifetime", "table_mb")
"""Settings that are used when the matching is made; the others are read at each step."""

TERMS = ("cross_entropy", "task_loss", "masked_loss", "matching")
"""What may be logged beside the loss; processes add all of them up, in this order, whichever they have."""


class IMMTrainer(Trainer):
    """:class:`transformers.Trainer` with ``loss + λ · IMM``   (Eq. main-objective).

    The primary loss is the trainer's own, whatever makes it. IMM is the mean over all places of an optimizer step at
    which a word is predicted: of its accumulation steps and of all processes. In evaluation it is left out, so that
    losses compare with those of other trainers.

    Logged beside ``loss``, each without its factor: ``matching``; ``cross_entropy``, or ``task_loss`` and
    ``masked_loss`` of a :class:`~imm.huggingface.TaskWithMaskedLM`.

    Args:
        model: a causal or masked language model, or a :class:`~imm.huggingface.TaskWithMaskedLM`.
        args: an :class:`IMMConfig`.
        rest: as :class:`transformers.Trainer` takes them; masked models need ``processing_class``.
        target: the restricted model, over the model's words. The length of its contexts is that of the short contexts.
    """

    matcher: Matcher

    def __init__(self, model: Any = None, args: IMMConfig | None = None, *rest: Any, target: Target, **more: Any):
        if args is None:
            args = IMMConfig(output_dir="tmp_trainer")
        if not isinstance(args, IMMConfig):
            raise TypeError(f"args must be an IMMConfig, got {type(args).__name__}: it has λ and the rest of IMM")
        super().__init__(model, args, *rest, **more)
        if self.train_dataset is None:
            raise ValueError("IMM needs train_dataset: its contexts are what the model is averaged over")
        self._target, self._together = target, Together(self.accelerator)
        self._match(self.model)
        self.begin()
        self.add_callback(_Calls(self))

    def call_model_init(self, trial: Any = None) -> Any:
        """A new model has predicted nothing yet, and may come with other settings (a search over them)."""
        model = super().call_model_init(trial)
        if hasattr(self, "matcher"):
            self._match(model)
        return model

    def _match(self, model: Any) -> None:
        """Makes what matches the model, under the settings as they are now."""
        check_head(model)
        tokenizer = self.processing_class or getattr(self.data_collator, "tokenizer", None)
        check_words(model, self._target, tokenizer)
        reading, args = reading_of(model, tokenizer), self.args
        self._check_settings(model, reading)
        self._made_with = {name: getattr(args, name) for name in MADE_WITH}
        kind, lm, m = MATCHERS[args.matching], language_model(model), context_length(self._target)
        self.matcher = kind(lm, args, self._target, reading, self.train_dataset, m, self._together).to(args.device)
        if self._passes(reading):
            check_lengths(model, self.matcher.index.longest, args.matching)

    def begin(self) -> None:
        """Before the first step: the model may be another than in the last training."""
        for name, before in self._made_with.items():
            if (now := getattr(self.args, name)) != before:
                raise ValueError(
                    f"{name} was {before!r} when the trainer was made, and is {now!r} now, too late: make another"
                    " trainer, or give it model_init"
                )
        self._apart = Apart(self.model.parameters(), self._together)
        self._n_places: float | None = None
        # Of each term its sum, how often it was a number, and how often it should have been.
        self._terms = torch.zeros(3, len(TERMS), device=self.args.device)
        self._logged_at = self.state.global_step

    def _check_settings(self, model: Any, reading: Reading) -> None:
        if isinstance(model, TaskWithMaskedLM) and self.label_smoother is not None:
            raise ValueError(
                "label_smoothing_factor takes the labels from the model: TaskWithMaskedLM needs them, use 0"
            )
        if self._passes(reading) and (self.is_deepspeed_enabled or self.is_fsdp_enabled):
            name = f"{self.args.matching} matching of {type(language_model(model)).__name__}"
            raise ValueError(f"{name} needs whole parameters: DeepSpeed and FSDP share them out")

    def _passes(self, reading: Reading) -> bool:
        """Whether matching has passes of its own."""
        return self.args.matching != "streaming" or not isinstance(reading, Causal)

    def get_batch_samples(self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device) -> Any:
        """All batches of an optimizer step; what IMM is a mean over is known here only."""
        samples, n_items = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._n_places = self._together.sum(float(sum(len(self.matcher.batch(each).places) for each in samples)))
        return samples, n_items

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> Tensor:
        """Sampled matching has a backward of its own, after the primary loss's."""
        loss: Tensor = super().training_step(model, inputs, num_items_in_batch)
        if not self.matcher.apart:
            return loss
        batch = self.matcher.batch(self._prepare_inputs(inputs))
        counted = self._counted(num_items_in_batch)
        share = 1 / self._places(batch)
        with self._apart.gathering(), self.accelerator.autocast():  # λ comes after clipping: add_apart
            total = self.matcher.backward_apart(language_model(self.model), batch, counted * share)
        matching = total * share * self._together.size  # the trainer takes the mean over processes
        self._note("matching", matching)
        total_loss: Tensor = loss + self.args.lam * counted * matching
        return total_loss

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The primary loss, and λ times IMM unless it is taken apart."""
        known = self._for_model(inputs)
        if not model.training:
            return super().compute_loss(model, known, return_outputs, num_items_in_batch)
        batch = self.matcher.batch(inputs)  # first: the trainer takes labels out if it smoothes them
        loss, outputs = super().compute_loss(model, known, True, num_items_in_batch)
        steps, counted = self._divided_by(num_items_in_batch), self._counted(num_items_in_batch)
        terms = {name: outputs[name] for name in ("task_loss", "masked_loss") if name in outputs}
        for name, term in (terms or {"cross_entropy": loss}).items():
            self._note(name, term / (steps * counted))
        if not self.matcher.apart:
            batch = Batch(batch.rows, batch.places, outputs.get("logits"))
            with self.accelerator.autocast():
                total = self.matcher(language_model(self.model), batch)
            matching = total * (self._together.size / self._places(batch))
            self._note("matching", matching)
            loss = loss + self.args.lam * steps * counted * matching
        return (loss, outputs) if return_outputs else loss

    def prediction_step(self, model: Any, inputs: dict[str, Any], *rest: Any, **more: Any) -> Any:
        """As the trainer's, on the columns that the model takes."""
        return super().prediction_step(model, self._for_model(inputs), *rest, **more)

    def add_apart(self) -> None:
        """Adds the gradient of sampled matching, clipped apart and then times λ, to the clipped primary one."""
        self._apart.add(self.args.max_grad_norm, self.args.lam)

    def log(self, logs: dict[str, float], *rest: Any, **more: Any) -> None:
        """Adds the loss terms, each the mean over steps since the last time."""
        if "loss" in logs:
            steps = max(1, self.state.global_step - self._logged_at)
            self._logged_at = self.state.global_step
            for name, (total, known, asked) in zip(TERMS, self._together.total(self._terms).T.tolist(), strict=True):
                if known:
                    logs[name] = total * (asked / known) / (self._together.size * steps)
            self._terms.zero_()
        super().log(logs, *rest, **more)

    def _note(self, name: str, value: Tensor) -> None:
        """What is no number, as of a batch with nothing to predict, is taken for the mean of the others.

        So does the trainer with the loss itself.
        """
        value = value.detach().to(self._terms)
        known = value.isfinite() | (not self.args.logging_nan_inf_filter)
        self._terms[:, TERMS.index(name)] += torch.stack([value.where(known, 0), known, torch.ones_like(value)])

    def _places(self, batch: Batch) -> float:
        """How many places the mean is over."""
        return max(1.0, len(batch.places) if self._n_places is None else self._n_places)

    def _divided_by(self, num_items_in_batch: Any) -> int:
        """By what the trainer will divide the loss, because it thinks it a mean over one of several batches."""
        scaled = (
            self.model_accepts_loss_kwargs and num_items_in_batch is not None
        ) or self.compute_loss_func is not None
        said: bool | None = getattr(self, "loss_is_scaled_for_ga", None)
        if scaled if said is None else said:
            return 1
        return int(getattr(self, "current_gradient_accumulation_steps", 1))

    def _counted(self, num_items_in_batch: Any) -> int:
        """How often the primary loss is counted.

        BERT and most masked models are told how many words an optimizer step has, for a mean over all of them, and take
        that of their own batch: the trainer then adds such means up. So is IMM counted, or λ would be another.
        """
        ours = self.label_smoother is not None or self.compute_loss_func is not None
        if num_items_in_batch is None or ours or not self.model_accepts_loss_kwargs:
            return 1
        for kind in type(self.model).__mro__:
            names = inspect.unwrap(vars(kind)["forward"]).__code__.co_names if "forward" in vars(kind) else ("super",)
            if "loss_function" in names:
                return 1  # transformers' own, which counts them
            if "super" not in names:
                break
        steps = int(getattr(self, "current_gradient_accumulation_steps", 1))
        return steps * (self._together.size if self.args.average_tokens_across_devices else 1)

    def _for_model(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        ours = self._not_taken()
        return {name: value for name, value in inputs.items() if name not in ours}

    def _not_taken(self) -> list[str]:
        """Columns that IMM needs, and that the model would not take."""
        taken = inspect.signature(type(self.model).forward).parameters
        if any(each.kind == inspect.Parameter.VAR_KEYWORD for each in taken.values()):
            return []  # who knows: it gets what it would get without IMM
        return [name for name in NEEDED if name not in taken]

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        self._signature_columns += [name for name in self._not_taken() if name not in self._signature_columns]

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        if self.args.should_save:
            save_matching(self.matcher, Path(output_dir))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            load_matching(self.matcher, Path(checkpoint))


class _Calls(TrainerCallback):
    """Calls the trainer at places where it is not asked itself."""

    def __init__(self, trainer: IMMTrainer) -> None:
        self._trainer = trainer

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._trainer.begin()

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        self._trainer.add_apart()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self._trainer.begin()
