"""Models and tokenizers from a folder or the cache; nothing is fetched unless it is asked for, and no code is run."""

from pathlib import Path
from typing import Any


def load_tokenizer(name: str | Path, fetch: bool = False) -> Any:
    """A tokenizer.

    Args:
        name: a folder, or a name on the hub.
        fetch: whether the hub may be asked.
    """
    from transformers import AutoTokenizer

    tokenizer = _load(AutoTokenizer, "tokenizer", name, fetch)
    if set(tokenizer.get_vocab().values()) <= set(tokenizer.all_special_ids):
        # transformers makes one without words of a model's configuration
        raise OSError(f"{name} holds no tokenizer: put it there with tokenizer.save_pretrained({str(name)!r})")
    return tokenizer


def load_model(kind: Any, name: str | Path, fetch: bool = False, **more: Any) -> Any:
    """A model, from safetensors only.

    Args:
        kind: such as ``transformers.AutoModelForCausalLM``.
        name: a folder, or a name on the hub.
        fetch: whether the hub may be asked.
        more: what ``from_pretrained`` takes besides.
    """
    return _load(kind, "model", name, fetch, use_safetensors=True, **more)


def load_whole_model(kind: Any, name: str | Path, **more: Any) -> Any:
    """The same, of a file that has every parameter: what it lacks would begin at random."""
    model, found = load_model(kind, name, output_loading_info=True, ignore_mismatched_sizes=True, **more)
    for key, there, wanted in sorted(found["mismatched_keys"]):
        raise OSError(f"{name} does not fit together: {key} is {tuple(there)}, and {tuple(wanted)} by its config.json")
    if lacking := sorted(found["missing_keys"]):
        others = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise OSError(f"{name} is not a whole {type(model).__name__}: its weights lack {lacking[0]}{others}")
    return model


def model_words(name: str | Path, fetch: bool = False) -> int | None:
    """How many words the model of a folder or name predicts; None where there is a tokenizer and no model."""
    from transformers import AutoConfig

    try:
        config = _load(AutoConfig, "configuration", name, fetch)
    except OSError:
        return None
    size: int | None = getattr(config, "vocab_size", None)
    return size


def _load(kind: Any, what: str, name: str | Path, fetch: bool, **more: Any) -> Any:
    try:
        return kind.from_pretrained(str(name), local_files_only=not fetch, trust_remote_code=False, **more)
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged file leads transformers to
        if Path(name).is_dir():
            raise OSError(f"{name} holds no {what} that can be read: {_line(error)}") from None
        if fetch:
            raise OSError(
                f"there is no folder {name}, and the hub gave no {what} of that name: {_line(error)}"
            ) from None
        raise OSError(
            f"there is no folder {name}, and no {what} of that name was downloaded before: get it with"
            f" `hf download {name}` on a machine with a connection, or give the folder of one that you have"
        ) from None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
