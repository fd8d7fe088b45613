#!/usr/bin/env python3
"""Runs the node tests of nodes.tar.xz by the program conform, and compares what becomes of them with nodes.txt.

    conformance.py PROGRAM FOLDER               a sample: one test of each operator, on the class of TUTTI_DEVICE_CLASS
    conformance.py PROGRAM FOLDER --part K/N    the K-th of N parts of all tests, from 0
    conformance.py PROGRAM FOLDER --plain K/N   the same without the forms that write an operator as several others
    conformance.py PROGRAM FOLDER --renew       all tests; writes nodes.txt and the table of docs/onnx.md
    conformance.py --table                      whether the table is what nodes.txt says

FOLDER is where the archive is unpacked. A line of nodes.txt: the test, what became of its outputs (pass, fail, refused),
of its gradients (pass, fail, none), and the reason of what did not pass: its name in REASONS, and what differs between
messages.
"""
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ARCHIVE, MANIFEST, PAGE = HERE / "nodes.tar.xz", HERE / "nodes.txt", HERE.parent.parent / "docs/onnx.md"
BEGIN, END = "<!-- tests/onnx/conformance.py writes from here -->\n", "<!-- tests/onnx/conformance.py writes to here -->"
FAMILIES = {
    "elementwise": """Abs Acos Acosh Add And Asin Asinh Atan Atanh Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater
        GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu
        Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum SwiGLU Swish Tan Tanh
        ThresholdedRelu Where Xor Dropout Bernoulli Binarizer""",
    "reductions, sorting, sums along an axis": """ArgMax ArgMin CumProd CumSum Hardmax LogSoftmax ReduceL1 ReduceL2 ReduceLogSum
        ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Softmax TopK Unique NonZero
        NonMaxSuppression""",
    "movement": """ArrayFeatureExtractor CenterCropPad Compress Concat Constant ConstantOfShape DepthToSpace Expand EyeLike Flatten
        Gather GatherElements GatherND Identity OneHot Pad Range Reshape ReverseSequence Scatter ScatterElements ScatterND Shape
        Size Slice SpaceToDepth Split Squeeze TensorScatter Tile Transpose Trilu Unsqueeze""",
    "convolution, pooling, images": """AffineGrid AveragePool CausalConvWithState Col2Im Conv ConvTranspose DeformConv
        GlobalAveragePool GlobalMaxPool GridSample LpPool MaxPool MaxUnpool Resize RoiAlign Upsample ImageDecoder""",
    "normalisation": """BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization
        MeanVarianceNormalization RMSNormalization""",
    "products, attention": "Attention Det Einsum FlexAttention Gemm LinearAttention MatMul RotaryEmbedding",
    "recurrent": "GRU LSTM RNN",
    "spectral": "BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix STFT",
    "losses, optimizers": "Adagrad Adam Momentum NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "casts, bits": "BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike",
    "quantisation": """ConvInteger DequantizeLinear DynamicQuantizeLinear MatMulInteger QLinearConv QLinearMatMul
        QuantizeLinear""",
    "control, sequences, texts, trees": """If LabelEncoder Loop OptionalGetElement OptionalHasElement RegexFullMatch Scan
        SequenceInsert SequenceMap SplitToSequence StringConcat StringNormalizer StringSplit TfIdfVectorizer TreeEnsemble""",
}
# What exporters of networks that are trained write, in any form: the issue of breadth counted 94 of these operators.
TRAINING = """Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization Cast CastLike
    Ceil Celu Clip Concat Constant ConstantOfShape Conv ConvTranspose Cos Cosh CumSum DepthToSpace Div Dropout Einsum Elu Equal
    Erf Exp Expand Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool
    Greater GreaterOrEqual GridSample GroupNormalization HardSigmoid HardSwish Identity InstanceNormalization LRN LSTM
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul Max MaxPool Mean
    MeanVarianceNormalization Min Mish Mod Mul Neg NegativeLogLikelihoodLoss Not OneHot Or PRelu Pad Pow RMSNormalization RNN
    Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    ReduceSumSquare Relu Reshape Resize RotaryEmbedding Round ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh
    Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum SwiGLU Swish Tan Tanh
    ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Where Xor""".split()
