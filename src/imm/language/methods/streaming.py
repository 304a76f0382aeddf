"""IMM with a running induced bigram, which the primary pass feeds."""

from torch import Tensor

from imm.language.methods.base import Matched, Step
from imm.language.methods.induced_table import table
from imm.language.settings import Settings
from imm.ngram import Ngram


class Streaming(Matched):
    """Cross-entropy + λ · IMM with a running induced bigram, which the primary pass feeds."""

    def __init__(self, bigram: Ngram, settings: Settings) -> None:
        super().__init__(bigram)
        self.matching = table(len(bigram.classes), settings.table_mb, settings.memory, settings.lifetime)

    def match(self, log_q: Tensor, step: Step) -> Tensor:
        """See the base class."""
        matching: Tensor = self.matching(log_q, step.batch.short, self.bigram.probabilities)
        return matching
