"""An old model from an ONNX file."""

from pathlib import Path
from typing import Any

import numpy as np

from imm.extras import install
from imm.files import first_line
from imm.tabular.distinct_rows import Array


class Onnx:
    """An ONNX file as old model; needs onnxruntime (``pip install 'imm[onnx]'``).

    Of a classifier's outputs the last one is taken that has probabilities: a tensor, or a list of dictionaries, as
    scikit-learn's converter writes it.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise ImportError(f"reading {path} needs onnxruntime: {install('onnx')}") from None
        if not Path(path).exists():
            raise FileNotFoundError(f"the old model is to be {str(path)!r}, but there is no such file")
        if Path(path).is_dir():
            raise IsADirectoryError(
                f"the old model is to be {str(path)!r}, but that is a folder; name the ONNX file in it"
            )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._path = path
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has many kinds, none of them public
            raise ValueError(f"{path} is not an ONNX model that can be read: {first_line(error)}") from None
        self._input = self._session.get_inputs()
        width = self._input[0].shape[-1] if len(self._input) == 1 else len(self._input)
        if isinstance(width, int):
            self.n_features_in_ = width

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its path: a session cannot be."""
        return Onnx, (self._path,)

    def __call__(self, short: Any) -> tuple[Array, list[Any] | None]:
        """The last output, and the labels of its columns if it names them."""
        x = np.asarray(short)
        if len(self._input) == 1:
            feed = {self._input[0].name: _cast(x, self._input[0].type)}
        else:  # one input a column
            feed = {
                port.name: _cast(column.reshape(-1, 1), port.type)
                for port, column in zip(self._input, x.T, strict=True)
            }
        try:
            found = self._session.run(None, feed)[-1]
        except Exception as error:  # as above
            reason = f"{first_line(error)}; may the number of rows vary, as it was exported?"
            raise ValueError(f"{self._path} does not answer for {len(x)} rows at once: {reason}") from None
        if isinstance(found, list) and found and isinstance(found[0], dict):
            own = list(found[0])
            return np.array([[row[label] for label in own] for row in found], dtype=np.float64), own
        return np.asarray(found, dtype=np.float64), None


def _cast(x: Array, kind: str) -> Array:
    """In the type of an input; what a whole number cannot be is refused."""
    known = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
    if kind not in known:
        raise ValueError(f"the ONNX model's input is {kind}; only {', '.join(known)} can be given")
    if known[kind] is np.int64:
        other = ~np.isfinite(x) | (x != np.floor(x))
        if other.any():
            raise ValueError(f"the ONNX model takes whole numbers only, got {x[other][0]:g}")
    cast: Array = x.astype(known[kind])
    return cast
