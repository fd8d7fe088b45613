"""Batches that Python gives: generators, lists, functions that return either, and loaders of other packages, such as PyTorch's
DataLoader. A batch is (x, y), or a dictionary of arrays by the names of inputs."""
from ._feeds import paired


def is_batches(x, ports):
    """Whether x gives batches, and is not an array or several."""
    if hasattr(x, "__array__") or hasattr(x, "__dlpack__") or isinstance(x, (dict, str, bytes)):
        return False
    if isinstance(x, (list, tuple)):
        return len(x) > 0 and all(isinstance(one, (dict, tuple)) for one in x) and (isinstance(x[0], dict) or hasattr(x[0][0], "__len__"))
    return callable(x) or hasattr(x, "__iter__") or hasattr(x, "__next__")


class Batches:
    def __init__(self, given, ports):
        self.given, self.ports, self.iterator = given, ports, None
        self.batch_size = getattr(given, "batch_size", None) or 0
        self.batch_size = self.batch_size if isinstance(self.batch_size, int) else 0
        try:
            self.length = len(given)    # batches of an epoch
        except TypeError:
            self.length = None

    def begun(self):
        return iter(self.given() if callable(self.given) and not hasattr(self.given, "__iter__") else self.given)

    def epoch(self, continues=False):
        """The batches of an epoch. continues: they go on where the last epoch ended, and begin anew when there are no more."""
        if not continues:
            yield from self
            return
        if self.iterator is None:
            self.iterator = self.begun()
        while True:
            found = 0
            for batch in self.iterator:
                found += 1
                yield self.pairs(batch)
            self.iterator = self.begun()
            if not found:
                return

    def __iter__(self):
        for batch in self.begun():
            yield self.pairs(batch)

    def pairs(self, batch):
        if isinstance(batch, dict):
            return paired(self.ports, batch)
        if not isinstance(batch, (tuple, list)) or not batch:
            return paired(self.ports, batch)
        inputs = sum(not port.is_targets for port in self.ports)
        targets = any(port.is_targets for port in self.ports)
        if len(batch) == 1:
            return paired(self.ports, batch[0])
        if targets and len(batch) == inputs + 1 and inputs > 1:     # DataLoader of a set with several inputs: (a, b, y)
            return paired(self.ports, list(batch[:-1]), batch[-1])
        if targets and len(batch) == 2:
            return paired(self.ports, *batch)
        if not targets and len(batch) == inputs:
            return paired(self.ports, list(batch))
        raise ValueError(f"a batch has {len(batch)} parts; the network takes {inputs} inputs{' and targets' if targets else ''}: "
                         "give (x, y), ([x1, x2], y) or a dictionary by names")

    def inputs(self):
        """The batches without their targets, for predict()."""
        for pairs in self:
            yield [(port, array) for port, array in pairs if not port.is_targets]
