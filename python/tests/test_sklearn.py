"""Estimators of scikit-learn, where it is installed: TUTTI_TORCH may name a folder of packages that has it."""
import pickle

import numpy
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import PolynomialFeatures  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

import tutti  # noqa: E402
from tutti.sklearn import EXPECTED_FAILED_CHECKS, Classifier, Regressor  # noqa: E402


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_checks_of_estimators(kind):
    found = check_estimator(kind(), expected_failed_checks=EXPECTED_FAILED_CHECKS, on_fail=None)
    assert [one["check_name"] for one in found if one["status"] == "failed"] == [] and len(found) > 45


@pytest.fixture
def rows():
    random = numpy.random.default_rng(2)
    x = random.normal(size=(120, 5))
    return x, x[:, 0] * 3 - x[:, 1] ** 2


def test_classifier(rows):
    x, numbers = rows
    y = numpy.where(numbers > 0, "high", "low")
    model = Classifier(hidden=(16,), epochs=30)
    assert cross_val_score(model, x, y, cv=3).mean() > 0.85
    model.fit(x, y)
    assert set(model.predict(x)) == {"high", "low"} and numpy.allclose(model.predict_proba(x).sum(1), 1)
    assert numpy.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(x), model.predict_proba(x))
    with pytest.raises(ValueError, match="2 classes"):
        model.fit(x, numpy.zeros(120))
    images = Classifier(network=lambda shape, outputs: tutti.models.lenet(classes=outputs, input=shape).outputs[0], epochs=1)
    assert images.fit(numpy.random.default_rng(1).normal(size=(40, 1, 28, 28)), numpy.arange(40) % 4).predict(numpy.zeros((2, 1, 28, 28))).shape == (2,)


def test_regressor(rows):
    x, y = rows
    assert make_pipeline(PolynomialFeatures(), Regressor(epochs=60)).fit(x, y).score(x, y) > 0.9
    assert Regressor(epochs=5).fit(x, numpy.stack([y, -y], 1)).predict(x[:7]).shape == (7, 2)
    search = GridSearchCV(Regressor(epochs=10), {"hidden": [(4,), (32,)]}, cv=2, n_jobs=1).fit(x, y)
    assert search.best_params_["hidden"] in ((4,), (32,))
