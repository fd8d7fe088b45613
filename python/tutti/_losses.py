"""Losses by their names, those of Keras and PyTorch too, where they mean the same."""

NAMES = ("cross_entropy", "nll", "mse", "l1", "huber", "bce_with_logits")
# Compared in lower case, without "_", blanks, and "loss" at the end.
ALIASES = {"meansquarederror": "mse", "meanabsoluteerror": "l1", "mae": "l1", "smoothl1": "huber", "binarycrossentropywithlogits": "bce_with_logits"}
LOGITS = "and leave out the {} at the network's end: its input is logits"
INSTEAD = {"categoricalcrossentropy": 'write "cross_entropy" ' + LOGITS.format("softmax") + ", and y are class numbers, y.argmax(1)",
           "sparsecategoricalcrossentropy": 'write "cross_entropy" ' + LOGITS.format("softmax"),
           "binarycrossentropy": 'write "bce_with_logits" ' + LOGITS.format("sigmoid"),
           "bce": 'write "bce_with_logits" ' + LOGITS.format("sigmoid")}


def plain(name):
    return name.lower().replace("_", "").replace(" ", "").removesuffix("loss")


KNOWN = {plain(name): name for name in NAMES} | ALIASES


def loss_name(given):
    """The library's name."""
    word = plain(given)
    if word in INSTEAD:
        raise ValueError(f"the loss {given!r} is not known; {INSTEAD[word]}")
    if word not in KNOWN:
        raise ValueError(f"the loss {given!r} is not known: it is one of {', '.join(NAMES)}, or a tensor, as tutti.mean() makes")
    return KNOWN[word]
