"""Model files that somebody damaged or forged: they load as what they are, or are refused in words."""

import io
import json
import math
import os
import pickle
import random
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.core.boxes import rich_box

from learnable.core import ModelFileError, load, model_file, save
from learnable.core._encoding import DTYPES, MAX_DEPTH

pytestmark = [pytest.mark.usefixtures("toys"), pytest.mark.sampled(1)]


def refused(content, path):
    """Load `content`, require an error in one line, and return its message."""
    path.write_bytes(content)
    return refused_file(path)


def refused_file(path):
    with pytest.raises(ModelFileError) as caught:
        load(path)
    text = str(caught.value)
    assert text.startswith("load: ") and "\n" not in text and len(text) < 400 and text.isprintable()
    return text


def container(header, payload=b""):
    """Return a safetensors file with this header, given as text or as a JSON document."""
    raw = header.encode() if isinstance(header, str) else json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + payload


def forge(document, arrays=(), **metadata):
    """Return a file with a correct checksum, so that the deeper checks are reached."""
    arrays = {name: np.asarray(array) for name, array in dict(arrays).items()}
    codes = {dtype: code for code, dtype in DTYPES.items()}
    table, begin = {}, 0
    for name, array in arrays.items():
        end = begin + array.nbytes
        table[name] = {"dtype": codes[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
        begin = end
    text = document if isinstance(document, str) else json.dumps(document)
    metadata = {"learnable_format": "1", "learnable": "0.1", "model": text} | metadata
    metadata["sha256"] = model_file._checksum(metadata, table, arrays)
    return container({"__metadata__": metadata, **table}, b"".join(array.tobytes() for array in arrays.values()))


def box(content=None, fitted=None, **other):
    return {"class": "Box", "params": {"content": content, "size": 1.0}, "fitted": fitted or {}} | other


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return the bytes of a sound file with one member of every kind."""
    path = tmp_path_factory.mktemp("sound") / "model.safetensors"
    save(rich_box(), path)
    return path.read_bytes()


def test_the_forge_makes_files_that_load(path):
    path.write_bytes(forge(box({"$array": "a"}), {"a": np.arange(3)}))
    np.testing.assert_array_equal(load(path).content, np.arange(3))


def test_no_flipped_bit_goes_unnoticed(path, sound):
    random_bits = random.Random(0).sample(range(64, 8 * len(sound)), 1500)
    for bit in [*range(64), *random_bits]:
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        refused(damaged, path)


def test_no_cut_and_no_tail_goes_unnoticed(path, sound):
    lengths = {*range(20), *random.Random(1).sample(range(len(sound)), 300), len(sound) - 1}
    for length in lengths:
        refused(sound[:length], path)
    for tail in (b"\0", b" ", b"}", bytes(8), b"x" * 1000, sound):
        refused(sound + tail, path)


def test_no_mangled_file_goes_unnoticed(path, sound):
    chance = random.Random(2)
    for _ in range(500):
        a, b = sorted(chance.sample(range(len(sound)), 2))
        c = chance.randrange(len(sound))
        noise = chance.randbytes(chance.randrange(1, 40))
        for mangled in (
            sound[:a] + sound[b:],
            sound[:a] + noise + sound[a:],
            sound[:a] + noise + sound[a + len(noise) :],
            sound[:c] + sound[a:b] + sound[c:],
        ):
            if mangled != sound:
                refused(mangled, path)


def places(document, at=()):
    """Yield the path of every node of a JSON document."""
    yield at
    members = document.items() if isinstance(document, dict) else ()
    for key, member in enumerate(document) if isinstance(document, list) else members:
        yield from places(member, (*at, key))


def test_forged_documents_load_or_are_refused(path, sound):
    """Swap random pieces of a document, with a correct checksum: no other error may escape."""
    chance = random.Random(4)
    header = json.loads(sound[8 : 8 + int.from_bytes(sound[:8], "little")])
    text = header.pop("__metadata__")["model"]
    path.write_bytes(sound)
    arrays = load_file(path)
    pieces = [
        None,
        True,
        -1,
        2**63,
        1e300,
        "",
        "a",
        "$array",
        [],
        {},
        [0],
        {"$array": "coef_"},
        {"$tuple": [1]},
    ]
    refusals = 0
    for _ in range(1000):
        document = json.loads(text)
        at = chance.choice(list(places(document))[1:])
        other = chance.choice(list(places(document)))
        piece = json.loads(text)
        for key in other:
            piece = piece[key]
        parent = document
        for key in at[:-1]:
            parent = parent[key]
        parent[at[-1]] = chance.choice([*pieces, piece])
        path.write_bytes(forge(document, arrays))
        try:
            load(path)
        except ModelFileError:
            refused_file(path)
            refusals += 1
    assert refusals > 500


class Malice:
    """Creates a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (Path(self.marker),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_refused_and_not_executed(path, tmp_path, protocol):
    marker = tmp_path / "executed"
    payload = pickle.dumps(Malice(marker), protocol)
    assert "not a learnable model file" in refused(payload, path)
    refused(len(payload).to_bytes(8, "little") + payload, path)
    refused(forge(box({"$array": "a"}), {"a": np.frombuffer(payload, np.uint8).reshape(1, -1)})[:-1], path)
    assert not marker.exists()
    pickle.loads(payload)
    assert marker.exists()


def test_files_of_other_kinds(path):
    buffer = io.BytesIO()
    np.savez(buffer, a=np.arange(3), b=np.array([{}], dtype=object))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("model.json", "{}")
    others = [
        b"",
        b"{",
        bytes(7),
        bytes(8),
        bytes(100),
        b"\xff" * 100,
        buffer.getvalue(),
        archive.getvalue(),
        b"alpha,beta\n1,2\n" * 50,
        "ein Text\n".encode("utf-16"),
        random.Random(3).randbytes(5000),
        container("[1, 2]"),
        container("null"),
        container("{}"),
        container({"__metadata__": {"format": "pt"}}),
        container({"__metadata__": {"learnable_format": 1}}),
        container({"__metadata__": ["learnable_format"]}),
        container({"__metadata__": {"learnable_format": "one"}}),
        container(b"{\xff}".decode("latin1")),
    ]
    for content in others:
        assert "not a learnable model file" in refused(content, path)


def test_what_is_no_regular_file(tmp_path):
    assert "directory" in refused_file(tmp_path)
    assert "No such file" in refused_file(tmp_path / "missing")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert "pipe" in refused_file(tmp_path / "pipe")
    if os.path.exists("/dev/zero"):
        assert "device" in refused_file(Path("/dev/zero"))


def with_table(**entries):
    """Return a file of 64 bytes of arrays with the given table, which the loader has to doubt."""
    good = json.loads(forge(box())[8:])["__metadata__"]
    return container({"__metadata__": good, **entries}, bytes(64))


def entry(dtype, shape, offsets):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


TERA = 2**40
huge_claims = [
    (2**63).to_bytes(8, "little") + b"{}",
    TERA.to_bytes(8, "little") + b"{" * 100,
    (2**24).to_bytes(8, "little") + b"{" * 100,
    with_table(a=entry("F64", [TERA], [0, 8 * TERA])),
    with_table(a=entry("F64", [TERA], [0, 64])),
    with_table(a=entry("F64", [2**61], [0, 0]), b=entry("U8", [64], [0, 64])),
    with_table(a=entry("F64", [2**32, 2**32], [0, 0]), b=entry("U8", [64], [0, 64])),
    with_table(a=entry("F64", [2**62, 2, 2, 2], [0, 64])),
    with_table(a=entry("F64", [10**30], [0, 64])),
    with_table(a=entry("F64", [3] * 10_000, [0, 64])),
    with_table(a=entry("F64", [int("9" * 4000)] * 31, [0, 64])),
    with_table(a=entry("U8", [64, TERA, 0], [0, 0]), b=entry("U8", [64], [0, 64])),
    forge(
        box({"$text": {"utf8": "u", "offsets": "o", "shape": [TERA], "width": 1}}),
        {"u": np.zeros(0, "u1"), "o": [0, 0]},
    ),
    forge(
        box({"$text": {"utf8": "u", "offsets": "o", "shape": [9999], "width": TERA}}),
        {"u": np.zeros(0, "u1"), "o": np.zeros(10_000, "i8")},
    ),
    forge(
        box({"$text": {"utf8": "u", "offsets": "o", "shape": [0], "width": TERA}}),
        {"u": np.zeros(0, "u1"), "o": [0]},
    ),
    forge(box({"$objects": {"shape": [TERA], "items": []}})),
    forge(box({"$objects": {"shape": [0, 2**62, 2**62], "items": []}})),
    forge(
        box({"$csr": {"data": "d", "indices": "i", "indptr": "p", "shape": [TERA, TERA]}}),
        {"d": np.zeros(0), "i": np.zeros(0, "i8"), "p": np.zeros(1, "i8")},
    ),
]


@pytest.mark.parametrize("content", huge_claims, ids=range(len(huge_claims)))
def test_claims_of_terabytes_take_no_memory(path, content):
    path.write_bytes(content)
    tracemalloc.start()
    try:
        refused_file(path)
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


def test_one_array_cannot_be_multiplied(path):
    content = forge(box([{"$array": "a"}] * 1000), {"a": np.zeros(10_000)})
    assert "missing or has been used before" in refused(content, path)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"a": entry("F64", [4], [0, 32])}, "cut short, or with a tail"),
        ({"a": entry("F64", [4], [-32, 0])}, "no array can have"),
        ({"a": entry("F64", [-8], [0, 64])}, "no array can have"),
        ({"a": entry("F64", [-2, -4], [0, 64])}, "no array can have"),
        ({"a": entry("F64", [8.0], [0, 64])}, "no array can have"),
        ({"a": entry("BOOL", [True], [0, 1])}, "no array can have"),
        ({"a": entry("F64", [8], [64, 0])}, "not as long as its shape"),
        ({"a": entry("F64", [8], [0, 64, 64])}, "no array can have"),
        ({"a": entry("F64", [8], "0:64")}, "no array can have"),
        ({"a": entry("F64", 8, [0, 64])}, "no array can have"),
        ({"a": entry("F64", [7], [0, 64])}, "not as long as its shape"),
        ({"a": entry("F64", [8], [8, 72])}, "does not begin where"),
        ({"a": entry("F64", [8], [0, 64]), "b": entry("F64", [4], [32, 64])}, "does not begin where"),
        ({"a": entry("F64", [8], [0, 64]), "b": entry("F64", [8], [0, 64])}, "does not begin where"),
        ({"a": entry("F64", [2], [0, 16]), "b": entry("F64", [2], [48, 64])}, "does not begin where"),
        ({"a": entry("F8_E4M3", [64], [0, 64])}, "unknown dtype 'F8_E4M3'"),
        ({"a": entry("object", [8], [0, 64])}, "unknown dtype 'object'"),
        ({"a": entry(["F64"], [8], [0, 64])}, "unknown dtype"),
        ({"a": {"dtype": "F64", "shape": [8]}}, "must have dtype, shape and data_offsets"),
        ({"a": entry("F64", [8], [0, 64]) | {"more": 1}}, "must have dtype, shape and data_offsets"),
        ({"a": [1]}, "must have dtype, shape and data_offsets"),
    ],
)
def test_tables_that_do_not_fit_the_file(path, entries, message):
    assert message in refused(with_table(**entries), path)