SET = "of these, for training in float32"


# Messages of what did not pass, by the names that nodes.txt has; {} is a word that nodes.txt has after the name.
REASONS = {
    "no-operator": "no {}",
    "no-operator-in-branch": "operator that Tutti does not have: {} ''",
    "type": "input '{}' is of type {} ({}), which Tutti does not read",
    "rank": "input '{}' must be a tensor of at most {} axes",
    "open-size": "input: axis {} has an open size: pass the shape of a sample",
    "type-of-result": "{}: to type {}, which is not read",
    "empty": "{}: '{}' has no elements, or is an output that is not available",
    "empty-reduction": "{}: it has no elements, or too many; as a layer: '{}' has no elements, or is an output that is not available",
    "empty-slice": "Slice: nothing is left along axis {}",
    "off": "output {} is off by {}",
    "not-finite": "gradients: not finite",
    "no-finite-output": "gradients: no output is finite",
    "no-float-inputs": "gradients: all inputs are numbers that the file is read with",
}


# ----------------------------------------------------------------------------------------------------------- running

def unpack(folder):
    """Once, also if several programs want it at a time."""
    folder = pathlib.Path(folder)
    made = folder / hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()[:16]
    if not made.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        new = pathlib.Path(tempfile.mkdtemp(dir=folder))
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(new)
        try:
            new.rename(made)
        except OSError:  # another was faster
            shutil.rmtree(new)
    return made


def index(folder):
    """The operator of each test."""
    return dict(line.split() for line in (folder / "index.txt").read_text().splitlines())


def run(program, folder, names):
    """Lines of the manifest, by the tests' names."""
    done = subprocess.run([program, folder, *names], stdout=subprocess.PIPE, text=True, errors="replace")
    lines = {}
    for line in done.stdout.splitlines():
        name, forward, gradients, _, _, *reason = line.split(" ", 5)
        lines[name] = " ".join([name, forward, gradients, short(kind(" ".join(reason)))]).rstrip()
    if done.returncode or set(lines) != set(names):
        sys.exit(f"conform ended with status {done.returncode} and gave {len(lines)} lines for {len(names)} tests")
    return lines


def kind(reason):
    """Without what names nodes and values."""
    if "operators that Tutti does not have: " in reason:
        return "no " + ",".join(sorted(re.findall(r"([\w.:]+) \(\d+ nodes?:", reason)))
    reason = re.sub(r"\S*/variant\.\d+: ", "", reason)
    reason = re.sub(r"^(\w+) '[^']*': ", r"\1: ", reason)
    return reason.strip()


def short(reason):
    """The name of a reason with its words; a message that REASONS lack stays as it is, in quotation marks."""
    for name, message in REASONS.items():
        found = re.fullmatch(r"(\S+)".join(map(re.escape, message.split("{}"))), reason)
        if found:
            return " ".join([name, *found.groups()])
    return f'"{reason}"' if reason else ""


def compare(got, want):
    """Says what differs; the status of the program."""
    wrong = [name for name in got if got[name] != want.get(name)]
    for name in wrong[:40]:
        print(f"{name}\n  now      {got[name]}\n  nodes.txt {want.get(name, 'nothing')}")
    good = sum(line.split()[1] == "pass" for line in got.values())
    print(f"{len(got)} tests, {good} pass; {len(wrong)} differ from nodes.txt")
    return 1 if wrong else 0


