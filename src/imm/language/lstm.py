"""The recurrent full model."""

from torch import Tensor, nn

from imm.language.model import LanguageModel, State
from imm.language.settings import Settings


class LSTM(LanguageModel):
    """Layers of LSTM cells with dropout on what goes up, not on what goes on: the topology of the paper's model."""

    def __init__(self, n_words: int, settings: Settings) -> None:
        super().__init__(n_words, settings)
        between = settings.dropout if settings.layers > 1 else 0.0
        self.cells = nn.LSTM(settings.width, settings.width, settings.layers, dropout=between)

    def reset_parameters(self, scale: float) -> None:
        """Uniform weights; of the biases only the forget gate's is not zero: it is one."""
        super().reset_parameters(scale)
        width = self.cells.hidden_size
        nn.init.zeros_(self.output.bias)
        for name, bias in self.cells.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(bias)
            if name.startswith("bias_ih"):
                nn.init.ones_(bias[width : 2 * width])

    def initial_state(self, batch_size: int) -> State:
        """Zeros: the hidden states and the cells, ``[layers, batch, width]`` each."""
        shape = self.cells.num_layers, batch_size, self.cells.hidden_size
        return self.output.weight.new_zeros(shape), self.output.weight.new_zeros(shape)

    def hidden(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """See the base class."""
        hidden, (h, c) = self.cells(self.dropout(self.embedding(tokens)), state)
        return hidden, (h.detach(), c.detach())
