"""Operations in a program's own OpenCL C."""
import numpy as np
import pytest
import tutti

SOFT = {"operation": "soft", "attributes": "T=0.5", "forward": "y[i] = fabs(x[i]) > T ? x[i] - copysign(T, x[i]) : 0.0f;"}
X = np.array([[-2, -0.2, 0, 0.7, 1]], np.float32)


def trainer(loss=None, **options):
    net = tutti.Network()
    x = net.input("x", (5,))
    return tutti.Trainer(tutti.custom([x * net.parameter("w", (5,), values=np.ones(5)) if loss else x], **options), loss=loss)


def test_forward():
    assert np.allclose(trainer(**SOFT).predict(X), [[-1.5, 0, 0, 0.2, 0.5]], atol=1e-6)


def test_gradient():
    one = trainer("mse", **SOFT, backward="dx[i] = fabs(x[i]) > T ? dy[i] : 0.0f;")
    one.backward(X, np.zeros((1, 5), np.float32))
    assert np.allclose(one.gradients["w"], 2 / 5 * np.array([-1.5, 0, 0, 0.2, 0.5]) * X[0], atol=1e-6)


def test_wrong_gradient_is_refused():
    with pytest.raises(tutti.Error, match="soft"):
        trainer("mse", **SOFT, backward="dx[i] = 2 * dy[i];").step(X, X)
