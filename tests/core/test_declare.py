"""One line per parameter gives constructor, signature, range check and docstring; per attribute, the check at load."""

import inspect
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import get_tags
from tests.core.toys import simple_door

from learnable.core import Array, Certificate, Estimator, ModelFileError, ParameterError
from learnable.core._soundness import check_members
from learnable.core.declare import FLOATS, Boolean, Number, Options, fitted, hook, param, tags
from learnable.core.loaded import check_fitted, law


class Penalised(Estimator):
    """Minimise a toy.

    More words.

    Examples
    --------
    >>> Penalised().alpha
    1.0
    """

    alpha: float = param(Number(low=0.0), "Strength of the penalty.", default=1.0, kw_only=False)
    centred: bool = param(Boolean(), "Whether columns are centred.", default=True)
    coef_: np.ndarray = fitted("(n_features,) or (n_targets, n_features)", "The coefficients.")
    weights_: np.ndarray = fitted("(n_targets,)", "Shares.", low=0.0, high=1.0)

    _door = simple_door

    def _fit(self, table, run):
        self.coef_ = np.zeros(table.X.shape[1])
        return Certificate("none", np.nan, 0.0)


class Named:
    solver: str = "none"


class Special(Penalised):
    """A subclass: another default, one parameter more, one less."""

    alpha: float = param(Number(low=0.0), "Strength, larger.", default=2.0, kw_only=False)
    method: str = param(Options("a", "b"), "Which one.", default="a")
    centred = False


class Plain(Special):
    """Inherits everything."""


class Mixed(Named, Special):
    """With a base that declares nothing."""

    solver: str = param(Options("none", "some"), "The solver.", default="some")


def test_the_signature_is_that_of_the_declarations():
    assert str(inspect.signature(Penalised)) == "(alpha=1.0, *, centred=True)"
    assert str(inspect.signature(Special)) == "(alpha=2.0, *, method='a')"
    assert str(inspect.signature(Plain)) == "(alpha=2.0, *, method='a')"
    assert str(inspect.signature(Mixed)) == "(alpha=2.0, *, method='a', solver='some')"


def test_arguments_are_stored_and_nothing_else_happens():
    model = Penalised(3.0, centred=False)
    assert vars(model) == {"alpha": 3.0, "centred": False}
    assert vars(Penalised()) == {"alpha": 1.0, "centred": True}
    assert Special().get_params() == {"alpha": 2.0, "method": "a"}
    assert Special().centred is False
    assert Mixed(alpha=0.5).get_params() == {"alpha": 0.5, "method": "a", "solver": "some"}


@pytest.mark.parametrize("arguments", [{"centered": True}, {"method": "a"}])
def test_unknown_arguments_are_named(arguments):
    with pytest.raises(TypeError, match=r"Penalised: got an unexpected keyword argument '(centered|method)'"):
        Penalised(**arguments)


def test_arguments_are_positional_where_declared_so():
    with pytest.raises(TypeError, match="Penalised: too many positional arguments"):
        Penalised(1.0, True)
    with pytest.raises(TypeError, match="Penalised: multiple values for argument 'alpha'"):
        Penalised(1.0, alpha=2.0)


def test_clones_and_pickles_are_twins():
    model = Special(5.0, method="b")
    for twin in (clone(model), pickle.loads(pickle.dumps(model))):
        assert type(twin) is Special
        assert vars(twin) == vars(model)


def test_fit_checks_the_declared_ranges():
    with pytest.raises(ParameterError, match="Special: alpha must be a number >= 0; got -1"):
        Special(alpha=-1).fit([[0.0]], [0.0])
    with pytest.raises(ParameterError, match="Special: method must be one of 'a', 'b'; got 'c'"):
        Special(method="c").fit([[0.0]], [0.0])


def test_the_docstring_has_the_sections_in_numpydocs_order():
    assert (
        Penalised.__doc__
        == """Minimise a toy.

More words.

Parameters
----------
alpha : a number >= 0, default=1.0
    Strength of the penalty.
centred : True or False, default=True
    Whether columns are centred.

Attributes
----------
coef_ : array of shape (n_features,) or (n_targets, n_features)
    The coefficients.
weights_ : array of shape (n_targets,)
    Shares.

Examples
--------
>>> Penalised().alpha
1.0"""
    )
    assert "Strength, larger." in Plain.__doc__
    assert "Strength of the penalty." not in Plain.__doc__


class Wrapper(Estimator):
    """An estimator around another."""

    inner: object = param(Boolean(), "What it is around; " + 20 * "words and " + "more.", kw_only=False)
    depth: float = param(Number(low=0.0), "A number of NumPy.", default=np.float64(1e-8))
    levels_: np.ndarray = fitted("() or (n_levels,)", "May be infinite.", infinite=True)
    note_: np.ndarray = fitted("(n_levels,)", "Not in every fit.", optional=True)


