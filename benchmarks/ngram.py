"""What n-grams cost: ``python -m benchmarks.ngram``, or with ``--json`` a flat object, name to figure.

* ``fit``: the bigram of the Penn Treebank from tokens, against NLTK's ``KneserNeyInterpolated.fit`` (which only counts;
  the rest of its work it does when asked).
* ``rows``: the whole next-word distribution of 1,000 different contexts that occur in the validation text, against the
  ``kenlm`` package, which scores one word after the other. That is timed on a few contexts and scaled to 1,000. Both
  answer from the same model: kenlm reads the ARPA file that we wrote.
* ``file``: from the Penn Treebank's file to a model in KenLM's convention, against its ``lmplz`` where that is
  installed.
* ``text``: a drawn text of 50 million tokens, from the file to the model; see :mod:`benchmarks.large_text`.

Without the Penn Treebank (IMM_DATA) a drawn stream of the same length stands in. One thread. What needs a package that
is not installed (``pip install '.[bench]'``), and ``lmplz``, is left out, with a word.
"""

import importlib.util
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from benchmarks import large_text, printing
from benchmarks.problem import tokens as drawn
from benchmarks.speed import seconds
from imm.experiments.data import data_file, data_folder
from imm.language import Vocabulary, encode, fit_ngram
from imm.ngram import Ngram, save
from imm.ngram.arpa import write_arpa

BOUNDS = {
    "fit_nltk_over_ours": 200.0,
    "rows_order2_kenlm_over_ours": 300.0,
    "rows_order3_kenlm_over_ours": 100.0,
    "file_order2_lmplz_over_ours": 1.2,
    "file_order3_lmplz_over_ours": 1.2,
}
"""Figures that must be at least this."""

ROWS, KENLM_ROWS = 1000, 20

Progress = Callable[[str], None]
Tokens = NDArray[np.int64]


def corpus(say: Progress) -> tuple[list[str], Tokens, Tokens]:
    """Words, with ``</s>``, ``<s>`` and ``<unk>`` among them, and the tokens of training and validation text."""
    try:
        train, valid = data_file("ptb/ptb.train.txt"), data_file("ptb/ptb.valid.txt")
    except FileNotFoundError as missing:
        say(f"{missing}; a drawn stream stands in")
        words = ["<unk>", "</s>", "<s>", *(f"w{i}" for i in range(3, 10_003))]
        stream = drawn(1_000_000).numpy() + 3
        stream[::22] = 1
        return words, stream[:930_000], stream[930_000:]
    words = [str(word) for word in fit_ngram(train, 2, "sentence").classes]
    vocabulary = Vocabulary(words, "sentence")
    return words, *(np.concatenate([piece for piece, _ in encode(path, vocabulary)]) for path in (train, valid))


def median(call: Callable[[], object], rounds: int = 15) -> float:
    call()  # warm
    return statistics.median(seconds(call) for _ in range(rounds))


def fit(words: list[str], train: Tokens, progress: Progress, say: Progress) -> dict[str, float]:
    progress("fit: ours")
    ours = median(lambda: Ngram.fit(train, len(words), 2))
    figures = {"fit_ms": 1e3 * ours}
    if importlib.util.find_spec("nltk") is None:
        say("nltk is not installed: fit is not compared")
        return figures
    from nltk.lm import KneserNeyInterpolated
    from nltk.lm import Vocabulary as NltkVocabulary
    from nltk.util import everygrams

    progress("fit: NLTK")
    text = [words[token] for token in train]
    model = KneserNeyInterpolated(2, vocabulary=NltkVocabulary(text))
    theirs = seconds(lambda: model.fit([everygrams(text, max_len=2)]))
    return figures | {"fit_nltk_s": theirs, "fit_nltk_over_ours": theirs / ours}


