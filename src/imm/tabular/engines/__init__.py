"""Full models by name."""

from typing import Any

from imm.extras import install
from imm.tabular.engines.base import Engine
from imm.tabular.engines.linear import Linear


def engine_for(model: Any) -> Engine:
    """The full model that the parameter ``model`` asks for.

    A name; an engine with settings of its own; or a factory ``f(n_features, n_classes) -> torch.nn.Module``.
    """
    if isinstance(model, str):
        if model == "linear":
            return Linear()
        if model == "mlp":
            from imm.tabular.engines.network import Network

            return Network()
        if model in ("lightgbm", "xgboost"):
            return _trees(model)
        raise ValueError(
            f"model must be 'linear', 'mlp', 'lightgbm', 'xgboost', an engine or a factory of modules, got {model!r}"
        )
    if hasattr(model, "prepare"):
        engine: Engine = model
        return engine
    if callable(model):
        from imm.tabular.engines.network import Network

        return Network(module=model)
    raise TypeError(
        f"model must be 'linear', 'mlp', 'lightgbm', 'xgboost', an engine or a factory of modules, got"
        f" {type(model).__name__}"
    )


def _trees(name: str) -> Engine:
    try:
        if name == "lightgbm":
            from imm.tabular.engines.lightgbm import LightGBM

            return LightGBM()
        from imm.tabular.engines.xgboost import XGBoost

        return XGBoost()
    except ImportError:
        raise ImportError(f"model={name!r} needs the package {name}: {install(name)}") from None
