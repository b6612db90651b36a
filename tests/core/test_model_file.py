"""Model files: every value comes back as it was, and writing is all or nothing."""

import errno
import json
import math
import os
import stat
from pathlib import Path

import numpy as np
import pytest
import safetensors
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file
from sklearn.base import is_classifier
from sklearn.linear_model import Ridge as OtherRidge
from sklearn.utils import get_tags
from tests.core.boxes import fitted_box, rich_box
from tests.core.toys import Box, Halving, Proofless, Span, SubBox
from tests.registered import build, is_sequence_model

from learnable.core import Certificate, ModelFileError, load, model_file, save
from learnable.core._encoding import DTYPES, MAX_DEPTH
from learnable.core.registry import estimator_names

pytestmark = [pytest.mark.usefixtures("toys"), pytest.mark.sampled(1)]


def assert_same(a, b):
    """Require equal types and bits; arrays come back in C order, their memory free to write."""
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert b.flags.c_contiguous and b.flags.writeable and b.flags.aligned
        if a.dtype == object:
            assert_same(a.ravel().tolist(), b.ravel().tolist())
        else:
            assert a.tobytes() == b.tobytes()
    elif isinstance(a, sp.csr_array):
        assert a.shape == b.shape
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part))
    elif isinstance(a, dict):
        assert_same(list(a), list(b))
        assert_same(list(a.values()), list(b.values()))
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, (Box, Span)):
        assert_same(vars(a), vars(b))
    elif isinstance(a, (float, np.generic)):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    else:
        assert a == b


def round_trip(model, path):
    save(model, path)
    return load(path)


# Every value kind comes back as it was


dtypes = st.sampled_from(sorted({dtype.str for dtype in DTYPES.values()}))
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
canonical_nan = st.floats().map(lambda x: math.nan if math.isnan(x) else x)  # JSON keeps no payload of NaN
strings = st.text(st.characters(exclude_categories=[]), max_size=8)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**5000), 2**5000),
    canonical_nan,
    strings,
    strings.map(np.str_),
    st.sampled_from(["int8", "uint64", "int64", "bool"]).map(lambda name: np.dtype(name).type(1)),
    st.floats(width=32).map(lambda x: np.float32(math.nan if math.isnan(x) else x)),
    canonical_nan.map(np.float64),
    st.builds(slice, st.none() | st.integers(), st.integers(), st.none() | st.integers()),
    st.builds(range, st.integers(-5, 5), st.integers(-5, 5), st.integers(1, 3)),
)
keys = strings | st.integers() | st.booleans() | st.tuples(st.integers(), strings)
numeric_arrays = hnp.arrays(dtypes, shapes)
text_arrays = hnp.arrays(object, shapes, elements=strings)
mixed_arrays = hnp.arrays(object, shapes, elements=st.none() | st.integers() | strings | canonical_nan)
csr_arrays = st.builds(
    lambda dense, wide: sp.csr_array(
        (
            (made := sp.csr_array(dense)).data,
            made.indices.astype(np.int64 if wide else np.int32),
            made.indptr.astype(np.int64 if wide else np.int32),
        ),
        shape=made.shape,
    ),
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=1), elements=st.sampled_from([0.0, 1.5])),
    st.booleans(),
)
values = st.recursive(
    scalars | numeric_arrays | text_arrays | mixed_arrays | csr_arrays,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.builds(Box, inner),
        st.builds(lambda value: fitted_box(None, member_=value), inner),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(param=values, fitted=values)
def test_every_value_comes_back_as_it_was(tmp_path_factory, param, fitted):
    path = tmp_path_factory.getbasetemp() / "values.safetensors"
    model = fitted_box(param, fitted_=fitted)
    assert_same(model, round_trip(model, path))


@pytest.mark.parametrize("width", [1, 7])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 2)])
def test_fixed_width_strings_keep_their_width(path, shape, width):
    model = fitted_box(words_=np.full(shape, "ü", dtype=f"<U{width}"))
    assert_same(model, round_trip(model, path))


def test_arrays_in_other_orders_come_back_in_c_order_and_native_bytes(path):
    base = np.arange(24.0).reshape(4, 6)
    model = fitted_box(f_=np.asfortranarray(base), strided_=base[::2, ::-1], big_=base.astype(">f8"))
    loaded = round_trip(model, path)
    for name in ("f_", "strided_", "big_"):
        np.testing.assert_array_equal(vars(loaded)[name], vars(model)[name])
        assert vars(loaded)[name].dtype == np.float64
        assert vars(loaded)[name].flags.c_contiguous


