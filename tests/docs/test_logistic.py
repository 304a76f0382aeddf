"""Every figure of the later sections of docs/results/logistic.md comes from a committed result."""

import json
from pathlib import Path

from tests.docs.test_language import rows, table

PAGE = (Path(__file__).parents[2] / "docs" / "results" / "logistic.md").read_text()
SAID = " ".join(PAGE.split())
SIZES = (5, 10, 20, 50)


def one(found, **key):
    (row,) = [row for row in found if key.items() <= row.items()]
    return row


def test_alpha_table():
    found = [row for row in rows("logistic-alpha") if "gain" in row]
    shown = table("| α | n = 5 | n = 10 | n = 20 | n = 50 |", PAGE)
    assert [float(alpha) for alpha, *_ in shown] == sorted({row["alpha"] for row in found} - {1.0})
    for alpha, *cells in shown:
        mine = [one(found, alpha=float(alpha), n=n) for n in SIZES]
        assert cells == [f"{row['gain']:+.2f} ± {row['gain_error']:.2f}" for row in mine]


def test_what_is_said_of_alpha():
    found = rows("logistic-alpha")
    best = {row["n"]: row["value"] for row in found if row["quantity"].startswith("best")}
    line = "is least at α = {:g}, {:g}, {:g} and {:g} for n = 5, 10, 20 and 50, and at {:g} on the average"
    assert line.format(*(best[n] for n in (*SIZES, "all"))) in SAID

    def risk(alpha):
        return sum(one(found, n=n, alpha=alpha, quantity="cross-validated risk, nats")["mean"] for n in SIZES) / 4

    assert f"where α = 1 is behind by {risk(1.0) - risk(best['all']):.4f} nats" in SAID
    worse = one(found, n=5, alpha=best[5], quantity="test accuracy, %")["gain"]
    assert f"prefers α = {best[5]:g}, whose test accuracy is {-worse:.1f} points lower" in SAID
    own = [one(found, n=n, quantity="test accuracy with each data set's own α, less α = 1") for n in SIZES[:3]]
    losses = [f"{-row['value']:.1f} ± {row['gain_error']:.1f}" for row in own]
    assert "loses {} points at n = 5, {} at n = 10 and {} at n = 20".format(*losses) in SAID
    for n in SIZES:  # "Down to 0.1 no size loses accuracy"
        assert all(one(found, n=n, alpha=a, quantity="test accuracy, %")["gain"] >= 0 for a in (0.1, 0.3))


def test_planes_table():
    found = rows("logistic-planes")
    shown = table("| angle | none | noising | IMM |", PAGE)
    assert len(shown) == 2
    for angle, *cells in shown:
        mine = [one(found, quantity=angle, method=method) for method in ("none", "noising", "imm")]
        assert cells == [f"{row['mean']:.1f} [{row['p10']:.1f}, {row['p90']:.1f}]" for row in mine]


PROBLEMS = {
    "continuous, rate 0.1": "x1 continuous, all rows a step, learning rate 0.1, λ/(1+λ) = 0.7",
    "continuous, rate 1": "x1 continuous, all rows a step, learning rate 1.0, λ/(1+λ) = 0.7",
    "levels, rate 0.1": "x1 in 5 levels, all rows a step, learning rate 0.1, λ/(1+λ) = 0.7",
    "levels, rate 1": "x1 in 5 levels, all rows a step, learning rate 1.0, λ/(1+λ) = 0.7",
    "levels, rate 1, 8 rows": "x1 in 5 levels, 8 rows a step, learning rate 1.0, λ/(1+λ) = 0.7",
    "levels, rate 1, λ/(1+λ) = 0.4": "x1 in 5 levels, all rows a step, learning rate 1.0, λ/(1+λ) = 0.4",
}
MAIN = PROBLEMS["levels, rate 1"]


def trained():
    return [row for row in rows("serialized-stability") if "diverged" in row]


def test_divergence_table():
    shown = {name: cells for name, *cells in table("| problem | 5 | 7 | 10 | 40 |", PAGE)}
    growth = shown.pop("growth of a displacement")
    assert shown.keys() == PROBLEMS.keys()
    assert {row["where"] for row in trained()} == set(PROBLEMS.values())

    def of(where):
        return [one(trained(), method="imm-current", where=where, r_times_rate=turn) for turn in (5, 7, 10, 40)]

    for name, cells in shown.items():
        assert cells == [f"{row['diverged']:.0f}" for row in of(PROBLEMS[name])]
    assert growth == [f"{row['growth']:.2f}" for row in of(MAIN)]


def test_the_old_model_and_streaming_never_diverge():
    assert {row["diverged"] for row in trained() if row["method"] != "imm-current"} == {0.0}
    assert max(row["growth"] for row in trained() if row["method"] != "imm-current") < 1
    at_five = [row for row in trained() if row["r_times_rate"] <= 5]
    assert {row["diverged"] for row in at_five} == {0.0}
    papers = one(trained(), method="imm-current", where=PROBLEMS["continuous, rate 1"], refresh_every=40)
    assert f"diverges in {papers['diverged']:.0f}% of data sets" in SAID


METHODS = ("imm-serialized", "imm-current", "imm-streaming")


def gradients(**key):
    return one([row for row in rows("serialized-stability") if "pull" in row], **key)


def test_gradient_table():
    shown = table("| r | old above old | current above old | streaming |", PAGE)
    assert [int(r) for r, *_ in shown] == [5, 10, 20, 40]
    for r, *cells in shown:
        mine = [gradients(method=method, refresh_every=int(r)) for method in METHODS]
        assert cells == [f"{row['mean']:.2f}, {row['pull']:+.2f}" for row in mine]


def test_what_is_said_of_gradients_and_costs():
    old, current = (gradients(method=method, refresh_every=40) for method in METHODS[:2])
    assert f"before a refresh, by {old['mean'] / current['mean']:.1f} times at r = 40" in SAID
    spreads = [gradients(method=m, refresh_every=r)["spread"] for m in METHODS for r in (5, 10, 20, 40)]
    exact = gradients(method="imm")["spread"]
    alone = gradients(method="imm-streaming", refresh_every=1)["spread"]
    line = f"({min(spreads):.1f} to {max(spreads):.1f} lengths against {exact:.1f}; streaming with a memory of one step"
    assert f"{line} {alone:.1f})" in SAID

    def ends(method, r, where=MAIN):
        return one(trained(), method=method, refresh_every=r, where=where)["value"]

    line = (
        "is {:.4f} with the old model at r = 40 and {:.4f} with streaming, against {:.4f} with a refresh at each step"
    )
    assert line.format(ends("imm-serialized", 40), ends("imm-streaming", 40), ends("imm-serialized", 1)) in SAID
    small = [ends("imm-streaming", r, PROBLEMS["levels, rate 1, 8 rows"]) for r in (1, 40)]
    assert "without memory ends at {:.3f}, with 40 steps of memory at {:.3f}".format(*small) in SAID


def test_results_are_whole_and_of_the_studies_settings():
    from imm.experiments import STUDIES

    for name in ("logistic-alpha", "logistic-planes", "serialized-stability"):
        (study,) = [study for study in STUDIES if study.name == name]
        found = json.loads((Path(__file__).parents[2] / "results" / name / "result.json").read_text())
        assert found["settings"] == study.settings
