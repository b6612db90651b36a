"""Records of comparisons that never took place, but could have: what the report is tested on."""

import copy
import json

import numpy as np

CERTIFICATES = {
    "closed-form": "the defining equations hold to a relative residual of {:.2g}",
    "gap": "at most {:.2g} (relative) above the optimum",
    "none": "nothing is proven",
}


def certificate(kind="gap", value=3.1e-7, tolerance=1e-6, bound=None, n_iter=7):
    holds = kind != "none" and value <= tolerance
    sentence = CERTIFICATES[kind].format(value)
    return {
        "kind": kind,
        "value": value,
        "tolerance": tolerance,
        "holds": holds,
        "bound": bound,
        "n_iter": n_iter,
        "sentence": sentence,
        "seconds": 0.031,
        "fingerprint": "9f86d081884c7d65",
    }


def number_column(name, values, *, role="feature", missing=0, notes=()):
    counts, edges = np.histogram(values, bins=20)
    quarters = np.quantile(values, [0.25, 0.5, 0.75])
    return {
        "name": name,
        "kind": "number",
        "role": role,
        "missing": missing,
        "distinct": len(np.unique(values)),
        "notes": list(notes),
        "summary": {
            "mean": float(values.mean()),
            "std": float(values.std()),
            "min": float(values.min()),
            "q25": float(quarters[0]),
            "median": float(quarters[1]),
            "q75": float(quarters[2]),
            "max": float(values.max()),
        },
        "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
        "top": None,
    }


def category_column(name, levels, counts, *, kind="category", role="feature", missing=0, notes=(), distinct=None):
    return {
        "name": name,
        "kind": kind,
        "role": role,
        "missing": missing,
        "distinct": distinct or len(levels),
        "notes": list(notes),
        "summary": None,
        "histogram": None,
        "top": [[level, int(count)] for level, count in zip(levels, counts, strict=True)][:10],
    }


def line(name, model, mean, half, *, rank, parameters=None, rng=None, **changes):
    rng = rng or np.random.default_rng(0)
    scores = mean + half / 2 * rng.standard_normal(5)
    return {
        "rank": rank,
        "name": name,
        "model": model,
        "parameters": parameters or {},
        "baseline": False,
        "status": "ok",
        "reason": None,
        "scores": (scores - scores.mean() + mean).tolist(),
        "mean": mean,
        "low": mean - half,
        "high": mean + half,
        "train_mean": mean + 0.004,
        "also": {},
        "fit_seconds": 0.0123,
        "predict_seconds": 0.00087,
        "certificate": certificate(),
        "tied": False,
        "p_value": None,
    } | changes


def failure(name, model, status, reason):
    empty = dict.fromkeys(("mean", "low", "high", "train_mean", "fit_seconds", "predict_seconds", "certificate"))
    return line(name, model, 0.0, 0.0, rank=None, status=status, reason=reason, scores=[]) | empty


def skeleton(source, target, task, rows, metric, *, label, also, command, classes=None, class_counts=None):
    holdout = rows // 5
    return {
        "format": "learnable-comparison",
        "version": 1,
        "created": "2026-01-31T12:00:00Z",
        "seed": 0,
        "versions": {"learnable": "0.1.0", "python": "3.11.7", "numpy": "2.3.4", "scikit-learn": "1.9.1"},
        "command": command,
        "machine": {"cores": 2},
        "data": {
            "source": source,
            "rows": rows,
            "columns": 0,
            "target": target,
            "task": task,
            "task_reason": "",
            "classes": classes,
            "class_counts": class_counts,
            "duplicate_rows": 0,
            "fingerprint": "5feceb66ffc86f38",
            "profile": [],
            "warnings": [],
        },
        "protocol": {
            "scheme": "5-fold" if task == "regression" else "stratified 5-fold",
            "folds": 5,
            "repeats": 1,
            "train_rows": rows - holdout,
            "holdout_rows": holdout,
            "metric": {"name": metric, "label": label, "greater_is_better": True},
            "also": also,
            "level": 0.95,
            "seconds_limit": 120.0,
            "margin": 0.01,
        },
        "leaderboard": [],
        "winner": None,
        "details": {},
        "advice": [],
        "timing": {"total": 21.4, "models": 19.2, "overhead": 2.2},
    }


