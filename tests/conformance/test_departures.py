"""`docs/departures.md` says what the code says today, and nothing else."""

from tests.conformance.departures import NEWCOMER, PAGE, newcomer, page, pairs, parameters, sentences, table


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make departures`"


def test_the_table_for_newcomers_is_up_to_date():
    text = NEWCOMER.read_text(encoding="utf-8")
    assert text == newcomer(text), "run `make departures`"
    assert table().count("\n| [`") == len(pairs())


def test_no_parameter_of_theirs_is_missing():
    """The newcomer's page says so."""
    for name, (ours, theirs) in pairs().items():
        assert not [line for line in parameters(ours, theirs) if line.startswith("only there")], name


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
