#!/usr/bin/env python3
"""Makes the files of tests/onnx/files whose models have functions, as make.py makes the others: functions.onnx by onnx.helper,
functions_script.onnx by onnxscript.

    .dev/torch/bin/python tests/onnx/make_functions.py tests/onnx/files/networks
"""
import pathlib
import sys

import onnx
import onnxscript
from make import SAMPLES, numbers, record
from onnx import AttributeProto, TensorProto, helper
from onnxscript import opset18 as op

LOCAL = onnxscript.values.Opset("tutti.tests", 1)


# -------------------------------------------------------------------------------------------------------- by a helper

def referring(node, name, kind, to):
    """An attribute that is one of the function's."""
    node.attribute.append(AttributeProto(name=name, type=kind, ref_attr_name=to))
    return node


def activation():
    """Attributes: slope has no default, shift has one, and one that no call gives."""
    leaky = referring(helper.make_node("LeakyRelu", ["x"], ["t"]), "alpha", AttributeProto.FLOAT, "slope")
    shift = referring(helper.make_node("Constant", [], ["s"]), "value_float", AttributeProto.FLOAT, "shift")
    elu = referring(helper.make_node("Elu", ["t"], ["e"]), "alpha", AttributeProto.FLOAT, "absent")
    nodes = [leaky, shift, elu, helper.make_node("Add", ["e", "s"], ["y"], name="add")]
    return helper.make_function("tests", "Activation", ["x"], ["y"], nodes, [helper.make_opsetid("", 18)], ["slope", "absent"],
                                [helper.make_attribute("shift", 0.25)])


def layer():
    """Calls another function, and passes its attribute on; one of its outputs is read by no call."""
    product = helper.make_node("MatMul", ["x", "weight"], ["t"])
    call = helper.make_node("Activation", ["t"], ["a"], name="act", domain="tests")
    referring(call, "slope", AttributeProto.FLOAT, "slope")
    mean = helper.make_node("ReduceMean", ["a", "axes"], ["mean"], keepdims=1)
    nodes = [helper.make_node("Constant", [], ["axes"], value_ints=[1]), helper.make_node("Identity", ["x"], ["same"]), product, call,
             mean, helper.make_node("Sub", ["a", "mean"], ["y"]), helper.make_node("Neg", ["y"], ["unused"])]
    return helper.make_function("tests", "Layer", ["x", "weight"], ["y", "same", "mean", "unused"], nodes,
                                [helper.make_opsetid("", 18), helper.make_opsetid("tests", 1)], ["slope"])


def by_helper(path):
    nodes = [helper.make_node("Tanh", ["input"], ["#0/t"]),
             helper.make_node("Layer", ["#0/t", "w1"], ["t", "same", "mean", ""], name="one", domain="tests", slope=0.125),
             helper.make_node("Layer", ["t", "w2"], ["a", "", "", ""], name="two", domain="tests", slope=0.5),
             helper.make_node("Activation", ["a"], ["output"], name="three", domain="tests", slope=0.75, shift=-1.0),
             helper.make_node("Add", ["same", "mean"], ["sum"])]
    weights = [onnx.numpy_helper.from_array(numbers(*shape), name) for name, shape in (("w1", (4, 5)), ("w2", (5, 3)))]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "functions", [value("input", TensorProto.FLOAT, ["N", 4])],
                              [value("output", TensorProto.FLOAT, ["N", 3]), value("sum", TensorProto.FLOAT, ["N", 4])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("tests", 1)],
                              functions=[layer(), activation()], ir_version=10)
    onnx.save(model, path)
    record(path, {"input": numbers(SAMPLES, 4)})


# ------------------------------------------------------------------------------------------------------ by onnxscript

@onnxscript.script(LOCAL)
def gated(x, weight, scale: float = 0.5):
    product = op.MatMul(x, weight)
    return op.Mul(product, op.Sigmoid(op.Mul(product, op.Constant(value_float=scale))))


@onnxscript.script(LOCAL)
def block(x, first, second):
    return op.Add(x, gated(gated(x, first), second, scale=2.0))


def by_script(path):
    one, two = (onnx.numpy_helper.from_array(numbers(4, 4), name) for name in ("one", "two"))

    @onnxscript.script()
    def network(x: onnxscript.FLOAT["N", 4]) -> onnxscript.FLOAT["N", 4]:
        first = op.Constant(value=one)
        second = op.Constant(value=two)
        return block(block(x, first, second), second, first)

    model = network.to_model_proto(ir_version=10)
    assert len(model.functions) == 2
    onnx.save(model, path)
    record(path, {"x": numbers(SAMPLES, 4)})


def main():
    folder = pathlib.Path(sys.argv[1])
    by_helper(folder / "functions.onnx")
    by_script(folder / "functions_script.onnx")


if __name__ == "__main__":
    main()
