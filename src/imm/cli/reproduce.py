"""``imm reproduce``: a table or figure of the paper; and the same command for other lists of studies."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from imm.experiments import STUDIES, Study


def command(studies: Sequence[Study], about: str) -> Callable[..., None]:
    """Returns the command that runs these studies, with ``about`` as the first paragraph of its help."""
    by_name = {study.name: study for study in studies}

    def reproduce(
        names: Annotated[
            list[str] | None, typer.Argument(help="What to reproduce, or `all`.", show_default=False)
        ] = None,
        list_names: Annotated[bool, typer.Option("--list", help="Name what can be reproduced, and stop.")] = False,
        quick: Annotated[bool, typer.Option("--quick", help="A smaller version that takes seconds.")] = False,
        runs: Annotated[int | None, typer.Option(help="Monte-Carlo runs.", show_default=False)] = None,
        jobs: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
        seed: Annotated[int | None, typer.Option(help="Of all random numbers.", show_default=False)] = None,
        data: Annotated[
            Path | None, typer.Option(help="Where data sets are, else IMM_DATA.", show_default=False)
        ] = None,
        model: Annotated[
            str | None, typer.Option(help="bert-glue: other weights, a folder or a name.", show_default=False)
        ] = None,
        rows: Annotated[
            int | None, typer.Option(help="bert-glue: so many training rows of each task.", show_default=False)
        ] = None,
        out: Annotated[Path, typer.Option(help="Where results are written, a folder for each name.")] = Path("out"),
        partial: Annotated[
            bool,
            typer.Option("--partial", help="Run nothing: write the result of what is finished, and say what is not."),
        ] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    ) -> None:
        if list_names:
            width = max(map(len, by_name))
            typer.echo("\n".join(f"{study.name:{width}}  {study.title}" for study in studies))
            return
        wanted = list(by_name) if "all" in (names or ()) else list(dict.fromkeys(names or ()))
        unknown = [name for name in wanted if name not in by_name]
        if unknown or not wanted:
            given = f"no study is called {unknown[0]!r}" if unknown else "name at least one study, or `all`"
            raise ValueError(f"{given}; there are {', '.join(by_name)}")
        settings = {name: by_name[name].with_options(quick, runs, seed, model=model, rows=rows) for name in wanted}
        if data is not None:
            if not data.is_dir():
                raise FileNotFoundError(f"{data} is not a folder")
            os.environ["IMM_DATA"] = str(data.resolve())  # other processes must find it too
            for name in wanted:
                if by_name[name].reads_data:
                    settings[name] = {**settings[name], "data": str(data.resolve())}

        from imm.cli.progress import bar
        from imm.experiments import reproduce as run
        from imm.report import markdown, write_all

        results = []
        for name in wanted:
            with bar(name) as progress:
                result = run(by_name[name], settings[name], out, jobs, progress, partial)
                write_all(result, by_name[name], out / name)
            results.append(result)
            if not as_json:
                typer.echo(markdown(result, by_name[name].changed(settings[name])))
                if missing := result.get("unfinished"):
                    typer.echo(f"{missing} pieces are not finished; the same command without --partial goes on")
                typer.echo(f"Written to {out / name}\n")
        if as_json:
            typer.echo(json.dumps(results if len(results) > 1 else results[0], indent=1))

    reproduce.__doc__ = f"""{about}

    Interrupted, the same command continues where it stopped. The same seed gives the same rows.
    """
    return reproduce


reproduce = command(STUDIES, "Make a table or figure of the paper again, the paper's numbers beside ours.")