def test_truth_values_are_zero_or_one(path):
    content = forge(box({"$array": "a"}), {"a": np.array([True, True])})
    assert "truth values other than" in refused(content[:-1] + b"\2", path)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_json_has_no_words_for_what_is_not_finite(path, word):
    text = json.dumps(box("WORD")).replace('"WORD"', word)
    assert f"its JSON has the number {word}" in refused(forge(text), path)


def test_keys_must_not_occur_twice(path, sound):
    assert "key twice" in refused(forge(json.dumps(box({"a": 1})).replace('"a"', '"b": 0, "b"')), path)
    length = int.from_bytes(sound[:8], "little")
    header = sound[8 : 8 + length].rstrip().decode()
    coef = header[header.index('"coef_":{') :].partition("}")[0] + "}"
    assert "key twice" in refused(container(header[:-1] + "," + coef + "}", sound[8 + length :]), path)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 5, 900, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a":', '{"$tuple":['])
def test_deep_nesting(path, depth, opening):
    closing = "".join({"[": "]", "{": "}"}[c] for c in reversed(opening) if c in "[{")
    nested = opening * depth + "1" + closing * depth
    refused(forge(json.dumps(box("DEEP")).replace('"DEEP"', nested)), path)
    refused(container('{"__metadata__":' + nested + "}"), path)
    refused(container(opening * depth), path)


