"""IMM in a Hugging Face training run: a trainer, restricted models over a model's own tokens, and their mathematics."""

from imm.language.evaluation import evaluating
from imm.language.huggingface.config import IMMConfig
from imm.language.huggingface.head import head
from imm.language.huggingface.index import Index, log_q_at
from imm.language.huggingface.loading import load_model, load_tokenizer, model_words
from imm.language.huggingface.masked import MaskingCollator, TaskWithMaskedLM, masked_loss
from imm.language.huggingface.passes import exact_loss, sampled_backward
from imm.language.huggingface.places import Places, Rows, choose, find_places
from imm.language.huggingface.reading import Causal, Masked
from imm.language.huggingface.running import Codes, streaming_loss
from imm.language.huggingface.stream import cut, log_likelihoods
from imm.language.huggingface.targets import (
    ShortContextModel,
    fit_token_ngram,
    read_token_arpa,
    token_perplexity,
    token_rows,
    tokens_of,
)
from imm.language.huggingface.together import Together
from imm.language.huggingface.trainer import IMMTrainer

__all__ = [
    "Causal",
    "Codes",
    "IMMConfig",
    "IMMTrainer",
    "Index",
    "Masked",
    "MaskingCollator",
    "Places",
    "Rows",
    "ShortContextModel",
    "TaskWithMaskedLM",
    "Together",
    "choose",
    "cut",
    "evaluating",
    "exact_loss",
    "find_places",
    "fit_token_ngram",
    "head",
    "load_model",
    "load_tokenizer",
    "log_likelihoods",
    "log_q_at",
    "masked_loss",
    "model_words",
    "read_token_arpa",
    "sampled_backward",
    "streaming_loss",
    "token_perplexity",
    "token_rows",
    "tokens_of",
]
