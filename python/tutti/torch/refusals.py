"""What has no form here, with what to write instead."""
from .values import Refused

SIZE_OF_MASK = "the size of its result depends on the numbers of the mask: write torch.where(mask, x, 0), or x * mask, and divide a sum by mask.sum()"
SIZE_OF_NUMBERS = "the size of its result depends on numbers: keep all elements, with a mask"
COUNTS = "it counts over all samples: write torch.nn.functional.one_hot(x, classes).sum(1) for each sample, or count before the step"
REASONS = {
    "masked_select": SIZE_OF_MASK, **dict.fromkeys(("nonzero", "nonzero_numpy", "argwhere", "_unique2", "unique_dim", "unique_consecutive"), SIZE_OF_NUMBERS),
    **dict.fromkeys(("bincount", "histc", "histogram"), COUNTS), "masked_scatter": "it counts the elements of its mask: write torch.where(mask, y, x) with a y of the shape of x",

}


def refuse(reason):
    def build(walk, **_):
        raise Refused(reason)
    return build


OPERATORS = {name: refuse(reason) for name, reason in REASONS.items()}