def houses():
    """A regression: prices of houses, with everything that can be said."""
    rng = np.random.default_rng(3)
    n = 20640
    record = skeleton(
        "houses.csv", "price", "regression", n, "r2", label="R²", also=["rmse", "mae"],
        command="learnable compare houses.csv --target price --report report.html",
    )  # fmt: skip
    data = record["data"]
    income = rng.gamma(4, 1.0, n)
    price = 40000 + 38000 * income + rng.gamma(2, 20000, n)
    data["profile"] = [
        number_column("median_income", income),
        number_column("house_age", rng.integers(1, 53, n).astype(float), missing=207),
        number_column("rooms", rng.lognormal(1.6, 0.3, n)),
        number_column("population", rng.lognormal(7, 0.7, n)),
        category_column("ocean_proximity", ["<1H OCEAN", "INLAND", "NEAR OCEAN", "NEAR BAY", "ISLAND"],
                        [9136, 6551, 2658, 2290, 5]),
        category_column("renovated", ["False", "True"], [14200, 6440], kind="boolean"),
        category_column("sold_on", ["2021-03-01", "2021-03-08"], [311, 280], kind="date", distinct=212),
        category_column("remarks", ["quiet street, needs work", "sea view"], [12, 9], kind="text", distinct=20480,
                        missing=1032),
        category_column("parcel", [], [], kind="identifier", role="dropped", distinct=n,
                        notes=["every value occurs once"]),
        category_column("country", ["US"], [n], kind="constant", role="dropped", notes=["one value only"]),
        number_column("assessed_value", price * 1.0005, notes=["predicts the target almost perfectly"]),
        number_column("price", price, role="target"),
    ]  # fmt: skip
    data["columns"] = len(data["profile"])
    data["task_reason"] = "price is a number with 18,204 distinct values"
    data["duplicate_rows"] = 14
    data["warnings"] = [
        {"kind": "leak", "column": "assessed_value",
         "text": "assessed_value alone predicts price with R² 0.999; is it known before the price is?"},
        {"kind": "identifier", "column": "parcel", "text": "parcel numbers the rows and was left out"},
        {"kind": "constant", "column": "country", "text": "country has one value and was left out"},
        {"kind": "duplicates", "column": None, "text": "14 rows occur more than once"},
    ]  # fmt: skip
    also = {"rmse": 68321.4, "mae": 49210.7}
    record["leaderboard"] = [
        line("RidgeCV", "RidgeCV", 0.8123, 0.0117, rank=1, also=also, rng=rng, fit_seconds=0.081,
             certificate=certificate("closed-form", 4.4e-15, 1e-10, 0.0, 1)),
        line("Ridge (alpha=1)", "Ridge", 0.8119, 0.0118, rank=2, parameters={"alpha": 1.0}, also=also, rng=rng,
             certificate=certificate("closed-form", 2.1e-15, 1e-10, 0.0, 1), tied=True, p_value=0.41),
        line("LinearRegression", "LinearRegression", 0.8118, 0.0119, rank=3, also=also, rng=rng,
             certificate=certificate("closed-form", 8.0e-15, 1e-10, 0.0, 1), tied=True, p_value=0.38),
        line("Lasso (alpha=500)", "Lasso", 0.7511, 0.0141, rank=4, parameters={"alpha": 500.0}, also=also, rng=rng,
             certificate=certificate("gap", 8.8e-5, 1e-6, 8.8e-5, 1000), p_value=0.0004, fit_seconds=1.93),
        line("Always the mean", "DummyRegressor", -0.0003, 0.0004, rank=5, baseline=True, rng=rng,
             also={"rmse": 157702.2, "mae": 120031.5}, certificate=certificate("none", 0.0, 0.0, None, 1),
             p_value=0.0, train_mean=0.0, fit_seconds=0.0004),
        failure("KernelRidge", "KernelRidge", "timeout", "stopped after 24.0 s, its share of the 120 s limit"),
        failure("GammaRegressor", "GammaRegressor", "failed",
                "DataError: GammaRegressor: y must be positive, got 3 values <= 0; use another loss."),
    ]  # fmt: skip
    record["winner"] = {
        "name": "RidgeCV",
        "holdout": {"score": 0.8087, "low": 0.7951, "high": 0.8216, "method": "bootstrap"},
        "against": {
            "name": "Always the mean",
            "score": -0.0012,
            "difference": 0.8099,
            "low": 0.7961,
            "high": 0.8231,
            "method": "t of the paired rows",
            "verdict": "better",
        },
        "optimism_note": "The cross-validated score of the winner of several models is optimistic by selection; "
        "the hold-out score is not.",
        "model_file": "houses-RidgeCV.safetensors",
        "predict_command": "learnable predict houses-RidgeCV.safetensors new.csv",
        "intervals": {
            "method": "cv+",
            "level": 0.9,
            "holdout_coverage": 0.9041,
            "chance": {"low": 0.862, "high": 0.935},
            "mean_width": 214300.0,
        },
    }
    data["preview"] = {"columns": ["median_income", "town"], "rows": [["3.5", "Brook"], [None, "<b>Aldham</b>"]]}
    data["correlations"] = {
        "rows": n,
        "of": None,
        "with_target": [{"name": "median_income", "value": 0.69, "low": 0.68, "high": 0.7, "rows": n}],
        "pairs": [{"a": "rooms", "b": "population", "value": -0.93, "rows": n}],
        "beyond": 0.9,
    }
    record["python"] = "from learnable.evaluation import compare\n\nrecord = compare('houses.csv', 'price', seed=0)"
    record["details"] = {
        name: regression_details(rng, seed) for seed, name in enumerate(["RidgeCV", "Ridge (alpha=1)"])
    }
    record["advice"] = [
        "Ask whether assessed_value is known when a price has to be predicted; if not, leave it out and compare again.",
        "The learning curve is flat: more rows will not help much; better columns or a richer model may.",
    ]
    return record