def test_a_newer_format_asks_for_an_upgrade(path):
    text = refused(forge(box(), learnable_format="2", learnable="7.0"), path)
    assert "has format 2, written by learnable 7.0" in text
    assert "upgrade" in text
    assert "upgrade" in refused(forge({"other": "layout"}, learnable_format="12"), path)


def test_a_parameter_that_an_old_file_does_not_have_takes_its_default(path):
    path.write_bytes(forge(box() | {"params": {}}))
    assert load(path).size == 1.0


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "os.system",
        "builtins:eval",
        "tests.core.toys:SubBox",
        "SubBox",
        "Unknown",
        "",
        "__class__",
        "x" * 9999,
    ],
)
def test_only_registered_classes_are_built(path, name):
    for document in (box() | {"class": name}, box({"$model": box() | {"class": name}})):
        assert "which this version of learnable does not know" in refused(forge(document), path) or len(name) > 400


def part(**fields):
    return {"$part": {"class": "Span", "fields": {"low": 0.0, "high": 1.0} | fields}}


def certificate(**fields):
    return {"$part": {"class": "Certificate", "fields": {"kind": "gap", "value": 0.0, "tolerance": 1.0} | fields}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "JSON"),
        ([], "described by class, params, fitted"),
        ({"class": "Box", "params": {}}, "described by class, params, fitted"),
        (box(more=1), "described by class, params, fitted"),
        (box() | {"class": 3}, "class of the model must be a name"),
        (box() | {"class": ["Box"]}, "class of the model must be a name"),
        (box() | {"class": "Certificate"}, "the model cannot be a Certificate"),
        (box() | {"params": [1]}, "members of Box must have names"),
        (box() | {"fitted": None}, "members of Box must have names"),
        (box() | {"params": {"self": 1}}, "no parameter 'self'"),
        (box() | {"params": {"capacity": 1}}, "no parameter 'capacity'"),
        (box() | {"params": {"size": -1}}, "size must be a number >= 0; got -1"),
        (box() | {"params": {"size": "1"}}, "size must be a number >= 0; got '1'"),
        (box() | {"params": {"size": {"$float": "nan"}}}, "size must be a number"),
        (box({"$model": box() | {"params": {"size": -1}}}), "Box.content: size must be"),
        (box({"$part": {"class": "Box", "fields": {}}}), "Box.content cannot be a Box"),
        (box({"$model": {"class": "Span", "params": {}, "fitted": {}}}), "Box.content cannot be a Span"),
        (box(part(middle=0.5)), "Span has no field 'middle'"),
        (box(part(low=2.0)), "low must not exceed high"),
        (box(part(low=True)), "Box.content.low must be float; got a bool"),
        (box(part(names=["a"])), "Box.content.names must be tuple"),
        (box(part(weights=[1.0])), "Box.content.weights must be NDArray"),
        (box({"$part": {"class": "Span", "fields": {"low": 0.0}}}), "missing 1 required"),
        (box(None, {"certificate_": 3}), "certificate_ is not a certificate"),
        (box(None, {"certificate_": part()}), "certificate_ is not a certificate"),
        (box(None, {"certificate_": certificate(kind="proof")}), "kind must be one of"),
        (box(None, {"certificate_": certificate(kind=["gap"])}), "got ['gap']"),
        (box(None, {"certificate_": certificate(value="0")}), "value must be float; got a str"),
        (box(None, {"certificate_": certificate(n_iter=1.5)}), "n_iter must be int; got a float"),
        (box(None, {"certificate_": certificate(holds=True)}), "no field 'holds'"),
        (box(None, {"n_features_in_": -1}), "not a number of columns"),
        (box(None, {"n_features_in_": "3"}), "not a number of columns"),
        (box(None, {"feature_names_in_": ["a"]}), "not an array with one name for each column"),
        (
            box(None, {"n_features_in_": 1, "feature_names_in_": {"$objects": {"shape": [1], "items": [0]}}}),
            "names that are not strings",
        ),
        (box(None, {"coef_": 3}), "the members of Box do not fit together"),
        (box({"$scalar": ["int8", 300]}), "OverflowError"),
        (box({"$scalar": ["int8", 1.5]}), "not a number or string of dtype int8"),
        (box({"$scalar": ["int8", "1"]}), "not a number or string of dtype int8"),
        (box({"$scalar": ["float32", 1e300]}), "not a number or string of dtype float32"),
        (box({"$scalar": ["float64", 10**400]}), "OverflowError"),
        (box({"$scalar": ["bool", 1]}), "not a number or string of dtype bool"),
        (box({"$scalar": ["str", 1]}), "not a number or string of dtype str"),
        (box({"$scalar": ["object", 1]}), "KeyError"),
        (box({"$scalar": ["datetime64", 1]}), "KeyError"),
        (box({"$scalar": [["int8"], 1]}), "TypeError"),
        (box({"$scalar": 1}), "must be a list"),
        (box({"$float": 1}), "KeyError"),
        (box({"$float": "1e5"}), "KeyError"),
        (box({"$tuple": "ab"}), "must be a list"),
        (box({"$dict": [[1, 2], [1, 3]]}), "key twice"),
        (box({"$dict": [[[1], 2]]}), "TypeError"),
        (box({"$dict": [[1]]}), "ValueError"),
        (box({"$dict": {"a": 1}}), "list of at most"),
        (box({"$dict": [[i * (2**61 - 1), 0] for i in range(5000)]}), "list of at most"),
        (box({"$range": [0, 1, 0]}), "ValueError"),
        (box({"$range": ["a", "b", "c"]}), "TypeError"),
        (box({"$slice": [1, 2, 3, 4]}), "TypeError"),
        (box({"$array": "a"}), "needs the array 'a'"),
        (box({"$array": ["a"]}), "needs the array ['a']"),
        (box({"$eval": "1+1"}), "written as '$eval', which this version of learnable does not know"),
        (box({"$array": "a", "b": 1}), "ValueError"),
        (box({"$objects": {"shape": [2], "items": [1]}}), "not what its shape says"),
        (box({"$objects": {"shape": [-1], "items": []}}), "shape of Box.content must be"),
        (box({"$objects": {"shape": "2", "items": [1, 2]}}), "shape of Box.content must be"),
        (box({"$text": {}}), "described by utf8, offsets, shape, width"),
        ("[" + "1" * 5000 + "]", "ValueError"),
    ],
)
def test_documents_that_describe_no_model(path, document, message):
    assert message in refused(forge(document), path)


