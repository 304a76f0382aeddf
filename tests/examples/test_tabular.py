"""Every example of tables runs and says what it gained."""

import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "tabular").glob("*.py"))
NEEDS = {path.stem: ("onnxruntime", "skl2onnx") if path.stem == "onnx_file" else ("pandas",) for path in EXAMPLES}


def test_there_is_one_for_each_way_the_old_model_comes():
    assert {path.stem for path in EXAMPLES} == {
        *("fitted_estimator", "callable_model", "onnx_file", "column_of_scores", "old_data", "no_old_model")
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, capsys):
    missing = [name for name in NEEDS.get(path.stem, ()) if find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    runpy.run_path(str(path), run_name="__main__")
    said = capsys.readouterr().out
    assert len(re.findall(r"^(?:log-loss|root of the mean squared error) \d+\.\d+  \S", said, re.M)) >= 2
    assert "# %%" in path.read_text()
    assert len(path.read_text().splitlines()) < 60
