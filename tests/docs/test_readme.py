"""What the README shows is true: its code runs, its numbers are those of committed results."""

import json
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
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


def counts():
    """The study of rivals on tables, counted over cells, by full model, old model, sets and method."""
    rows = [row for row in result("tabular-rivals")["rows"] if "cells" in row]
    return {(row["model"], row["old"], row["data"], row["method"]): row for row in rows}


def test_rivals_table():
    found = counts()
    methods = ("imm", "imm-stacking", "reverse-kd", "interpolation", "stacking", "offset")
    shown = table("Tables: when it helps")
    assert len(shown) == len({key[:2] for key in found})
    for model, old, cells, *gains in shown:
        rows = [found[model, old, "all sets", method] for method in methods]
        assert int(cells) == rows[0]["cells"]
        assert gains == [f"{row['gain']:+.1f}% ({row['better']}/{row['worse']})" for row in rows]
    said = " ".join(README.split("### Tables: when it helps\n", 1)[1].split("###")[0].split())

    def leading(model, method, kind=None):
        row = found[model, "good", "all sets", method]
        return row[kind] if kind else row["best"] + row["tied"]

    free = "best_or_tied_of_free"
    kept, mixed = (
        [leading(model, name) for model in ("linear", "lightgbm")] for name in ("imm-stacking", "interpolation")
    )
    assert f"of all methods in {kept[0]} of 21 cells" in said
    assert f"with trees in {kept[1]} of 21; mixing both predictions (interpolation) in {mixed[0]} and none." in said
    assert mixed[1] == 0
    for model, words in (
        ("linear", "IMM is best or tied in {} of 21 cells, reverse KD in {};"),
        ("lightgbm", "which begin from the old model, IMM in {} of 21, reverse KD in {}."),
    ):
        assert words.format(leading(model, "imm", free), leading(model, "reverse-kd", free)) in said


def test_cost_of_language_models():
    figures = json.loads((ROOT / "results" / "benchmark-language.json").read_text())
    kinds = ("imm_streaming", "imm_serialized", "imm_sampled")
    assert [cell for _, cell in table("What language models cost")] == [
        ", ".join(f"{figures[f'step_{kind}']:.2f}" for kind in kinds),
        ", ".join(f"{figures[f'peak_{kind}_more_mb']:.0f}" for kind in kinds),
        f"{figures['fit_nltk_over_ours']:.0f}",
        ", ".join(f"{figures[f'rows_order{order}_kenlm_over_ours']:.0f}" for order in (2, 3)),
        f"{figures['text_50m_order2_seconds']:.0f}, {figures['text_50m_order2_peak_gb']:.1f}",
    ]


def test_cost_of_hugging_face_runs():
    figures = json.loads((ROOT / "results" / "benchmark-transformers.json").read_text())
    for what, digits, cells in zip(("step", "peak"), (1, 2), table("What Hugging Face runs cost"), strict=True):
        for model, cell in zip(("gpt2", "bert", "deep", "deep_checkpointed"), cells[1:], strict=True):
            ratios = [figures[f"{what}_{model}_{kind}_over_plain"] for kind in ("streaming", "sampled")]
            assert cell == ", ".join(f"{ratio:.{digits}f}" for ratio in ratios)
            assert what == "step" or max(ratios) <= 1.5


def test_cost_of_tables():
    figures = json.loads((ROOT / "results" / "benchmark-tabular.json").read_text())
    assert [cell for _, cell in table("What tables cost")] == [
        ", ".join(f"{figures[f'fit_over_logistic_{n}']:.1f}" for n in (300, 3000)),
        f"{figures['exact_over_neighbors_10000']:.0f}",
        f"{figures['neighbors_10000_gap']:.4f}",
        ", ".join(f"{figures[f'lightgbm_imm_over_plain_{n}']:.1f}" for n in (300, 3000)),
        ", ".join(f"{figures[f'million_{lam}_s']:.0f}" for lam in ("given", "auto")),
        ", ".join(f"{figures[f'million_{lam}_gb']:.1f}" for lam in ("given", "auto")),
    ]


def test_small_gpt2_table():
    rows = [row for row in result("lm-low-data")["rows"] if row["split"] == "test"]
    found = {(round(row["percent"]), row["method"]): row["mean"] for row in rows}
    methods = ("none", "reverse-kd", "imm-streaming", "kneser-ney", "interpolation")
    shown = table("A small GPT-2 on little text")
    assert [row[0] for row in shown] == ["1", "5", "25"]
    for percent, *cells in shown:
        assert cells == [f"{found[int(percent), method]:.0f}" for method in methods]
    assert min(methods, key=lambda method: found[25, method]) == "imm-streaming"


