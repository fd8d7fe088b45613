"""Reads ONNX files and computes nodes that prepare the columns of a table, with Python's library only."""
import math
import struct

DOUBLE, FLOAT, INT64 = 11, 1, 7


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def fields(data):
    """The fields of a message: lists of numbers or bytes by their numbers."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind, number = key & 7, key >> 3
        if kind == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if kind == 2 else (8 if kind == 1 else 4, at)
            value, at = data[at:at + size], at + size
        found.setdefault(number, []).append(value)
    return found


def texts(message, field):
    return [value.decode() for value in message.get(field, [])]


def signed(number):
    return number - (1 << 64) if number >> 63 else number


def tensor(data):
    """Rows of numbers: a scalar and a list are one row."""
    message = fields(data)
    sizes, kind, raw = message.get(1, []), message[2][0], message[9][0]
    code = {DOUBLE: "d", FLOAT: "f", INT64: "q"}[kind]
    flat = list(struct.unpack(f"<{len(raw) // struct.calcsize(code)}{code}", raw))
    assert len(sizes) < 2 or sizes[0] == 1
    return [flat]


def attribute(data):
    message = fields(data)
    name, kind = message[1][0].decode(), message[20][0]
    return name, {2: lambda: signed(message[3][0]), 4: lambda: tensor(message[5][0]), 7: lambda: [signed(i) for i in message[8]],
                  8: lambda: texts(message, 9)}[kind]()


class File:
    def __init__(self, path):
        model = fields(path.read_bytes())
        graph = fields(model[7][0])
        self.metadata = dict((texts(entry, 1)[0], texts(entry, 2)[0]) for entry in map(fields, model.get(14, [])))
        self.nodes = [fields(node) for node in graph.get(1, [])]
        self.initialisers = [texts(fields(array), 8)[0] for array in graph.get(5, [])]
        self.inputs, self.outputs = ([texts(fields(port), 1)[0] for port in graph[number]] for number in (11, 12))

    def compute(self, inputs, wanted):
        """inputs: rows by name."""
        values = dict(inputs)
        for node in self.nodes:
            if wanted in values:
                break
            names, (output, *_), (kind, *_) = texts(node, 1), texts(node, 2), texts(node, 4)
            values[output] = OPERATORS[kind](*(values[name] for name in names), **dict(map(attribute, node.get(5, []))))
        return values[wanted]


def elementwise(function):
    def apply(*operands):
        rows, columns = (max(map(len, sizes)) for sizes in (operands, [operand[0] for operand in operands]))
        return [[function(*(x[i % len(x)][k % len(x[0])] for x in operands)) for k in range(columns)] for i in range(rows)]
    return apply


def to_float(number):
    return struct.unpack("f", struct.pack("f", number))[0]


def encode(x, keys_strings, values_int64s, default_int64):
    known = dict(zip(keys_strings, values_int64s, strict=True))
    assert len(known) == len(keys_strings)
    return [[known.get(text, default_int64) for text in row] for row in x]


def gather(x, indices, axis=0):
    if axis == 0: # of a list
        return [[x[0][index] for index in row] for row in indices]
    return [[row[index] for index in indices[0]] for row in x]


OPERATORS = {
    "Constant": lambda value: value,
    "IsNaN": elementwise(math.isnan),
    "Where": elementwise(lambda is_it, a, b: a if is_it else b),
    "Sub": elementwise(lambda a, b: a - b),
    "Div": elementwise(lambda a, b: a / b),
    "Clip": elementwise(lambda x, low, high: min(max(x, low), high)),
    "Equal": elementwise(lambda a, b: a == b),
    "Cast": lambda x, to: [[to_float(number) for number in row] for row in x] if to == FLOAT else 1 / 0,
    "Concat": lambda *parts, axis: [sum(rows, []) for rows in zip(*parts, strict=True)] if axis == 1 else 1 / 0,
    "Gather": gather,
    "LabelEncoder": encode,
}
