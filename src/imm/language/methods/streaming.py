"""IMM with a running induced bigram, which the primary pass feeds."""

from torch import Tensor

from imm import matching
from imm.language.methods.base import Matched, Step
from imm.language.methods.induced_table import table_size
from imm.language.settings import Settings
from imm.ngram import Ngram


class Streaming(Matched):
    """Cross-entropy + λ · IMM with a running induced bigram, which the primary pass feeds."""

    def __init__(self, bigram: Ngram, settings: Settings) -> None:
        super().__init__(bigram)
        n_held, dtype = table_size(len(bigram.classes), settings.table_mb, min(settings.memory, settings.lifetime))
        self.matching = matching.Streaming(
            bigram, memory=settings.memory, lifetime=settings.lifetime, n_held=n_held, dtype=dtype
        )

    def match(self, log_q: Tensor, step: Step) -> Tensor:
        """See the base class."""
        risk: Tensor = self.matching(log_q, step.batch.short)
        return risk
