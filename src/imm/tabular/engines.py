"""Full models by name."""

from typing import Any

from imm.tabular.linear import Linear
from imm.tabular.problem import Engine


def engine_for(model: Any) -> Engine:
    """The full model that the parameter ``model`` asks for.

    A name; an engine with settings of its own; or a factory ``f(n_features, n_classes) -> torch.nn.Module``.
    """
    if isinstance(model, str):
        if model == "linear":
            return Linear()
        if model == "mlp":
            from imm.tabular.network import Network

            return Network()
        raise ValueError(f"model must be 'linear', 'mlp', an engine or a factory of modules, got {model!r}")
    if hasattr(model, "prepare"):
        engine: Engine = model
        return engine
    if callable(model):
        from imm.tabular.network import Network

        return Network(module=model)
    raise TypeError(f"model must be 'linear', 'mlp', an engine or a factory of modules, got {type(model).__name__}")
