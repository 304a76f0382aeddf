"""Restricted models over a model's own tokens: n-grams, ARPA files, and another model that sees few tokens."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from imm.huggingface.forward import head
from imm.huggingface.model_kinds import is_causal
from imm.language.ngram_files import Perplexity
from imm.language.text_file import blocks
from imm.ngram import Counter, Ngram, evaluate
from imm.ngram.arpa import read_arpa
from imm.progress import Progress
from imm.targets import Target
from imm.validation import check_count


def tokens_of(tokenizer: Any, n_words: int | None = None) -> list[str]:
    """The tokens in the order of their numbers.

    Args:
        tokenizer: of a model.
        n_words: how many the model predicts, which may be more than the tokenizer has; those get names of their own.
    """
    names = {number: token for token, number in tokenizer.get_vocab().items()}
    largest = max(names, default=-1)
    size = largest + 1 if n_words is None else n_words
    if largest >= size:
        raise ValueError(f"the tokenizer has tokens up to number {largest}, and the model predicts {size} words")
    return [names.get(number, f"<no token {number}>") for number in range(size)]


def fit_token_ngram(
    rows: Iterable[Any], tokenizer: Any, order: int = 2, n_words: int | None = None, zero_counts: str = "one"
) -> Ngram:
    """A Kneser-Ney n-gram of tokenised rows, which follow each other as one stream.

    Args:
        rows: token numbers, a sequence each; or rows of a dataset with ``input_ids``, and ``attention_mask`` where
            some are padding, which is not counted.
        tokenizer: whose numbers they are.
        order: of the n-grams.
        n_words: how many words the model predicts, if they are more than the tokenizer's; those have probability 0.
        zero_counts: see :func:`imm.ngram.smoothing.smooth`.
    """
    counter = Counter(order, eos=tokenizer.eos_token_id)
    for row in rows:
        counter.add(_real_tokens(row))
    words = tokens_of(tokenizer, n_words)
    model = Ngram.from_counts(counter.counts(), words, unk=_unknown(tokenizer), zero_counts=zero_counts)
    real = np.zeros(len(words), bool)
    real[list(tokenizer.get_vocab().values())] = True
    return model if real.all() else Ngram(model.trie.without(~real), words, model.about)


def _unknown(tokenizer: Any) -> int | None:
    """The token for unknown words; None where it is another's too, as the end of text of GPT-2."""
    unk: int | None = tokenizer.unk_token_id
    return None if unk in (tokenizer.eos_token_id, tokenizer.bos_token_id) else unk


def _real_tokens(row: Any) -> NDArray[np.int64]:
    if not isinstance(row, Mapping):
        return np.asarray(row, np.int64)
    tokens = np.asarray(row["input_ids"], np.int64)
    mask = row.get("attention_mask")
    return tokens if mask is None else tokens[np.asarray(mask, bool)]


def token_rows(path: Path | str, tokenizer: Any, progress: Progress | None = None) -> Iterator[NDArray[np.int64]]:
    """The tokens of a text file, some lines at a time.

    Each line that is not empty is tokenised by itself, with the special tokens that the tokenizer puts around a text;
    if it puts none, the end-of-text token stands after each line.
    """
    empty = tokenizer("")["input_ids"]
    after = [tokenizer.eos_token_id] if not empty and tokenizer.eos_token_id is not None else []
    rest = b""
    for block in blocks(Path(path), progress):
        *lines, rest = (rest + block).split(b"\n")
        texts = [text for line in lines if (text := line.decode().strip())]
        if texts:
            encoded = tokenizer(texts, return_attention_mask=False, verbose=False)["input_ids"]
            yield np.concatenate([np.array([*row, *after], np.int64) for row in encoded])


