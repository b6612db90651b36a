"""Values on the command line: Python literals, words, and kernels such as `Matern(nu=1.5) + White()`.

Nothing is executed: the text is parsed, and only literals, names of registered kernels, + and * are understood.
"""

from __future__ import annotations

import ast
from typing import Any

_WORDS = {"true": True, "false": False, "none": None, "null": None, "inf": float("inf")}


def parse_value(text: str) -> Any:
    """Return the Python value that a text on the command line stands for: numbers, true, false, none, lists, else text.

    Examples
    --------
    >>> from learnable.cli.expressions import parse_value
    >>> parse_value("0.5"), parse_value("true"), parse_value("[1, 10]"), parse_value("auto"), parse_value("inf")
    (0.5, True, [1, 10], 'auto', inf)
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def parse_kernel(text: str) -> Any:
    """Return the kernel that an expression stands for; a text without parentheses is a name, and stays one.

    Examples
    --------
    >>> from learnable.cli.expressions import parse_kernel
    >>> parse_kernel("2 * Gaussian(1.5) + White(noise=0.1)"), parse_kernel("rbf")
    (2.0 * Gaussian(length_scale=1.5) + White(noise=0.1), 'rbf')
    """
    if "(" not in text:
        return parse_value(text)
    from ..core.errors import ParameterError

    try:
        return _kernel(ast.parse(text, mode="eval").body)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        if isinstance(error, ParameterError):
            raise
        from ..core.entries import KERNELS

        raise ParameterError(
            f"fit: kernel must be a sum or product of {', '.join(KERNELS)} with numbers, for example "
            f"'Constant(1) * Gaussian(1) + White(0.1)'; got {text!r}: {str(error).splitlines()[0]}."
        ) from error


def _kernel(node: ast.expr) -> Any:
    """Return what a node stands for; ValueError if it is neither a kernel nor a literal."""
    from ..core.entries import KERNELS
    from ..core.registry import resolve

    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        left = _kernel(node.left)
        right = _kernel(node.right)
        return left + right if isinstance(node.op, ast.Add) else left * right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id not in KERNELS:
            raise ValueError(f"there is no kernel {node.func.id!r}")
        given = [ast.literal_eval(argument) for argument in node.args]
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
        return resolve(KERNELS[node.func.id].path)(*given, **named)
    return ast.literal_eval(node)
