"""IMM in a Hugging Face training run: a trainer, restricted models over a model's own tokens, and their mathematics."""

from imm.huggingface.config import IMMConfig
from imm.huggingface.context_index import Index, log_q_at
from imm.huggingface.distributed import Together
from imm.huggingface.forward import Causal, Masked, head
from imm.huggingface.masked_task import MaskingCollator, TaskWithMaskedLM, masked_loss
from imm.huggingface.model_files import load_model, load_tokenizer, model_words
from imm.huggingface.passes import exact_loss, sampled_backward
from imm.huggingface.positions import Places, Rows, choose, find_places
from imm.huggingface.streaming import Codes, streaming_loss
from imm.huggingface.targets import (
    ShortContextModel,
    fit_token_ngram,
    read_token_arpa,
    token_perplexity,
    token_rows,
    tokens_of,
)
from imm.huggingface.token_stream import cut, log_likelihoods
from imm.huggingface.trainer import IMMTrainer
from imm.language.evaluation import evaluating

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
