"""Warns where a network is made anew all the time, as a number changes that is a constant in it."""
import collections
import warnings

from .settings import changed

TIMES, WITHIN = 3, 10   # networks that are made in so many steps


class Rebuilt:
    def __init__(self):
        self.steps, self.has_warned = collections.defaultdict(list), False

    def note(self, step, before, key, written):
        """A network is made for another key than before, or as tensors were written."""
        if self.has_warned or before is None:
            return
        names = [*written, *(changed(before[2], key[2]) if before[0] == key[0] else [])]
        for name in dict.fromkeys(names):
            self.steps[name] = [one for one in self.steps[name] if one > step - WITHIN] + [step]
        often = [name for name, steps in self.steps.items() if len(steps) >= TIMES]
        if often:
            self.has_warned = True
            warnings.warn(f"{', '.join(often[:3])} changes from step to step, and for each change a network is made anew, which takes seconds: "
                          "give it as an input, a tensor with a number for each sample, as x.new_full((len(x), 1), number)", stacklevel=5)
