"""Trees as text, Graphviz, SVG and figures."""