def test_a_parameter_without_a_default_must_be_given():
    assert str(inspect.signature(Wrapper)) == "(inner, *, depth=np.float64(1e-08))"
    assert Wrapper(True).inner is Wrapper(inner=True).inner is True
    assert not hasattr(Wrapper, "inner")
    for arguments in ({}, {"depth": 1.0}):
        with pytest.raises(TypeError, match="Wrapper: missing a required argument: 'inner'"):
            Wrapper(**arguments)


def test_the_docstring_wraps_long_meanings_and_shows_plain_defaults():
    assert "inner : True or False\n    What it is around; words" in Wrapper.__doc__
    assert "depth : a number >= 0, default=1e-08\n" in Wrapper.__doc__
    assert "levels_ : number or array of shape (n_levels,)\n" in Wrapper.__doc__
    assert max(map(len, Wrapper.__doc__.splitlines())) <= 112


def test_sparse_attributes_are_checked_like_dense_ones():
    check_fitted(loaded(coef_=sp.csr_array([[0.0, 1.0]])))
    with pytest.raises(ModelFileError, match=r"coef_ has shape \(1, 3\)"):
        check_fitted(loaded(coef_=sp.csr_array([[0.0, 1.0, 2.0]])))
    with pytest.raises(ModelFileError, match="coef_ has numbers that are not finite"):
        check_fitted(loaded(coef_=sp.csr_array([[0.0, np.inf]])))


@pytest.mark.parametrize("value", [[0.0, 1.0], [0.0, [1.0]], None, "ab", {"a": 1.0}])
def test_what_is_no_array_is_refused(value):
    with pytest.raises(ModelFileError, match=f"coef_ is a {type(value).__name__} instead of numbers"):
        check_fitted(loaded(coef_=value))


def wrapper(**members):
    model = Wrapper(True)
    vars(model).update(members)
    return model


def test_infinities_and_gaps_are_accepted_where_declared_so():
    check_fitted(wrapper(levels_=np.array([-np.inf, 1.0]), note_=None))
    check_fitted(wrapper(levels_=np.inf))
    with pytest.raises(ModelFileError, match="levels_ has NaN"):
        check_fitted(wrapper(levels_=np.array([np.nan, 1.0])))


def test_fitted_attributes_are_absent_before_the_fit():
    assert not hasattr(Penalised(), "coef_")


def loaded(**members):
    model = Penalised()
    vars(model).update({"n_features_in_": 2, "coef_": np.zeros(2)} | members)
    return model


@pytest.mark.parametrize(
    "members",
    [{}, {"coef_": np.zeros((3, 2)), "weights_": np.ones(3)}, {"weights_": np.full(7, 0.5)}],
)
def test_sound_attributes_are_accepted(members):
    check_fitted(loaded(**members))


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"coef_": np.zeros(3)}, r"coef_ has shape \(3,\) instead of \(n_features,\).*n_features = 2"),
        ({"coef_": np.zeros((3, 2)), "weights_": np.ones(2)}, r"weights_ has shape .*n_targets = 3"),
        ({"coef_": np.array(["a", "b"])}, "coef_ holds <U1, where real numbers are expected"),
        ({"coef_": np.array([0.0, np.nan])}, "coef_ has numbers that are not finite"),
        ({"weights_": np.array([1.5])}, r"weights_ has numbers outside \[0, 1\]"),
    ],
)
def test_damaged_attributes_are_refused(members, words):
    with pytest.raises(ModelFileError, match=words):
        check_fitted(loaded(**members))


class Ordered(Special):
    """Given by place: first the method."""

    _positional = ("method", "alpha")


class Backed(Estimator):
    @property
    def size(self):
        return self._size

    @size.setter
    def size(self, value):
        self._size = value


class Sized(Backed):
    """A parameter that a property of the base keeps."""

    size: int = param(Number(low=1, integer=True), "How many.", default=3, kw_only=False)


def test_a_class_may_state_the_order_by_place():
    assert str(inspect.signature(Ordered)) == "(method='a', alpha=2.0)"
    assert Ordered("b", 0.5).get_params() == {"alpha": 0.5, "method": "b"}
    assert Ordered.__doc__.index("method :") < Ordered.__doc__.index("alpha :")
    with pytest.raises(TypeError, match="Special: too many positional arguments"):
        Special(1.0, "b")


def test_a_parameter_may_be_kept_by_a_property_of_a_base():
    model = Sized(5)
    assert vars(model) == {"_size": 5}
    assert vars(Sized()) == {"_size": 3}
    assert clone(model).get_params() == {"size": 5}
    assert Sized().set_params(size=7).size == 7


class Told(Penalised):
    """Looks at an argument when it is made."""

    def __post_init__(self):
        if self.alpha == 0.0:
            warnings.warn("alpha is zero", FutureWarning, stacklevel=3)


def test_a_class_may_look_at_its_arguments():
    with pytest.warns(FutureWarning, match="alpha is zero") as found:
        Told(0.0)
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Told(1.0)


class Tagged(ClassifierMixin, Penalised):
    """Declares its tags."""

    _tags = tags(sparse=True, multi_class=False, pairwise=lambda model: model.alpha == 0.0, preserves_dtype=FLOATS)


