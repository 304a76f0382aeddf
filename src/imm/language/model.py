"""The paper's recurrent full model: how it is made, called and kept."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from imm.files import check_file, first_line, whole_folder
from imm.language.settings import Settings
from imm.language.vocabulary import Vocabulary

State = tuple[Tensor, Tensor]
"""Hidden states and cells, carried from one window of text to the next; the batch is the second dimension."""


class LanguageModel(nn.Module):
    """Q: the next word's distribution given all words before, by layers of LSTM cells.

    Dropout acts on what goes up, not on what goes on, as in the paper's model.

    Args:
        n_words: how many words there are.
        settings: of which the shape is used.
    """

    def __init__(self, n_words: int, settings: Settings) -> None:
        super().__init__()
        between = settings.dropout if settings.layers > 1 else 0.0
        self.embedding = nn.Embedding(n_words, settings.width)
        self.output = nn.Linear(settings.width, n_words)
        if settings.tied:
            self.output.weight = self.embedding.weight
        self.dropout = nn.Dropout(settings.dropout)
        self.cells = nn.LSTM(settings.width, settings.width, settings.layers, dropout=between)
        self.output_dtype: torch.dtype | None = None  # another one for the output layer's product

    def reset_parameters(self, scale: float) -> None:
        """Makes weights uniform in ± ``scale``, and biases zero but for the forget gate's, which is one."""
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.uniform_(parameter, -scale, scale)
        width = self.cells.hidden_size
        nn.init.zeros_(self.output.bias)
        for name, bias in self.cells.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(bias)
            if name.startswith("bias_ih"):
                nn.init.ones_(bias[width : 2 * width])

    def initial_state(self, batch_size: int) -> State:
        """Returns zeros: the hidden states and the cells, ``[layers, batch, width]`` each."""
        shape = self.cells.num_layers, batch_size, self.cells.hidden_size
        return self.output.weight.new_zeros(shape), self.output.weight.new_zeros(shape)

    def hidden(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Reads a window: ``[L, batch]`` tokens to ``[L, batch, width]``, and the state after it, detached."""
        hidden, (h, c) = self.cells(self.dropout(self.embedding(tokens)), state)
        return hidden, (h.detach(), c.detach())

    def log_q(self, hidden: Tensor) -> Tensor:
        """Returns ``log Q(· | x)``, ``[n, words]``, from rows of :meth:`hidden`, ``[n, width]``."""
        rows, weight, bias = self.dropout(hidden), self.output.weight, self.output.bias
        if self.output_dtype is None:
            return torch.log_softmax(nn.functional.linear(rows, weight, bias), -1)
        low = (each.to(self.output_dtype) for each in (rows, weight, bias))
        return torch.log_softmax(nn.functional.linear(*low).to(rows.dtype), -1)

    def forward(self, tokens: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Reads a window: ``[L, batch]`` tokens to ``[L · batch, words]`` log-probabilities, and the state after it.

        Without a state the window is read as the beginning of a text.
        """
        hidden, state = self.hidden(tokens, self.initial_state(tokens.shape[1]) if state is None else state)
        return self.log_q(hidden.flatten(0, 1)), state


def build(n_words: int, settings: Settings) -> LanguageModel:
    """Returns a new model with random parameters."""
    model = LanguageModel(n_words, settings)
    model.reset_parameters(settings.init)
    return model


def shape_only(n_words: int, settings: Settings) -> LanguageModel:
    """Returns what :func:`build` would make, without memory for its numbers."""
    with torch.device("meta"):
        return build(n_words, settings)


def save_model(model: LanguageModel, vocabulary: Vocabulary, settings: Settings, folder: Path) -> None:
    """Writes the parameters as safetensors and all else as JSON."""
    about = {"settings": settings.to_json(), "level": vocabulary.level, "words": vocabulary.words}
    with whole_folder(folder, "model.json") as new:
        tensors = {name: p.detach().contiguous() for name, p in model.named_parameters()}
        save_file(tensors, new / "model.safetensors")
        (new / "model.json").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")


def load_model(folder: Path | str) -> tuple[LanguageModel, Vocabulary, Settings]:
    """What :func:`save_model` wrote, in evaluation mode. Nothing that is read is run."""
    folder = Path(folder)
    path = folder / "model.json"
    if not path.exists():
        wrong = "holds no language model: there is no model.json" if folder.exists() else "does not exist"
        raise FileNotFoundError(f"{folder} {wrong}")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        settings = Settings.from_json(about["settings"])
        vocabulary = Vocabulary(_words(about["words"]), level=about["level"])
        model = build(len(vocabulary), settings)
        model.load_state_dict(load_parameters(folder, settings))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{folder} is not a whole language model: {' '.join(str(error).split())[:200]}") from None
    return model.eval(), vocabulary, settings


def _words(given: Sequence[str]) -> Sequence[str]:
    if not (isinstance(given, list) and all(isinstance(word, str) for word in given)):
        raise ValueError("words must be a list of strings")
    return given


def load_parameters(folder: Path, settings: Settings) -> dict[str, Tensor]:
    """A saved model's parameters; a shared one is kept once, under its first name."""
    path = folder / "model.safetensors"
    check_file(path)
    try:
        parameters = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged ({first_line(error)})") from None
    return parameters | ({"output.weight": parameters["embedding.weight"]} if settings.tied else {})
