#!/usr/bin/env python3
"""Trains nanoGPT's model of characters with Tutti's model `gpt` or with PyTorch, from the same initial weights, with the same
batches and learning rates, and compares the losses step by step: they should be one curve.

    tests/python/with-package build bench/language.py --text input.txt --way tutti --save tutti.txt
    tests/python/with-package build bench/language.py --text input.txt --way torch --save torch.txt
    tests/python/with-package build bench/language.py --text input.txt --way torch --threads 1 --save torch-1.txt
    python3 bench/language.py --compare tutti.txt torch.txt torch-1.txt [--picture curves.svg]

Each way runs alone. Needs torch in PYTHONPATH, as TUTTI_TORCH gives it to with-package. The file gets a line per step, with the loss, so
that a run that was ended can be compared, too; lines that begin with # are losses of evaluations on the last tenth of the text.

The network has 6 layers of 384 with 6 heads, a vocabulary of the text's characters. Training is nanoGPT's train_shakespeare_char.py:
AdamW, rate 1e-3 after 100 steps of warm-up, cosine to 1e-4 at step 5000, betas 0.9 and 0.99, decay 0.1 of matrices, gradients
clipped at 1, batches of random places. Without dropout, unless --dropout says otherwise: with it, losses differ, since each draws numbers of its
own.

--compare: the largest and the mean difference of losses between the first file and each other one, over the steps that both have, as
they are and smoothed (exponential mean over 20 steps); then the losses of evaluations. PyTorch with another number of threads sums in
another order: how far it is from itself is what rounding alone does.
"""
import argparse
import math
import pathlib
import time

import numpy

from drawing import draw, smooth

RATE, LOWEST, WARMUP, STEPS_OF_RATE, BETAS, DECAY, CLIP = 1e-3, 1e-4, 100, 5000, (0.9, 0.99), 0.1, 1.0
EVALUATED = 20      # batches of an evaluation
COLOURS = "#b0b0b0", "#1f6fb5", "#e6a23c"
MARKS = [1.5, 2, 2.5, 3, 3.5, 4, 4.5]


def rate_at(step):
    if step < WARMUP:
        return RATE * (step + 1) / (WARMUP + 1)
    part = min(1.0, (step - WARMUP) / (STEPS_OF_RATE - WARMUP))
    return LOWEST + 0.5 * (1 + math.cos(math.pi * part)) * (RATE - LOWEST)


