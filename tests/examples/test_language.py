"""The examples of language models run, and IMM helps in them."""

import importlib
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")
EXAMPLES = Path(__file__).parents[2] / "examples" / "language"
NAMES = ["lm_pytorch", "lm_accelerate", "lm_lightning"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")  # Lightning's
@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs(name, monkeypatch):
    pytest.importorskip(name.removeprefix("lm_").replace("pytorch", "torch"))
    monkeypatch.syspath_prepend(EXAMPLES)
    for module in ("lm_text", name):
        monkeypatch.delitem(sys.modules, module, raising=False)
    without, with_imm = importlib.import_module(name).main(steps=12).values()
    assert with_imm < without


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 80
