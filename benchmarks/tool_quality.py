"""Does `learnable compare` find a model as good as people would choose? Twelve tables against tuned LightGBM.

    python -m benchmarks.tool_quality --data FOLDER --seconds 300 [--draws 50] [--same-time] [--tables adult …]

A fifth of every table is set aside first, of one that is ordered by time its end. On the rest the tool runs as a user
would run it, and saves its model; LightGBM is tuned by random draws of its usual parameters, each judged by five folds
by the measure that the tool ranks by, and fitted again to all of these rows; with --same-time no draw begins after the
seconds that the tool took. Both are then judged on the rows set aside. Dates are given to LightGBM as days, months and
weekdays, texts as categories. FOLDER holds the real tables as CSV files; what is not there is left out, and the
generated tables are always there. The figure to quote is in how many tables the tool's score is at least LightGBM's.

    python -m benchmarks.tool_quality --write FOLDER

writes the generated tables as CSV files, to try the command line on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit, train_test_split

#: Files of real tables, with the column to predict and the task.
REAL = {
    "adult": ("adult.csv.gz", None, "classes"),
    "california": ("california_housing.csv.gz", "median_house_value", "numbers"),
    "wine quality": ("wine_quality.csv", "quality", "classes"),
    "letter": ("letter_recognition.csv.gz", None, "classes"),
    "spambase": ("spambase.csv.gz", None, "classes"),
    "boston": ("boston_housing.csv", None, "numbers"),
    "pima": ("pima_diabetes.csv", None, "classes"),
    "auto mpg": ("auto_mpg.csv", "mpg", "numbers"),
}
#: Where a file's target is not named above: columns that are looked for, in this order.
TARGETS = (
    "income",
    "class",
    "letter",
    "lettr",
    "spam",
    "is_spam",
    "type",
    "medv",
    "MEDV",
    "Outcome",
    "outcome",
    "diabetes",
    "y",
)


def titanic_like(n: int = 1500, seed: int = 0) -> pd.DataFrame:
    """Return passengers: a class, an age with gaps, a fare, a cabin code that is mostly missing, a ticket, a name."""
    rng = np.random.default_rng(seed)
    rank = rng.integers(1, 4, n)
    sex = rng.choice(["male", "female"], n, p=[0.65, 0.35])
    age = np.round(rng.gamma(6.0, 5.0, n), 0)
    fare = np.round(rng.lognormal(4.6 - 0.9 * rank, 0.5), 2)
    deck = rng.choice(list("ABCDE"), n)
    cabin = [
        f"{d}{k}" if rng.random() < (0.9 if r == 1 else 0.1) else None
        for d, k, r in zip(deck, rng.integers(1, 130, n), rank, strict=True)
    ]
    logit = 2.4 * (sex == "female") - 0.9 * (rank - 2) - 0.03 * (age - 30) + 0.7 * np.isin(deck, ["B", "D"]) - 0.6
    return pd.DataFrame(
        {
            "pclass": rank,
            "sex": sex,
            "age": np.where(rng.random(n) < 0.2, np.nan, age),
            "fare": fare,
            "cabin": cabin,
            "ticket": [
                f"{p} {k}".strip()
                for p, k in zip(rng.choice(["PC", "A/5", "", "STON"], n), rng.integers(1e3, 4e5, n), strict=True)
            ],
            "survived": np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no"),
        }
    )


def reviews(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    """Return reviews: a text of which a few words matter, the day it was written, a price, a shop."""
    rng = np.random.default_rng(seed)
    good = ["great", "lovely", "superb", "fine", "bright", "solid", "quick"]
    bad = ["awful", "broken", "dull", "poor", "late", "faulty", "weak"]
    filler = [f"word{k}" for k in range(800)]
    mood = rng.normal(size=n)
    texts = [
        " ".join([*rng.choice(good if rng.random() < 1 / (1 + np.exp(-2 * m)) else bad, 3), *rng.choice(filler, 12)])
        for m in mood
    ]
    days = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    price = rng.lognormal(3.0, 0.5, n).round(2)
    stars = mood + 0.3 * np.log(price) + 0.4 * days.weekday.isin([5, 6]) + 0.5 * rng.normal(size=n)
    return pd.DataFrame(
        {
            "text": texts,
            "written": days.strftime("%d/%m/%Y"),
            "price": price,
            "shop": rng.choice([f"shop {k}" for k in range(60)], n),
            "liked": np.where(stars > 1.0, "yes", "no"),
        }
    )


def sales(n: int = 1461, seed: int = 0) -> pd.DataFrame:
    """Return four years of daily sales: a trend, a week, a year, campaigns, holidays, and errors that last."""
    rng = np.random.default_rng(seed)
    day = pd.date_range("2020-01-01", periods=n, freq="D")
    campaign = rng.random(n) < 0.12
    price = np.round(10 + np.cumsum(rng.normal(0, 0.03, n)), 2)
    lasting = np.zeros(n)
    for t in range(1, n):
        lasting[t] = 0.6 * lasting[t - 1] + rng.normal(0, 6)
    week = np.array([0, -5, -3, 2, 15, 35, -20])[day.weekday]
    year = 20 * np.sin(2 * np.pi * day.dayofyear / 365.25)
    total = 300 + 0.03 * np.arange(n) + week + year + 30 * campaign - 8 * (price - 10) + lasting
    return pd.DataFrame(
        {
            "day": day.strftime("%Y-%m-%d"),
            "campaign": np.where(campaign, "yes", "no"),
            "price": price,
            "visitors": np.round(0.5 * total + rng.normal(0, 12, n)),
            "sales": np.round(total, 1),
        }
    )


def fraud(n: int = 2000, n_positive: int = 10, seed: int = 0) -> pd.DataFrame:
    """Return payments of which ten are fraud: larger ones, at night."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n, dtype=bool)
    y[rng.choice(n, n_positive, replace=False)] = True
    amount = np.exp(rng.normal(3 + 1.8 * y, 1.0))
    hour = np.where(y, rng.integers(0, 6, n), rng.integers(0, 24, n))
    return pd.DataFrame(
        {
            "amount": amount.round(2),
            "hour": hour,
            "age": rng.integers(18, 90, n),
            "country": rng.choice(list("ABCDEFG"), n),
            "fraud": np.where(y, "yes", "no"),
        }
    )


