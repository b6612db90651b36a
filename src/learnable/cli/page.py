"""`learnable page`: look at tables, compare models and look into them in a browser, on this machine alone."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options

#: Shown by --help.
EXAMPLES = (
    "learnable page                               a page to drop tables on",
    "learnable page houses.csv                    with a table to begin with",
    "learnable page --folder work                 keep tables, runs and models in a folder",
)


def page(
    data: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help="A table to begin with: a file, or demo:houses, demo:tumours."),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where work is kept, also for the next time; by default until the end."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="The port; by default a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open a browser.")] = True,
    debug: options.Debug = False,
) -> None:
    """Open the page: tables, a live leaderboard, a look into the best model, predictions, files to keep.

    Nothing leaves this machine: the page listens on 127.0.0.1 and takes only the browser that got its link.
    """
    try:
        from ..page.serve import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        from ..core.errors import LearnableError

        raise LearnableError(
            f"this needs {error.name}, which is not installed: pip install 'learnable[page]'"
        ) from None
    serve(data, folder=folder, port=port, browser=browser)
