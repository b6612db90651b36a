"""`learnable lab`: a scene of the laboratory as one page, or the list of scenes."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options
from .tables import load_table, output_file

#: Shown by --help.
EXAMPLES = (
    "learnable lab                                    the scenes there are",
    "learnable lab em                                 EM on a mixture, step by step: em.html",
    "learnable lab tree --table iris.csv -o tree.html the same on a table of your own",
)


def lab(
    scene: Annotated[
        str | None, typer.Argument(metavar="SCENE", help="Which scene; without it, all are listed.")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option("--table", metavar="FILE", help="A table of your own; see the list for what it must hold."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Where the page goes; SCENE.html by default.")
    ] = None,
    force: options.Force = False,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Step through a solver or a model: a picture, the formula, the line of code and the certificate of every step.

    The page is one file that opens in any browser, without a network. The first columns that suit the scene are used,
    and at most 300 rows.
    """
    from ..lab import SCENES

    if scene is None:
        if table is not None or output is not None:
            raise options.WrongUsageError("--table and --output need the name of a scene")
        _list(json)
        return
    if scene not in SCENES:
        import difflib

        near = difflib.get_close_matches(scene, SCENES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(SCENES)}"
        raise options.WrongUsageError(f"there is no scene {scene!r}; {hint}")
    from ..core.model_file import writing

    path, said = output_file(output, f"{scene}.html", force=force, reads=[table] if table else [])
    rows = None if table is None else load_table(table, delimiter=delimiter, encoding=encoding)
    if json:
        import json as json_module

        print(json_module.dumps(SCENES[scene].data(rows), allow_nan=False))
        return
    page = SCENES[scene].page(rows)
    with writing(path) as file:
        file.write(page.encode("utf-8"))
    n_steps = page.count('<section class="lab-step"')
    print(f"{SCENES[scene].title}: {n_steps} steps")
    print(f"page: {path}")
    if said:
        print(f"note: {said}")


def _list(json: bool) -> None:
    from ..lab import SCENES

    if json:
        import json as json_module

        rows = [{"name": one.name, "title": one.title, "text": one.text, "takes": one.takes} for one in SCENES.values()]
        print(json_module.dumps(rows, indent=2))
        return
    from .display import console, table_of

    shown = [[one.name, one.title, one.takes.rstrip(".")] for one in SCENES.values()]
    console().print(table_of(["scene", "what it shows", "a table of your own holds"], shown, whole=[0]))
