"""torch.autocast, around a step or within forward(): a network computes in the precision of its trainer, which says so."""
import contextlib

import torch

SAID = "torch.autocast has no effect here: the trainer computes with float32. For bfloat16 write Trainer(..., precision=\"bf16\"), without autocast and GradScaler"
KINDS = "cpu", "cuda"


def is_around():
    """Whether the program is within torch.autocast."""
    return any(torch.is_autocast_enabled(kind) for kind in KINDS)


@contextlib.contextmanager
def exporting(step):
    """Within it, torch.autocast does nothing, and `step.autocasts` says whether it was asked for."""
    kind = torch.amp.autocast_mode.autocast
    original = kind.__init__

    def begin(self, *args, **kwargs):
        original(self, *args, **kwargs)
        step.autocasts |= self._enabled
        self._enabled = False

    with contextlib.ExitStack() as stack:
        for one in KINDS:
            if torch.is_autocast_enabled(one):
                step.autocasts = True
                stack.enter_context(torch.autocast(one, enabled=False))
        kind.__init__ = begin
        stack.callback(setattr, kind, "__init__", original)
        yield
