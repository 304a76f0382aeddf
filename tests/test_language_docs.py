"""Every figure in the tables of docs/lstm.md and docs/glue.md comes from a committed result."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LSTM, GLUE = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("lstm", "glue"))


def rows(name):
    return json.loads((ROOT / "results" / name / "result.json").read_text())["rows"]


def table(header, page=LSTM):
    """The rows of the table with this header line, cell by cell."""
    lines = page.split(f"{header}\n", 1)[1].splitlines()[1:]
    end = next(i for i, line in enumerate(lines) if not line.strip().startswith("|"))
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines[:end]]


def test_strengths():
    best = {}
    for row in sorted(rows("lstm-strength"), key=lambda row: -row["mean"]):
        best[row["method"]] = row
    header = "| none | kn-noising | imm-sampled | reverse-kd | imm-streaming |"
    shown = table(header)[0]
    for method, cell in zip(re.findall(r"[a-z-]+", header), shown, strict=True):
        value, strength = best[method]["mean"], best[method]["strength"]
        symbol = "γ" if method.endswith("noising") else "λ"
        assert cell == f"{value:.1f}" + (f" ({symbol} = {strength:g})" if method != "none" else "")


def test_variants():
    found = {row["variant"]: f"{row['value']:.1f}" for row in rows("lstm-variants")}
    assert dict(table("  | memory | valid |")) == found


def test_positions():
    keys = ("every", "positions", "n_contexts", "strength", "learning_rate", "clip")
    found = [[*(f"{row[key]:g}" for key in keys), f"{row['value']:.1f}"] for row in rows("lstm-positions")]
    assert table("  | j | positions | k | λ | learning rate | clip | valid |") == found


def test_little_text():
    found = {(round(row["percent"]), row["method"]): row["mean"] for row in rows("lstm-data") if row["split"] == "test"}
    methods = ("none", "reverse-kd", "imm-sampled", "imm-streaming", "kneser-ney", "interpolation")
    header = "| % of the text | none | reverse-kd | imm-sampled | imm-streaming | the bigram | interpolation |"
    assert len(table(header)) == 3
    for percent, *cells in table(header):
        assert cells == [f"{found[int(percent), method]:.1f}" for method in methods]


@pytest.mark.parametrize(
    ("name", "after"),
    [("lstm-perplexity", "the whole text\n"), ("lstm-epochs", "Ten epochs\n"), ("lstm-width", "A width of 650\n")],
)
def test_whole_text(name, after):
    result = json.loads((ROOT / "results" / name / "result.json").read_text())
    found = {(row["method"], row["split"]): row for row in result["rows"] if "epoch" not in row}
    paper = {row["method"]: row["value"] for row in result["paper"] if row["split"] == "test"}
    head = "| method | λ (γ) | valid | test | against none | test, mean ± deviation | against none"
    shown = table(head + " | paper, test | against none |", LSTM.split(after, 1)[1])
    assert [row[0] for row in shown] == list(result["settings"]["tries"])
    for method, strength, valid, test, gap, mean, mean_gap, printed, paper_gap in shown:
        ours, alone = (found[each, "test"] for each in (method, "none"))
        chosen = f"{ours['strength']:g}" + (" to 0" if ours["falls"] else "")
        assert strength == ("" if method == "none" else chosen)
        assert (valid, test) == (f"{found[method, 'valid']['value']:.1f}", f"{ours['value']:.1f}")
        several = ours["runs"] > 1
        assert mean == (f"{ours['mean_of_restarts']:.1f} ± {ours['deviation']:.1f}" if several else "")
        for shown_gap, key, known in ((gap, "value", True), (mean_gap, "mean_of_restarts", several)):
            wanted = f"{100 * (ours[key] / alone[key] - 1):+.1f}%" if known and method != "none" else ""
            assert shown_gap == wanted
        assert printed == (f"{paper[method]:.1f}" if method in paper else "")
        has = method in paper and method != "none"
        assert paper_gap == (f"{100 * (paper[method] / paper['none'] - 1):+.1f}%" if has else "")


def test_width():
    gaps = {
        row["epoch"]: -row["against_none"]
        for row in rows("lstm-width")
        if row["method"] == "imm-streaming" and "epoch" in row
    }
    first, *others = (f"{gaps[epoch]:.1f}" for epoch in range(1, 5))
    assert f"streaming is {first}, {others[0]}, {others[1]} and {others[2]}% below none after" in LSTM


def test_tries():
    found = {row["method"]: row["tried"] for row in rows("lstm-perplexity") if row["split"] == "valid"}
    shown = dict(table("| method | each try and its valid perplexity |"))
    assert shown == {
        method: "; ".join(f"{name}: {value:.1f}" for name, value in tried.items()) for method, tried in found.items()
    }


def test_induced_bigrams():
    found = {(row["method"], row["split"]): row["value"] for row in rows("lstm-bigram")}
    shown = table("| | train | valid | test | paper (1,500 wide) |")
    assert {row[0] for row in shown} == {method for method, _ in found}
    for method, *cells, _ in shown:
        digits = 2 if method == "kneser-ney" else 1
        assert cells == [f"{found[method, split]:.{digits}f}" for split in ("train", "valid", "test")]


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
