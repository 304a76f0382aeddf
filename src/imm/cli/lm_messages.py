"""What ``imm lm train`` says of a run: before it what is about to be trained, after it the figures."""

import math
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from imm.cli.ngram import fallback_note
from imm.cli.output import show

if TYPE_CHECKING:
    from imm.language import BigramDiagnosis, Settings, Texts

NEXT_TO_NOTHING = 0.01
"""Nats a word: a perplexity that is one percent lower."""


def describe(settings: "Settings", texts: "Texts") -> dict[str, Any]:
    """Says on standard error what is about to be trained, before memory is taken for it; the same as figures."""
    from imm.language.methods import describe_table, states_mb
    from imm.language.model import shape_only
    from imm.language.windows import Windows

    n_words = len(texts.vocabulary)
    windows = Windows(texts.train, settings.batch_size, settings.unroll)
    model = shape_only(n_words, replace(settings, unroll=windows.unroll))
    figures: dict[str, Any] = {"vocabulary": n_words, "parameters": sum(p.numel() for p in model.parameters())}
    notes = [f"vocabulary: {n_words:,} {texts.vocabulary.level}s"]
    for name, tokens in {"train": texts.train, **texts.judged}.items():
        figures |= {f"{name}_tokens": len(tokens), f"{name}_unknown": texts.unknown[name]}
        notes.append(f"{name}: {len(tokens):,} tokens, {texts.unknown[name]:,} unknown")
    if texts.counts is not None:
        figures["ngram_tokens"] = int(texts.counts.sum())
        notes.append(f"bigram: counted on {figures['ngram_tokens']:,} tokens")
        notes += [note] if (note := fallback_note(texts.bigram)) else []
    else:
        trie = texts.bigram.trie
        notes.append(f"bigram: {len(trie.levels[0].keys):,} pairs of words, as given")
        if n_never := int((trie.base == 0).sum()):
            among = "" if trie.base[texts.vocabulary.unk] else ", unknown ones among them"
            never = f"the bigram gives {n_never:,} words no probability{among}"
            notes.append(f"{never}: where they stand its own perplexity is infinite")
    notes.append(f"LSTM: {figures['parameters']:,} parameters; method: {settings.method}")
    if settings.method in ("imm-serialized", "imm-streaming"):
        span = min(settings.memory, settings.lifetime) if settings.method == "imm-streaming" else math.inf
        notes.append(describe_table(n_words, settings.table_mb, span))
    if settings.method in ("imm-exact", "imm-sampled"):
        size = states_mb(windows, model.initial_state(windows.batch_size))
        notes.append(f"states of {windows.inputs.numel():,} words: {size:,.0f} MB")
    if (windows.batch_size, windows.unroll) != (settings.batch_size, settings.unroll):
        notes.append(
            f"the training text does not fill {settings.batch_size} columns of windows of {settings.unroll} words:"
            f" {windows.batch_size} of windows of {windows.unroll} instead"
        )
    typer.echo("\n".join(notes), err=True)
    return figures


def bigram_alone(texts: "Texts") -> dict[str, float]:
    """How well the bigram does alone."""
    from imm.ngram import evaluate

    return {
        f"bigram_{name}_perplexity": evaluate(texts.bigram, [tokens.numpy()]).perplexity
        for name, tokens in texts.judged.items()
    }


def show_table(settings: "Settings", figures: dict[str, Any]) -> None:
    """The model's perplexities above the bigram's."""
    from rich.console import Console
    from rich.table import Table

    names = [name for name in ("valid", "test") if f"{name}_perplexity" in figures]
    table = Table(f"perplexity, {figures['vocabulary']:,} words")
    for name in names:
        table.add_column(name, justify="right")
    label = f"LSTM, {settings.method}"
    for row, prefix in ((label, ""), ("the bigram alone", "bigram_")):
        table.add_row(row, *(f"{figures[f'{prefix}{name}_perplexity']:,.2f}" for name in names))
    Console().print(table)


def show_diagnosis(found: "BigramDiagnosis", as_json: bool) -> None:
    """Prints the perplexities of a diagnosis and what they mean."""
    if as_json:
        show({**asdict(found), "before": found.before, "room": found.room}, as_json)
        return
    from rich.console import Console
    from rich.table import Column, Table

    labels = {
        "the model": found.model,
        "the bigram that it induces": found.induced,
        "the old bigram": found.old,
        f"both bigrams mixed, {found.ratio:.0%} of the old": found.mixed,
    }
    table = Table("", Column("perplexity", justify="right"))
    for label, value in labels.items():
        table.add_row(label, f"{value:.2f}")
    Console().print(table)
    better = "better" if found.before > 0 else "worse"
    typer.echo(
        f"At predicting a word from the one before, the old bigram is {better} than the model's own average by"
        f" {abs(found.before):.3f} nats a word.\nMixed in, it takes {found.room:.3f} nats off: this is what IMM can"
        f" teach the model{', next to nothing' if found.room < NEXT_TO_NOTHING else ''}."
    )


def model_folder(folder: Path) -> Path:
    """Returns where the trained model of a run is; ``folder`` is the run's, or the model's own."""
    inner = folder / "model"
    if (folder / "settings.json").exists() and not inner.exists():
        lost = (folder / "result.json").exists()
        why = "has lost its model" if lost else "has no model yet: its first epoch is not over"
        raise ValueError(f"{folder} holds a run that {why}")
    if any((place / "config.json").exists() for place in (folder, inner)):
        raise ValueError(f"{folder} holds a model of transformers: its run has the figures, in result.json")
    return inner if (inner / "model.json").exists() else folder


def name_unused(method: str, names: Iterable[str]) -> None:
    """Says on standard error which of the chosen settings the method does not have."""
    for name in names:
        typer.echo(f"method {method} has no --{name.replace('_', '-')}: it changes nothing", err=True)
