"""What comparisons of networks with PyTorch have in common. They run by a Python with PyTorch, which TUTTI_TORCH names; without it
they say so and end. Outputs are equal to 1e-5, gradients up to ten times the error that PyTorch's have in float32."""
import os
import sys

OUTPUTS, GRADIENTS = 1e-5, 10


def read_results(folder, network):
    """Outputs, and gradients by name, that a program has written for this network."""
    import numpy
    values, gradients, at = numpy.fromfile(folder / "gradients", "float32"), {}, 0
    shapes = {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}
    for name in (folder / "names").read_text().split():
        count = int(numpy.prod(shapes[name]))
        gradients[name] = values[at:at + count].reshape(shapes[name])
        at += count
    return numpy.fromfile(folder / "outputs", "float32"), gradients


def check(case, error, gradients, single, exact, least=0):
    """error: of the outputs, as a part of the largest. Gradients by name: found ones as arrays, PyTorch's in float32 and float64.
    least: of float32's error, for gradients that are 0."""
    import numpy
    import torch
    assert error <= OUTPUTS, f"{case}: outputs differ by {error:.3g}"
    assert set(gradients) == set(exact), set(gradients) ^ set(exact)
    worst = 0
    for name, wanted in exact.items():
        floor = max((single[name] - wanted).abs().max().item(), wanted.abs().max().item() * numpy.finfo("float32").eps, least)
        found = (torch.from_numpy(gradients[name]) - wanted).abs().max().item()
        assert found <= GRADIENTS * floor, f"{case}: the gradient of {name} is off by {found:.3g}, and PyTorch's in float32 by {floor:.3g}"
        worst = max(worst, found / floor if floor else 0)
    print(f"{case}: outputs differ by {error:.2g} of the largest; gradients by {worst:.2g} times the error of PyTorch's in float32", flush=True)


def run(cases, compare, what, packages):
    """Compares each case. Returns the exit status."""
    if "TUTTI_TORCH" not in os.environ:
        print(f"SKIP: {what}. Set TUTTI_TORCH to a Python with {packages}\n0 passed, 0 failed")
        return 0
    if sys.executable != os.environ["TUTTI_TORCH"] and "TUTTI_INSIDE" not in os.environ:
        os.environ["TUTTI_INSIDE"] = "1"
        os.execv(os.environ["TUTTI_TORCH"], [os.environ["TUTTI_TORCH"], *sys.argv])
    import torch
    torch.set_num_threads(1)
    failed = 0
    for case in cases:
        try:
            compare(case)
        except AssertionError as error:
            failed += 1
            print(f"FAIL {error}", flush=True)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return failed > 0
