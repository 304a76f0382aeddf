"""What kind of language model a model is; one that is none is refused, and named."""

from typing import Any

from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from imm.huggingface.forward import Causal, Masked, Reading
from imm.huggingface.masked_task import TaskWithMaskedLM


def language_model(model: Any) -> Any:
    """The part of a model that predicts words: itself, or the masked model beside a task's."""
    return model.masked if isinstance(model, TaskWithMaskedLM) else model


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


def is_causal(model: Any) -> bool:
    """Whether it predicts the next word, and not words under masks; what does neither is refused."""
    lm = check_head(model)
    names, config = {kind.__name__ for kind in type(lm).__mro__}, lm.config
    if config.model_type == "xlnet":
        raise ValueError(f"{type(lm).__name__} sees the words after those that it predicts: IMM needs a causal model")
    if getattr(config, "is_encoder_decoder", False):
        raise ValueError(f"{type(lm).__name__} has an encoder and a decoder: IMM is for causal and masked models")
    if names & set(MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()):
        return False
    if not names & set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()):
        raise ValueError(f"{type(lm).__name__} is neither a causal nor a masked language model of transformers")
    if config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", True):
        raise ValueError(
            f"{type(lm).__name__} sees the words that it predicts, as its configuration has is_decoder=False: set"
            " it to True, or take the masked model"
        )
    return True


def reading_of(model: Any, tokenizer: Any) -> Reading:
    """How the model reads: causal or masked."""
    if is_causal(model):
        return Causal()
    lm = language_model(model)
    if tokenizer is None or getattr(tokenizer, "mask_token_id", None) is None:
        given = "no processing_class" if tokenizer is None else f"{type(tokenizer).__name__}, which has no mask token"
        raise ValueError(f"{type(lm).__name__} predicts masked words: give its tokenizer, got {given}")
    return Masked(tokenizer.mask_token_id, _no_words(tokenizer), restore=lm is model)


def _no_words(tokenizer: Any) -> list[int]:
    """The tokens that stand for no word. That for unknown words does, unless it has another role too."""
    roles = {getattr(tokenizer, f"{role}_token_id", None) for role in ("bos", "eos", "sep", "cls", "pad", "mask")}
    return [token for token in tokenizer.all_special_ids if token != tokenizer.unk_token_id or token in roles]
