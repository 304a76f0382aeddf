"""Every figure in the tables of docs/results/glue.md and lstm.md comes from a committed result."""

import json
import math
from pathlib import Path

ROOT = Path(__file__).parents[2]
GLUE, LSTM = ((ROOT / "docs" / "results" / f"{name}.md").read_text() for name in ("glue", "lstm"))


def rows(name):
    return json.loads((ROOT / "results" / name / "result.json").read_text())["rows"]


def table(header, page):
    """The rows of the table with this header line, cell by cell."""
    lines = page.split(f"{header}\n", 1)[1].splitlines()[1:]
    end = next(i for i, line in enumerate(lines) if not line.strip().startswith("|"))
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines[:end]]


def test_a_small_gpt2_on_little_text():
    found = {(round(row["percent"]), row["method"]): row for row in rows("lm-low-data") if row["split"] == "test"}
    methods = ("none", "reverse-kd", "imm-streaming", "kneser-ney", "interpolation")
    kinds = {"reverse-kd": "λ =", "imm-streaming": "λ =", "interpolation": "share"}
    shown = table("| % of the text | none | reverse-kd | imm-streaming | the bigram | interpolation |", GLUE)
    assert len(shown) == 3
    for percent, *cells in shown:
        for method, cell in zip(methods, cells, strict=True):
            row = found[int(percent), method]
            kind = f" ({kinds[method]} {row['strength']:g})" if method in kinds else ""
            assert cell == f"{row['mean']:.0f}{kind}"


def test_glue():
    result = json.loads((ROOT / "results" / "bert-glue" / "result.json").read_text())
    methods = ("none", "mlm", "imm-sampled")
    ours, paper = ({(row["task"], row["method"]): row for row in result[of]} for of in ("rows", "paper"))
    shown = table("| task | none | mlm | imm-sampled | paper: none, mlm, imm-sampled |", GLUE)
    assert {row[0] for row in shown} == set(result["settings"]["rows"])
    for task, *cells, printed in shown:
        rows = [ours[task, method] for method in methods]
        assert cells == [f"{row['mean']:.1f} ± {row['deviation']:.1f}" for row in rows]
        assert printed == ", ".join(f"{paper[task, method]['mean']:.1f}" for method in methods)


def test_one_cell_of_the_language_studies():
    cell = {"percent": 10, "width": 200, "split": "test"}
    found = {(row["method"], row["restart"]): row for row in rows("lstm-regimes") if cell.items() <= row.items()}
    shown = table("| method | strength | test | gain, nats a word |", LSTM)
    assert {method for method, *_ in shown} | {"kneser-ney"} == {method for method, _ in found}
    for method, strength, value, gain in shown:
        row = found[method, True]
        assert (strength, value) == (f"{row['strength']:g}", f"{row['mean']:.1f}")
        assert gain == (f"{row['gain']:.3f} ± {row['gain_error']:.3f}" if "gain" in row else "")
    said, plain = " ".join(LSTM.split()), found["none", False]
    mixed = plain["induced"] / math.exp(plain["room"])
    told = "Kneser-Ney itself is at {:.1f}, and the bigram that plain training induces at {:.1f};"
    told += " mixed, the two are at {:.1f}"
    assert told.format(found["kneser-ney", False]["mean"], plain["induced"], mixed) in said
    assert f"brings the induced one to {found['imm-streaming', True]['induced']:.0f}" in said
