"""``imm ngram``: count and smooth n-grams, perplexity, ARPA files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imm.cli.output import show
from imm.extras import install

if TYPE_CHECKING:
    from imm.ngram import Ngram

app = typer.Typer(no_args_is_help=True, help="Count and smooth n-grams, measure perplexity, write ARPA files.")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="What `imm ngram fit` wrote.")]
FolderOrFile = Annotated[Path, typer.Argument(metavar="DIR", help="What `imm ngram fit` wrote, or an ARPA file.")]
Text = Annotated[Path, typer.Option(help="A text file, UTF-8, one sentence a line.")]
Tokens = Annotated[
    Path | None,
    typer.Option("--tokenizer", help="A Hugging Face model's folder or name: its tokens are the words."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


@app.command()
def fit(
    text: Text,
    out: Annotated[Path, typer.Option(help="The folder to write; a model that is there is replaced.")],
    order: Annotated[int, typer.Option(help="Of the n-grams, 2 or more.")] = 2,
    convention: Annotated[
        str, typer.Option(help="stream: one stream with <eos>, as in the paper. sentence: <s> and </s>, as KenLM.")
    ] = "stream",
    min_count: Annotated[int, typer.Option(min=1, help="Words that occur less often are <unk>.")] = 1,
    vocabulary: Annotated[
        Path | None, typer.Option(help="A file with the only words to know, separated by white space.")
    ] = None,
    zero_counts: Annotated[
        str | None,
        typer.Option(
            help="Stream only; a word that never follows another: one (as if it did once; the default) or keep.",
            show_default=False,
        ),
    ] = None,
    tokenizer: Tokens = None,
    as_json: AsJson = False,
) -> None:
    """Count the n-grams of a text and smooth them (modified Kneser-Ney)."""
    from imm.cli.progress import reading
    from imm.files import check_replaceable, check_writable
    from imm.language import fit_ngram
    from imm.language.text_file import words_in
    from imm.ngram import check_zero_counts, save
    from imm.ngram.persistence import SETTINGS

    if tokenizer is not None and (convention != "stream" or min_count != 1 or vocabulary is not None):
        raise ValueError("--tokenizer has its own words: leave out --convention, --min-count and --vocabulary")
    if zero_counts is not None and convention == "sentence":
        raise ValueError(
            "--zero-counts is for --convention stream: in the other every word has a share of a uniform one"
        )
    check_replaceable(out, SETTINGS)
    check_writable(out)
    zero_counts = zero_counts or "one"
    check_zero_counts(zero_counts)
    words = None if vocabulary is None else words_in(vocabulary)
    hugging = None if tokenizer is None else _huggingface()
    with reading("counting") as progress:
        if hugging is not None and tokenizer is not None:
            tokens = hugging.load_tokenizer(tokenizer)
            rows = hugging.token_rows(text, tokens, progress)
            model = hugging.fit_token_ngram(rows, tokens, order, hugging.model_words(tokenizer), zero_counts)
        else:
            model = fit_ngram(
                text,
                order,
                convention,
                min_count=min_count,
                vocabulary=words,
                zero_counts=zero_counts,
                progress=progress,
            )
    save(model, out)
    sizes = [len(model.classes), *(len(level.keys) for level in model.trie.levels)]
    figures: dict[str, Any] = {"vocabulary": sizes[0]}
    for n, (size, discounts) in enumerate(zip(sizes, model.about.discounts, strict=True), 1):
        figures[f"ngrams_{n}"] = size
        if discounts is not None:
            figures |= {f"d{j}_{n}": amount for j, amount in enumerate(discounts.amounts, 1)}
    show(figures, as_json)
    if note := fallback_note(model):
        typer.echo(note, err=True)
    if not as_json:
        typer.echo(f"Written to {out}")


def fallback_note(model: "Ngram") -> str:
    """Says which discounts were not estimated, if any."""
    orders = model.about.fallback_orders
    if not orders:
        return ""
    some = ", ".join([*map(str, orders[:5]), *(["…"] if len(orders) > 5 else [])])
    return f"Too few counts of counts for order {some}: the discounts there are 0.5, 1, 1.5"


@app.command(name="eval")
def evaluate(folder: FolderOrFile, text: Text, tokenizer: Tokens = None, as_json: AsJson = False) -> None:
    """Perplexity of a text; unknown words are predicted as <unk>, and count."""
    from imm.cli.progress import reading
    from imm.language import perplexity
    from imm.language.ngram_files import read_ngram

    model = read_ngram(folder)
    with reading("predicting") as progress:
        if tokenizer is None:
            result, unknown = perplexity(model, text, progress)
        else:
            hugging = _huggingface()
            result, unknown = hugging.token_perplexity(model, text, hugging.load_tokenizer(tokenizer), progress)
    show(
        {
            "perplexity": result.perplexity,
            "tokens": result.tokens,
            "unknown": unknown,
            "zeros": result.zeros,
            "perplexity_without_zeros": result.perplexity_without_zeros,
        },
        as_json,
    )


@app.command()
def export(
    folder: Folder,
    arpa: Annotated[Path, typer.Option(help="The file to write; .gz compresses. One that is there is replaced.")],
) -> None:
    """Write an ARPA file, which KenLM, SRILM and others read (KenLM those of the convention sentence only)."""
    from imm.files import check_writable
    from imm.ngram import load
    from imm.ngram.arpa import write_arpa

    check_writable(arpa)
    model = load(folder)
    write_arpa(model, arpa)
    if model.about.bos is None:
        typer.echo("KenLM does not read this: it has no <s>, as those of --convention sentence have", err=True)
    typer.echo(f"Written to {arpa}")


def _huggingface() -> Any:
    """Imported where it is asked for: it takes seconds, and may not be there."""
    try:
        from imm import huggingface
    except ModuleNotFoundError as error:
        raise ValueError(f"--tokenizer needs the package {error.name}: {install('transformers')}") from None
    return huggingface