def rows(
    words: list[str], train: Tokens, valid: Tokens, order: int, progress: Progress, say: Progress
) -> dict[str, float]:
    progress(f"rows: order {order}, ours")
    model = Ngram.fit(train, words, order, "sentence", eos=1, bos=2, unk=0)
    seen = np.lib.stride_tricks.sliding_window_view(valid, order - 1)
    seen = seen[(seen[:, :-1] != 1).all(1)]
    rng = np.random.default_rng(0)
    short = rng.permutation(np.unique(seen, axis=0))[:ROWS]
    as_they_come = seen[:ROWS]
    name = f"rows_order{order}"
    ours = median(lambda: model.probabilities(short))
    figures = {
        f"{name}_ms": 1e3 * ours,
        f"{name}_checked_ms": 1e3 * median(lambda: model(short)),
        f"{name}_as_they_come_ms": 1e3 * median(lambda: model.probabilities(as_they_come)),
    }
    if importlib.util.find_spec("kenlm") is None:
        say("kenlm is not installed: rows are not compared")
        return figures
    progress(f"rows: order {order}, kenlm")
    theirs = kenlm_rows(model, words, short[:KENLM_ROWS]) * ROWS / KENLM_ROWS
    return figures | {f"{name}_kenlm_s": theirs, f"{name}_kenlm_over_ours": theirs / ours}


def kenlm_rows(model: Ngram, words: list[str], short: Tokens) -> float:
    """Seconds for these rows; checks that they are the same as ours."""
    import kenlm

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.arpa"
        write_arpa(model, path)
        theirs = kenlm.Model(str(path))
    out = []

    def score() -> None:
        end = kenlm.State()
        for context in short:
            state = kenlm.State()
            theirs.NullContextWrite(state)
            for word in context:
                after = kenlm.State()
                theirs.BaseScore(state, words[word], after)
                state = after
            base_score = theirs.BaseScore
            out.append([base_score(state, word, end) for word in words])

    took = seconds(score)
    predicted = [place for place, word in enumerate(words) if word not in ("<s>", "<unk>")]
    log10 = torch.tensor(out)[:, predicted]
    torch.testing.assert_close(log10, model(short).log10()[:, predicted], rtol=0, atol=2e-6)
    return took


def from_file(order: int, progress: Progress) -> dict[str, float]:
    """From text to a model, in a folder; theirs is an ARPA file."""
    path, name = data_file("ptb/ptb.train.txt"), f"file_order{order}"
    with tempfile.TemporaryDirectory() as folder:
        progress(f"file: order {order}, ours")
        ours = median(lambda: save(fit_ngram(path, order, "sentence"), Path(folder) / "ours"), rounds=5)
        progress(f"file: order {order}, lmplz")
        theirs_at = str(Path(folder) / "theirs.arpa")
        # it refuses the text's <unk> unless told
        command = ["lmplz", "--skip_symbols", "-o", str(order), "--text", str(path), "--arpa", theirs_at]
        theirs = median(lambda: subprocess.run(command, check=True, capture_output=True), rounds=5)
    return {f"{name}_ms": 1e3 * ours, f"{name}_lmplz_ms": 1e3 * theirs, f"{name}_lmplz_over_ours": theirs / ours}


def measure(progress: Progress, say: Progress, millions: int) -> dict[str, float]:
    torch.set_num_threads(1)
    words, train, valid = corpus(say)
    figures = fit(words, train, progress, say)
    for order in (2, 3):
        figures |= rows(words, train, valid, order, progress, say)
    if shutil.which("lmplz") is None or not (data_folder() / "ptb").is_dir():
        say("lmplz is not installed, or the Penn Treebank is not there: file to model is not compared")
    else:
        for order in (2, 3):
            figures |= from_file(order, progress)
    if millions:
        progress(f"text of {millions} million tokens")
        figures |= large_text.measure(millions, 2)
    return figures


def main() -> None:
    parser = printing.options(__doc__)
    parser.add_argument("--millions", type=int, default=50, help="tokens of the large text; 0 leaves it out")
    given = parser.parse_args()
    console = Console(stderr=True)
    with console.status("starting") as status:
        figures = measure(status.update, console.print, given.millions)
    printing.show("n-grams", figures, given.json, at_least=BOUNDS)


if __name__ == "__main__":
    main()