def regression_details(rng, seed):
    actual = 200000 + 90000 * rng.standard_normal(1500)
    predicted = actual + 40000 * rng.standard_normal(1500) + 0.1 * (200000 - actual)
    names = ["median_income", "rooms", "house_age", "population", "ocean_proximity=INLAND",
             "ocean_proximity=NEAR BAY", "renovated", "sold_on: year", "remarks: word 512"]  # fmt: skip
    values = [74231.0, 1420.0, 12840.0, -3821.0, -39120.0, 4102.0, 8931.0, 2210.0, -410.2]
    halves = [1800.0, 1250.0, 1100.0, 1300.0, 1500.0, 1900.0, 1210.0, 1800.0, None]
    sizes = [500, 1500, 4000, 8000, 16512]
    test = [0.742, 0.785, 0.803, 0.809, 0.8123]
    return {
        "on": "hold-out",
        "residuals": {"predicted": predicted.tolist(), "actual": actual.tolist()},
        "roc": None,
        "calibration": None,
        "confusion": None,
        "coefficients": [
            {"name": name, "value": value + seed, "low": h and value - h, "high": h and value + h}
            for name, value, h in zip(names, values, halves, strict=True)
        ],
        "importances": [
            {"name": name, "value": value, "low": value - 0.02, "high": value + 0.02}
            for name, value in [("median_income", 0.61), ("ocean_proximity", 0.14), ("rooms", 0.03), ("remarks", 0.0)]
        ],
        "learning_curve": {
            "sizes": sizes,
            "train": [0.861, 0.834, 0.825, 0.821, 0.8163],
            "test": test,
            "low": [t - h for t, h in zip(test, [0.04, 0.024, 0.018, 0.014, 0.0117], strict=True)],
            "high": [t + h for t, h in zip(test, [0.04, 0.024, 0.018, 0.014, 0.0117], strict=True)],
            "trend": {"per_doubling": 0.0041, "low": 0.0018, "high": 0.0064, "margin": 0.01, "word": "flat"},
        },
        "certificate": certificate("closed-form", 4.4e-15, 1e-10, 0.0, 1),
        "effects": [
            {"name": "median_income", "kind": "number", "points": [1.0, 2.0, 4.0], "values": [1e5, 1.4e5, 2.1e5],
             "of": None, "sign": "rises"},
            {"name": "ocean_proximity", "kind": "level", "points": ["INLAND", "<i>ISLAND"], "values": [1.5e5, 2.9e5],
             "of": None, "sign": None},
        ],
        "slices": {
            "what": "mean absolute error",
            "overall": 40210.5,
            "level": 0.95,
            "parts": [
                {"column": "house_age", "label": "1 to 18", "rows": 1032, "value": 39010.0, "low": 37000.0,
                 "high": 41020.0, "verdict": "like the rest"},
                {"column": "ocean_proximity", "label": "ISLAND", "rows": 12, "value": 90210.0, "low": 60100.0,
                 "high": 120320.0, "verdict": "worse"},
            ],
        },
        "worst": {
            "columns": ["median_income", "ocean_proximity"],
            "rows": [{"row": 1204, "values": ["0.5", None], "actual": 500001.0, "predicted": 61204.5,
                      "error": 438796.5}],
        },
    }  # fmt: skip