class Text:
    """The characters of a file as numbers, and random batches of its first nine tenths; the same for every way."""
    def __init__(self, given):
        text = pathlib.Path(given.text).read_text()
        characters = sorted(set(text))
        numbers = {character: number for number, character in enumerate(characters)}
        ids = numpy.array([numbers[character] for character in text], numpy.int32)
        self.vocabulary, self.given = len(characters), given
        self.train, self.held_out = numpy.split(ids, [len(ids) * 9 // 10])

    def batch(self, random, part=None):
        part = self.train if part is None else part
        begin = random.integers(0, len(part) - self.given.length, self.given.batch)
        rows = begin[:, None] + numpy.arange(self.given.length)
        return part[rows], part[rows + 1]

    def evaluation(self):
        random = numpy.random.default_rng(7)
        return [self.batch(random, self.held_out) for _ in range(EVALUATED)]


def initial(given, vocabulary):
    import torch
    from gpt import GPT

    torch.manual_seed(1337)
    return GPT(vocabulary, given.length, given.layers, given.heads, given.width, given.dropout)


class ByTorch:
    def __init__(self, given, vocabulary):
        import torch
        from gpt import decayed, token_loss

        torch.set_num_threads(given.threads or torch.get_num_threads())
        torch.manual_seed(given.seed)
        self.torch, self.loss, self.module = torch, token_loss, initial(given, vocabulary)
        self.optimizer = torch.optim.AdamW(decayed(self.module), lr=RATE, betas=BETAS, weight_decay=DECAY)

    def step(self, x, y, rate):
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = self.loss(self.module(self.torch.from_numpy(x)), self.torch.from_numpy(y).long())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.module.parameters(), CLIP)
        self.optimizer.step()
        return loss.item()

    def evaluate(self, batches):
        self.module.eval()
        with self.torch.no_grad():
            losses = [self.loss(self.module(self.torch.from_numpy(x)), self.torch.from_numpy(y).long()).item() for x, y in batches]
        self.module.train()
        return numpy.mean(losses)


class ByTutti:
    """The command's model, with the sizes given here."""
    def __init__(self, given, vocabulary):
        import tutti
        from tutti._call import Call
        from tutti._native import ffi, lib

        module = initial(given, vocabulary)
        model = lib.model_find(b"gpt")
        config = ffi.new("struct model_config *", model.config[0])
        config.positions, config.layers, config.heads = given.length, given.layers, given.heads
        config.width, config.hidden = given.width, 4 * given.width
        config.dropout.hidden = config.dropout.attention = config.dropout.embedding = given.dropout
        facts = ffi.new("struct model_facts *", {"vocabulary": vocabulary, "tokens_are_classes": True, "config": config})
        network = tutti.Network()
        ids = network.input("ids", tutti.SEQUENCE, "int32")
        logits = Call(ids).add(model.build_for, ids.c, vocabulary, facts)
        targets = network.input("targets", tutti.SEQUENCE, "int32")
        for name in ("*ln_?.weight",):
            group = ffi.new("tutti_group_options *", {"size": ffi.sizeof("tutti_group_options"), "has_weight_decay": True})
            if lib.tutti_group(network.pointer, name.encode(), group) != lib.TUTTI_OK:
                raise RuntimeError(ffi.string(lib.tutti_message(ffi.NULL)).decode())
        self.trainer = tutti.Trainer(
            logits, tutti.cross_entropy(logits, targets, class_axis=-1), tutti.AdamW(RATE, beta1=BETAS[0], beta2=BETAS[1], weight_decay=DECAY),
            batch_size=given.batch, sequence=given.length, clip_norm=CLIP, seed=given.seed)
        self.trainer.parameters = {name: value.detach().numpy() for name, value in module.named_parameters()}

    def step(self, x, y, rate):
        self.trainer.learning_rate = rate
        return self.trainer.step({"ids": x, "targets": y}).loss

    def evaluate(self, batches):
        return numpy.mean([self.trainer.evaluate({"ids": x, "targets": y}).loss for x, y in batches])


def train(given):
    text = Text(given)
    way = (ByTutti if given.way == "tutti" else ByTorch)(given, text.vocabulary)
    held_out, random, start = text.evaluation(), numpy.random.default_rng(1), time.perf_counter()
    with open(given.save, "w", buffering=1) as file:
        for step in range(given.steps + 1):
            if step and step % given.every == 0:
                print(f"# {step} {way.evaluate(held_out):.9g}", file=file)
                print(f"{given.way}: step {step}, {time.perf_counter() - start:.0f} s", flush=True)
            if step < given.steps:
                print(f"{way.step(*text.batch(random), rate_at(step)):.9g}", file=file)


def read(path):
    lines = pathlib.Path(path).read_text().split("\n")[:-1]     # a line that is being written is left out
    evaluations = dict((int(step), float(loss)) for _, step, loss in (line.split() for line in lines if line.startswith("#")))
    return numpy.array([float(line) for line in lines if line and not line.startswith("#")]), evaluations


def compare(given):
    names = given.names.split(",") if given.names else given.compare
    (ours, ours_held_out), *others = [read(path) for path in given.compare]
    print(f"{'':24} steps   largest      mean   smoothed: largest   mean   last loss: {names[0]}, other")
    for name, (losses, held_out) in zip(names[1:], others):
        steps = min(len(ours), len(losses))
        apart, smoothed = abs(ours[:steps] - losses[:steps]), abs(smooth(ours[:steps]) - smooth(losses[:steps]))
        print(f"{name:24} {steps:5} {apart.max():9.2e} {apart.mean():9.2e} {smoothed.max():18.2e} {smoothed.mean():9.2e}"
              f" {smooth(ours)[steps - 1]:10.4f} {smooth(losses)[steps - 1]:8.4f}")
        for first in range(0, steps, 100):
            print(f"    from step {first:4}: largest {apart[first:first + 100].max():.2e}, mean {apart[first:first + 100].mean():.2e}")
        for step in sorted(ours_held_out.keys() & held_out.keys()):
            print(f"    evaluation after step {step}: {ours_held_out[step]:.4f}, {held_out[step]:.4f}")
    if given.picture:
        drawn = {name: smooth(losses) for name, (losses, _) in zip(names[1:], others)} | {names[0]: smooth(ours)}
        draw(given.picture, {"gpt": drawn}, dict(zip(names[1:], COLOURS)) | {names[0]: "#1f6fb5"}, MARKS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", metavar="FILE", help="plain text to train on")
    parser.add_argument("--way", choices=["tutti", "torch"], default="tutti")
    parser.add_argument("--save", metavar="FILE", default="losses.txt", help="file of the losses")
    parser.add_argument("--threads", type=int, default=0, help="of PyTorch; 0: its own number")
    parser.add_argument("--seed", type=int, default=1, help="of the dropout; initial weights and batches do not depend on it")
    parser.add_argument("--compare", nargs="+", metavar="FILE", help="compare files of losses with the first one, instead of a training")
    parser.add_argument("--names", help="of the files in the picture, with commas")
    parser.add_argument("--picture", metavar="FILE", help="with --compare: write the curves as SVG")
    for name, value, text in (("steps", 500, "of the training"), ("every", 250, "steps from one evaluation to the next"), ("batch", 12, ""),
                              ("length", 256, "of a sample, in characters"), ("layers", 6, ""), ("heads", 6, ""), ("width", 384, "")):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{text} (default {value})".strip())
    parser.add_argument("--dropout", type=float, default=0.0)
    given = parser.parse_args()
    if given.compare:
        return compare(given)
    if not given.text:
        parser.error("--text is missing")
    return train(given)


if __name__ == "__main__":
    main()