@pytest.mark.parametrize(
    "name",
    [
        *("predict", "get_params", "fit", "_door", "_check_loaded", "capacity_", "content", "size"),
        *("__class__", "__dict__", "__init__", "__reduce__", "_skl_callbacks", "_hidden_"),
        *("certificate", "", "_", "a b_", "a.b_", "1_"),
    ],
)
def test_a_file_cannot_set_what_is_no_fitted_attribute(path, name):
    assert "cannot be a fitted attribute of Box" in refused(forge(box(None, {name: 1})), path)


def test_an_array_that_belongs_to_nobody(path):
    assert "'stray' belongs to no member" in refused(forge(box(), {"stray": np.zeros(2)}), path)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_each_class_checks_its_own_arrays(path, bad):
    document = box(None, {"coef_": {"$array": "c"}})
    assert "coef_ must be finite" in refused(forge(document, {"c": np.array([1.0, bad])}), path)
    assert "coef_ must be finite" in refused(forge(document, {"c": np.zeros((2, 2))}), path)


@pytest.mark.parametrize(
    ("data", "indices", "indptr", "shape"),
    [
        ([1.0, 2.0], [0, 5], [0, 1, 2], [2, 5]),
        ([1.0, 2.0], [0, -1], [0, 1, 2], [2, 5]),
        ([1.0, 2.0], [0, 2**62], [0, 1, 2], [2, 5]),
        ([1.0, 2.0], [0, 1], [0, 1, 3], [2, 5]),
        ([1.0, 2.0], [0, 1], [0, 3, 2], [2, 5]),
        ([1.0, 2.0], [0, 1], [0, -(2**63), 2], [2, 5]),
        ([1.0, 2.0], [0, 1], [1, 1, 2], [2, 5]),
        ([1.0, 2.0], [0, 1], [0, 1], [2, 5]),
        ([1.0, 2.0], [0, 1], [], [2, 5]),
        ([1.0, 2.0], [0], [0, 1, 2], [2, 5]),
        ([1.0], [0, 1], [0, 1, 2], [2, 5]),
        ([[1.0, 2.0]], [0, 1], [0, 1, 2], [2, 5]),
        ([1.0, 2.0], [0.0, 1.0], [0.0, 1.0, 2.0], [2, 5]),
        ([1.0, 2.0], [0, 1], [0, 1, 2], [2, 5, 1]),
        ([1.0, 2.0], [0, 1], [0, 2], [2]),
        ([1.0, 2.0], [0, 1], [0, 1, 2], [2, -5]),
        ([1.0, 2.0], [0, 1], [0, 1, 2], [2, 2**64]),
        (np.ones(2, "f2"), [0, 1], [0, 1, 2], [2, 5]),
    ],
)
def test_sparse_arrays_with_indices_out_of_range(path, data, indices, indptr, shape):
    document = box({"$csr": {"data": "d", "indices": "i", "indptr": "p", "shape": shape}})
    arrays = {
        "d": np.array(data),
        "i": np.array(indices),
        "p": np.array(indptr, dtype=None if indptr else "i8"),
    }
    refused(forge(document, arrays), path)


