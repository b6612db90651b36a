"""From raw text to counts of words: what a topic model needs, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted

from ..core.declare import Boolean, Declared, Matches, Number, Options, check_parameters, fitted, optional, param, tags
from ..core.errors import DataError, DataTypeError
from ..data.door import Table, door


class TextCounts(TransformerMixin, Declared):
    """Counts of words in texts: tokens in lower case, without stop words, rare words and words that are everywhere.

    The vocabulary is kept in alphabetical order; words of new texts that it lacks are left out.

    Examples
    --------
    >>> from learnable.topics import TextCounts
    >>> texts = ["the cat sat", "a cat and a dog", "the dog sat"]
    >>> counts = TextCounts(min_df=1, max_df=1.0).fit(texts)
    >>> counts.vocabulary_
    ['cat', 'dog', 'sat']
    >>> counts.transform(["dog dog bird"]).toarray()
    array([[0., 2., 0.]])
    """

    stop_words: Any = param(
        optional(Options("english"))
        | Matches(lambda v: isinstance(v, (list, tuple)) and all(isinstance(w, str) for w in v), "a list of words"),
        'Words to leave out: "english", a list, or None.',
        default="english",
    )
    lowercase: bool = param(Boolean(), "Whether upper case counts as lower case.", default=True)
    token_pattern: str = param(
        Matches(lambda v: isinstance(v, str), "a regular expression"),
        "What a token is; by default words of three letters or more.",
        default=r"(?u)\b[^\W\d_]{3,}\b",
    )
    min_df: Any = param(
        Number(low=1, integer=True) | Number(low=0.0, high=1.0),
        "Fewest texts with a word: a number or share.",
        default=2,
    )
    max_df: Any = param(
        Number(low=1, integer=True) | Number(low=0.0, high=1.0),
        "Most texts with a word: a number or share.",
        default=0.5,
    )
    max_features: Any = param(
        optional(Number(low=1, integer=True)), "Most words, the most frequent ones.", default=None
    )

    vocabulary_: list[str] = fitted("list of str", "The words, in the order of the columns.")
    n_texts_: int = fitted("int", "Texts that they were learned from.")
    _tags = tags(string=True, two_d_array=False)

    def fit(self, texts: Any, y: Any = None) -> Self:
        """Learn the vocabulary."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Any, y: Any = None) -> sp.csr_array:
        """Learn the vocabulary and return the counts."""
        given = {name: getattr(self, name) for name in self._parameters}  # type: ignore[attr-defined]
        check_parameters("TextCounts", given, self._parameters)  # type: ignore[attr-defined]
        read = _read(texts)
        counter = self._counter(min_df=self.min_df, max_df=self.max_df, max_features=self.max_features)
        try:
            found = counter.fit_transform(read)
        except ValueError as error:
            raise DataError(
                f"TextCounts: no word is left of {len(read)} texts ({error}); lower min_df, raise max_df, or check "
                "the stop words."
            ) from error
        self.n_texts_ = len(read)
        self.vocabulary_ = [str(word) for word in counter.get_feature_names_out()]
        return sp.csr_array(found.astype(np.float64))

    def transform(self, texts: Any) -> sp.csr_array:
        """Return the counts of texts, (n_texts, n_words)."""
        check_is_fitted(self)
        counter = self._counter(vocabulary=self.vocabulary_)
        return sp.csr_array(counter.transform(_read(texts)).astype(np.float64))

    def with_vocabulary(self, words: Sequence[str]) -> Self:
        """Use the words of another fit, in their order."""
        self.vocabulary_ = list(words)
        self.n_texts_ = 0
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the words."""
        check_is_fitted(self)
        return np.asarray(self.vocabulary_, dtype=object)

    def _counter(self, **settings: Any) -> CountVectorizer:
        words = list(self.stop_words) if isinstance(self.stop_words, tuple) else self.stop_words
        return CountVectorizer(lowercase=self.lowercase, stop_words=words, token_pattern=self.token_pattern, **settings)


def _read(texts: Any) -> Sequence[str]:
    """Return texts as strings; None and NaN are empty texts."""
    if isinstance(texts, str):
        raise DataTypeError("TextCounts: pass a list of texts, not one text.")
    values = texts.to_list() if hasattr(texts, "to_list") else list(texts)
    found = []
    for place, value in enumerate(values):
        if value is None or value != value:
            found.append("")
        elif isinstance(value, str):
            found.append(value)
        else:
            raise DataTypeError(f"TextCounts: text {place} is a {type(value).__name__}; pass strings.")
    return found


_read_counts = door(target="none")


def text_door(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
    """Read counts, or texts, of which the vocabulary is remembered."""
    if are_texts(X):
        counter = TextCounts(**(estimator.text or {}))
        X = counter.fit_transform(X)
        estimator.vocabulary_ = counter.vocabulary_
    return _read_counts(estimator, X, y, sample_weight, run)


def are_texts(X: Any) -> bool:
    """Tell whether X is a list of texts, some of which may be missing."""
    if sp.issparse(X) or isinstance(X, (str, bytes)) or not hasattr(X, "__len__") or not len(X):
        return False
    if getattr(X, "ndim", 1) != 1:
        return False
    values = X.to_list() if hasattr(X, "to_list") else list(X)
    return any(isinstance(value, str) for value in values)
