"""What does not fit together is refused before anything is trained, with both sides named."""

from typing import Any

from imm.huggingface.model_kinds import language_model
from imm.huggingface.targets import ShortContextModel, check_tokens
from imm.ngram import Ngram
from imm.targets import Target, Weakened


def context_length(target: Target) -> int:
    """m, how many tokens the restricted model's short contexts have."""
    target = _unwrapped(target)
    if isinstance(target, Ngram):
        return target.order - 1
    return target.length if isinstance(target, ShortContextModel) else 1


def _unwrapped(target: Target) -> Target:
    return _unwrapped(target.target) if isinstance(target, Weakened) else target


def check_lengths(model: Any, longest: int, matching: str) -> None:
    """Refuses rows that are longer than the model reads: a collator that cuts them comes too late."""
    lm = language_model(model)
    most = getattr(lm.config, "max_position_embeddings", None)
    if most is not None and longest > most:
        raise ValueError(
            f"a row of train_dataset has {longest:,} tokens, and {type(lm).__name__} reads {most:,}: {matching}"
            " matching takes rows as they are there, so cut them before"
        )


def check_words(model: Any, target: Target, tokenizer: Any) -> None:
    """Refuses a target over other words than the model's, or numbered otherwise than the tokenizer's."""
    lm, kind = language_model(model), type(target).__name__
    if not isinstance(target, Target):
        raise TypeError(f"target must be an imm.targets.Target over the words of {type(lm).__name__}, got {kind}")
    inner = _unwrapped(target)
    if isinstance(inner, ShortContextModel) and inner.model is lm:
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
        if hasattr(tokenizer, "get_vocab"):
            check_tokens(target, tokenizer)
    elif tuple(target.classes) != tuple(range(n_words)):
        wrong = next(number for number, word in enumerate(target.classes) if word != number)
        raise ValueError(
            f"the target ({kind}) must have the numbers of the {n_words:,} words of {type(lm).__name__} as classes, in"
            f" their order: class {wrong} is {target.classes[wrong]!r}"
        )
