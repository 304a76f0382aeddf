"""An n-gram model as a folder: numbers in safetensors, the rest in JSON."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from imm.files import check_file, first_line, remove_leftovers, whole_folder
from imm.ngram.discounts import Discounts
from imm.ngram.model import About, Ngram, check_convention
from imm.ngram.trie import Floats, Level, Trie
from imm.validation import SUM_TOLERANCE, check_count

FORMAT = 1
SETTINGS, NUMBERS = "ngram.json", "ngram.safetensors"


def save(model: Ngram, folder: Path | str) -> None:
    """Writes ``ngram.json`` and ``ngram.safetensors``; the folder appears whole or not at all."""
    trie = model.trie
    numbers = {"base": trie.base}
    for order, (level, missing) in enumerate(zip(trie.levels, trie.missing, strict=True), 2):
        numbers |= {f"keys.{order}": level.keys, f"values.{order}": level.values, f"missing.{order - 1}": missing}
    settings = {"format": FORMAT, "order": model.order, **asdict(model.about), "classes": model.classes}
    _check_special(settings, len(trie.base))  # or it could not be read again
    with whole_folder(Path(folder), SETTINGS) as place:
        save_file({name: np.ascontiguousarray(array) for name, array in numbers.items()}, place / NUMBERS)
        (place / SETTINGS).write_text(json.dumps(settings, ensure_ascii=False) + "\n", encoding="utf-8")
    remove_leftovers(Path(folder))


def load(folder: Path | str) -> Ngram:
    """What :func:`save` wrote. Nothing in the folder is executed."""
    folder = Path(folder)
    settings = _settings(folder / SETTINGS)
    check_file(folder / NUMBERS)
    try:
        numbers = load_file(folder / NUMBERS)
        orders = range(2, check_count(settings["order"], "order", 2) + 1)
        trie = Trie(
            numbers["base"],
            tuple(Level(numbers[f"keys.{n}"], numbers[f"values.{n}"]) for n in orders),
            tuple(numbers[f"missing.{n - 1}"] for n in orders),
        )
        discounts = tuple(
            None if given is None else Discounts(_three(given["amounts"]), given["estimated"])
            for given in settings["discounts"]
        )
        rest = {name: settings[name] for name in ("convention", "eos", "bos", "unk", "zero_counts")}
        _check_special(rest, len(trie.base))
        if rest["convention"] != "arpa":
            check_convention(rest["convention"], rest["bos"])
        _check(trie, rest["convention"])
        return Ngram(trie, settings["classes"], About(**rest, discounts=discounts))
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} has no {NUMBERS}: it is not a whole n-gram model") from None
    except KeyError as error:
        raise ValueError(f"{folder} is not a whole n-gram model: it has no {error.args[0]}") from None
    except (SafetensorError, TypeError, ValueError) as error:
        raise ValueError(f"{folder} is not a whole n-gram model: {first_line(error)}") from None


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if not path.parent.exists():
            raise FileNotFoundError(f"there is no {path.parent}") from None
        raise FileNotFoundError(f"{path.parent} is not an n-gram model: it has no {SETTINGS}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        raise ValueError(f"{path} is not of format {FORMAT}, which this version reads")
    return settings


def _three(amounts: list[float]) -> tuple[float, float, float]:
    one, two, three = amounts
    return one, two, three


def _check_special(settings: dict[str, Any], n_words: int) -> None:
    numbers = [settings[name] for name in ("eos", "bos", "unk") if settings[name] is not None]
    if not all(type(number) is int and 0 <= number < n_words for number in numbers) or len({*numbers}) < len(numbers):
        raise ValueError(f"eos, bos and unk must be different numbers of the {n_words} words, got {numbers}")


def _check(trie: Trie, convention: str) -> None:
    below = n_words = len(trie.base)
    total = float(trie.base.sum())
    if not (np.isfinite(total) and trie.base.min() >= 0 and (convention == "arpa" or abs(total - 1) < SUM_TOLERANCE)):
        raise ValueError(f"the probabilities of words are negative, or do not sum to 1 but to {total:.6g}")
    for order, (level, missing) in enumerate(zip(trie.levels, trie.missing, strict=True), 2):
        keys = level.keys
        if len(missing) != below or len(level.values) != len(keys):
            raise ValueError(f"the arrays of order {order} do not fit together")
        if keys.dtype != np.int64 or any(each.dtype.kind != "f" for each in (level.values, missing)):
            raise ValueError(f"the arrays of order {order} are of types {keys.dtype}, {level.values.dtype}")
        if len(keys) and (bool((np.diff(keys) <= 0).any()) or keys[0] < 0 or int(keys[-1] >> trie.bits) >= below):
            raise ValueError(f"the keys of order {order} are not ascending, or lead nowhere")
        if not np.isfinite(level.values).all() or not np.isfinite(missing).all():
            raise ValueError(f"among the numbers of order {order} is one that is not finite")
        if len(keys) and int((keys & ((1 << trie.bits) - 1)).max()) >= n_words:
            raise ValueError(f"the n-grams of order {order} have words beyond the {n_words} that there are")
        if convention != "arpa":
            _check_shares(order, level, missing, trie.bits)
        below = len(keys)


def _check_shares(order: int, level: Level, missing: Floats, bits: int) -> None:
    """What was discounted and the missing mass share out one; those of an ARPA file are differences, and need not."""
    total = missing + np.bincount(level.keys >> bits, level.values, len(missing))
    wrong = ~(np.abs(total - 1) <= SUM_TOLERANCE)
    if wrong.any() or missing.min() < 0 or level.values.min(initial=0) < 0:
        found = f" but to {total[wrong][0]:.6g}" if wrong.any() else ""
        raise ValueError(f"the shares of order {order} are negative, or do not add up to 1{found}")
