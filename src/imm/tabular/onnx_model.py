"""An old model from an ONNX file."""

from pathlib import Path
from typing import Any

import numpy as np

from imm.tabular.rows import Array


class Onnx:
    """An ONNX file as old model; needs onnxruntime (``pip install 'imm[onnx]'``).

    Of a classifier's outputs the last one is taken that has probabilities: a tensor, or a list of dictionaries, as
    scikit-learn's converter writes it.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise ImportError(f"reading {path} needs onnxruntime: pip install 'imm[onnx]'") from None
        if not Path(path).exists():
            raise FileNotFoundError(f"restricted_model is {str(path)!r}, but there is no such file")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._input = self._session.get_inputs()
        width = self._input[0].shape[-1] if len(self._input) == 1 else len(self._input)
        if isinstance(width, int):
            self.n_features_in_ = width

    def __call__(self, short: Any) -> tuple[Array, list[Any] | None]:
        """The last output, and the labels of its columns if it names them."""
        x = np.asarray(short)
        if len(self._input) == 1:
            feed = {self._input[0].name: x.astype(_dtype(self._input[0].type))}
        else:  # one input a column
            feed = {
                port.name: column.reshape(-1, 1).astype(_dtype(port.type))
                for port, column in zip(self._input, x.T, strict=True)
            }
        found = self._session.run(None, feed)[-1]
        if isinstance(found, list) and found and isinstance(found[0], dict):
            own = list(found[0])
            return np.array([[row[label] for label in own] for row in found], dtype=np.float64), own
        return np.asarray(found, dtype=np.float64), None


def _dtype(kind: str) -> Any:
    known = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
    if kind not in known:
        raise ValueError(f"the ONNX model's input is {kind}; only {', '.join(known)} can be given")
    return known[kind]
