"""Where data sets are looked for. Nothing is downloaded."""

import os
from pathlib import Path

HOW_TO_GET = {
    "ptb": "Mikolov's Penn Treebank as ptb.train.txt, ptb.valid.txt and ptb.test.txt (the text is the LDC's)",
    "wikitext-2": "WikiText-2, word level, as train.txt, valid.txt and test.txt (CC BY-SA)",
    "glue": "CoLA, MRPC, RTE and QNLI of GLUE as folders with train.tsv and dev.tsv",
    "tabular": "adult.csv.gz (UCI Adult, one-hot), credit_data.csv and fair.csv",
}


def data_folder() -> Path:
    """``IMM_DATA``; unset, ``../shared/data`` from the repository's root if there, else the user's cache folder."""
    given = os.environ.get("IMM_DATA")
    if given:
        return Path(given)
    root = Path(__file__).parents[3]
    shared = root.parent / "shared" / "data"
    if (root / "pyproject.toml").exists() and shared.is_dir():
        return shared
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "imm"


def data_file(name: str) -> Path:
    """The file ``name``, such as ``ptb/ptb.train.txt``, in the :func:`data_folder`; an error says how one gets it."""
    path = data_folder() / name
    if not path.exists():
        what = HOW_TO_GET.get(name.partition("/")[0], "the data set")
        raise FileNotFoundError(
            f"{name} was looked for in {data_folder()} and is not there; put {what} there,"
            f" or set IMM_DATA to a folder that has it"
        )
    return path
