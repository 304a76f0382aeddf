"""What matching remembers, in a checkpoint's folder."""

import warnings
from pathlib import Path

from imm.huggingface.matcher import Matcher
from imm.language.run_folder import Checkpoint

FILE = "matching.safetensors"


def save_matching(matcher: Matcher, folder: Path) -> None:
    """Writes the state of the matching and of its draws; the file appears whole or not at all."""
    tensors = {f"state.{name}": tensor for name, tensor in matcher.state_dict().items()}
    tensors |= {f"generator.{name}": each.get_state() for name, each in matcher.generators.items()}
    Checkpoint(tensors, {"matching": matcher.args.matching, "contexts": matcher.contexts}).write(folder / FILE)


def load_matching(matcher: Matcher, folder: Path) -> None:
    """What :func:`save_matching` wrote. Nothing that is read is run."""
    found = Checkpoint.read(folder / FILE)
    if found is None:
        if (folder / "optimizer.pt").exists():
            raise FileNotFoundError(f"{folder} has no {FILE}: it is no checkpoint of an IMMTrainer")
        warnings.warn(
            f"{folder} has parameters only (save_only_model): matching begins anew, as the optimizer does", stacklevel=2
        )
        return
    if found.record["matching"] != matcher.args.matching:
        raise ValueError(
            f"{folder} is of {found.record['matching']} matching, and this run's is {matcher.args.matching}"
        )
    if found.record.get("contexts") != matcher.contexts:
        raise ValueError(f"{folder / FILE} holds running means of other training data than this run's")
    try:
        matcher.load_state_dict(found.under("state"))
        for name, generator in matcher.generators.items():
            generator.set_state(found.tensors[f"generator.{name}"])
    except (KeyError, RuntimeError) as error:
        raise ValueError(
            f"{folder / FILE} is of other data or settings: {' '.join(str(error).split())[:200]}"
        ) from None
