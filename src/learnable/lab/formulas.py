r"""Formulas as MathML, which browsers draw without any script, from a short notation of Unicode.

    w_{k+1} = w_k − η∇f(w_k)          _ and ^ set indices and exponents, braces group
    \frac{1}{n} \sum_i^n (y_i − x_i)²   fractions, sums with their limits
    \sqrt{x}, \hat{w}, \log p(x)      roots, hats, words set upright; \text{any words}

Everything else is taken as it stands: letters are names, digits are numbers, the rest are operators.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from ..core.errors import ParameterError
from ..plots.markup import Markup, join, tag

#: Operators whose limits stand below and above them.
_LIMITS: Final = {"sum": "∑", "prod": "∏", "max": "max", "min": "min", "argmax": "arg max", "argmin": "arg min"}
_SCRIPTS: Final = {(True, False): "msub", (False, True): "msup", (True, True): "msubsup"}
_LIMIT_TAGS: Final = {(True, False): "munder", (False, True): "mover", (True, True): "munderover"}
_SPACES: Final = {",": "0.17em", ";": "0.8em"}


@cache
def mathml(text: str) -> Markup:
    r"""Return a formula as a `<math>` element whose text for screen readers is the notation itself.

    Parameters
    ----------
    text : str
        A formula in the notation of this module.

    Returns
    -------
    Markup
        MathML, also a str.

    Examples
    --------
    >>> from learnable.lab import mathml
    >>> mathml("x_1^2")
    '<math ...><mrow><msubsup><mi>x</mi><mn>1</mn><mn>2</mn></msubsup></mrow></math>'
    """
    reader = _Reader(text)
    inside = reader.row(None)
    return tag("math", inside, xmlns="http://www.w3.org/1998/Math/MathML", display="block", alttext=text)


class _Reader:
    """Reads a formula from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def row(self, end: str | None) -> Markup:
        """Return what stands until `end` (or until the text ends) as one row."""
        parts = []
        while self.at < len(self.text) and self.text[self.at] != end:
            if self.text[self.at].isspace():
                self.at += 1
            else:
                parts.append(self._scripted())
        if end is not None:
            self._expect(end)
        return tag("mrow", *parts)

    def _scripted(self) -> Markup:
        atom, has_limits = self._atom()
        scripts: dict[str, Markup] = {}
        while self.at < len(self.text) and self.text[self.at] in "_^":
            mark = self.text[self.at]
            self.at += 1
            if mark in scripts:
                raise ParameterError(f"mathml: {mark!r} stands twice after one symbol in {self.text!r}; use braces.")
            scripts[mark] = self._atom()[0]
        if not scripts:
            return atom
        tags = _LIMIT_TAGS if has_limits else _SCRIPTS
        return tag(tags["_" in scripts, "^" in scripts], atom, *(scripts[mark] for mark in "_^" if mark in scripts))

    def _atom(self) -> tuple[Markup, bool]:
        """Return the next symbol, word or group, and whether its scripts are limits."""
        if self.at >= len(self.text):
            raise ParameterError(f"mathml: something is missing at the end of {self.text!r}.")
        character = self.text[self.at]
        self.at += 1
        if character == "{":
            return self.row("}"), False
        if character == "\\":
            return self._command()
        if character.isdigit() and character.isascii():
            start = self.at - 1
            while self.at < len(self.text) and (self.text[self.at].isdecimal() or self.text[self.at] == "."):
                self.at += 1
            return tag("mn", self.text[start : self.at]), False
        if character.isalpha():
            return tag("mi", character), False
        if character in "()[]|‖":
            return tag("mo", character, stretchy="false"), False
        return tag("mo", character), False

    def _command(self) -> tuple[Markup, bool]:
        if self.text[self.at : self.at + 1] in _SPACES:
            self.at += 1
            return tag("mspace", width=_SPACES[self.text[self.at - 1]]), False
        start = self.at
        while self.at < len(self.text) and self.text[self.at].isascii() and self.text[self.at].isalpha():
            self.at += 1
        word = self.text[start : self.at]
        if word == "frac":
            return tag("mfrac", self._group(), self._group()), False
        if word == "sqrt":
            return tag("msqrt", self._group()), False
        if word in ("hat", "bar"):
            return tag("mover", self._group(), tag("mo", "^" if word == "hat" else "‾"), accent="true"), False
        if word == "text":
            self._expect("{")
            end = self.text.index("}", self.at)
            words = self.text[self.at : end]
            self.at = end + 1
            return tag("mtext", words.replace(" ", "\N{NO-BREAK SPACE}")), False
        if word in _LIMITS:
            return tag("mo", _LIMITS[word], movablelimits="false"), True
        if not word:
            raise ParameterError(f"mathml: a word must follow the backslash in {self.text!r}.")
        return join([tag("mi", word, mathvariant="normal"), tag("mspace", width="0.17em")]), False

    def _group(self) -> Markup:
        self._expect("{")
        return self.row("}")

    def _expect(self, character: str) -> None:
        if self.text[self.at : self.at + 1] != character:
            raise ParameterError(f"mathml: {character!r} is missing at position {self.at} of {self.text!r}.")
        self.at += 1