def read_token_arpa(path: Path | str, tokenizer: Any, n_words: int | None = None) -> Ngram:
    """The n-gram of an ARPA file whose words are a tokenizer's tokens, numbered as there.

    ``<s>``, ``</s>`` and ``<unk>`` are the tokenizer's own tokens for these, if it has them. Without one for ``<unk>``
    that word is left out, and the others' last back-off adds up to one. Tokens that the file lacks have probability 0.

    Args:
        path: of the file, ``.gz`` too.
        tokenizer: of the model.
        n_words: how many words the model predicts, if they are more than the tokenizer's.
    """
    given = read_arpa(path)
    tokens = tokens_of(tokenizer, n_words)
    numbers = {token: number for number, token in enumerate(tokens)}
    end = _first(tokenizer, "eos_token_id", "sep_token_id")
    roles = {"<s>": _first(tokenizer, "bos_token_id", "cls_token_id"), "</s>": end}
    # <s> is never predicted and nothing follows </s>: one token can be both. But not <unk> too.
    roles["<unk>"] = _unknown(tokenizer)
    numbers = {word: number for word, number in roles.items() if number is not None} | numbers
    lacking = [word for word in given.classes if word not in numbers and word not in ("<s>", "<unk>")]
    if lacking:
        raise ValueError(
            f"{path} has {len(lacking):,} words that are no tokens of {type(tokenizer).__name__}, {lacking[0]!r} the"
            f" first of them: its words must be the tokenizer's tokens"
        )
    return given.renamed([numbers.get(str(word), -1) for word in given.classes], tokens)


def _first(tokenizer: Any, *names: str) -> int | None:
    found: int | None = next((n for name in names if (n := getattr(tokenizer, name)) is not None), None)
    return found


class ShortContextModel(Target):
    """A causal language model that is given the last ``length`` tokens only: it informs a model that sees more.

    Args:
        model: with the same tokens as the one that is trained.
        length: m, how many tokens it is given.
        tokenizer: to tell that the tokens are the same; without it only their number is checked.
        rows_at_once: how many short contexts are run together.
    """

    def __init__(self, model: Any, length: int, tokenizer: Any = None, rows_at_once: int = 64) -> None:
        kind, most = type(model).__name__, getattr(model.config, "max_position_embeddings", None)
        if not is_causal(model):
            raise ValueError(f"{kind} predicts masked words: a short-context model must be causal")
        if most is not None and 0 < most < length:
            raise ValueError(f"{kind} reads at most {most} tokens, and short contexts are to have {length}")
        n_words = model.get_output_embeddings().weight.shape[0]
        super().__init__(range(n_words) if tokenizer is None else tokens_of(tokenizer, n_words))
        self.length = check_count(length, "length")
        self.model = model.eval().requires_grad_(False)
        self._at_once = rows_at_once

    @torch.no_grad()
    def probabilities(self, short: Any) -> Tensor:
        """P̂(· | short) of ``[n, length]`` tokens."""
        tokens = torch.as_tensor(short).to(self.model.device)
        tokens = tokens[:, None] if tokens.ndim == 1 else tokens
        if tokens.shape[1] != self.length:
            raise ValueError(f"short must be [n, {self.length}], got shape {tuple(tokens.shape)}")
        parts = []
        for some in tokens.split(self._at_once):
            last = self.model.base_model(input_ids=some).last_hidden_state[:, -1]
            parts.append(torch.softmax(head(self.model, last).float(), -1))
        return torch.cat(parts)


def token_perplexity(model: Ngram, path: Path | str, tokenizer: Any, progress: Progress | None = None) -> Perplexity:
    """How well an n-gram of tokens predicts a text file, tokenised as by :func:`token_rows`."""
    check_tokens(model, tokenizer)
    unknown, unk = 0, _unknown(tokenizer)

    def pieces() -> Iterator[NDArray[np.int64]]:
        nonlocal unknown
        for tokens in token_rows(path, tokenizer, progress):
            unknown += 0 if unk is None else int((tokens == unk).sum())
            yield tokens

    return Perplexity(evaluate(model, pieces()), unknown)


def check_tokens(target: Target, tokenizer: Any) -> None:
    """Refuses a restricted model whose words are not the tokenizer's, or not in its order, and names the first."""
    kind = type(target).__name__
    for number, (ours, theirs) in enumerate(
        zip(target.classes, tokens_of(tokenizer, len(target.classes)), strict=True)
    ):
        if ours != theirs:
            raise ValueError(
                f"the target ({kind}) was made with another tokenizer: its word {number} is {ours!r}, and that of"
                f" {type(tokenizer).__name__} is {theirs!r}"
            )