def churn():
    """Two classes."""
    rng = np.random.default_rng(5)
    n = 7043
    record = skeleton(
        "churn.csv", "churned", "binary", n, "roc_auc", label="ROC AUC", also=["accuracy", "log_loss"],
        classes=["no", "yes"], class_counts=[5174, 1869],
        command="learnable compare churn.csv --target churned --groups household --seconds 60",
    )  # fmt: skip
    data = record["data"]
    data["profile"] = [
        number_column("tenure", rng.gamma(2, 16, n)),
        number_column("monthly_charges", 20 + 90 * rng.beta(2, 2, n), missing=11),
        category_column("contract", ["month-to-month", "two year", "one year"], [3875, 1695, 1473]),
        category_column("household", [], [], role="group", distinct=5821),
        category_column("churned", ["no", "yes"], [5174, 1869], role="target"),
    ]
    data["columns"] = len(data["profile"])
    data["task_reason"] = "churned has two values"
    also = {"accuracy": 0.8031, "log_loss": 0.4142}
    record["leaderboard"] = [
        line("LogisticRegression (C=1)", "LogisticRegression", 0.8437, 0.0091, rank=1, parameters={"C": 1.0},
             also=also, rng=rng, certificate=certificate("gap", 2.2e-11, 1e-8, 2.2e-11, 6)),
        line("LogisticRegression (C=0.01)", "LogisticRegression", 0.8391, 0.0094, rank=2, parameters={"C": 0.01},
             also=also, rng=rng, certificate=certificate("gap", 1.3e-10, 1e-8, 1.3e-10, 5), p_value=0.021),
        line("Always the most frequent class", "DummyClassifier", 0.5, 0.0, rank=3, baseline=True, rng=rng,
             also={"accuracy": 0.7346, "log_loss": 9.56}, certificate=None, train_mean=0.5),
    ]  # fmt: skip
    record["winner"] = {
        "name": "LogisticRegression (C=1)",
        "holdout": {"score": 0.8402, "low": 0.8183, "high": 0.8607, "method": "bootstrap"},
        "optimism_note": "",
        "model_file": "churn-LogisticRegression.safetensors",
        "predict_command": "learnable predict churn-LogisticRegression.safetensors new.csv",
        "intervals": None,
    }
    fpr = np.linspace(0, 1, 60)
    middles = np.linspace(0.05, 0.95, 10)
    record["details"] = {
        "LogisticRegression (C=1)": {
            "on": "hold-out",
            "residuals": None,
            "roc": [{"label": "yes", "fpr": fpr.tolist(), "tpr": (fpr**0.22).tolist(), "auc": 0.8402}],
            "calibration": {
                "bins": np.linspace(0, 1, 11).tolist(),
                "mean_predicted": middles.tolist(),
                "observed": (middles + 0.03 * rng.standard_normal(10)).clip(0, 1).tolist(),
                "count": [380, 240, 160, 130, 110, 100, 90, 80, 70, 48],
                "verdict": {
                    "promised": 0.7312,
                    "kept": 0.7031,
                    "z": 2.9,
                    "p_value": 0.0037,
                    "word": "overconfident",
                    "level": 0.95,
                },
            },
            "per_class": [
                {"label": "no", "rows": 1035, "precision": 0.8445, "recall": 0.8976, "f1": 0.8703},
                {"label": "yes", "rows": 373, "precision": 0.6558, "recall": 0.5416, "f1": None},
            ],
            "thresholds": {
                "positive": "yes",
                "used": 0.31,
                "criterion": "the least cost",
                "cost": {"FP": 1.0, "FN": 4.0},
                "lines": [
                    {
                        "threshold": 0.31,
                        "called": 512,
                        "false_alarms": 210,
                        "missed": 71,
                        "precision": 0.59,
                        "recall": 0.81,
                        "f1": 0.683,
                        "cost": 494.0,
                    },
                    {
                        "threshold": 0.5,
                        "called": 308,
                        "false_alarms": 106,
                        "missed": 171,
                        "precision": 0.656,
                        "recall": 0.542,
                        "f1": 0.593,
                        "cost": 790.0,
                    },
                ],
            },
            "worst": {
                "columns": ["contract"],
                "rows": [{"row": 17, "values": ["two year"], "actual": "yes", "predicted": "no", "probability": 0.012}],
            },
            "confusion": {"labels": ["no", "yes"], "counts": [[929, 106], [171, 202]]},
            "coefficients": [
                {"name": "contract=two year", "value": -1.31, "of": "log odds", "low": -1.52, "high": -1.1},
                {"name": "tenure", "value": -0.82, "low": -0.91, "high": -0.73},
                {"name": "monthly_charges", "value": 0.44, "low": 0.36, "high": 0.52},
            ],
            "importances": None,
            "learning_curve": None,
            "certificate": certificate("gap", 2.2e-11, 1e-8, 2.2e-11, 6),
        }
    }
    return record


