"""Tests of scikit-learn's `tree/tests/test_export.py` that ours are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_graphviz_errors": "wording: what is no tree is refused in our words; empty class_names are a ValueError",
    "test_export_text": "departure: of equal splits the first column wins, not a random one (class docstring)",
    "test_export_text_feature_class_names_array_support": (
        "departure: of equal splits the first column wins, not a random one (class docstring)"
    ),
    "test_plot_tree_entropy": "departure: plot_tree returns SVG, it draws on no matplotlib axis (its docstring)",
    "test_plot_tree_gini": "departure: plot_tree returns SVG, it draws on no matplotlib axis (its docstring)",
}
