import json
import math
from dataclasses import fields

import pytest
import torch

from imm.language import METHODS, PRESETS, Settings
from imm.language.settings import MODELS, without_effect
from tests.language import runs


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model", "rnn", "model must be one of lstm, transformer, got 'rnn'"),
        ("optimizer", "adam", "optimizer must be one of sgd, adamw, got 'adam'"),
        ("method", "imm", "method must be one of none, .*, got 'imm'"),
        *((name, 0, f"{name} must be a whole number of at least 1, got 0") for name in ("width", "layers", "heads")),
        ("batch_size", 0, "batch_size must be a whole number of at least 1, got 0"),
        ("unroll", 1.5, "unroll must be a whole number of at least 1, got 1.5"),
        ("epochs", -3, "epochs must be a whole number of at least 1, got -3"),
        ("n_contexts", 0, "n_contexts must be a whole number"),
        ("every", 0, "every must be a whole number"),
        ("table_mb", 0, "table_mb must be a whole number"),
        *(
            (name, 0.5, f"{name} must be a whole number of at least 0, got 0.5")
            for name in ("decay_after", "max_decays", "positions", "refresh_every", "seed")
        ),
        ("positions", -1, "positions must be a whole number of at least 0, got -1"),
        ("learning_rate", -0.1, "learning_rate must be finite and not negative, got -0.1"),
        ("learning_rate", math.nan, "learning_rate must be finite and not negative, got nan"),
        ("lam", math.inf, "lam must be finite and not negative, got inf"),
        ("init", -1.0, "init must be"),
        ("weight_decay", -1.0, "weight_decay must be"),
        ("memory", -1.0, "memory must be"),
        ("lifetime", -1.0, "lifetime must be"),
        ("start_below", -1.0, "start_below must be"),
        ("embedding_factor", -1.0, "embedding_factor must be"),
        ("restart_rate", -1.0, "restart_rate must be"),
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


def test_a_transformers_heads_divide_its_width():
    with pytest.raises(ValueError, match="width must be a multiple of heads, got 10 and 4"):
        Settings(model="transformer", width=10, heads=4)
    assert Settings(width=10, heads=4).heads == 4


def test_what_keeps_imm_from_the_embedding_would_keep_it_from_a_tied_output():
    with pytest.raises(ValueError, match="match_embedding must be True where tied is") as refused:
        Settings.preset("authors-code", tied=True)
    assert "\n" not in str(refused.value)


def test_a_transformer_has_adamw_unless_told():
    chosen = [
        Settings.preset("small", model="transformer", **more) for more in ({}, {"optimizer": "sgd"}, {"width": 8})
    ]
    assert [(each.optimizer, each.learning_rate) for each in chosen] == [
        ("adamw", 0.003),
        ("sgd", 1.0),
        ("adamw", 0.003),
    ]
    assert Settings.preset("small", model="transformer", learning_rate=0.1).learning_rate == 0.1
    assert Settings.preset("small", model="lstm").optimizer == "sgd"


@pytest.mark.parametrize("model", MODELS)
def test_adamw_has_a_rate_of_its_own_unless_told(model):
    assert Settings.preset("small", model=model, optimizer="adamw").learning_rate == 0.003
    assert Settings.preset("paper", model=model, optimizer="adamw", learning_rate=1.0).learning_rate == 1.0


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_can_be_changed_and_comes_back_from_json(name):
    settings = Settings.preset(name, seed=3, method="none")
    assert (settings.seed, settings.method) == (3, "none")
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_the_presets():
    assert Settings.preset("small") == Settings()
    paper, code = Settings.preset("paper"), Settings.preset("authors-code")
    assert (paper.width, paper.layers, paper.unroll, paper.lam, paper.n_contexts, paper.every) == (
        (1500, 2, 35, 0.2, 10, 5)
    )
    differences = {f.name for f in fields(Settings) if getattr(paper, f.name) != getattr(code, f.name)}
    assert differences == {"start_below", "restart_rate", "clip_apart", "match_embedding", "embedding_factor"}
    with pytest.raises(ValueError, match="preset must be one of small, paper, authors-code, got 'large'"):
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
    "start_below": 1.0,
    "n_contexts": 2,
    "every": 1,
    "positions": 3,
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
