"""What does not fit together is refused before anything is trained, with both sides named."""

from typing import Any

from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from imm.language.huggingface.masked import TaskWithMaskedLM
from imm.language.huggingface.reading import Causal, Masked, Reading
from imm.language.huggingface.targets import ShortContextModel, check_tokens
from imm.targets import Ngram, Target, Weakened


def language_model(model: Any) -> Any:
    """The part of a model that predicts words: itself, or the masked model beside a task's."""
    return model.masked if isinstance(model, TaskWithMaskedLM) else model


def context_length(target: Target) -> int:
    """m, how many tokens the restricted model's short contexts have."""
    if isinstance(target, Weakened):
        return context_length(target.target)
    if isinstance(target, Ngram):
        return target.order - 1
    return target.length if isinstance(target, ShortContextModel) else 1


def check_head(model: Any) -> Any:
    """The language model of ``model``; refuses one that predicts no words, naming what it is."""
    lm, name = language_model(model), type(model).__name__
    output = getattr(lm, "get_output_embeddings", lambda: None)()
    if output is None:
        raise ValueError(
            f"{name} has no language-model head, and IMM matches predictions of words: take a causal or masked language"
            f" model, or for a task and words together TaskWithMaskedLM({name}, its masked model)"
        )
    return lm


def reading_of(model: Any, tokenizer: Any) -> Reading:
    """How the model reads: causal or masked."""
    lm = check_head(model)
    names, config = {kind.__name__ for kind in type(lm).__mro__}, lm.config
    if getattr(config, "is_encoder_decoder", False):
        raise ValueError(f"{type(lm).__name__} has an encoder and a decoder: IMM is for causal and masked models")
    if names & set(MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()):
        if tokenizer is None or getattr(tokenizer, "mask_token_id", None) is None:
            given = (
                "no processing_class" if tokenizer is None else f"{type(tokenizer).__name__}, which has no mask token"
            )
            raise ValueError(f"{type(lm).__name__} predicts masked words: give its tokenizer, got {given}")
        return Masked(tokenizer.mask_token_id, _no_words(tokenizer), restore=lm is model)
    if names & set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()):
        if config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", True):
            raise ValueError(
                f"{type(lm).__name__} sees the words that it predicts, as its configuration has is_decoder=False: set"
                " it to True, or take the masked model"
            )
        return Causal()
    raise ValueError(f"{type(lm).__name__} is neither a causal nor a masked language model of transformers")


def _no_words(tokenizer: Any) -> list[int]:
    """The tokens that stand for no word. That for unknown words does, unless it has another role too."""
    roles = {getattr(tokenizer, f"{role}_token_id", None) for role in ("bos", "eos", "sep", "cls", "pad", "mask")}
    return [token for token in tokenizer.all_special_ids if token != tokenizer.unk_token_id or token in roles]


def check_words(model: Any, target: Target, tokenizer: Any) -> None:
    """Refuses a target over other words than the model's, or numbered otherwise than the tokenizer's."""
    lm, kind = language_model(model), type(target).__name__
    if not isinstance(target, Target):
        raise TypeError(f"target must be an imm.targets.Target over the words of {type(lm).__name__}, got {kind}")
    if isinstance(target, ShortContextModel) and target.model is lm:
        raise ValueError(
            f"the target ({kind}) is the {type(lm).__name__} that is trained: give it another one, or a copy of this"
        )
    n_words = lm.get_output_embeddings().weight.shape[0]
    if len(target.classes) != n_words:
        raise ValueError(
            f"the target ({kind}) is over {len(target.classes):,} words, and {type(lm).__name__} predicts {n_words:,}:"
            f" fit it with the model's tokenizer and n_words={n_words}"
        )
    if all(isinstance(word, str) for word in target.classes):
        if tokenizer is not None:
            check_tokens(target, tokenizer)
    elif tuple(target.classes) != tuple(range(n_words)):
        wrong = next(number for number, word in enumerate(target.classes) if word != number)
        raise ValueError(
            f"the target ({kind}) must have the numbers of the {n_words:,} words of {type(lm).__name__} as classes, in"
            f" their order: class {wrong} is {target.classes[wrong]!r}"
        )
