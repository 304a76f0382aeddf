"""What the README shows is true: its code runs, its numbers are those of committed results."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def result(name):
    return json.loads((ROOT / "results" / name / "result.json").read_text())


def table(heading):
    """The cells of the first table after a heading, without its header."""
    lines = README.split(f"### {heading}\n", 1)[1].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("*") for cell in line.strip("|").split("|")])
    return rows


def test_the_code_in_the_readme_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    exec(compile(code, "README.md", "exec"), {})


def test_fixed_lambda_table():
    found = result("logistic-fixed-lambda")
    rows = table("λ fixed at 1.5")
    assert len(rows) == len({row["n"] for row in found["rows"]})
    for n, *cells in rows:
        for method, cell in zip(("none", "noising", "imm"), cells, strict=True):
            key = {"method": method, "n": int(n)}
            ours, paper = (
                next(row["mean"] for row in source if key.items() <= row.items())
                for source in (found["rows"], found["paper"])
            )
            assert cell == f"{ours:.1f} ({paper:.1f})"


def test_accuracy_table():
    found = result("logistic-accuracy")["rows"]
    for n, *cells in table("λ by the paper's schedule"):
        for method, cell in zip(("none", "interpolation", "noising", "imm"), cells, strict=True):
            (mean,) = [row["mean"] for row in found if (row["method"], row["n"]) == (method, int(n)) and "mean" in row]
            assert cell == f"{mean:.1f}"
    (extra,) = [row["value"] for row in found if row["n"] == "average"]
    assert f"{extra:.0f}% more data" in README


def test_grid_table():
    found = result("grid-reward")
    for epochs, *cells in table("A policy for a partly observed world"):
        for method, cell in zip(("none", "imm"), cells, strict=True):
            key = {"method": method, "epochs": int(epochs)}
            ours, paper = (
                next(row["mean"] for row in source if key.items() <= row.items())
                for source in (found["rows"], found["paper"])
            )
            assert cell == f"{ours:.1f} ({paper:.1f})"


def test_cartpole_figures():
    means = {(row["method"], row["steps"]): row["mean"] for row in result("cartpole-velocities")["rows"]}
    with_imm, without = re.search(r"a return of (\d+)\s+with IMM and (\d+) without after 4,096 steps", README).groups()
    assert (with_imm, without) == (f"{means['imm', 4096]:.0f}", f"{means['none', 4096]:.0f}")


def test_demo_table():
    found = result("demo")["rows"]
    for method, *cells in table("The demo"):
        for quantity, form, cell in zip(("log-loss", "accuracy, %", "AUC"), (".3f", ".1f", ".3f"), cells, strict=True):
            (mean,) = [row["mean"] for row in found if (row["method"], row["quantity"]) == (method, quantity)]
            assert cell == format(mean, form)


def test_cost_table():
    figures = json.loads((ROOT / "results" / "benchmark-core.json").read_text())
    shown = [cell for _, cell in table("What it costs")]
    assert shown == [
        f"{figures['step_streaming_over_plain']:.2f}",
        f"{figures['step_sampled_k10_over_plain']:.0f}",
        f"{figures['memory_sampled_max_over_min']:.2f}",
        ", ".join(f"{figures[f'memory_autograd_over_sampled_k{k}']:.1f}" for k in (2, 8, 32)),
        f"{figures['multiset_build_10m_s_per_million']:.3f}",
    ]
    assert figures["step_streaming_over_plain"] <= 1.35
    assert figures["memory_sampled_max_over_min"] <= 1.15


@pytest.mark.parametrize("name", re.findall(r"\]\(((?!http)[^)#]+)\)", README))
def test_links_lead_somewhere(name):
    assert (ROOT / name).exists()
