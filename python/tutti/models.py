"""Well-known networks, as `tutti train MODEL` trains them: tutti.models.resnet18(classes=10, input=(3, 64, 64))."""
from ._call import Call, shape_of
from ._native import ffi, lib
from ._network import Network
from ._values import number


def add_input(network, model, shape):
    if model.takes == lib.MODEL_TAKES_TEXT:
        if shape is not None:
            raise ValueError("a network for texts has no input of another shape: its samples are the numbers of tokens, of any length")
        return network.input("ids", (lib.TUTTI_SEQUENCE,), "int32")
    return network.input("input", shape_of(model.input) if shape is None else shape)


def make(model):
    def build(classes=None, input=None, *, samples=0, vocabulary=0, tags=False, runtime=None):
        if number("vocabulary", "int64_t", vocabulary) < 0:
            raise ValueError(f"vocabulary is {vocabulary}: it must be positive, or 0 for the model's own")
        if tags and not lib.model_gives_tags(model):
            raise ValueError(f"{build.__name__} gives no class for each word: use lstm, gru or one of BERT's networks")
        network = Network(runtime)
        x = add_input(network, model, input)
        text, tokens = model.takes == lib.MODEL_TAKES_TEXT, classes is None and lib.model_predicts_tokens(model)
        arguments = (x.c, model.classes if classes is None else number("classes", "int64_t", classes))
        facts = ffi.new("struct model_facts *", {"samples": number("samples", "int64_t", samples), "vocabulary": number("vocabulary", "int64_t", vocabulary),
                                                 "tokens_are_classes": tokens, "tags": bool(tags)})
        logits = Call(x).add(model.build_for, *arguments, facts) if (samples or text) and model.build_for else Call(x).add(model.build, *arguments)
        network.output(logits)
        # How the command trains it. A training's own options come first.
        network.defaults = {"loss": model.loss, "optimizer": model.optimizer, "learning_rate": model.learning_rate,
                            "momentum": model.momentum, "weight_decay": model.weight_decay}
        return network

    build.__name__ = build.__qualname__ = ffi.string(model.name).decode()
    build.__doc__ = (f"{ffi.string(model.description).decode()}\n\nclasses: number of outputs, else {model.classes}; input: shape of a sample, "
                     f"else {shape_of(model.input)}; samples: of the training data, on which dropout of some models depends; vocabulary: of texts, "
                     "which are int32 numbers of tokens, those below 0 at the end for padding; tags: a class for each token, [tutti.SEQUENCE, classes]. Without "
                     "`classes`, gpt predicts tokens")
    return build


def __getattr__(name):
    model = ffi.NULL if name.startswith("_") else lib.model_find(name.encode())
    if model == ffi.NULL:
        raise AttributeError(f"module 'tutti.models' has no model {name!r}: {', '.join(__dir__())}")
    globals()[name] = make(model)
    return globals()[name]


def __dir__():
    names, position = [], 0
    while lib.model_at(position) != ffi.NULL:
        names.append(ffi.string(lib.model_at(position).name).decode())
        position += 1
    return names
