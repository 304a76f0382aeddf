"""A run's folder belongs to one run: it is claimed, and the run's whole state is kept there in one file."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Generator, Tensor
from torch.optim import Optimizer

from imm.files import check_file, check_writable, remove_leftovers, whole_path, write_whole


@contextmanager
def claimed(folder: Path, settings: Mapping[str, Any], texts: str) -> Iterator[None]:
    """A run is made ready inside: where that fails, a folder that was not its own before is given back."""
    path = folder / "settings.json"
    new = not path.exists()
    claim(folder, settings, texts)
    try:
        yield
    except BaseException:
        if new:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # something else is in it
                folder.rmdir()
        raise


def claim(folder: Path, settings: Mapping[str, Any], texts: str) -> None:
    """Writes ``settings.json``, or finds it there with the same content.

    Args:
        folder: the run's.
        settings: JSON values.
        texts: what tells them from others.
    """
    path = folder / "settings.json"
    mine = {"settings": settings, "texts": texts}
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; name a folder for the run")
    if path.exists():
        differences = _differences(_read(path), mine)
        if differences:
            raise ValueError(
                f"{folder} holds a run with other settings or texts ({differences}); give the same ones to continue it,"
                f" or name another folder"
            )
        if not (folder / "result.json").exists():  # there is more to do, and to write
            check_writable(folder / "checkpoint.safetensors")
        for name in ("checkpoint.safetensors", "model", "result.json"):
            remove_leftovers(folder / name)
        return
    remove_leftovers(path)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is there already and holds no run; name another folder")
    try:
        write_whole(path, json.dumps(mine, indent=1) + "\n")
    except OSError as error:
        raise type(error)(f"{folder} cannot be written to: {error.strerror}") from None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text())
        if not isinstance(found, dict):
            raise ValueError("no record")
        return {"settings": dict(found["settings"]), "texts": found["texts"]}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}); name another folder, or remove this one") from None


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """In words; empty if there are none."""
    before, now = there["settings"], here["settings"]
    found = [
        f"{name} is {before.get(name)!r} there and {now.get(name)!r} here"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if there["texts"] != here["texts"]:
        found.append("the texts differ")
    return ", ".join(found)


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