def wide(n: int = 600, d: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Return 2,000 columns of which fifteen matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    beta = np.zeros(d)
    beta[rng.choice(d, 15, replace=False)] = rng.choice([-1.0, 1.0], 15) * rng.uniform(0.5, 1.5, 15)
    signal = X @ beta
    y = signal + rng.normal(size=n) * signal.std() * 0.4
    return pd.DataFrame(X.round(4), columns=[f"c{k}" for k in range(d)]).assign(y=y.round(4))


def million(n: int = 1_000_000, seed: int = 0) -> pd.DataFrame:
    """Return a million rows of two classes with interactions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    kind = rng.integers(0, 6, n)
    logit = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) + 0.5 * np.array([-1, 0, 1, 0.5, -0.5, 0])[kind]
    y = rng.random(n) < 1 / (1 + np.exp(-logit))
    columns = {f"x{k}": X[:, k].round(4) for k in range(8)}
    return pd.DataFrame({**columns, "kind": np.array(list("abcdef"))[kind], "bought": np.where(y, "yes", "no")})


def friedman(n: int = 3000, seed: int = 0) -> pd.DataFrame:
    """Return Friedman's first table with ten columns of noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 15))
    y = (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1])
        + 20 * (X[:, 2] - 0.5) ** 2
        + 10 * X[:, 3]
        + 5 * X[:, 4]
        + rng.normal(size=n)
    )
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(15)]).assign(y=y)


GENERATED: dict[str, tuple[Callable[[], pd.DataFrame], str, str]] = {
    "titanic-like": (titanic_like, "survived", "classes"),
    "reviews": (reviews, "liked", "classes"),
    "sales": (sales, "sales", "numbers"),
    "fraud": (fraud, "fraud", "classes"),
    "wide": (wide, "y", "numbers"),
    "million": (million, "bought", "classes"),
    "friedman": (friedman, "y", "numbers"),
}
#: The twelve of which the figure is told; the others are further tables.
TWELVE = (
    "adult", "california", "wine quality", "letter", "spambase", "boston",
    "titanic-like", "reviews", "sales", "fraud", "wide", "million",
)  # fmt: skip
#: Columns that order a table.
TIMES = {"sales": "day"}
#: How dates are written in these tables.
DATES = ("%Y-%m-%d", "%d/%m/%Y")


def load(name: str, folder: Path | None) -> tuple[pd.DataFrame, str, str] | None:
    """Return a table, its target and its task; None if its file is not there."""
    if name in GENERATED:
        make, target, task = GENERATED[name]
        return make(), target, task
    file, target, task = REAL[name]
    if folder is None or not (folder / file).exists():
        return None
    table = pd.read_csv(folder / file)
    if target is None:
        target = next((column for column in TARGETS if column in table.columns), str(table.columns[-1]))
    return table.dropna(subset=[target]), target, task


