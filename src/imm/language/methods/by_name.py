"""The method that settings name."""

from torch import Generator

from imm.language.dataset import Texts
from imm.language.methods.base import Method
from imm.language.methods.noising import Noising, kneser_ney_noise, unigram_noise
from imm.language.methods.sampled import Exact, Sampled
from imm.language.methods.serialized import Serialized
from imm.language.methods.soft_labels import ReverseKD, Softened
from imm.language.methods.streaming import Streaming
from imm.language.model import LanguageModel
from imm.language.settings import Settings
from imm.language.windows import Windows


def method_for(
    settings: Settings, texts: Texts, windows: Windows, model: LanguageModel, generator: Generator
) -> Method:
    """The method that the settings name, ready for the first step."""
    check_counts(settings, texts)
    bigram, counts = texts.bigram, texts.counts
    match settings.method:
        case "none" | "interpolation":  # which mixes when predicting only
            return Method()
        case "kn-noising" if counts is not None:
            return Noising(kneser_ney_noise(bigram, counts, settings.gamma), "both", generator)
        case "unigram-noising" if counts is not None:
            return Noising(unigram_noise(counts, settings.gamma), "context", generator)
        case "soft-noising":
            return Softened(bigram, settings.gamma)
        case "label-smoothing":
            return Softened(None, settings.gamma)
        case "reverse-kd":
            return ReverseKD(bigram)
        case "imm-exact":
            return Exact(bigram, windows, model, settings, generator)
        case "imm-sampled" if settings.every == 1:
            return Sampled(bigram, None, windows, model, settings, generator)
        case "imm-sampled" if counts is not None:
            noise = kneser_ney_noise(bigram, counts, settings.gamma)
            return Sampled(bigram, noise, windows, model, settings, generator)
        case "imm-serialized":
            return Serialized(bigram, windows, model, settings)
        case "imm-streaming":
            return Streaming(bigram, settings)
    raise ValueError(f"there is no method {settings.method!r}")


def check_counts(settings: Settings, texts: Texts) -> None:
    """Refuses noising by frequency where only the bigram is there."""
    noises = settings.method in ("kn-noising", "unigram-noising")
    if texts.counts is None and (noises or (settings.method == "imm-sampled" and settings.every > 1)):
        otherwise = "" if noises else ", or match on every batch (every 1)"
        raise ValueError(
            f"{settings.method} needs the counts of words: give the bigram's text instead of the bigram{otherwise}"
        )
