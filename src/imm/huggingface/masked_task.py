"""A task and masked words with one encoder, as in the paper's fine-tuning of BERT."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import DataCollatorForLanguageModeling, DataCollatorWithPadding
from transformers.utils import ModelOutput

from imm.huggingface.forward import IGNORED, head
from imm.validation import check_not_negative


@dataclass
class TaskWithMaskedLMOutput(ModelOutput):
    """The weighted sum of the losses, the task's scores, and while training each loss."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    task_loss: Tensor | None = None
    masked_loss: Tensor | None = None


class TaskWithMaskedLM(nn.Module):
    """The task loss + the MLM loss (Appendix param-details), of two models whose encoder is made one.

    With ``words_weight`` other than 1, ``task loss + words_weight · MLM loss``: a head for words that is not yet good
    has gradients many times the task's, and the task would not be learned.

    In evaluation the task alone is computed. A batch comes from a :class:`MaskingCollator`.

    Args:
        task: a model for the task, such as ``BertForSequenceClassification``: its encoder is the one that is trained.
        masked: a model for masked words of the same kind, such as ``BertForMaskedLM``: its encoder is replaced.
        words_weight: of the MLM loss; 1 in the paper.

    When training is over, ``model.task.save_pretrained(folder)`` keeps the task's model, and
    ``model.masked.save_pretrained(folder)`` the other.
    """

    accepts_loss_kwargs = False  # each loss is a mean over its batch: the trainer averages over accumulation steps

    def __init__(self, task: Any, masked: Any, words_weight: float = 1.0) -> None:
        super().__init__()
        self.words_weight = check_not_negative(words_weight, "words_weight")
        ours, theirs = type(task.base_model).__name__, type(masked.base_model).__name__
        sizes = [model.get_input_embeddings().weight.shape for model in (task, masked)]
        if ours != theirs or sizes[0] != sizes[1]:
            raise ValueError(
                f"task and masked model must have the same encoder, got {ours} with embeddings {tuple(sizes[0])}"
                f" and {theirs} with {tuple(sizes[1])}"
            )
        setattr(masked, masked.base_model_prefix, task.base_model)
        masked.tie_weights()
        self.task, self.masked, self.config = task, masked, task.config
        self.register_state_dict_post_hook(_once)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_post_hook(_there)  # type: ignore[no-untyped-call]

    @property
    def device(self) -> Any:
        """Where the parameters are."""
        return self.task.device

    def gradient_checkpointing_enable(self, **how: Any) -> None:
        """Of the encoder."""
        self.task.gradient_checkpointing_enable(**how)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        masked_input_ids: Tensor | None = None,
        masked_words: Tensor | None = None,
    ) -> TaskWithMaskedLMOutput:
        """Both losses.

        Args:
            input_ids: the text, ``[rows, length]``.
            attention_mask: as the models take it.
            token_type_ids: as the models take them.
            labels: the task's.
            masked_input_ids: the text with masks.
            masked_words: what they hide, -100 elsewhere.
        """
        more = {"attention_mask": attention_mask}
        more |= {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        task = self.task(input_ids=input_ids, labels=labels, **more)
        if not self.training:
            return TaskWithMaskedLMOutput(task.loss, task.logits)
        if masked_input_ids is None or masked_words is None:
            raise ValueError("TaskWithMaskedLM learns from a text and the same with masks: take a MaskingCollator")
        if task.loss is None:
            raise ValueError(
                f"TaskWithMaskedLM has no labels for {type(self.task).__name__}: rows need a label or labels"
            )
        words = masked_loss(self.masked, masked_input_ids, masked_words, **more)
        loss = task.loss + self.words_weight * words
        return TaskWithMaskedLMOutput(loss, task.logits, task.loss.detach(), words.detach())


def masked_loss(model: Any, input_ids: Tensor, words: Tensor, **more: Any) -> Tensor:
    """The mean cross-entropy of masked words; 0 where there is none.

    What ``model(input_ids=…, labels=words).loss`` is, but the head, which costs as much as a small encoder, is applied
    to the masked places only.

    Args:
        model: for masked words.
        input_ids: the text with masks, ``[rows, length]``.
        words: what they hide, -100 elsewhere, ``[rows, length]``.
        more: what the encoder takes besides.
    """
    hidden = model.base_model(input_ids=input_ids, **more).last_hidden_state
    here = words != IGNORED
    total = cross_entropy(head(model, hidden[here]), words[here], reduction="sum")
    return total / here.sum().clamp(min=1)


def _once(_module: nn.Module, state: dict[str, Tensor], _prefix: str, _metadata: Any) -> None:
    """Leaves a parameter that has several names under its first: safetensors takes each memory once."""
    seen: set[int] = set()
    for name, tensor in list(state.items()):
        if tensor.data_ptr() in seen:
            del state[name]
        seen.add(tensor.data_ptr())


def _there(module: nn.Module, keys: Any) -> None:
    """A parameter that was loaded under one of its names is not missing under the others."""
    names = dict(module.named_parameters(remove_duplicate=False))
    loaded = {id(parameter) for name, parameter in names.items() if name not in keys.missing_keys}
    keys.missing_keys[:] = [name for name in keys.missing_keys if id(names.get(name)) not in loaded]


class MaskingCollator:
    """Pads a task's rows, and adds the same text with words masked as in BERT's training.

    Args:
        tokenizer: with a mask token.
        mlm_probability: the share of words that are to be predicted.
    """

    def __init__(self, tokenizer: Any, mlm_probability: float = 0.15) -> None:
        self.tokenizer = tokenizer
        self._pad = DataCollatorWithPadding(tokenizer)
        self._mask = DataCollatorForLanguageModeling(tokenizer, mlm_probability=mlm_probability)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch for :class:`TaskWithMaskedLM`."""
        batch: dict[str, Any] = dict(self._pad(features))
        special = batch.pop("special_tokens_mask", None)
        masked, words = self._mask.torch_mask_tokens(batch["input_ids"].clone(), special_tokens_mask=special)
        return batch | {"masked_input_ids": masked, "masked_words": words}
