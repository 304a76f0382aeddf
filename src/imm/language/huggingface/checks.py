"""What does not fit together is refused before anything is trained, with both sides named."""

from typing import Any

from imm.language.huggingface.kinds import language_model
from imm.language.huggingface.targets import ShortContextModel, check_tokens
from imm.targets import Ngram, Target, Weakened


def context_length(target: Target) -> int:
    """m, how many tokens the restricted model's short contexts have."""
    if isinstance(target, Weakened):
        return context_length(target.target)
    if isinstance(target, Ngram):
        return target.order - 1
    return target.length if isinstance(target, ShortContextModel) else 1


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