def set_aside(
    table: pd.DataFrame, target: str, task: str, time_column: str | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return four fifths of the rows to learn from and a fifth to judge by: new rows, no copies of the others."""
    if time_column is not None:
        ordered = table.sort_values(time_column, kind="stable").reset_index(drop=True)
        last = int(0.8 * len(ordered))
        return ordered.iloc[:last], ordered.iloc[last:].reset_index(drop=True)
    columns = list(table.columns)
    first = table.groupby(columns, dropna=False, sort=False).ngroup().to_numpy()
    _, where = np.unique(first, return_index=True)
    classes = None if task == "numbers" else table[target].to_numpy()[where]
    train, _ = train_test_split(np.unique(first), test_size=0.2, random_state=0, stratify=classes)
    known = np.isin(first, train)
    return table[known].reset_index(drop=True), table[~known].reset_index(drop=True)


def judge(task: str, y: Any, classes: Any, prediction: Any, probabilities: Any) -> dict[str, float]:
    """Return the scores; for all of them greater is better."""
    if task == "numbers":
        return {"r2": float(r2_score(y, prediction))}
    p = np.clip(probabilities, 1e-15, 1.0)
    loss = log_loss(y, p / p.sum(axis=1, keepdims=True), labels=classes)
    return {"accuracy": float(np.mean(np.asarray(prediction) == np.asarray(y))), "negative log loss": -float(loss)}


def run_tool(
    train: pd.DataFrame,
    test: pd.DataFrame,
    target: str,
    task: str,
    seconds: float,
    models: list[str] | None,
    time_column: str | None = None,
) -> dict[str, Any]:
    """Run the comparison on the training rows and judge the model it saved."""
    import learnable as ln
    from learnable.core.registry import REGISTRY
    from learnable.evaluation import compare

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        if models is not None:  # of those that are named, the ones for this task
            tasks = {"regression"} if task == "numbers" else {"binary", "multiclass"}
            models = [name for name in models if tasks & set(getattr(REGISTRY[name].traits, "tasks", ()))]
        words = {"numbers": "regression", "classes": "classification"}[task]
        record = compare(
            train, target, seconds=seconds, models=models, tune=True, task=words, model_file=file, time=time_column
        )
        if not file.exists():
            return {"failed": "; ".join(record["advice"])}
        model, size = ln.load(file), file.stat().st_size
    X, y = test.drop(columns=[target]), test[target]
    p = model.predict_proba(X) if task == "classes" else None
    classes = None if task == "numbers" else model.classes_
    best = model.predict(X) if p is None else classes[p.argmax(axis=1)]
    return {
        "model": record["winner"]["name"],
        "metric": record["protocol"]["metric"]["name"],
        "seconds": record["timing"]["total"],
        "bytes": size,
        **judge(task, y, classes, best, p),
    }


def run_lightgbm(
    train: pd.DataFrame,
    test: pd.DataFrame,
    target: str,
    task: str,
    draws: int,
    most: float = np.inf,
    metric: str = "",
    time_column: str | None = None,
) -> dict[str, Any]:
    """Tune LightGBM by random draws on five folds of the training rows, and judge it on the test rows."""
    import lightgbm as lgb

    began = time.monotonic()
    X, X_test = (_columns_for_lightgbm(frame, train, target) for frame in (train, test))
    y = train[target]
    classes = None if task == "numbers" else np.unique(y)
    codes = y.to_numpy(float) if classes is None else np.searchsorted(classes, y)
    folds: Any = KFold(5, shuffle=True, random_state=0)
    if classes is not None:
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
    if time_column is not None:
        folds = TimeSeriesSplit(5)
    kind = lgb.LGBMRegressor if classes is None else lgb.LGBMClassifier
    rng = np.random.default_rng(0)
    best = -np.inf
    chosen: dict[str, Any] = {}
    tried = 0
    for draw in range(draws):
        if draw > 0 and time.monotonic() - began > most:
            break
        tried += 1
        settings = {} if draw == 0 else _draw(rng)
        scores = []
        for a, b in folds.split(X, codes):
            model = kind(verbose=-1, random_state=0, **settings).fit(X.iloc[a], codes[a])
            scores.append(_inner_score(model, X.iloc[b], codes[b], classes, metric))
        if np.mean(scores) > best:
            best = float(np.mean(scores))
            chosen = settings
    model = kind(verbose=-1, random_state=0, **chosen).fit(X, codes)
    p = None if classes is None else model.predict_proba(X_test)
    found = model.predict(X_test) if classes is None else classes[p.argmax(axis=1)]
    spent = time.monotonic() - began
    return {"seconds": spent, "draws": tried, "settings": chosen, **judge(task, test[target], classes, found, p)}


def _columns_for_lightgbm(frame: pd.DataFrame, train: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return columns as LightGBM takes them: dates as three numbers, other texts as categories of the training rows."""
    X = frame.drop(columns=[target]).copy()
    for column in frame.columns.drop(target):
        if pd.api.types.is_numeric_dtype(X[column]):
            continue
        form = next((form for form in DATES if _is_date(train[column], form)), None)
        if form is not None:
            day = pd.to_datetime(X.pop(column), format=form)
            X[f"{column} day"] = (day - pd.Timestamp("2000-01-01")).dt.days
            X[f"{column} month"] = day.dt.month
            X[f"{column} weekday"] = day.dt.weekday
            continue
        levels = pd.Index(train[column].dropna().unique())
        X[column] = pd.Categorical(X[column].where(X[column].isin(levels)), categories=levels)
    X.columns = [f"c{place}" for place in range(X.shape[1])]  # it takes no brackets in a name
    return X


def _is_date(column: pd.Series, form: str) -> bool:
    return bool(pd.to_datetime(column.dropna().head(200), format=form, errors="coerce").notna().all())


def _draw(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "learning_rate": float(np.exp(rng.uniform(np.log(0.02), np.log(0.2)))),
        "n_estimators": int(np.exp(rng.uniform(np.log(100), np.log(800)))),
        "num_leaves": int(np.exp(rng.uniform(np.log(8), np.log(128)))),
        "min_child_samples": int(np.exp(rng.uniform(np.log(3), np.log(60)))),
        "colsample_bytree": float(rng.uniform(0.5, 1.0)),
        "subsample": float(rng.uniform(0.6, 1.0)),
        "subsample_freq": 1,
        "reg_lambda": float(np.exp(rng.uniform(np.log(1e-3), np.log(10.0)))),
    }


def _inner_score(model: Any, X: pd.DataFrame, codes: Any, classes: Any, metric: str) -> float:
    """Return what the draws are chosen by, as the tool ranks: R², log loss, or the accuracy."""
    if classes is None:
        return float(r2_score(codes, model.predict(X)))
    if metric == "negative log loss":
        return -float(log_loss(codes, model.predict_proba(X), labels=model.classes_))
    return float(np.mean(model.predict(X) == codes))


def main() -> None:
    """Run the tables that are asked for, and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--same-time", action="store_true", help="give LightGBM no more seconds than the tool took")
    parser.add_argument("--rows", type=int, default=None, help="use at most so many rows of a table")
    parser.add_argument("--tables", nargs="*", default=list(TWELVE))
    parser.add_argument("--write", type=Path, default=None, help="only write the generated tables into this folder")
    parser.add_argument("--models", nargs="*", default=None, help="what the tool races; by default all")
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    if options.write is not None:
        for name, (make, _, _) in GENERATED.items():
            make().to_csv(options.write / f"{name}.csv", index=False)
        return
    results: dict[str, Any] = {}
    for name in options.tables:
        loaded = load(name, options.data)
        if loaded is None:
            print(f"{name}: its file is not there")
            continue
        table, target, task = loaded
        if options.rows is not None and len(table) > options.rows:
            table = table.sample(options.rows, random_state=0)
        when = TIMES.get(name)
        train, test = set_aside(table, target, task, when)
        tool = run_tool(train, test, target, task, options.seconds, options.models, when)
        most = tool.get("seconds", options.seconds) if options.same_time else np.inf
        metric = {"log_loss": "negative log loss"}.get(tool.get("metric", ""), tool.get("metric", ""))
        peer = run_lightgbm(train, test, target, task, options.draws, most, metric, when)
        reached = bool(metric in tool and tool[metric] >= peer[metric])
        results[name] = {"tool": tool, "lightgbm": peer, "metric": metric, "at_least": reached}
        shown, theirs = tool.get(metric, float("nan")), peer.get(metric, float("nan"))
        verdict = "yes" if reached else "NO"
        draws = f"{peer['draws']} draws, {peer['seconds']:.0f} s"
        ours = f"{tool.get('model')}, {tool.get('seconds', 0.0):.0f} s"
        print(f"{name}: {metric} {shown:.4f} ({ours}), LightGBM {theirs:.4f} ({draws}): {verdict}", flush=True)
    won = sum(result["at_least"] for result in results.values())
    print(f"at least LightGBM's in {won} of {len(results)}")
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1, default=str))


if __name__ == "__main__":
    main()
