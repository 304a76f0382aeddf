"""A run's whole state in one file that appears whole or not at all."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Generator, Tensor
from torch.optim import Optimizer

from imm.files import check_file, whole_path


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and a record of all else as JSON values."""

    tensors: dict[str, Tensor]
    record: dict[str, Any]

    def write(self, path: Path) -> None:
        """One safetensors file, the record in its header."""
        tensors, places = {}, set()
        for name, tensor in self.tensors.items():
            shared = tensor.data_ptr() in places  # tied parameters: the format takes each memory once
            tensors[name] = tensor.detach().clone() if shared else tensor.detach().contiguous()
            places.add(tensor.data_ptr())
        with whole_path(path) as beside:
            save_file(tensors, beside, {"record": json.dumps(self.record)})

    @classmethod
    def read(cls, path: Path) -> "Checkpoint | None":
        """What was written there; None if nothing was. Nothing that is read is run."""
        if not path.exists():
            return None
        check_file(path)
        try:
            with safe_open(path, "pt") as file:
                record = json.loads(file.metadata()["record"])
                return cls({name: file.get_tensor(name) for name in file.keys()}, record)  # noqa: SIM118
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged ({error}); remove it to begin anew") from None

    def under(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with ``prefix.``, without it."""
        return {
            name.removeprefix(f"{prefix}."): tensor
            for name, tensor in self.tensors.items()
            if name.startswith(f"{prefix}.")
        }


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """The optimizer's moments, by parameter number and name."""
    state = optimizer.state_dict()["state"]
    return {f"{i}.{name}": value for i, values in state.items() for name, value in values.items() if value is not None}


def restore_optimizer(optimizer: Optimizer, tensors: dict[str, Tensor]) -> None:
    """The reverse of :func:`optimizer_tensors`; learning rates are not part of it."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def generator_tensors(generator: Generator) -> dict[str, Tensor]:
    """Torch's own generator, which dropout uses, and ours."""
    return {"torch": torch.get_rng_state(), "ours": generator.get_state()}


def restore_generators(generator: Generator, tensors: dict[str, Tensor]) -> None:
    """The reverse of :func:`generator_tensors`."""
    torch.set_rng_state(tensors["torch"])
    generator.set_state(tensors["ours"])
