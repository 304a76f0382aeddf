import json
import math

import pytest
import torch

from imm.language import METHODS, PRESETS, Settings
from imm.language.settings import without_effect
from tests.language import runs


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("precision", "16", "precision must be one of 32, bf16, got '16'"),
        ("method", "imm", "method must be one of none, .*, got 'imm'"),
        *((name, 0, f"{name} must be a whole number of at least 1, got 0") for name in ("width", "layers")),
        ("batch_size", 0, "batch_size must be a whole number of at least 1, got 0"),
        ("unroll", 1.5, "unroll must be a whole number of at least 1, got 1.5"),
        ("epochs", -3, "epochs must be a whole number of at least 1, got -3"),
        ("n_contexts", 0, "n_contexts must be a whole number"),
        ("every", 0, "every must be a whole number"),
        ("table_mb", 0, "table_mb must be a whole number"),
        *(
            (name, 0.5, f"{name} must be a whole number of at least 0, got 0.5")
            for name in ("decay_after", "max_decays", "refresh_every", "seed")
        ),
        ("learning_rate", -0.1, "learning_rate must be finite and not negative, got -0.1"),
        ("learning_rate", math.nan, "learning_rate must be finite and not negative, got nan"),
        ("lam", math.inf, "lam must be finite and not negative, got inf"),
        ("init", -1.0, "init must be"),
        ("memory", -1.0, "memory must be"),
        ("lifetime", -1.0, "lifetime must be"),
        ("gamma", 1.1, "gamma must be between 0 and 1, got 1.1"),
        ("decay", -0.1, "decay must be between 0 and 1, got -0.1"),
        ("dropout", 1.0, "dropout must be at least 0 and below 1, got 1.0"),
        ("dropout", math.nan, "dropout must be at least 0 and below 1, got nan"),
        ("clip", 0.0, "clip must be above 0, got 0.0"),
    ],
)
def test_a_bad_value_is_refused_and_repeated(name, value, message):
    with pytest.raises(ValueError, match=message) as refused:
        Settings(**{name: value})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_can_be_changed_and_comes_back_from_json(name):
    settings = Settings.preset(name, seed=3, method="none")
    assert (settings.seed, settings.method) == (3, "none")
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_the_presets():
    assert Settings.preset("small") == Settings()
    paper = Settings.preset("paper")
    assert (paper.width, paper.layers, paper.unroll, paper.lam, paper.n_contexts, paper.every) == (
        (1500, 2, 35, 0.2, 10, 5)
    )
    with pytest.raises(ValueError, match="preset must be one of small, paper, got 'large'"):
        Settings.preset("large")
    with pytest.raises(ValueError, match="lam must be"):
        Settings.preset("paper", lam=-1)


def test_every_method_can_be_named():
    assert len(set(METHODS)) == len(METHODS) == 11
    for method in METHODS:
        assert Settings(method=method).method == method


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: given | {"colour": 1}, "settings of a language model: colour … missing or not known"),
        (
            lambda given: {k: v for k, v in given.items() if k != "lam"},
            "settings of a language model: lam … missing or not known",
        ),
        (lambda given: given | {"gamma": 2}, "gamma must be between 0 and 1, got 2"),
        (lambda _: "small", "settings must be a record, got 'small'"),
    ],
)
def test_another_record_is_refused(change, message):
    with pytest.raises(ValueError, match=message) as refused:
        Settings.from_json(change(Settings().to_json()))
    assert "\n" not in str(refused.value)


OTHER_VALUES = {
    "lam": 0.9,
    "gamma": 0.7,
    "falls": True,
    "n_contexts": 2,
    "every": 1,
    "refresh_every": 2,
    "memory": 2.0,
    "lifetime": 2.0,
}


@pytest.mark.parametrize("method", METHODS)
def test_a_setting_is_without_effect_where_it_is_said_to_be(tmp_path, method):
    def trained(**changes):
        run = runs.run(tmp_path / "-".join(["run", *changes]), method=method, epochs=1, **changes)
        run.train()
        return run.model.state_dict()

    alone, unused = trained(), without_effect(method, OTHER_VALUES)
    for name, value in OTHER_VALUES.items():
        other = trained(**{name: value})
        same = all(torch.equal(weights, other[part]) for part, weights in alone.items())
        assert same == (name in unused), name
