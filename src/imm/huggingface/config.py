"""The settings of a Hugging Face training run with IMM."""

import math
from dataclasses import dataclass, field

from transformers import TrainingArguments

from imm.validation import check_count, check_not_negative

MATCHINGS = ("streaming", "sampled", "exact")


@dataclass
class IMMConfig(TrainingArguments):
    """The arguments of :class:`transformers.TrainingArguments`, and these.

    Args:
        lam: λ of ``loss + λ · IMM``   (Eq. main-objective). The paper has 0.2 for BERT.
        matching: how IMM is estimated. ``streaming``: by a running mean of predictions, for causal models without any
            further pass. ``sampled``: by k contexts drawn from the training data, in passes of their own whose gradient
            is clipped apart, as in the paper. ``exact``: by all contexts of the training data; for small ones.
        n_contexts: k (sampled). The paper has 5 for BERT.
        positions: how many places of each row are matched in passes of their own (all but streaming with causal
            models); 0 for all.
        memory: K, in predictions (streaming).
        lifetime: τ, in batches (streaming).
        table_mb: how much memory the running means may take (streaming); 0 for half of what parameters, their gradients
            and Adam's moments take, at least 64 MB.
        rows_at_once: how many rows of probabilities over the vocabulary are held at once, and how many contexts are run
            together; 0 for 32 of the first, and of the second as many as fit where the batch fits, at most 32. Changes
            memory and speed, not what is computed.
    """

    lam: float = field(default=0.2, metadata={"help": "λ of loss + λ · IMM."})
    matching: str = field(default="streaming", metadata={"help": f"One of {', '.join(MATCHINGS)}."})
    n_contexts: int = field(default=5, metadata={"help": "k, the contexts drawn for each place (sampled)."})
    positions: int = field(default=8, metadata={"help": "Places of each row matched in passes of their own; 0: all."})
    memory: float = field(default=1000.0, metadata={"help": "K, in predictions (streaming)."})
    lifetime: float = field(default=30.0, metadata={"help": "τ, in batches (streaming)."})
    table_mb: int = field(default=0, metadata={"help": "MB of the running means (streaming); 0: as fits."})
    rows_at_once: int = field(
        default=0, metadata={"help": "Rows of probabilities, or contexts, held at once; 0: as fits."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_negative(self.lam, "lam")
        if self.matching not in MATCHINGS:
            raise ValueError(f"matching must be one of {', '.join(MATCHINGS)}, got {self.matching!r}")
        for name, least in (("n_contexts", 1), ("positions", 0), ("table_mb", 0), ("rows_at_once", 0)):
            check_count(getattr(self, name), name, least)
        for name in ("memory", "lifetime"):
            if getattr(self, name) != math.inf:
                check_not_negative(getattr(self, name), name)
        if self.matching == "sampled" and self.fp16:
            raise ValueError("sampled matching takes its gradient without a loss scaler: use bf16, not fp16")