def test_glue_table():
    found = {(row["task"], row["method"]): row for row in result("bert-glue")["rows"]}
    shown = table("GLUE")
    assert {row[0] for row in shown} == {task for task, _ in found}
    for task, *cells in shown:
        rows = [found[task, method] for method in ("none", "mlm", "imm-sampled")]
        assert cells == [f"{row['mean']:.1f} ± {row['deviation']:.1f}" for row in rows]


RIVALS = (ROOT / "docs" / "results" / "tables.md").read_text()
LEAVE = ("imm", "reverse-kd", "interpolation")


def test_every_table_of_the_page_of_rivals():
    found, tables = counts(), re.findall(r"\| method \| gain \|.*\n\|[-|]+\n((?:\|.*\n)+)", RIVALS)
    kinds = [(model, old) for model in ("linear", "lightgbm") for old in ("good", "weak", "shifted", "wrong")]
    assert len(tables) == len(kinds)
    for (model, old), lines in zip(kinds, tables, strict=True):
        methods = []
        for line in lines.splitlines():
            method, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            every, seen, unseen = (
                found[model, old, sets, method] for sets in ("all sets", "sets the rule was made on", "other sets")
            )
            expected = [f"{every['gain']:+.1f}%", f"{every['better']} / {every['worse']}"]
            expected += [f"{row['best'] + row['tied']} of {row['cells']}" for row in (every, seen, unseen)]
            free = every.get("best_or_tied_of_free")
            assert cells == [*expected, "" if free is None else f"{free} of {every['cells']}"]
            methods.append(method)
        assert methods == [key[3] for key in found if key[:3] == (model, old, "all sets")]


def test_what_the_page_of_rivals_says():
    cells = {}
    for row in result("tabular-rivals")["rows"]:
        if "verdict" in row:
            cells.setdefault(tuple(row[key] for key in ("model", "old", "data", "n")), {})[row["method"]] = row
    good = {key: cell for key, cell in cells.items() if key[1] == "good"}
    honest = {"breast-cancer", "diabetes", "digits-odd"}

    def leads(name, model, sets):
        return sum(
            cell[name]["verdict"] != "behind" for key, cell in good.items() if key[0] == model and key[2] in sets
        )

    every = {key[2] for key in good}
    places = (("linear", every), ("linear", honest), ("lightgbm", every))
    here = [sum(key[0] == model and key[2] in sets for key in good) for model, sets in places]
    said = " ".join(RIVALS.split())
    kept, alone = (
        [f"{leads(name, *place)} of {n}" for place, n in zip(places, here, strict=True)]
        for name in ("imm-stacking", "imm")
    )
    together = leads("imm-stacking", *places[0]) + leads("imm-stacking", *places[2])
    assert "linear models {} ({} on the three honest sets), trees {}".format(*kept) in said
    assert f"together {together} of {len(good)}" in said
    own = [{name: row for name, row in cell.items() if name not in ("pooled", "imputed")} for cell in good.values()]
    best = [min(cell.values(), key=lambda row: row["mean"])["method"] == "imm-stacking" for cell in own]
    tied = [cell["imm-stacking"]["verdict"] != "behind" for cell in own]
    ahead = sum(map(max, best, tied))  # who is tied with the best of all is so with the best of some
    assert f"keeping it is best or tied in {ahead} of {len(good)} ({ahead / len(good):.0%})" in said
    assert "lets it go: {} ({}), and {} with trees".format(*alone) in said
    assert f"in any of the {len(cells)} cells" in RIVALS
    worse = {
        (key, name): cell[name]
        for key, cell in cells.items()
        for name in ("imm", "imm-stacking")
        if cell[name]["against_full_only"] == "worse"
    }
    assert Counter(name for _, name in worse) == {"imm": 7, "imm-stacking": 2}
    for row in worse.values():
        assert f"{-row['gain']:.2f} ± {row['gain_error']:.2f}%" in said
    wrong = [cell[name] for key, cell in cells.items() for name in LEAVE if key[1] == "wrong"]
    assert {row["against_full_only"] for row in wrong} == {"same"}
    found = counts()
    kept = [found["lightgbm", old, "all sets", "imm-stacking"]["gain"] for old in ("good", "weak", "shifted", "wrong")]
    assert "it is {:.1f}, {:.1f}, {:.1f} and, with a wrong one whose sign it learns, {:.1f}%".format(*kept) in said

    def by_size(model, sizes):
        gains = [[cell["imm"]["gain"] for key, cell in good.items() if (key[0], key[3]) == (model, n)] for n in sizes]
        return tuple(f"{sum(each) / len(each):.1f}" for each in gains)

    assert "IMM gains 2.8% ({}% at n = 50, {}% at n = 100)".format(*by_size("linear", (50, 100))) in said
    assert "{}% on average at n = 1,000 with IMM and a linear".format(*by_size("linear", (1000,))) in said
    assert "({}% at n = 50, {}% at n = 100, {}% at n = 300)".format(*by_size("lightgbm", (50, 100, 300))) in said