def letters(n_classes=26):
    """Many classes."""
    rng = np.random.default_rng(7)
    names = [chr(65 + k) if n_classes <= 26 else f"class {k:03d}" for k in range(n_classes)]
    counts = rng.integers(700, 820, n_classes)
    rows = int(counts.sum())
    record = skeleton(
        "letters.csv.gz", "letter", "multiclass", rows, "accuracy", label="accuracy", also=["log_loss"],
        classes=names, class_counts=counts.tolist(), command="learnable compare letters.csv.gz --target letter",
    )  # fmt: skip
    record["data"]["profile"] = [
        *(number_column(f"x{j}", rng.normal(7, 2, 2000).round().clip(0, 15)) for j in range(16)),
        category_column("letter", names[:10], counts[:10], role="target", distinct=n_classes),
    ]
    record["data"]["columns"] = 17
    record["data"]["task_reason"] = f"letter has {n_classes} values"
    record["leaderboard"] = [
        line(
            "LogisticRegression (C=1)", "LogisticRegression", 0.7741, 0.0061, rank=1, rng=rng, also={"log_loss": 0.84}
        ),
        line("Always the most frequent class", "DummyClassifier", 0.0406, 0.0, rank=2, baseline=True, certificate=None),
    ]
    record["winner"] = {
        "name": "LogisticRegression (C=1)",
        "holdout": {"score": 0.7718, "low": 0.7583, "high": 0.7848, "method": "clopper-pearson"},
        "optimism_note": "",
        "model_file": None,
        "predict_command": None,
        "intervals": None,
    }
    confusion = rng.poisson(0.8, (n_classes, n_classes))
    np.fill_diagonal(confusion, rng.integers(95, 145, n_classes))
    fpr = np.linspace(0, 1, 40)
    record["details"] = {
        "LogisticRegression (C=1)": {
            "on": "hold-out",
            "residuals": None,
            "roc": [
                {"label": name, "fpr": fpr.tolist(), "tpr": (fpr**p).tolist(), "auc": float(1 / (1 + p))}
                for name, p in zip(names, rng.uniform(0.02, 0.15, n_classes), strict=True)
            ],
            "calibration": None,
            "confusion": {"labels": names, "counts": confusion.tolist()},
            "coefficients": None,
            "importances": [
                {"name": f"x{j}", "value": float(v), "low": float(v - 0.01), "high": float(v + 0.01)}
                for j, v in enumerate(np.sort(rng.gamma(1, 0.05, 16))[::-1])
            ],
            "learning_curve": None,
            "certificate": certificate("gap", 9.1e-10, 1e-8, 9.1e-10, 9),
        }
    }
    return record


