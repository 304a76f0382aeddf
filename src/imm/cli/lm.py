"""``imm lm``: train a language model that matches a bigram, and measure one."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from imm.cli.output import show

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
        typer.Option(help="The text that tells which epoch's model is best."),
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
            " or imm-sampled with the preset paper.",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[str, typer.Option(help="Settings to begin with: small (minutes) or paper (days).")] = "small",
    level: Annotated[str, typer.Option(help="What is predicted: word or char.")] = "word",
    min_count: Annotated[int, typer.Option(help="Words that occur less often are <unk>.")] = 1,
    width: Annotated[int | None, _setting("Model", "Of embedding and layers.")] = None,
    layers: Annotated[int | None, _setting("Model", "How many layers of LSTM cells.")] = None,
    dropout: Annotated[float | None, _setting("Model", "0 for none.")] = None,
    tied: Annotated[bool | None, _setting("Model", "Whether embedding and output share weights.")] = None,
    learning_rate: Annotated[float | None, _setting("Training", "Of SGD, at the beginning.")] = None,
    decay_after: Annotated[
        int | None, _setting("Training", "It is halved after each epoch from this one on; 0: when valid does not fall.")
    ] = None,
    epochs: Annotated[int | None, _setting("Training", "At most.")] = None,
    batch_size: Annotated[int | None, _setting("Training", "Columns that the text is cut into.")] = None,
    unroll: Annotated[int | None, _setting("Training", "L: words in a window.")] = None,
    precision: Annotated[
        str | None, _setting("Training", "32; or bf16 for the output layer, faster on processors that know it.")
    ] = None,
    seed: Annotated[int | None, _setting("Training", "Of all random numbers.")] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            help="A trained model, the folder of a run, to begin with: this run is a second stage of it.",
            rich_help_panel="Training",
        ),
    ] = None,
    lam: Annotated[float | None, _setting("Matching", "λ of IMM and of reverse KD.")] = None,
    gamma: Annotated[
        float | None, _setting("Matching", "γ of noising and smoothing; with sampled, on batches without contexts.")
    ] = None,
    falls: Annotated[
        bool | None, _setting("Matching", "Whether λ or γ falls from there, linearly to zero over the epochs.")
    ] = None,
    n_contexts: Annotated[
        int | None, _setting("Matching", "k: contexts of each different word of a batch (sampled).")
    ] = None,
    every: Annotated[int | None, _setting("Matching", "j: batches from one with k contexts to the next (sampled).")] = (
        None
    ),
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
            "The most MB for induced bigrams (serialized, streaming) or states (exact, sampled).",
        ),
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard's files too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a language model on a text; with a bigram of the same or a larger text, if --method says so.

    Interrupted, the same command continues where it stopped. Finished, it prints the figures again.
    """
    options = dict(locals())  # a setting has the name of its option
    from imm.cli.lm_messages import bigram_alone, describe, model_folder, name_unused, show_table
    from imm.cli.progress import reading, training
    from imm.language import Run, Settings, Texts
    from imm.language.methods import check_counts
    from imm.language.run_folder import claimed
    from imm.language.settings import without_effect
    from imm.language.training import identity
    from imm.language.training_log import check_tensorboard

    names = [field for field in Settings.__dataclass_fields__ if options.get(field) is not None]
    chosen = {name: options[name] for name in names}
    if method in SHORT_FORMS:
        chosen["method"] = SHORT_FORMS[method]
    settings = Settings.preset(preset, **chosen)
    if tensorboard:
        check_tensorboard()
    with reading("reading") as progress:
        texts = Texts.read(train, valid, test, ngram_text, ngram, level, min_count, progress)
    check_counts(settings, texts)
    begins = None if start is None else model_folder(start)
    with claimed(out, identity(settings, begins), texts.fingerprint()):  # before anything is said
        option = "--ngram" if ngram is not None else "--ngram-text" if ngram_text is not None else ""
        if option and settings.method in ("none", "label-smoothing"):
            unused = f"method {settings.method} uses no bigram: {option} gives words to the vocabulary only"
            typer.echo(unused, err=True)
        name_unused(settings.method, without_effect(settings.method, chosen))
        figures = describe(settings, texts)
        run = Run(settings, texts, out, tensorboard, start=begins)
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


@app.command(name="eval")
def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `imm lm train` wrote, or its model/.")],
    text: Annotated[Path, typer.Option(help="A text file, UTF-8, one sentence a line.")],
    as_json: AsJson = False,
) -> None:
    """Print the perplexity of a text, per word and per character; unknown words are predicted as <unk>, and count."""
    from imm.cli.lm_messages import model_folder
    from imm.cli.progress import reading
    from imm.language import load_model
    from imm.language.dataset import read_tokens
    from imm.language.evaluation import log_likelihoods, perplexity

    model, vocabulary, settings = load_model(model_folder(folder))
    with reading("reading") as progress:
        tokens, unknown = read_tokens(text, vocabulary, progress)
    if settings.method == "interpolation":
        typer.echo("this is the model without the bigram that its run mixed in", err=True)
    found = log_likelihoods(model, tokens, settings.unroll)
    with text.open(encoding="utf-8") as lines:
        n_characters = sum(map(len, lines))
    figures = {
        "perplexity": perplexity(found),
        "per_character": math.exp(-found.double().sum().item() / n_characters),
        "tokens": len(found),
        "unknown": unknown,
        "vocabulary": len(vocabulary),
    }
    show(figures, as_json)
    if not as_json:
        words = f"{len(vocabulary):,} {vocabulary.level}s"
        typer.echo(f"Models of other vocabularies than these {words} compare per character only.")


@app.command()
def diagnose(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `imm lm train` wrote, or its model/.")],
    train: Annotated[Path, typer.Option(help="The text that the model was trained on.")],
    text: Annotated[Path, typer.Option(help="A text that neither the model nor the bigram has seen.")],
    ngram_text: Annotated[
        Path | None, typer.Option(help="A larger text to count the bigram on; if not given, the training text.")
    ] = None,
    ngram: Annotated[
        Path | None,
        typer.Option(help="A bigram of the same words instead: what `imm ngram fit` wrote, or an ARPA file."),
    ] = None,
    table_mb: Annotated[int, typer.Option(help="The most MB for the table of the induced bigram.")] = 1024,
    as_json: AsJson = False,
) -> None:
    """Measure what a bigram can still teach a trained model, before you train with it.

    Compares the bigram with the one that the model induces, its average over all histories that end in the same word.
    """
    from imm.cli.lm_messages import model_folder, show_diagnosis
    from imm.cli.progress import reading
    from imm.language import diagnose as compare
    from imm.language import load_model
    from imm.language.dataset import read_tokens
    from imm.language.ngram_files import bigram_of_words

    model, vocabulary, settings = load_model(model_folder(folder))
    mb = 4 * len(vocabulary) ** 2 / 1e6
    if mb > table_mb:
        raise ValueError(
            f"the induced bigram of {len(vocabulary):,} words takes {mb:,.0f} MB, more than --table-mb {table_mb}"
        )
    if ngram is not None and ngram_text is not None:
        raise ValueError("--ngram and --ngram-text both say what the bigram is: give one of them")
    with reading("reading") as progress:
        bigram = bigram_of_words(vocabulary, ngram_text or train, ngram, progress)
        seen, _ = read_tokens(train, vocabulary, progress)
        judged, _ = read_tokens(text, vocabulary, progress)
    found = compare(model, seen, judged, bigram, settings.unroll, settings.batch_size)
    show_diagnosis(found, as_json)