@pytest.mark.parametrize(
    ("utf8", "offsets", "shape", "width"),
    [
        (b"abc", [0, 1, 4], [2], None),
        (b"abc", [0, 4, 3], [2], None),
        (b"abc", [0, -1, 3], [2], None),
        (b"abc", [1, 2, 3], [2], None),
        (b"abc", [0, 3], [2], None),
        (b"abc", [], [0], None),
        (b"abc", [0.0, 1.0, 3.0], [2], None),
        (b"\xff\xfe\xfd", [0, 1, 3], [2], None),
        ("é!".encode(), [0, 1, 3], [2], None),
        (b"abc", [0, 1, 3], [2], 1),
        (b"abc", [0, 1, 3], [2], -1),
        (b"abc", [0, 1, 3], [2], True),
        (b"abc", [0, 1, 3], [2], "3"),
        (b"abc", [0, 1, 3], [2], 2**40),
        (b"abc", [0, 1, 3], [1, 1], None),
    ],
)
def test_strings_that_do_not_fit_their_offsets(path, utf8, offsets, shape, width):
    document = box({"$text": {"utf8": "u", "offsets": "o", "shape": shape, "width": width}})
    arrays = {"u": np.frombuffer(utf8, np.uint8), "o": np.array(offsets, dtype=None if offsets else "i8")}
    refused(forge(document, arrays), path)


def test_messages_stay_short_and_printable(path):
    hostile = "\x1b[31m\n\r\u202e" * 500
    refused(forge(box() | {"class": hostile}), path)
    refused(forge(box(None, {hostile: 1})), path)
    refused(forge(box({hostile: {"$tuple": 1}})), path)
    refused(with_table(**{hostile: 1}), path)
    refused(forge(box(), learnable_format="2", learnable=hostile), path)


def test_long_keys_at_every_depth_take_no_time(path):
    document = [0] * 2000
    for _ in range(50):
        document = {"k" * 50_000: document}
    path.write_bytes(forge(box(document)))
    assert load(path).content.keys() == {"k" * 50_000}
