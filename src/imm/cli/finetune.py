"""``imm finetune``: train a causal model of transformers further, with an n-gram to match."""

from pathlib import Path
from typing import Annotated, Any

import typer

from imm.cli.lm_messages import name_unused
from imm.cli.output import show
from imm.extras import install


def _setting(text: str) -> Any:
    """An option for a setting: not given, the setting's default stays."""
    return typer.Option(help=text, show_default=False)


def finetune(
    model: Annotated[
        str,
        typer.Option(help="A causal model of transformers: its folder, or the name of one that is on this machine."),
    ],
    train: Annotated[Path, typer.Option(help="The text to learn from, UTF-8, one sentence a line.")],
    valid: Annotated[Path, typer.Option(help="A text that the model is judged on, before and after.")],
    test: Annotated[Path | None, typer.Option(help="Another text that it is judged on.")] = None,
    ngram_text: Annotated[
        Path | None, typer.Option(help="A larger text to count the bigram on; if not given, the training text.")
    ] = None,
    ngram: Annotated[
        Path | None,
        typer.Option(
            help="A bigram instead of a text for it: what `imm ngram fit --tokenizer` wrote, or an ARPA file."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The run's folder. A run that was interrupted there continues.")] = Path(
        "imm-finetune"
    ),
    method: Annotated[str | None, _setting("none, streaming, sampled or exact; streaming if not given.")] = None,
    epochs: Annotated[int | None, _setting("How often the text is read; 3 if not given.")] = None,
    batch_size: Annotated[int | None, _setting("Rows of a batch.")] = None,
    unroll: Annotated[int | None, _setting("Tokens of a row.")] = None,
    learning_rate: Annotated[float | None, _setting("Of AdamW, at the beginning.")] = None,
    seed: Annotated[int | None, _setting("Of all random numbers.")] = None,
    lam: Annotated[float | None, _setting("λ of IMM.")] = None,
    n_contexts: Annotated[int | None, _setting("k: contexts of a place (sampled).")] = None,
    positions: Annotated[
        int | None, _setting("How many places of each row are matched, 0 for all (sampled, exact).")
    ] = None,
    memory: Annotated[float | None, _setting("K: predictions that a mean remembers (streaming).")] = None,
    lifetime: Annotated[float | None, _setting("τ: batches that it remembers them for (streaming).")] = None,
    table_mb: Annotated[int | None, _setting("The most MB for induced bigrams (streaming).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Train a causal model of transformers further on a text, and match it to a bigram of the same or a larger one.

    Interrupted, the same command continues after the last epoch that was over.
    """
    options = dict(locals())  # a setting has the name of its option
    from imm.cli.progress import bar
    from imm.language.settings import without_effect

    try:
        from imm.huggingface import load_tokenizer
        from imm.huggingface.fine_tuning import METHODS_OF, FineTuning, fine_tune
    except ModuleNotFoundError as error:
        raise ValueError(f"imm finetune needs the package {error.name}: {install('transformers')}") from None
    load_tokenizer(model)
    if ngram is not None and ngram_text is not None:
        raise ValueError("--ngram and --ngram-text both say what the bigram is: give one of them")
    chosen = {name: options[name] for name in FineTuning.__dataclass_fields__ if options.get(name) is not None}
    if method in ("exact", "sampled", "streaming"):
        chosen["method"] = f"imm-{method}"
    settings = FineTuning(**chosen)
    name_unused(settings.method, without_effect(settings.method, chosen, METHODS_OF))
    texts = {"train": train, "valid": valid} | ({} if test is None else {"test": test})
    with bar("fine-tuning") as progress:
        figures = fine_tune(settings, texts, out, ngram_text, ngram, progress)
    if as_json:
        show({"model": model, **figures, "folder": str(out)}, as_json)
    else:
        show(figures, as_json)
        typer.echo(f"Per token. The model is in {out / 'model'}")
