"""A scene of the laboratory: a method, taken step by step, each step made by the library's own solver or model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from ..core.errors import ParameterError
from ..plots.markup import Markup
from .formulas import mathml

if TYPE_CHECKING:
    from ..core.estimator import Certificate


@dataclass(frozen=True)
class Step:
    """One moment of a scene.

    Attributes
    ----------
    title : str
        What happens, in a few words.
    pictures : tuple of Markup
        SVG figures, the main one first.
    text : str
        What there is to see.
    formula : str
        The formulas of the step, one per line, in the notation of `learnable.lab.mathml`.
    code : str
        The lines of Python that made the step, after those of `Scene.setup`.
    certificates : mapping of str to Certificate
        What the fit of that many steps proves, by the name that its model has in `code`.
    numbers : mapping of str to float
        Values worth reading, by what they are called.
    note : str
        What is known where no certificate says it.
    handle : (int, float, float) or None
        The row that was moved, and where it stands, in coordinates of the main picture.
    """

    title: str
    pictures: tuple[Markup, ...]
    text: str
    formula: str
    code: str
    certificates: Mapping[str, Certificate] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    handle: tuple[int, float, float] | None = None

    @property
    def picture(self) -> Markup:
        """The main picture."""
        return self.pictures[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON types: figures as SVG text, the formula as MathML."""
        return {
            "title": self.title,
            "svg": [str(picture) for picture in self.pictures],
            "text": self.text,
            "formula": "".join(mathml(line) for line in self.formula.splitlines()),
            "code": self.code,
            "certificates": {name: found.to_dict() for name, found in self.certificates.items()},
            "numbers": dict(self.numbers),
            "note": self.note,
            "handle": None if self.handle is None else list(self.handle),
        }


@dataclass(frozen=True)
class Scene:
    """A method to be watched at work, on a built-in table or on one's own.

    Attributes
    ----------
    name : str
        What the command line and addresses call it.
    title, text : str
        What it is about.
    built_in : str
        What the built-in table is, in a sentence; may be empty.
    setup : str
        Python that reads the table and imports what the steps' lines need.
    takes : str
        What a table of one's own has to hold.
    read : function
        table ↦ the arrays that `setup` names; None gives the built-in table.
    build : function
        Those arrays and settings ↦ the steps.
    cover : int
        The step whose picture stands for the scene.

    Examples
    --------
    >>> from learnable.lab import SCENES
    >>> steps = SCENES["kmeans"].steps()
    >>> steps[-1].certificates["model"].holds
    True
    """

    name: str
    title: str
    text: str
    setup: str
    takes: str
    read: Callable[[Any], tuple[Any, ...]]
    build: Callable[..., list[Step]]
    cover: int = -1
    built_in: str = ""

    def about(self, table: Any = None) -> str:
        """Return the text, with a sentence on the built-in table if that is what is shown."""
        return f"{self.built_in} {self.text}" if table is None and self.built_in else self.text

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that `steps` takes, with their defaults."""
        taken = inspect.signature(self.build).parameters.values()
        return {one.name: one.default for one in taken if one.kind is inspect.Parameter.KEYWORD_ONLY}

    def steps(self, table: Any = None, **settings: Any) -> list[Step]:
        """Run the method and return its steps.

        Parameters
        ----------
        table : table, array, dict of columns, path of a file, or None
            Rows to work on, see `takes`; the built-in ones by default.
        **settings
            See `settings`.

        Returns
        -------
        list of Step
            From the first to the last.
        """
        known = self.settings
        for name in settings:
            if name not in known:
                offered = ", ".join(known) or "none"
                raise ParameterError(f"{self.name}: there is no setting {name!r}; there are: {offered}.")
        if table is None and not settings:
            return list(_built_in(self))
        return self._run(table, settings)

    def data(self, table: Any = None, **settings: Any) -> dict[str, Any]:
        """Return the scene as JSON types: what it is, and each step as `Step.to_dict` gives it."""
        found = self.steps(table, **settings)
        return {
            "name": self.name,
            "title": self.title,
            "text": self.about(table),
            "setup": self.setup,
            "takes": self.takes,
            "steps": [step.to_dict() for step in found],
        }

    def markup(self, table: Any = None, *, live: bool = False, **settings: Any) -> Markup:
        """Return the scene as an HTML element: every step in it, and the controls that `player.js` brings to life."""
        from .page import article

        return article(self, self.steps(table, **settings), self.about(table), live)

    def page(self, table: Any = None, *, assets: str | None = None, live: bool = False, **settings: Any) -> str:
        """Return the scene as an HTML page.

        Parameters
        ----------
        table : table, array, dict of columns, path of a file, or None
            As for `steps`.
        assets : str, optional
            Address of the folder that serves `player.css` and `player.js`, for pages that may hold no script of their
            own. By default both are written into the page, which then is one file that needs nothing else.
        live : bool
            Whether every point can be dragged, and letting go sends `lab:drag`, for a page that computes the scene
            again; otherwise a point that can be dragged moves among the places of the steps.
        **settings
            See `settings`.

        Returns
        -------
        str
            The page.
        """
        from .page import whole_page

        return whole_page(self, self.steps(table, **settings), self.about(table), assets, live)

    def _run(self, table: Any, settings: dict[str, Any]) -> list[Step]:
        return self.build(*self.read(table), **settings)


@cache
def _built_in(scene: Scene) -> tuple[Step, ...]:
    """Return the steps on the built-in table, which are always the same."""
    return tuple(scene._run(None, {}))