def nothing_worked():
    """Every model failed: no winner."""
    record = houses()
    record["leaderboard"] = [
        failure("Ridge (alpha=1)", "Ridge", "interrupted", "Ctrl-C after 0.4 s"),
        failure("Always the mean", "DummyRegressor", "skipped", None) | {"baseline": True},
    ]
    record |= {"winner": None, "details": {}, "advice": []}
    return record


def nulls():
    """Null wherever the schema allows it, and lists that are empty."""
    record = houses()
    record["data"] |= {"classes": None, "class_counts": None, "task_reason": "", "warnings": []}
    for column in record["data"]["profile"]:
        column |= {"summary": None, "histogram": None, "top": None, "notes": []}
    record["protocol"]["seconds_limit"] = None
    first, second = record["leaderboard"][0], record["leaderboard"][1]
    first |= {"low": None, "high": None, "train_mean": None, "also": {}, "certificate": None, "p_value": None}
    second["certificate"] = dict.fromkeys(second["certificate"]) | {"kind": "none"}
    record["winner"] |= {"model_file": None, "predict_command": None, "intervals": None, "optimism_note": ""}
    record["winner"]["holdout"] |= {"low": None, "high": None}
    figures = ("residuals", "roc", "calibration", "confusion", "coefficients", "importances", "learning_curve")
    record["details"]["RidgeCV"] |= dict.fromkeys(figures) | {"certificate": None}
    record |= {"advice": [], "versions": {}}
    return record


def wide(n_columns=2000):
    """Many columns and many models."""
    rng = np.random.default_rng(11)
    record = houses()
    target = record["data"]["profile"][-1]
    record["data"]["profile"] = [
        *(number_column(f"gene_{j:04d}", rng.normal(size=200)) for j in range(n_columns - 1)),
        target,
    ]
    record["data"]["columns"] = n_columns
    record["data"]["warnings"] = [
        {"kind": "constant", "column": f"gene_{j:04d}", "text": f"gene_{j:04d} has one value"} for j in range(300)
    ]
    record["leaderboard"] = [
        line(f"Ridge (alpha={2.0**-k:g})", "Ridge", 0.81 - 0.01 * k, 0.012, rank=k + 1, rng=rng) for k in range(60)
    ]
    record["winner"]["name"] = record["leaderboard"][0]["name"]
    record["details"] = {record["leaderboard"][0]["name"]: regression_details(rng, 0)}
    return record


def with_text(record, text):
    """Put a text into every place of the record that holds free text, also where it is a key."""
    record = copy.deepcopy(record)
    name = record["winner"]["name"]

    def change(value, key=None):
        if isinstance(value, dict):
            return {text if k == name else k: change(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [change(v, key) for v in value]
        kept = ("format", "created", "kind", "role", "status", "task")
        return text if isinstance(value, str) and key not in kept else value

    changed = change(record)
    for entry in changed["leaderboard"]:
        entry["also"] = {text: 1.5}
        entry["parameters"] = {text: text}
    changed["protocol"]["also"] = [text]
    changed["versions"] = {text: text}
    return changed


def as_json(record):
    """The record as it comes back from a file."""
    return json.loads(json.dumps(record, allow_nan=False))
