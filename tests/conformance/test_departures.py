"""`docs/departures.md` says what the code says today, and nothing else."""

from tests.conformance.departures import PAGE, page, pairs, parameters, sentences


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make departures`"


def test_every_class_of_both_libraries_is_compared():
    assert {"Ridge", "SVC", "KMeans", "GaussianHMM", "RandomForestClassifier"} <= set(pairs())


def test_differences_of_signatures_are_found():
    class Ours:
        def __init__(self, a=1, b=2.0, c="x"):
            pass

    class Theirs:
        def __init__(self, a=1, b=2, d=None):
            pass

    assert parameters(Ours, Theirs) == ["default of `b`: `2.0`, there `2`", "only here: `c`", "only there: `d`"]


def test_sentences_are_taken_whole():
    class Model:
        """Fit.

        It does this. Unlike scikit-learn's it does
        that. And more.

        Parameters
        ----------
        a : int
            As in scikit-learn.
        b : int
            Counts rows; scikit-learn counts weights.
        """

    assert sentences(Model) == ["Unlike scikit-learn's it does that.", "Counts rows; scikit-learn counts weights."]