class Either(Penalised):
    """Is a classifier or a regressor, as its parameter says."""

    _tags = tags(role=lambda model: "classifier" if model.centred else "regressor", required=True, multi_class=False)


def test_tags_are_changed_after_those_of_the_mixins():
    found = get_tags(Tagged())
    assert found.input_tags.sparse and found.target_tags.required
    assert not found.classifier_tags.multi_class and not found.input_tags.pairwise
    assert get_tags(Tagged(0.0)).input_tags.pairwise
    assert not get_tags(Penalised()).input_tags.sparse


def test_the_role_may_depend_on_a_parameter():
    classifier, regressor = get_tags(Either()), get_tags(Either(centred=False))
    assert (classifier.estimator_type, regressor.estimator_type) == ("classifier", "regressor")
    assert not classifier.classifier_tags.multi_class and regressor.classifier_tags is None
    assert classifier.regressor_tags is None and regressor.regressor_tags is not None


def test_a_tag_that_there_is_not_is_refused():
    with pytest.raises(TypeError, match="tags: 'spares' is none of sparse, allow_nan"):
        tags(spares=True)


class Parted(Estimator):
    """A toy with a length that a parameter states."""

    n_parts: int = param(Number(low=1, integer=True), "Parts.", default=2)
    parts_: np.ndarray = fitted("(n_parts,)", "The parts.", kind="f8")
    _sizes = ("n_parts",)
    _laws = (
        law("parts_ of shape {model.parts_.shape} must rise", lambda model: (np.diff(model.parts_) >= 0).all()),
        law("{owner}: extra_ must be a word", lambda model: model.extra_.isalpha(), "extra_"),
        law("note_ must be there", lambda model: model.note_ is None or True),
    )


class Stricter(Parted):
    """A toy with a law of its own."""

    _laws = (law("parts_ must be positive", lambda model: model.parts_[0] > 0),)


def sized(cls=Parted, **members):
    model = cls()
    vars(model).update({"parts_": np.array([1.0, 2.0]), "note_": None} | members)
    return model


@pytest.mark.parametrize(
    ("cls", "members", "words"),
    [
        (Parted, {"parts_": np.ones(3)}, r"parts_ has shape \(3,\) instead of \(n_parts,\) \(n_parts = 2\)"),
        (Parted, {"parts_": np.ones(2, np.float32)}, "parts_ holds float32"),
        (Parted, {"parts_": np.array([2.0, 1.0])}, r"parts_ of shape \(2,\) must rise"),
        (Parted, {"extra_": "1"}, "Parted: extra_ must be a word"),
        (Parted, {"extra_": 1}, "Parted: extra_ must be a word"),  # a question that fails is not answered with yes
        (Stricter, {"parts_": np.array([-1.0, 2.0])}, "parts_ must be positive"),
        (Stricter, {"parts_": np.array([-1.0, -2.0])}, "must rise"),  # laws of the base come first
    ],
)
def test_laws_and_sizes_are_asked(cls, members, words):
    sized(cls, extra_="word")._check_loaded()
    with pytest.raises(ModelFileError, match="load: .*" + words):
        sized(cls, **members)._check_loaded()


def test_a_law_about_a_missing_member_does_not_hold():
    model = sized()
    del model.note_
    with pytest.raises(ModelFileError, match="note_ must be there"):
        model._check_loaded()


def test_a_hook_names_the_class_that_lacks_it():
    class Open:
        _area = hook("() → float: its area.")

    class Half(Open):
        pass

    class Whole(Open):
        def _area(self):
            return 1.0

    assert Whole()._area() == 1.0
    with pytest.raises(TypeError, match="Half does not define _area"):
        Half()._area()


def test_an_error_inside_a_check_is_a_refusal_in_words():
    class Crashing(Parted):
        def _check_loaded(self):
            raise TypeError("no length")

    with pytest.raises(ModelFileError, match=r"members of Crashing do not fit together \(no length\)"):
        check_members(sized(Crashing))


class Computing(Penalised):
    """Computes some of its attributes when they are asked for."""

    @property
    def size_(self) -> "Array":
        """The largest coefficient of each target.

        It is computed when asked for.
        """
        return abs(self.coef_).max(axis=-1)

    @property
    def weights_(self) -> "Any":
        """Shares that follow from the coefficients."""
        return self.size_ / self.size_.sum()

    @property
    def _inner_(self):
        """Of no interest to users."""


class Stored(Computing):
    """Stores what its base computes."""

    size_: np.ndarray = fitted("(n_targets,)", "The sizes.")


def test_properties_named_like_fitted_attributes_are_listed_after_the_declared_ones():
    assert Computing.__doc__.endswith(
        "coef_ : array of shape (n_features,) or (n_targets, n_features)\n    The coefficients.\n"
        "size_ : array\n    The largest coefficient of each target.\n    It is computed when asked for.\n"
        "weights_\n    Shares that follow from the coefficients."
    )
    assert "size_ : array of shape (n_targets,)\n    The sizes." in Stored.__doc__
    assert Stored.__doc__.count("size_ :") == 1
