"""``imm fit`` and ``imm predict``, as a newcomer with files meets them."""

import gzip
import json
import shutil
import sys

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from imm.cli.app import app
from imm.experiments.data import data_folder
from imm.fit import nested_cv as evaluating
from imm.fit.bundle import Saved
from imm.fit.table_file import read_table
from imm.tabular import Linear
from tests.cli.test_cli import run_main
from tests.fit.files import people, write_people

runner = CliRunner()


def hasten(patch):
    """Two folds outside and inside: what is judged here is not the model."""
    patch.setattr(evaluating, "how_often", lambda n, model: (2, 1))
    patch.setattr(Linear, "folds", lambda self, n: (2, 1))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    hasten(monkeypatch)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder with tables, a fitted model in ``out``, and what was printed."""
    folder = tmp_path_factory.mktemp("fit")
    new, old = write_people(folder)
    with pytest.MonkeyPatch.context() as patch:
        hasten(patch)
        printed = runner.invoke(
            app, ["fit", str(new), "--label", "y", "--old-data", str(old), "--out", f"{folder}/out"]
        )
    assert printed.exit_code == 0, printed.output
    return folder, printed.stdout


def test_two_files_become_a_model_a_verdict_and_a_page(done):
    folder, printed = done
    assert "The old model" in printed
    assert "report.html" in printed
    assert {path.name for path in (folder / "out").iterdir()} == {"columns.json", "fit.json", "model", "report.html"}
    assert {path.name for path in folder.iterdir()} == {"new.csv", "old.csv", "out"}
    record = json.loads((folder / "out" / "fit.json").read_text())
    assert record["short"] == ["age", "home"]
    assert record["notes"] == [
        "Left out: id (a number of its own for every row: an identifier), country ('XX' in every row)."
    ]
    assert f"Note: {record['notes'][0]}" in printed
    assert {column["column"]: column["role"] for column in record["columns"]} == {
        "id": "left out",
        "age": "short",
        "home": "short",
        "income": "new",
        "job": "new",
        "since": "new",
        "country": "left out",
    }
    assert record["verdict"] in printed.replace("\n", " ")
    assert [row["method"] for row in record["rows"][::3]] == ["full-only", "old-only", "imm"]
    assert 0 <= record["distance"]["with_imm"] <= record["distance"]["without"]


@pytest.mark.parametrize("form", ["csv", "gz", "parquet"])
def test_predictions_from_and_to_every_kind_of_file(done, form, tmp_path):
    folder, _ = done
    rows, out = people(40, 5).drop("y"), tmp_path / f"p.{form}"
    path = tmp_path / f"rows.{form}"
    if form == "parquet":
        rows.with_columns(pl.col("since").str.to_date()).write_parquet(path)
    else:
        content = rows.write_csv().encode()
        path.write_bytes(gzip.compress(content) if form == "gz" else content)
    printed = runner.invoke(app, ["predict", f"{folder}/out", str(path), "--out", str(out)])
    assert printed.exit_code == 0, printed.output
    assert "40 predictions" in printed.stderr
    found = pl.read_parquet(out) if form == "parquet" else pl.read_csv(out)
    assert found.columns == ["predicted", "probability of no", "probability of yes"]
    p = found["probability of yes"].to_numpy()
    assert found["predicted"].to_list() == ["yes" if value > 0.5 else "no" for value in p]
    truth = people(40, 5)["y"].to_numpy() == "yes"
    assert p[truth].mean() > p[~truth].mean() + 0.1
    model = Saved.load(folder / "out")
    np.testing.assert_allclose(p, model.predict(read_table(path))["probability of yes"].to_numpy())


def test_predictions_go_to_standard_output_and_new_categories_are_said(done, tmp_path):
    folder, _ = done
    path = tmp_path / "rows.csv"
    people(3, 5).with_columns(job=pl.Series(["pilot", "a", "nurse"])).write_csv(path)
    printed = runner.invoke(app, ["predict", f"{folder}/out", str(path)])
    assert printed.stdout.count("\n") == 4
    assert printed.stderr == "job: 2 rows have a rare or new category (pilot, nurse)\n"


def predict_with(done, tmp_path, rows):
    path = tmp_path / "rows.csv"
    rows.write_csv(path)
    return ["predict", f"{done[0]}/out", str(path), "--out", f"{tmp_path}/p.csv"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop("age", "job"), "lacks the columns age, job, which the model was trained with"),
        (
            lambda rows: rows.with_columns(age=pl.Series(["30", "old", "40"])),
            "column 'age': 'old' in line 3 of {}/rows.csv is not a number",
        ),
        (lambda rows: rows.with_columns(since=pl.Series(["1/2/2020"] * 3)), "is not a date as in %Y-%m-%d"),
        (lambda rows: rows[:0], "has column names, but no rows"),
    ],
)
def test_rows_that_cannot_be_predicted_for(done, tmp_path, change, message, monkeypatch, capsys):
    assert run_main(monkeypatch, *predict_with(done, tmp_path, change(people(3, 5)))) == 2
    error = capsys.readouterr().err
    assert message.format(tmp_path) in error
    assert error.count("\n") == 1
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("name", ["", "new.csv", "nothing"])
def test_predicting_with_what_is_no_model(tmp_path, name, monkeypatch, capsys):
    write_people(tmp_path)
    assert run_main(monkeypatch, "predict", str(tmp_path / name), "x.csv") == 2
    error = capsys.readouterr().err
    assert "is not what `imm fit` wrote" in error
    assert error.count("\n") == 1


def without(key):
    return lambda text: json.dumps({name: value for name, value in json.loads(text).items() if name != key})


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("columns.json", lambda _: "[]", "columns.json is damaged"),
        ("columns.json", lambda text: text[:100], "columns.json is damaged"),
        ("columns.json", without("label"), "columns.json is damaged (KeyError 'label'): fit the model again"),
        ("columns.json", without("format"), "has format None; this version of imm reads format 5"),
        ("columns.json", lambda text: text.replace('"median"', '"middle"'), "columns.json is damaged (TypeError"),
        ("columns.json", lambda text: text.replace('"income"', '"wage"', 1), "its columns do not make its features"),
        ("model/model.json", lambda _: "[]", "model is damaged"),
        ("model/model.json", without("estimator"), "model is damaged (KeyError 'estimator'): fit the model again"),
        ("model/model.safetensors", lambda text: text[:20], "model is damaged"),
        ("model/model.safetensors", lambda text: text.replace("fit.bias", "fit.boas"), "is damaged (KeyError 'bias')"),
    ],
)
def test_predicting_with_a_damaged_model(done, tmp_path, name, change, message, monkeypatch, capsys):
    command = predict_with(done, tmp_path, people(3, 5))
    shutil.copytree(done[0] / "out", tmp_path / "out")
    broken = tmp_path / "out" / name
    broken.write_text(change(broken.read_text(encoding="latin-1")), encoding="latin-1")
    command[1] = str(tmp_path / "out")
    assert run_main(monkeypatch, *command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("rows.csv", "is the table itself and would be lost; name another file"),
        (".", "is a folder; name a file"),
        ("rows.csv/p.csv", "cannot be written"),
    ],
)
def test_predictions_go_where_a_file_may_be(done, tmp_path, out, message, monkeypatch, capsys):
    command = predict_with(done, tmp_path, people(3, 5))
    rows = (tmp_path / "rows.csv").read_bytes()
    assert run_main(monkeypatch, *command[:-1], str(tmp_path / out)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"rows.csv": rows}


def test_where_nothing_can_be_written_is_said_before_the_work(tmp_path, monkeypatch, capsys):
    new, old = write_people(tmp_path)
    monkeypatch.setattr("imm.fit.pipeline.evaluate", lambda *_: pytest.fail("it had begun"))
    code = run_main(monkeypatch, "fit", str(new), "--label", "y", "--old-data", str(old), "--out", f"{old}/out")
    assert code == 2
    error = capsys.readouterr().err
    assert f"{old}/out cannot be written, {old} takes no file: Not a directory; name another place" in error
    assert error.count("\n") == 1


def test_names_with_brackets_and_blanks(tmp_path, monkeypatch):
    """Brackets are markup to the library that prints the table, and blanks part words in a shell."""
    monkeypatch.chdir(tmp_path)
    days = pl.Series([f"0{1 + i % 9}/0{1 + i % 7}/2024" for i in range(60)])
    people(60, 0).with_columns(days.alias("day [/d]")).write_csv("new.csv")
    people(200, 1).select("age", "y").write_csv("old.csv")
    printed = runner.invoke(app, ["fit", "new.csv", "--label", "y", "--old-data", "old.csv", "--out", "my model"])
    assert printed.exit_code == 0, printed.output
    assert "Note: day [/d]: read as month/day/year" in printed.stdout
    assert "imm predict 'my model' more.csv" in printed.stdout
    assert "imm predict &#39;my model&#39; more.csv" in (tmp_path / "my model" / "report.html").read_text()


NEW = people(60, 0)
OLD = people(200, 1).select("age", "home", "y")


@pytest.mark.parametrize(
    ("new", "old", "arguments", "message"),
    [
        (NEW, OLD, ["--label", "Y"], "new.csv has no column 'Y' (--label); it has id, age, home"),
        (NEW, OLD.rename({"age": "b", "home": "c"}), [], "share no column besides 'y': id, age"),
        (NEW.with_columns(y=pl.lit("no")), OLD, [], "label 'y' is 'no' in every row"),
        (
            NEW.select("country", "y"),
            OLD,
            [],
            "has no column to learn from besides the label (country: 'XX' in every row)",
        ),
        (NEW.select("y"), OLD, [], "has no column to learn from besides the label (it has no other)"),
        (NEW.with_columns(y="income").drop_nulls(), OLD, [], "looks continuous"),
        (NEW.with_columns(y=pl.when(pl.col("age") > 60).then(None).otherwise("y")), OLD, [], "label 'y' is missing in"),
        (NEW, OLD.drop("y"), [], "old.csv has no column 'y' (--label); it has age, home"),
        (
            NEW,
            OLD.filter(pl.col("y") == "no"),
            [],
            "old.csv has no row with 'y' = 'yes', but the new rows have; it has no",
        ),
        (NEW[:10], OLD, [], "new.csv has 10 rows; at least 20 are needed"),
        (
            NEW.with_columns(income=pl.Series(["1.5"] * 3 + [str(i) for i in range(56)] + ["much"])),
            OLD,
            [],
            "line 61 of",
        ),
        (NEW, OLD.with_columns(age=pl.col("home")), [], "column 'age' is a number in"),
        (NEW, None, [], "where is the old model? Give --old-data, --old-model or --old-score"),
        (NEW, OLD, ["--old-score", "score"], "give one of --old-data and --old-score, not 2"),
        (NEW, None, ["--old-score", "income", "--positive", "yes"], "the old score 'income' is missing in line 2 of"),
        (NEW, None, ["--old-score", "age"], "must be a probability, 0 to 1, but line 2 of"),
        (NEW, None, ["--old-score", "points"], "has no column 'points' (the old score)"),
        (NEW, None, ["--old-score", "score", "--old-features", "age,age"], "--old-features names a column twice: age"),
        (NEW, None, ["--old-score", "y"], "--old-score names the label 'y'"),
        (NEW, None, ["--old-score", "score", "--old-features", "agee"], "has no column 'agee' (--old-features)"),
        (NEW, None, ["--old-score", "score", "--old-features", 'age, "a, b"'], "has no column 'a, b' (--old-features)"),
        (NEW, None, ["--old-score", "score", "--old-features", "score"], "--old-features names the old score 'score'"),
        (NEW, None, ["--old-model", "m.onnx"], "--old-model needs --old-features"),
        (NEW, None, ["--old-model", "m.onnx", "--old-features", "home"], " in line 2 of new.csv is not a number"),
        (NEW, None, ["--old-model", "m.onnx", "--old-features", "age"], "there is no such file"),
        (NEW, OLD, ["--old-features", "age"], "--old-features is not needed with --old-data"),
        (NEW, OLD, ["--positive", "yes"], "--positive says what --old-score means"),
        (
            NEW,
            None,
            ["--label", "age", "--task", "regression", "--old-score", "score", "--positive", "1"],
            "--positive is '1', but a regression has no classes",
        ),
        (NEW, OLD, ["--model", "forest"], "--model must be linear, mlp, lightgbm or xgboost, got 'forest'"),
        (NEW, OLD, ["--task", "guess"], "--task must be classification or regression, got 'guess'"),
        (NEW, OLD, ["--seed", "-1"], "--seed must be from 0 to 2147483647, got -1"),
        (NEW, OLD, ["--out", "."], "is there already and holds no fit.json"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(new, old, arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    new.write_csv("new.csv")
    command = ["fit", "new.csv", *([] if "--label" in arguments else ["--label", "y"]), *arguments]
    if old is not None:
        old.write_csv("old.csv")
        command += ["--old-data", "old.csv"]
    before = set(tmp_path.rglob("*"))
    assert run_main(monkeypatch, *command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b,y\n1,2\n", "line 2 of new.csv has 2 fields, but the header has 3"),
        (b"a,a,y\n1,2,3\n", "has the column 'a' twice"),
        (b"\x00\x01\x02", "is not a table"),
        (b"", "is empty"),
        (None, "there is no file new.csv"),
    ],
)
def test_files_that_cannot_be_read(content, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "new.csv").write_bytes(content)
    assert run_main(monkeypatch, "fit", "new.csv", "--label", "y", "--old-score", "s") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_ctrl_c_writes_nothing(tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("imm.fit.pipeline.evaluate", interrupted)
    new, old = write_people(tmp_path)
    monkeypatch.setattr(sys, "argv", ["imm"])
    code = run_main(monkeypatch, "fit", str(new), "--label", "y", "--old-data", str(old), "--out", f"{tmp_path}/out")
    assert code == 130
    assert capsys.readouterr().err == "interrupted; nothing was written\n"
    assert {path.name for path in tmp_path.iterdir()} == {"new.csv", "old.csv"}


def fit_json(*arguments):
    printed = runner.invoke(app, ["fit", *map(str, arguments), "--json"])
    assert printed.exit_code == 0, printed.output
    return json.loads(printed.stdout)


def test_a_column_of_scores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(60, 0).write_parquet("new.parquet")
    record = fit_json("new.parquet", "--label", "y", "--old-score", "score")
    assert record["short"] == []
    assert "score" not in [column["column"] for column in record["columns"]]
    assert any("--old-features" in note for note in record["notes"])
    people(5, 3).drop("score", "y").write_csv("more.csv")
    assert runner.invoke(app, ["predict", "imm-fit", "more.csv"]).exit_code == 0
    backwards = people(60, 0).with_columns(y=pl.col("y").replace({"yes": "bad", "no": "good"}))
    backwards.write_csv("new.csv")
    record = fit_json("new.csv", "--label", "y", "--old-score", "score", "--positive", "good")
    assert any("backwards" in note for note in record["notes"])
    right = fit_json("new.csv", "--label", "y", "--old-score", "score", "--positive", "bad")
    assert not any("backwards" in note for note in right["notes"])
    assert right["splits"]["old-only"]["log-loss"] < record["splits"]["old-only"]["log-loss"]


def test_new_rows_among_the_old_ones_and_labels_of_their_own_are_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new = people(60, 0)
    new.write_csv("new.csv")
    other = people(20, 2).with_columns(y=pl.lit("maybe"))
    pl.concat([people(200, 1), new, other]).select("age", "home", "y").write_csv("old.csv")
    record = fit_json("new.csv", "--label", "y", "--old-data", "old.csv")
    assert record["notes"][0].startswith("60 of the 60 new rows stand in old.csv too: the old model has seen")
    assert record["old"].endswith("fitted on 260 rows of old.csv, 20 with other labels left out")


def test_a_shared_column_that_the_old_rows_cannot_use_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(60, 0).write_csv("new.csv")
    people(200, 1).select("home", "y", age=pl.lit("unknown")).write_csv("old.csv")
    record = fit_json("new.csv", "--label", "y", "--old-data", "old.csv")
    assert record["short"] == ["home"]
    assert "age: the old model does not see it (old.csv: 'unknown' in every row)" in record["notes"]


def test_a_shared_column_that_the_new_rows_cannot_use_is_said_and_asked_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    new = people(60, 0).drop("score").with_columns(home=pl.lit("own"))
    new.write_csv("new.csv")
    people(200, 1).select("age", "home", "y").write_csv("old.csv")
    record = fit_json("new.csv", "--label", "y", "--old-data", "old.csv", "--keep-old", "--out", "kept")
    assert record["short"] == ["age"]
    assert "home: left out of the new model, but the old model sees it" in record["notes"]
    assert "and those\nthat the old model sees" in (tmp_path / "kept" / "report.html").read_text()
    new.drop("home", "y").write_csv("more.csv")
    capsys.readouterr()
    assert run_main(monkeypatch, "predict", "kept", "more.csv", "--out", "predicted.csv") == 2
    error = capsys.readouterr().err
    assert "has no column 'home' (the old model's)" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("regression", [False, True])
def test_a_label_hidden_in_another_column_is_suspected(tmp_path, regression, monkeypatch):
    monkeypatch.chdir(tmp_path)
    new, _ = write_people(tmp_path, regression=regression)
    people(300, 0, regression=regression).write_csv(new)
    task = ["--task", "regression"] if regression else []
    honest = fit_json("new.csv", "--label", "y", "--old-data", "old.csv", *task)
    assert not any("almost without error" in note for note in honest["notes"])
    pl.read_csv(new).with_columns(twin=pl.col("y")).write_csv(new)
    found = fit_json("new.csv", "--label", "y", "--old-data", "old.csv", *task)
    assert any("almost without error" in note for note in found["notes"])


def test_the_old_model_can_be_kept_and_rivals_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path)
    record = fit_json("new.csv", "--label", "y", "--old-data", "old.csv", "--keep-old", "--rivals")
    assert list(record["splits"]) == [
        "full-only",
        "old-only",
        "stacking",
        "interpolation",
        "offset",
        "reverse-kd",
        "label-smoothing",
        "imm-stacking",
    ]
    assert (tmp_path / "imm-fit" / "old" / "model.json").exists()
    people(5, 3).write_csv("more.csv")
    first = runner.invoke(app, ["predict", "imm-fit", "more.csv"])
    assert first.exit_code == 0
    people(5, 3).with_columns(age=pl.lit(90)).write_csv("more.csv")
    assert runner.invoke(app, ["predict", "imm-fit", "more.csv"]).stdout != first.stdout


def test_regression(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path, regression=True)
    record = fit_json("new.csv", "--label", "y", "--old-data", "old.csv", "--task", "regression", "--rivals")
    assert [row["metric"] for row in record["rows"][:2]] == ["RMSE", "R²"]
    assert set(record["splits"]) >= {"full-only", "reverse-kd", "imm"}
    assert "label-smoothing" not in record["splits"]  # which values do not have
    more = people(50, 3, regression=True)
    more.write_csv("more.csv")
    assert runner.invoke(app, ["predict", "imm-fit", "more.csv", "--out", "p.csv"]).exit_code == 0
    found = pl.read_csv("p.csv")
    assert found.columns == ["predicted"]
    assert np.corrcoef(found["predicted"], more["y"])[0, 1] > 0.6


def test_the_same_seed_gives_the_same_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path)
    arguments = ["fit", "new.csv", "--label", "y", "--old-data", "old.csv", "--seed", "3"]
    for out in ("a", "b"):
        assert runner.invoke(app, [*arguments, "--out", out]).exit_code == 0
    assert (tmp_path / "a/model/model.safetensors").read_bytes() == (
        tmp_path / "b/model/model.safetensors"
    ).read_bytes()


def test_an_onnx_file(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    monkeypatch.chdir(tmp_path)
    old = people(500, 1)
    model = LogisticRegression().fit(old.select("age").to_numpy().astype(np.float32), old["y"].to_list())
    converted = skl2onnx.to_onnx(model, np.zeros((1, 1), np.float32))
    (tmp_path / "old.onnx").write_bytes(converted.SerializeToString())
    people(60, 0).drop("score").write_csv("new.csv")
    arguments = ["new.csv", "--label", "y", "--old-model", "old.onnx", "--old-features", "age"]
    record = fit_json(*arguments, "--keep-old")
    assert record["short"] == ["age"]
    assert (tmp_path / "imm-fit" / "old.onnx").exists()
    people(5, 3).write_csv("more.csv")
    assert runner.invoke(app, ["predict", "imm-fit", "more.csv"]).exit_code == 0
    for path, content, message in (
        ("bad.onnx", b"nonsense", "is not an ONNX model that can be read"),
        ("old.onnx", None, "sees 1 columns, but --old-features names 2"),
    ):
        if content:
            (tmp_path / path).write_bytes(content)
        features = "age" if content else "age,income"
        given = ["fit", "new.csv", "--label", "y", "--old-model", path, "--old-features", features]
        error = runner.invoke(app, given).exception
        assert message in str(error)


def test_credit_data(tmp_path, monkeypatch):
    """Real rows with categories and gaps: 150 of them, an old model that knows two columns from 2,000 others."""
    path = data_folder() / "tabular" / "credit_data.csv"
    if not path.exists():
        pytest.skip(f"no {path}")
    monkeypatch.chdir(tmp_path)
    table = pl.read_csv(path, infer_schema=False)
    table = table[np.random.default_rng(0).permutation(len(table))]
    table[:150].write_csv("new.csv")
    table[150:2150].select("Seniority", "Records", "Status").write_csv("old.csv")
    record = fit_json("new.csv", "--label", "Status", "--old-data", "old.csv")
    treated = {column["column"]: column for column in record["columns"]}
    assert treated["rownames"]["role"] == "left out"
    assert "missing, set to the median" in treated["Income"]["treatment"]
    assert {name for name, column in treated.items() if column["role"] == "short"} == {"Seniority", "Records"}
    table[2150:].write_csv("more.csv")
    assert runner.invoke(app, ["predict", "imm-fit", "more.csv", "--out", "p.csv"]).exit_code == 0
    p = pl.read_csv("p.csv")["probability of bad"].to_numpy()
    assert roc_auc_score(table[2150:]["Status"] == "bad", p) > 0.7


def test_figures_that_are_not_known_are_null(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(evaluating, "how_often", lambda n, model: (5, 1))  # some parts have no "yes"
    rare = people(40, 0).with_columns(y=pl.Series(["yes"] * 3 + ["no"] * 37))
    rare.write_csv("new.csv")
    record = fit_json("new.csv", "--label", "y", "--old-score", "score")
    assert any(value is None for values in record["splits"]["full-only"].values() for value in values)
    assert "NaN" not in (tmp_path / "imm-fit" / "fit.json").read_text()


def test_an_onnx_file_that_is_not_all_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    weight = onnx.numpy_helper.from_array(np.ones((1, 2048), np.float32), "w")
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("MatMul", ["x", "w"], ["h"]),
            onnx.helper.make_node("ReduceMean", ["h"], ["m"], axes=[1], keepdims=1),
            onnx.helper.make_node("Sigmoid", ["m"], ["p"]),
        ],
        "old",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [None, 1])],
        [onnx.helper.make_tensor_value_info("p", onnx.TensorProto.FLOAT, [None, 1])],
        [weight],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    onnx.save_model(model, "old.onnx", save_as_external_data=True, location="old.weights")
    people(60, 0).drop("score").write_csv("new.csv")
    given = ["fit", "new.csv", "--label", "y", "--old-model", "old.onnx", "--old-features", "age", "--keep-old"]
    assert "its weights are in other files; export it as one" in str(runner.invoke(app, given).exception)
    assert not (tmp_path / "imm-fit").exists()
