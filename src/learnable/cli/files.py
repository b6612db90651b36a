"""Where the tool writes: nothing that is there is replaced without a word.

A name that the tool chose gets a number if it is taken: `report-2.html`; `--force` takes it all the same. A name that
the user gave is used, and the tool says that it replaced a file. What a command reads is never written over.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from . import options


def output_file(
    given: str | None, default: str, *, force: bool = False, reads: Sequence[str] = ()
) -> tuple[str, str | None]:
    """Return where to write, and what to say of a file that is there already.

    Parameters
    ----------
    given : str or None
        What the user asked for.
    default : str
        The tool's own name.
    force : bool
        Whether the tool's own name may replace a file.
    reads : sequence of str
        Files that the command reads, which may not be replaced.

    Examples
    --------
    >>> import os, tempfile
    >>> from learnable.cli.files import output_file
    >>> os.chdir(tempfile.mkdtemp())
    >>> output_file(None, "report.html")
    ('report.html', None)
    >>> open("report.html", "w").close()
    >>> output_file(None, "report.html")
    ('report-2.html', 'report.html is there already, so this one is report-2.html (--force replaces it)')
    >>> output_file("report.html", "report.html")
    ('report.html', 'report.html was there already and is replaced')
    """
    name = default if given is None else given
    if not os.path.lexists(name):
        return name, None
    for file in reads:
        if os.path.exists(file) and os.path.exists(name) and os.path.samefile(file, name):
            raise options.WrongUsageError(f"{name} is read by this command and would be replaced; give another name")
    if given is not None or force:
        return name, f"{name} was there already and is replaced"
    path = Path(default)
    number = 2
    while os.path.lexists(path.with_stem(f"{path.stem}-{number}")):
        number += 1
    free = str(path.with_stem(f"{path.stem}-{number}"))
    return free, f"{name} is there already, so this one is {free} (--force replaces it)"


def given_file(given: str | None, *reads: str) -> str | None:
    """Return what to say of a file that the user named and that is there already; None if there is nothing to say."""
    return None if given is None else output_file(given, given, reads=reads)[1]
