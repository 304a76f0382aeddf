"""``imm lm``: train a language model that matches a bigram, and measure one."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from imm.cli.figures import show

app = typer.Typer(no_args_is_help=True, help="Train a language model that matches a bigram, and measure one.")

AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
SHORT_FORMS = {name: f"imm-{name}" for name in ("exact", "sampled", "serialized", "streaming")}


def _setting(panel: str, text: str, *names: str) -> Any:
    """An option for a setting: not given, the preset's value stays."""
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False)


@app.command()
def train(
    train: Annotated[Path, typer.Option(help="The text to learn from, UTF-8, one sentence a line.")],
    valid: Annotated[
        Path,
        typer.Option(help="The text that tells which epoch's model is best; with --model FOLDER the last is kept."),
    ],
    test: Annotated[Path | None, typer.Option(help="A text that the best model is judged on.")] = None,
    ngram_text: Annotated[
        Path | None, typer.Option(help="A larger text to count the bigram on; if not given, the training text.")
    ] = None,
    ngram: Annotated[
        Path | None,
        typer.Option(help="A bigram instead of a text for it: what `imm ngram fit` wrote, or an ARPA file."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The run's folder. A run that was interrupted there continues.")] = Path(
        "imm-lm"
    ),
    method: Annotated[
        str | None,
        typer.Option(
            help="none, kn-noising, unigram-noising, soft-noising, label-smoothing, reverse-kd, interpolation,"
            " imm-exact, imm-sampled, imm-serialized, imm-streaming; the last four also without imm-. Not given: none,"
            " or imm-sampled with the presets paper and authors-code.",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(help="Settings to begin with: small (minutes), paper or authors-code (days).")
    ] = "small",
    level: Annotated[str, typer.Option(help="What is predicted: word or char.")] = "word",
    min_count: Annotated[int, typer.Option(help="Words that occur less often are <unk>.")] = 1,
    model: Annotated[
        str | None,
        _setting("Model", "lstm or transformer; or a model of transformers to fine-tune: its folder or name."),
    ] = None,
    width: Annotated[int | None, _setting("Model", "Of embedding and layers.")] = None,
    layers: Annotated[int | None, _setting("Model", "How many.")] = None,
    heads: Annotated[int | None, _setting("Model", "Of the transformer's attention.")] = None,
    dropout: Annotated[float | None, _setting("Model", "0 for none.")] = None,
    tied: Annotated[bool | None, _setting("Model", "Whether embedding and output share weights.")] = None,
    optimizer: Annotated[
        str | None,
        _setting(
            "Training", "sgd, or adamw, whose learning rate falls to zero over the epochs; transformers have adamw."
        ),
    ] = None,
    learning_rate: Annotated[
        float | None, _setting("Training", "At the beginning; of adamw, 0.003 unless told.")
    ] = None,
    decay_after: Annotated[
        int | None,
        _setting("Training", "From this epoch on it is reduced after each; 0: when valid gets no better (sgd)."),
    ] = None,
    epochs: Annotated[int | None, _setting("Training", "At most.")] = None,
    batch_size: Annotated[int | None, _setting("Training", "Columns that the text is cut into.")] = None,
    unroll: Annotated[int | None, _setting("Training", "L: words in a window.")] = None,
    seed: Annotated[int | None, _setting("Training", "Of all random numbers.")] = None,
    lam: Annotated[float | None, _setting("Matching", "λ of IMM and of reverse KD.")] = None,
    gamma: Annotated[float | None, _setting("Matching", "γ of noising and smoothing.")] = None,
    falls: Annotated[
        bool | None, _setting("Matching", "Whether λ or γ falls from there, linearly to zero over the epochs.")
    ] = None,
    n_contexts: Annotated[int | None, _setting("Matching", "k: contexts of a word (sampled).")] = None,
    every: Annotated[int | None, _setting("Matching", "j: batches from one with k contexts to the next (sampled).")] = (
        None
    ),
    positions: Annotated[
        int | None,
        _setting(
            "Matching",
            "m: positions of such a batch that are matched, 0 for all (sampled); of each row with a folder as --model"
            " (sampled, exact).",
        ),
    ] = None,
    refresh_every: Annotated[
        int | None, _setting("Matching", "r: steps from one copy to the next, 0 for an epoch (serialized).")
    ] = None,
    memory: Annotated[float | None, _setting("Matching", "K: predictions that a mean remembers (streaming).")] = None,
    lifetime: Annotated[
        float | None, _setting("Matching", "τ: batches that it remembers them for (streaming).")
    ] = None,
    table_mb: Annotated[
        int | None,
        _setting(
            "Matching",
            "The most MB for induced bigrams (serialized, streaming) or, of our own models, states (exact, sampled).",
        ),
    ] = None,
    start_below: Annotated[
        float | None, _setting("Matching", "Matching begins when valid's perplexity is below; 0 for at once.")
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard's files too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a language model on a text; with a bigram of the same or a larger text, if --method says so.

    Interrupted, the same command continues where it stopped. Finished, it prints the figures again.
    """
    options = dict(locals())  # a setting has the name of its option
    from imm.cli.lm_run import bigram_alone, describe, show_table
    from imm.cli.progress import reading, training
    from imm.language import Run, Settings, Texts
    from imm.language.claim import claimed
    from imm.language.methods import check_counts
    from imm.language.metrics import check_tensorboard
    from imm.language.settings import without_effect

    names = [field for field in Settings.__dataclass_fields__ if options.get(field) is not None]
    chosen = {name: options[name] for name in names}
    if method in SHORT_FORMS:
        chosen["method"] = SHORT_FORMS[method]
    if model not in (None, "lstm", "transformer"):
        ours = {"preset": preset != "small", "level": level != "word", "min_count": min_count != 1}
        given = [name for name, used in {**ours, "tensorboard": tensorboard}.items() if used]
        files = {"train": train, "valid": valid} | ({} if test is None else {"test": test})
        _fine_tune(chosen, given, files, {"ngram_text": ngram_text, "ngram": ngram}, out, as_json)
        return
    settings = Settings.preset(preset, **chosen)
    if tensorboard:
        check_tensorboard()
    with reading("reading") as progress:
        texts = Texts.read(train, valid, test, ngram_text, ngram, level, min_count, progress)
    check_counts(settings, texts)
    with claimed(out, settings.to_json(), texts.fingerprint()):  # before anything is said
        option = "--ngram" if ngram is not None else "--ngram-text" if ngram_text is not None else ""
        if option and settings.method in ("none", "label-smoothing"):
            unused = f"method {settings.method} uses no bigram: {option} gives words to the vocabulary only"
            typer.echo(unused, err=True)
        _name_unused(settings.method, without_effect(settings.method, chosen))
        others = {"heads": settings.model == "lstm", "decay_after": settings.optimizer == "adamw"}
        for name in others.keys() & chosen:
            if others[name]:
                typer.echo(f"{_option(name)} changes nothing with {settings.model} and {settings.optimizer}", err=True)
        figures = describe(settings, texts)
        run = Run(settings, texts, out, tensorboard)
    steps = len(run.windows)
    finished = run.position.done
    if run.position.step and not finished:
        typer.echo(f"continues after step {run.position.step:,} of {settings.epochs * steps:,}", err=True)
    with training(run.position.step, settings.epochs * steps, steps) as report:
        figures = run.train(report) | bigram_alone(texts) | figures
    if finished:
        typer.echo("this run is finished: its figures again", err=True)
    if as_json:
        show({"method": settings.method, **figures, "folder": str(out)}, as_json)
    else:
        show_table(settings, figures)
        typer.echo(f"Epoch {figures['best_epoch']} of {figures['epochs']} was best. Written to {out}")


def _fine_tune(
    chosen: dict[str, Any],
    given: list[str],
    texts: dict[str, Path],
    counted: dict[str, Path | None],
    out: Path,
    as_json: bool,
) -> None:
    """A model of transformers: options that only our own models have are refused."""
    from imm.cli.progress import bar
    from imm.language.settings import without_effect

    try:
        from imm.language.huggingface import load_tokenizer
        from imm.language.huggingface.fine_tuning import METHODS_OF, FineTuning, fine_tune

        load_tokenizer(chosen["model"])
    except OSError as error:
        raise OSError(f"--model is lstm, transformer, or a model of transformers; {error}") from None
    except ModuleNotFoundError as error:
        raise ValueError(
            f"--model is lstm, transformer, or a model of transformers, and for one the package {error.name} is needed:"
            f" pip install 'imm[transformers]'; got {chosen['model']!r}"
        ) from None
    given += [name for name in chosen if name not in FineTuning.__dataclass_fields__]
    if given:
        ours = f"{_option(given[0])} is for the models lstm and transformer"
        raise ValueError(f"{ours}, and has no meaning for {chosen['model']}")
    if None not in counted.values():
        raise ValueError("--ngram and --ngram-text both say what the bigram is: give one of them")
    settings = FineTuning(**chosen)
    _name_unused(settings.method, without_effect(settings.method, chosen, METHODS_OF))
    with bar("fine-tuning") as progress:
        figures = fine_tune(settings, texts, out, **counted, progress=progress)
    if as_json:
        show({"model": chosen["model"], **figures, "folder": str(out)}, as_json)
    else:
        show(figures, as_json)
        typer.echo(f"Per token. The model is in {out / 'model'}")


@app.command(name="eval")
def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `imm lm train` wrote, or its model/.")],
    text: Annotated[Path, typer.Option(help="A text file, UTF-8, one sentence a line.")],
    induced: Annotated[
        Path | None,
        typer.Option(help="A text, that of training as a rule: the bigram induced over its contexts is measured too."),
    ] = None,
    table_mb: Annotated[int, typer.Option(help="The most MB for the table of that bigram.")] = 1024,
    as_json: AsJson = False,
) -> None:
    """Perplexity of a text; unknown words are predicted as <unk>, and count."""
    from imm.cli.progress import reading
    from imm.language import induced_ngram, load_model
    from imm.language.evaluation import log_likelihoods, perplexity
    from imm.language.texts import read_tokens

    if (folder / "settings.json").exists() and not (folder / "model").exists():
        lost = (folder / "result.json").exists()
        why = "has lost its model" if lost else "has no model yet: its first epoch is not over"
        raise ValueError(f"{folder} holds a run that {why}")
    inner = folder / "model"
    if any((place / "config.json").exists() for place in (folder, inner)):
        raise ValueError(f"{folder} holds a model of transformers: its run has the figures, in result.json")
    model, vocabulary, settings = load_model(inner if (inner / "model.json").exists() else folder)
    mb = 4 * len(vocabulary) ** 2 / 1e6
    if induced is not None and mb > table_mb:
        raise ValueError(
            f"the induced bigram of {len(vocabulary):,} words takes {mb:,.0f} MB, more than --table-mb {table_mb}"
        )
    with reading("reading") as progress:
        tokens, unknown = read_tokens(text, vocabulary, progress)
        contexts = None if induced is None else read_tokens(induced, vocabulary, progress)[0]
    if settings.method == "interpolation":
        typer.echo("this is the model without the bigram that its run mixed in", err=True)
    found = log_likelihoods(model, tokens, settings.unroll)
    figures = {"perplexity": perplexity(found), "tokens": len(found), "unknown": unknown}
    if contexts is not None:
        typer.echo(f"table of the induced bigram: {mb:,.0f} MB", err=True)
        bigram = induced_ngram(model, contexts, len(vocabulary), settings.unroll, settings.batch_size)
        figures["induced_perplexity"] = bigram.perplexity(tokens)
    show(figures, as_json)


def _name_unused(method: str, names: Iterable[str]) -> None:
    """Says on standard error which of the chosen settings the method does not have."""
    for name in names:
        typer.echo(f"method {method} has no {_option(name)}: it changes nothing", err=True)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
