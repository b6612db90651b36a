"""Reading SVG back: a figure is parsed as XML, which is stricter than a browser."""

import re
from xml.etree import ElementTree

import numpy as np

SPACE = "{http://www.w3.org/2000/svg}"


def parse(figure):
    root = ElementTree.fromstring(figure)
    assert root.tag == SPACE + "svg"
    assert root.get("role") == "img"
    assert root[0].tag == SPACE + "title"
    assert root[0].text
    assert not re.search(r"(?<![a-z])nan(?![a-z])", figure.lower())  # malignant, LinearDiscriminantAnalysis
    return root


def elements(root, tag):
    return list(root.iter(SPACE + tag))


def texts(root):
    return ["".join(node.itertext()) for node in elements(root, "text")]


def points(path):
    """Return the points of a path made of absolute M and L."""
    return np.array([[float(x), float(y)] for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)])


def inside(root):
    """Return whether every coordinate of circles and lines lies in the figure."""
    _, _, width, height = map(float, root.get("viewBox").split())
    places = [points(node.get("d")) for node in elements(root, "path") if node.get("d")]
    places += [np.array([[float(c.get("cx")), float(c.get("cy"))]]) for c in elements(root, "circle")]
    found = np.vstack([place for place in places if len(place)])
    return bool((found >= -1).all() and (found[:, 0] <= width + 1).all() and (found[:, 1] <= height + 1).all())
