"""What every full model answers, and how one is made and kept."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from imm.files import check_file, first_line, whole_folder
from imm.language.corpus import Vocabulary
from imm.language.settings import Settings

State = tuple[Tensor, ...]
"""What a model carries from one window of text to the next; each tensor has the batch in its second dimension."""


class LanguageModel(nn.Module, ABC):
    """Q: the next word's distribution given all words before.

    Args:
        n_words: how many words there are.
        settings: of which the shape is used.
    """

    def __init__(self, n_words: int, settings: Settings) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, settings.width)
        self.output = nn.Linear(settings.width, n_words)
        if settings.tied:
            self.output.weight = self.embedding.weight
        self.dropout = nn.Dropout(settings.dropout)

    def reset_parameters(self, scale: float) -> None:
        """Uniform in ± ``scale``, as in the code that the paper builds on; scales of a layer norm stay one."""
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.uniform_(parameter, -scale, scale)

    @abstractmethod
    def initial_state(self, batch_size: int) -> State:
        """Before the first word."""

    @abstractmethod
    def hidden(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Reads a window: ``[L, batch]`` tokens to ``[L, batch, width]``, and the state after it, detached."""

    def log_q(self, hidden: Tensor) -> Tensor:
        """``log Q(· | x)``, ``[n, words]``, from rows of :meth:`hidden`, ``[n, width]``."""
        return torch.log_softmax(self.output(self.dropout(hidden)), -1)

    def forward(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """A window: ``[L, batch]`` tokens to ``[L · batch, words]`` log-probabilities, and the state after it."""
        hidden, state = self.hidden(tokens, state)
        return self.log_q(hidden.flatten(0, 1)), state


def build(n_words: int, settings: Settings) -> LanguageModel:
    """A new model with random parameters."""
    from imm.language.lstm import LSTM
    from imm.language.transformer import Transformer

    model = LSTM(n_words, settings) if settings.model == "lstm" else Transformer(n_words, settings)
    model.reset_parameters(settings.init)
    return model


def shape_only(n_words: int, settings: Settings) -> LanguageModel:
    """What :func:`build` would make, without memory for its numbers."""
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