def test_loaded_arrays_do_not_share_memory(path):
    shared = np.zeros(4)
    loaded = round_trip(fitted_box(a_=shared, b_=shared), path)
    loaded.a_[0] = 1.0
    assert loaded.b_[0] == 0.0
    assert loaded.a_.flags.owndata


def test_arrays_keep_the_payload_of_nan_and_the_sign_of_zero(path):
    bits = np.array([0x7FF8000000000123, 0xFFF0000000000001, 0x8000000000000000], dtype=np.uint64)
    model = fitted_box(odd_=bits.view(np.float64))
    np.testing.assert_array_equal(round_trip(model, path).odd_.view(np.uint64), bits)


def test_parts_and_certificates(path):
    model = fitted_box(
        Span(0.0, math.inf, ("a", "b"), np.arange(3.0)),
        certificate_=Certificate("gap", np.float64(1e-9), 1e-6, n_iter=np.int64(3)),
        spans_=[Span(-1.0, 1.0)],
    )
    assert_same(model, round_trip(model, path))


def test_an_unfitted_model_and_a_fitted_one(path):
    unfitted = round_trip(Halving(start=0.5, max_seconds=3), path)
    assert vars(unfitted) == vars(Halving(start=0.5, max_seconds=3))
    X, y = np.ones((3, 2)), np.array([1.0, 2.0, 3.0])
    model = Halving().fit(X, y)
    loaded = round_trip(model, path)
    assert vars(loaded) == vars(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("name", estimator_names())
def test_every_model_of_the_library_predicts_the_same_after_a_round_trip(path, name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    model = build(name)
    if "n_draws" in model.get_params():  # a posterior: a few draws are saved as many are
        model.set_params(n_draws=8, n_warmup=4)
    if "ploidy" in model.get_params():
        model.set_params(ploidy=20)
    y = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=60)
    y = np.where(y > 0, "yes", "no") if is_classifier(model) else y
    y = np.abs(y) + 1.0 if get_tags(model).target_tags.positive_only else y
    y = np.column_stack([y, -y]) if not get_tags(model).target_tags.single_output else y
    if is_sequence_model(model):  # sequences have no targets, and some only symbols
        X, y = np.abs(X[:, :1]).round(), None
    X = np.floor(3.0 * np.abs(X)) if get_tags(model).input_tags.positive_only else X  # counts, or codes of categories
    assert round_trip(model, path).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    loaded = round_trip(model.fit(X, y), path)
    assert repr(loaded) == repr(model)
    ask = next(method for method in ("predict", "transform", "kneighbors") if hasattr(model, method))
    np.testing.assert_array_equal(getattr(loaded, ask)(X), getattr(model, ask)(X))
    assert getattr(loaded, "certificate_", None) == getattr(model, "certificate_", None)


def test_callbacks_and_private_attributes_are_left_out(path):
    model = Halving()
    model._skl_callbacks = [object()]
    model._private_ = object()
    assert vars(round_trip(model, path)).keys() == model.get_params().keys()


# The file itself


def test_the_file_is_a_safetensors_file(path):
    model = rich_box()
    save(model, path)
    arrays = load_file(path)
    np.testing.assert_array_equal(arrays["coef_"], model.coef_)
    np.testing.assert_array_equal(arrays["table_.indices"], model.table_.indices)
    assert bytes(arrays["classes_.utf8"]).decode() == "janeinvielleicht"
    with safetensors.safe_open(path, "numpy") as file:
        metadata = file.metadata()
    assert metadata["learnable_format"] == "1"
    assert metadata["numpy"] == np.__version__
    assert metadata.keys() == {"learnable_format", "learnable", "numpy", "scikit-learn", "model", "sha256"}
    assert json.loads(metadata["model"])["class"] == "Box"


def test_arrays_are_aligned_in_the_file(path):
    save(rich_box(), path)
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    assert length % 8 == 0
    for name, entry in header.items():
        if name != "__metadata__":
            assert entry["data_offsets"][0] % DTYPES[entry["dtype"]].itemsize == 0


def test_the_same_model_gives_the_same_bytes(path, tmp_path):
    save(rich_box(), path)
    save(load(path), tmp_path / "again.safetensors")
    assert path.read_bytes() == (tmp_path / "again.safetensors").read_bytes()


@pytest.mark.parametrize("kind", [str, Path])
def test_paths_as_strings_and_as_paths(path, kind):
    assert round_trip(Box(), kind(path)).size == 1.0


# What cannot be saved


class Foreign:
    pass


cyclic = []
cyclic.append(cyclic)
deep = 0
for _ in range(MAX_DEPTH + 1):
    deep = [deep]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Box(len), "Box.content is a builtin_function_or_method; only numbers, strings, arrays and"),
        (Box(lambda: 0), "Box.content is a function; only numbers, strings, arrays and registered models"),
        (Box({"a": [1, Foreign()]}), "Box.content['a'][1] is a Foreign; only"),
        (Box(Box(Foreign)), "Box.content.content is a type; only"),
        (Box(Box), "Box.content is a type; only"),
        (Box(OtherRidge()), "Box.content is a Ridge; only"),
        (Box(SubBox()), "Box.content is a SubBox, a subclass of Box; only"),
        (SubBox(), "the model is a SubBox, a subclass of Box; only"),
        (OtherRidge(), "the model is a Ridge; only"),
        (Certificate("gap", 0.0, 1.0), "the model is a Certificate; only"),
        (None, "the model is a NoneType; only"),
        (
            Box(np.random.default_rng(0)),
            "Box.content is a Generator, whose state is not stored; use an integer",
        ),
        (Box(np.random.RandomState(0)), "Box.content is a RandomState, whose state is not stored; use an"),
        (Box(np.array([1j])), "Box.content is an array of dtype complex128; only"),
        (Box(np.zeros(2, dtype="M8[s]")), "Box.content is an array of dtype datetime64[s]; only"),
        (Box(np.zeros(2, dtype="i4,f8")), "Box.content is an array of dtype [('f0'"),
        (Box(np.array([None, len])), "Box.content[1] is a builtin_function_or_method; only"),
        (Box(sp.csc_array(np.eye(2))), "Box.content is a csc_array; only"),
        (Box(1j), "Box.content is a complex; only"),
        (Box(b"raw"), "Box.content is a bytes; only"),
        (Box({1, 2}), "Box.content is a set; only"),
        (Box(10**5000), "Box.content is an int; only"),
        (Box(cyclic), "Box.content[0] contains itself"),
        (Box(deep), f"nested deeper than {MAX_DEPTH} levels"),
        (Box(dict.fromkeys(range(5000))), "Box.content has more than 4096 keys"),
        (Box(np.zeros(2**16, dtype="<U2000")), "pads its strings to more than"),
        (Box(["x" * 2**24]), "the model without its arrays takes"),
        (Box(size=-1.0), "Box: size must be a number >= 0; got -1.0."),
        (fitted_box(predict_=1, coef_=np.array([math.nan])), "Box: coef_ must be finite"),
        (fitted_box(certificate_="proven"), "Box.certificate_ is not a certificate"),
        (
            fitted_box(certificate_=Certificate("gap", "small", 1.0)),
            "Box.certificate_.value must be float; got a str",
        ),
        (fitted_box(n_features_in_=-1), "Box.n_features_in_ is not a number of columns"),
        (fitted_box(capacity_=3), "Box.capacity_ hides an attribute of the class"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_cannot_be_saved_is_named(path, model, message):
    with pytest.raises(ModelFileError) as caught:
        save(model, path)
    text = str(caught.value)
    assert text.startswith("save: ") and message in text and "\n" not in text and len(text) < 400
    assert not path.parent.exists() or not list(path.parent.iterdir())


@pytest.mark.parametrize("bad", [3, None, b"model", "", ".", "a\0b"])
@pytest.mark.parametrize("function", [load, lambda path: save(Box(), path)])
def test_what_is_no_path(function, bad):
    with pytest.raises(ModelFileError, match=r"^(save|load): .*(path|does not name a file)"):
        function(bad)


# All or nothing on disk


def test_a_full_disk_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    save(Box("old"), path)

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(model_file.os, "fsync", full)
        with pytest.raises(ModelFileError, match=r"^save: cannot write model.safetensors: No space left on device$"):
            save(Box("new"), path)
    assert os.listdir(path.parent) == [path.name]
    assert load(path).content == "old"


def test_an_interruption_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    save(Box("old"), path)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(model_file.os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save(Box("new"), path)
    assert os.listdir(path.parent) == [path.name]
    assert load(path).content == "old"


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(ModelFileError, match="save: cannot write m: No such file"):
        save(Box(), tmp_path / "missing" / "m")
    with pytest.raises(ModelFileError, match="exists and is not a file"):
        save(Box(), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="links and modes of POSIX")
def test_links_and_modes_survive_a_new_version(path):
    link = path.with_name("latest")
    link.symlink_to(path)
    save(Box("old"), path)
    path.chmod(0o600)
    save(Box("new"), link)
    assert link.is_symlink()
    assert load(path).content == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_proofless_certificate_survives(path):
    model = Proofless().fit([[1.0]], [1.0])
    loaded = round_trip(model, path)
    assert loaded.certificate_.kind == "none"
    assert math.isnan(loaded.certificate_.value)
