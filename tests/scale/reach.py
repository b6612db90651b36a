"""Write the table of `docs/scale.md`: from where each model can be fitted, and what travels for it.

    python -m tests.scale.reach

What is said about a model is declared below, once per group; `probe` fits the model from files and from Dask and
measures it, and the tests compare the two.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pandas as pd
from sklearn.utils import get_tags
from tests.data.on_disk import streamed
from tests.registered import brief, build, small_table

from learnable.core.errors import LearnableError
from learnable.core.registry import estimator_names
from learnable.data import dask_blocks

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
BEGIN = "<!-- models: begin -->"
END = "<!-- models: end -->"
#: Bytes of a pickled result besides its arrays: names of classes, shapes, the checksum of the first pass.
OVERHEAD = 800
#: Rows of a sample that starts are drawn from.
SAMPLE = 2**17

Bytes = Callable[[float, float, float], float]  #: (n, d, K) -> bytes, n the rows of a partition


class Group(NamedTuple):
    """Models that send the same things."""

    models: str  #: their names
    files: str  #: "sums": only sums are kept; "rows": all rows are read into memory; "": refused
    dask: str  #: the same for Dask
    passes: str  #: over the rows
    merged: str  #: what travels from each partition
    each: str  #: bytes of it per partition and pass, in words
    each_bytes: Bytes  #: the same as a function
    once: str = ""  #: what travels besides, once per fit
    once_bytes: Bytes = lambda n, d, K: 0.0


def _nothing(n: float, d: float, K: float) -> float:
    return 0.0


def _rows(n: float, d: float, K: float) -> float:
    return 8 * n * (d + 2)


def _sample(n: float, d: float, K: float) -> float:
    return 8 * min(n, SAMPLE) * (d + 1)


SAMPLE_WORDS = "sample of at most 2¹⁷ rows"
GROUPS = (
    Group(
        "LinearRegression Ridge BayesianLinearRegression RidgeClassifier Lasso ElasticNet",
        "sums",
        "sums",
        "1",
        "means, XᵀX, Xᵀy",
        "8d² + 32d",
        lambda n, d, K: 8 * d * d + 32 * d,
    ),
    Group(
        "BestSubset ForwardStepwise BackwardStepwise ForwardStagewise LassoLars Lars LassoLarsIC "
        "OrthogonalMatchingPursuit NonconvexRegression",
        "sums",
        "sums",
        "1",
        "a triangle R with RᵀR = XᵀX, Xᵀy",
        "8d² + 32d",
        lambda n, d, K: 8 * d * d + 32 * d,
    ),
    Group(
        "RidgeCV RidgeClassifierCV",
        "sums",
        "sums",
        "2",
        "means, XᵀX, Xᵀy; then errors for each α",
        "8d² + 32d",
        lambda n, d, K: 8 * d * d + 32 * d,
    ),
    Group(
        "LassoCV ElasticNetCV",
        "sums",
        "sums",
        "2",
        "means, XᵀX, Xᵀy of each of the F folds that a partition has rows of",
        "8F(d² + 4d)",
        lambda n, d, K: 3 * (8 * d * d + 32 * d),
    ),
    Group(
        "LogisticRegression BlendClassifier",
        "sums",
        "sums",
        "1 per step",
        "gradient, Hessian of K classes (K = 1 for two)",
        "8K²(d + 1)²",
        lambda n, d, K: 8 * (K * (d + 1)) ** 2,
    ),
    Group(
        "PoissonRegressor GammaRegressor TweedieRegressor LinearSVC",
        "sums",
        "sums",
        "1 per step",
        "gradient, Hessian",
        "8(d + 1)²",
        lambda n, d, K: 8 * (d + 1) ** 2,
    ),
    Group(
        "GaussianNB GenerativeClassifier BernoulliNB MultinomialNB",
        "sums",
        "sums",
        "1 or 2",
        "counts, sums and squares per class",
        "24Kd",
        lambda n, d, K: 24 * K * d,
    ),
    Group(
        "CategoricalNB",
        "sums",
        "sums",
        "1",
        "counts of C categories per class and column",
        "8KCd",
        lambda n, d, K: 8 * K * 12 * d,
    ),
    Group(
        "LinearDiscriminantAnalysis",
        "sums",
        "sums",
        "1",
        "means per class, scatter matrix within classes",
        "8d² + 16Kd",
        lambda n, d, K: 8 * d * d + 16 * K * d,
    ),
    Group(
        "QuadraticDiscriminantAnalysis",
        "sums",
        "sums",
        "1",
        "mean and scatter matrix per class",
        "8Kd² + 16Kd",
        lambda n, d, K: 8 * K * d * d + 16 * K * d,
    ),
    Group(
        "PCA",
        "sums",
        "sums",
        "1",
        "means, XᵀX",
        "8d² + 16d",
        lambda n, d, K: 8 * d * d + 16 * d,
    ),
    Group(
        "ProbabilisticPCA FactorAnalysis",
        "sums",
        "sums",
        "2",
        "means, XᵀX",
        "8d² + 16d",
        lambda n, d, K: 8 * d * d + 16 * d,
    ),
    Group(
        "GaussianMixture MixtureModel VariationalGaussianMixture",
        "sums",
        "sums",
        "1 per EM step",
        "weight, sum and squares per component",
        "8Kd² + 16Kd",
        lambda n, d, K: 8 * K * d * d + 16 * K * d,
        SAMPLE_WORDS,
        _sample,
    ),
    Group(
        "MixtureOfExperts",
        "sums",
        "sums",
        "1 per step",
        "gradient and Hessian of gate and experts",
        "8(K² + K)(d + 1)²",
        lambda n, d, K: 8 * (K * K + K) * (d + 1) ** 2,
        SAMPLE_WORDS,
        _sample,
    ),
    Group(
        "LatentDirichletAllocation",
        "",
        "sums",
        "2 per step",
        "counts by word and topic, γ of the documents; learning_method='batch' only",
        "8K(n + d)",
        lambda n, d, K: 8 * K * (n + d),
    ),
    Group(
        "KMeans",
        "sums",
        "sums",
        "1 per step",
        "weight and sum per cluster, in two halves; a pass for 32 far rows where a cluster is empty",
        "16K(d + 1)",
        lambda n, d, K: 16 * K * (d + 1),
        SAMPLE_WORDS + ", labels of all rows",
        lambda n, d, K: _sample(n, d, K) + 4 * n,
    ),
    Group(
        "MiniBatchKMeans",
        "sums",
        "sums",
        "5",
        "sums for the scale and the inertia",
        "8(K + 2)d",
        lambda n, d, K: 8 * (K + 2) * d,
        SAMPLE_WORDS + ", labels of all rows",
        lambda n, d, K: _sample(n, d, K) + 4 * n,
    ),
    Group(
        "KNeighborsClassifier KNeighborsRegressor NearestNeighbors",
        "rows",
        "rows",
        "1",
        "the rows: the index lies in memory",
        "",
        _nothing,
        "all rows",
        _rows,
    ),
    Group(
        "BlendRegressor TableModel ScaledTargetRegressor OneVsRestClassifier OneVsOneClassifier TableEncoder",
        "",
        "",
        "of the inner model",
        "what the inner model merges, where it takes such rows; otherwise the rows are read into memory",
        "",
        _nothing,
    ),
    Group(
        "HistGradientBoostingClassifier HistGradientBoostingRegressor",
        "sums",
        "sums",
        "3, then the codes once per round",
        "histograms of the smaller child of each split, between workers; see the guide of boosting",
        "2,048d per split",
        _nothing,
        "sample of at most 200,000 rows",
    ),
    Group(
        "RandomForestClassifier RandomForestRegressor ExtraTreesClassifier ExtraTreesRegressor",
        "",
        "sums",
        "4, then the codes once per level of four trees",
        "with `max_bins`, where the rows fit no worker: histograms of the columns that large nodes draw, of each "
        "class; rows of nodes of at most 2¹⁶, as codes, to one worker. Else every worker gets all rows",
        "2,048(K + 1) per column and node",
        _nothing,
        "sample of at most 200,000 values per column, targets of all rows",
    ),
    Group(
        "GradientBoostingClassifier GradientBoostingRegressor BaggingClassifier BaggingRegressor AdaBoostClassifier "
        "AdaBoostRegressor BoostByMajority ForwardStagewiseAdditive DecisionTreeClassifier DecisionTreeRegressor "
        "ID3Classifier",
        "",
        "",
        "1",
        "no histograms: the rows are read into memory, on each worker for bagging, or refused",
        "",
        _nothing,
    ),
    Group(
        "PolynomialFeatures BasisExpansion Nystroem RBFSampler CategoricalHMM GaussianHMM GMMHMM PoissonHMM "
        "PopulationStructure",
        "",
        "rows",
        "1",
        "the rows: a Dask array is computed",
        "",
        _nothing,
        "all rows",
        _rows,
    ),
    Group(
        "RFE RFECV SequentialFeatureSelector CalibratedClassifier ConformalRegressor ConformalClassifier",
        "",
        "rows",
        "1",
        "the rows, to take subsets of them: a Dask array is computed",
        "",
        _nothing,
        "all rows",
        _rows,
    ),
    Group(
        "GLM LinearSVR SVC NuSVC SVR NuSVR OneClassSVM Perceptron LogisticRegressionCV "
        "MultiTaskLasso MultiTaskElasticNet MultiTaskLassoCV MultiTaskElasticNetCV LarsCV LassoLarsCV "
        "OrthogonalMatchingPursuitCV BestSubsetClassifier StepwiseGLM KernelRidge KernelRidgeClassifier KernelRidgeCV "
        "KernelLogisticRegression GaussianProcessRegressor GaussianProcessClassifier KernelPCA NMF MDS TruncatedSVD "
        "ClassicalMDS Isomap LocallyLinearEmbedding SpectralEmbedding LaplacianEigenmaps SpectralClustering "
        "DiffusionMaps TSNE RegularizedRisk KMedoids MLPClassifier MLPRegressor "
        "ResNetClassifier ResNetRegressor LSTMClassifier LSTMRegressor RNNClassifier RNNRegressor",
        "",
        "",
        "",
        "refused with the reason and the remedy",
        "",
        _nothing,
    ),
)
REFUSED = GROUPS[-1]
#: Groups whose models depend on what they hold, or are described elsewhere.
UNPROBED = tuple(group for group in GROUPS if group.merged.startswith("what the inner") or "histograms" in group.merged)
#: Settings with which a model takes rows that lie elsewhere, where its defaults do not.
SETTINGS = {"LatentDirichletAllocation": {"learning_method": "batch"}}


class Travel(NamedTuple):
    """What one pass over the partitions sent."""

    statistic: str
    most: int  #: bytes of the largest result of a partition
    state: int  #: bytes of what each partition was sent


class Probe(NamedTuple):
    """What a fit on Dask did."""

    model: Any
    passes: float  #: partitions loaded, divided by their number
    travels: list[Travel]
    error: LearnableError | None


def names_of(group: Group) -> list[str]:
    """Return the models of a group."""
    return group.models.split()


def group_of(name: str) -> Group:
    """Return what is declared about a model."""
    return next(group for group in GROUPS if name in names_of(group))


def table_for(name: str, n: int, d: int) -> tuple[Any, Any]:
    """Return rows of about d columns and targets that suit a model; no targets if it takes none."""
    first, y = small_table(name, n)
    more = [small_table(name, n, seed=seed)[0] for seed in range(1, -(-d // 4))]
    X = first if first.shape[1] != 4 else np.hstack([first, *more])
    return X, y if get_tags(build(name)).target_tags.required or "Selector" in name else None


def probe(name: str, n: int = 240, d: int = 4, n_parts: int = 3) -> Probe:
    """Fit a model to a Dask array, and note what is loaded and what travels."""
    X, y = table_for(name, n, d)
    loads = [0]

    def load(block: Any) -> Any:
        loads[0] += 1
        return block

    rows = n // n_parts
    table = da.from_array(np.asarray(X, dtype=float), chunks=(rows, -1))
    table = table.map_blocks(load, dtype=float, meta=np.empty((0, 0)))
    loads[0] = 0
    target = () if y is None else (da.from_array(y, chunks=(rows,) if y.ndim == 1 else (rows, -1)),)
    travels: list[Travel] = []
    model = brief(build(name)).set_params(**SETTINGS.get(name, {}))
    error = None
    with _tapped(travels), dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(table, *target)
        except LearnableError as found:
            error = found
    return Probe(model, loads[0] / n_parts, travels, error)


def fit_from_files(name: str, folder: Path, n: int = 240, d: int = 4) -> tuple[Any, LearnableError | None]:
    """Fit a model to files that are streamed."""
    X, y = table_for(name, n, d)
    frame = pd.DataFrame(np.asarray(X, dtype=float), columns=[f"x{j}" for j in range(X.shape[1])])
    if y is not None:
        frame = frame.assign(y=y if y.ndim == 1 else y[:, 0])
    source = streamed(frame, folder, 2)
    model = brief(build(name)).set_params(**SETTINGS.get(name, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model.fit(source, *(() if y is None else ("y",))), None
        except LearnableError as error:
            return model, error


@contextmanager
def _tapped(travels: list[Travel]) -> Iterator[None]:
    """Note the bytes of all that partitions send."""
    run = dask_blocks.run_on_partitions

    def tapped(owner: str, work: Any, parts: list[Any], *more: Any, **named: Any) -> Iterator[Any]:
        sizes = []
        for found in run(owner, work, parts, *more, **named):
            sizes.append(len(cloudpickle.dumps(found)))
            yield found
        travels.append(Travel(_name_of(work), max(sizes, default=0), len(cloudpickle.dumps(work))))

    users = [module for module in list(sys.modules.values()) if getattr(module, "run_on_partitions", None) is run]
    for module in users:
        module.run_on_partitions = tapped
    try:
        yield
    finally:
        for module in users:
            module.run_on_partitions = run


def _name_of(work: Any) -> str:
    """Return the name of the statistic that is summed."""
    function = work.args[1].args[0] if getattr(work, "func", None) is dask_blocks._read_and_sum else work
    while hasattr(function, "func"):
        function = function.args[0] if function.func.__name__ == "_scanned" else function.func
    return str(getattr(function, "__qualname__", function))


def table() -> str:
    """Return the table of all models."""
    words = {"sums": "yes", "rows": "rows into memory", "": "no"}
    lines = [
        "| model | from files | on Dask | passes | what is merged | bytes per partition and pass | once |",
        "|---|---|---|---|---|---|---|",
    ]
    for group in GROUPS:
        models = ", ".join(f"`{name}`" for name in names_of(group))
        where = ["" if group in UNPROBED and not how else words[how] for how in (group.files, group.dask)]
        cells = [models, *where, group.passes, group.merged, group.each, group.once]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page_with(text: str, begin: str, end: str, page: str) -> str:
    """Return a page in which the text between two marks is this one."""
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}\n{text}\n{end}{tail}"


def main() -> None:
    """Write the table; with `--probe`, print what every model did instead."""
    if "--probe" in sys.argv:
        for name in sys.argv[2:] or estimator_names():
            found = probe(name)
            _, refused = fit_from_files(name, Path(tempfile.mkdtemp()))
            print(name, f"{found.passes:.1f}", found.error or found.travels, refused or "files", sep=" | ")
        return
    PAGE.write_text(page_with(table(), BEGIN, END, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
