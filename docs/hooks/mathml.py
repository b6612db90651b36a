"""Turn the formulas of a page into MathML, which browsers draw without any script.

Where latex2mathml is not installed the formulas stay as TeX source.
"""

import html
import re
from typing import Any

try:
    from latex2mathml.converter import convert
except ImportError:
    convert = None

FORMULA = re.compile(
    r'<(?P<tag>div|span) class="arithmatex">\\[\[(](?P<tex>.*?)\\[\])]</(?P=tag)>',
    re.DOTALL,
)


def on_page_content(content: str, **_: Any) -> str:
    """Replace every formula of the page."""
    if convert is None:
        return content

    def to_mathml(match: re.Match[str]) -> str:
        display = "block" if match["tag"] == "div" else "inline"
        return convert(html.unescape(match["tex"]).strip(), display=display)

    return FORMULA.sub(to_mathml, content)