def part_of(names, number, parts):
    return names[len(names) * number // parts:len(names) * (number + 1) // parts]


# ---------------------------------------------------------------------------------------------------------- manifest

def read_manifest():
    """Lines by the tests' names, and operators."""
    lines, operators, operator = {}, {}, None
    for line in MANIFEST.read_text().splitlines():
        if line.startswith("["):
            operator = line.strip("[]")
        elif line and not line.startswith("#"):
            lines[line.split()[0]] = line
            operators[line.split()[0]] = operator
    return lines, operators


def write_manifest(lines, operators):
    unknown = [line for line in lines.values() if '"' in line]
    if unknown:
        sys.exit("REASONS lack the messages of these tests:\n" + "\n".join(unknown))
    tests = collections.defaultdict(list)
    for name, operator in operators.items():
        tests[operator].append(lines[name])
    text = "# tests/onnx/conformance.py --renew writes this. NAME FORWARD GRADIENTS REASON\n"
    for operator in sorted(tests):
        text += f"\n[{operator}]\n" + "".join(line + "\n" for line in tests[operator])
    MANIFEST.write_text(text)


def sample(lines, operators):
    """One test of each operator: the first that passes with its gradients, if there is one."""
    order = ["pass pass", "pass none", "pass fail", "fail none"]
    chosen = {}
    for name, line in lines.items():
        words = " ".join(line.split()[1:3])
        rank = order.index(words) if words in order else len(order)
        chosen[operators[name]] = min(chosen.get(operators[name], (99, "")), (rank, name), key=lambda item: item[0])
    return [name for _, name in chosen.values()]


# ------------------------------------------------------------------------------------------------------------- table

def plain_tests():
    """The tests of the archive whose arrays are float32, int32, int64 and bool, with an element at least."""
    names = set()
    with tarfile.open(ARCHIVE) as archive:
        for entry in archive:
            if not entry.name.endswith(".safetensors"):
                continue
            file = archive.extractfile(entry)
            arrays = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            read = [name for name in arrays if not name.startswith("torch.")]
            plain = all(arrays[name]["dtype"] in ("F32", "I32", "I64", "BOOL") and 0 not in arrays[name]["shape"] for name in read)
            if plain and {"input.0", "output.0"} <= {".".join(name.split(".")[:2]) for name in read}:
                names.add(entry.name.removesuffix(".safetensors"))
    return names


def table():
    lines, operators = read_manifest()
    plain = plain_tests()
    family = {operator: name for name, members in FAMILIES.items() for operator in members.split()}
    counts = {name: collections.Counter() for name in [*FAMILIES, "all", SET]}
    for name, line in lines.items():
        _, forward, gradients = line.split(" ", 3)[:3]
        chosen = [SET] if name in plain and operators[name] in TRAINING else []
        for row in (family[operators[name]], "all", *chosen):
            counts[row].update(["tests", forward, f"gradients {gradients}"])
    text = "| operators | tests | pass | fail | refused | gradients pass | fail |\n|---|--:|--:|--:|--:|--:|--:|\n"
    for name, row in counts.items():
        cells = [row[key] for key in ("tests", "pass", "fail", "refused", "gradients pass", "gradients fail")]
        text += f"| {name} | " + " | ".join(map(str, cells)) + " |\n"
    return text


def with_table(page):
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    return before + BEGIN + table() + END + after


# -------------------------------------------------------------------------------------------------------------- main

def renew(program, folder, operators):
    """In several processes: each mostly waits for a compiler."""
    names, lines, parts = list(operators), {}, 4 * os.cpu_count()
    with concurrent.futures.ThreadPoolExecutor(parts) as pool:
        for part in pool.map(lambda i: run(program, folder, part_of(names, i, parts)), range(parts)):
            lines |= part
    write_manifest(lines, operators)
    PAGE.write_text(with_table(PAGE.read_text()))


def main():
    if sys.argv[1:] == ["--table"]:
        page = PAGE.read_text()
        return 0 if with_table(page) == page else "docs/onnx.md has another table than nodes.txt: conformance.py --renew writes it"
    program, folder = sys.argv[1], unpack(sys.argv[2])
    if sys.argv[3:] == ["--renew"]:
        return renew(program, folder, index(folder))
    lines, operators = read_manifest()
    names = sample(lines, operators)
    if sys.argv[3:4] in (["--part"], ["--plain"]):
        names = part_of([name for name in index(folder) if sys.argv[3] == "--part" or not name.endswith("_expanded")],
                        *map(int, sys.argv[4].split("/")))
    return compare(run(program, folder, names), lines)


sys.exit(main())
