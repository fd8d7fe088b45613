#!/usr/bin/env python3
"""Times training steps of a module, or inference, by PyTorch's own loop and by tutti.torch, in turns.

    tests/python/with-package build bench/module.py [--module resnet18] [--batch 16] [--rounds 2]
    tests/python/with-package build bench/module.py --module bert_small --batch 32 [--dropout 0.1]
    tests/python/with-package build bench/module.py --module gpt --batch 12 [--length 1024] [--dropout 0]
    tests/python/with-package build bench/module.py --module lstm --batch 32 [--bidirectional] [--infer]

The module is one of

- timm's or torchvision's, for images of 224x224: resnet18, vit_b_16, vit_l_32, swin_t, ...
- bert_small, bert_base: transformers' classifier, 4 layers of 512 or 12 of 768, 128 tokens; gpt2: transformers' model of the next
  token, 256 tokens
- gpt: nanoGPT's model of characters (gpt.py), 6 layers of 384, 256 tokens, dropout 0.2
- lstm, gru: 2 layers of 512, 128 steps

Needs torch, and timm and torchvision or transformers, in PYTHONPATH, as TUTTI_TORCH gives them to with-package. Each turn is a process of
its own. A line has the shortest and the median time of its steps, the most memory that the process had at once, by then and before the
first step, and the loss of the last one, which is the same for all without dropout. --ways eager,tutti chooses ways, --steps 6 the number of steps that are timed.
"""
import argparse
import resource
import statistics
import subprocess
import sys
import time

WAYS = "eager", "channels_last", "compile", "tutti"
BERTS = {"bert_small": (4, 512, 8), "bert_base": (12, 768, 12)}     # layers, width, heads
LENGTHS = {"gpt": 256, "gpt2": 256}
DROPOUTS = {"gpt": 0.2}
UNTIMED = 3     # the first steps compile


def picture_classifier(name, batch):
    import timm
    import torch
    import torchvision

    create = timm.create_model if timm.is_model(name) else torchvision.models.get_model
    return create(name, num_classes=1000), torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))


def language_model(given):
    import torch
    if given.module == "gpt":
        import gpt
        vocabulary, module = 65, gpt.GPT(65, given.length, dropout=given.dropout)
    else:
        import transformers

        class Logits(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
                    resid_pdrop=given.dropout, embd_pdrop=given.dropout, attn_pdrop=given.dropout, use_cache=False))

            def forward(self, ids):
                return self.model(input_ids=ids).logits
        vocabulary, module = 50257, Logits()
    ids = torch.randint(0, vocabulary, (given.batch, given.length + 1))
    return module, ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def text_classifier(name, batch, length, dropout):
    import torch
    import transformers

    layers, width, heads = BERTS[name]

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = transformers.BertForSequenceClassification(transformers.BertConfig(
                num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads, intermediate_size=4 * width, num_labels=2,
                hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout))

        def forward(self, ids):
            return self.bert(input_ids=ids).logits
    return Classifier(), torch.randint(0, 30522, (batch, length)), torch.randint(0, 2, (batch,))


def sequence_classifier(kind, batch, length, bidirectional):
    import torch

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = getattr(torch.nn, kind.upper())(512, 512, 2, batch_first=True, bidirectional=bidirectional)
            self.head = torch.nn.Linear(1024 if bidirectional else 512, 10)

        def forward(self, x):
            return self.head(self.layers(x)[0][:, -1])
    return Classifier(), torch.randn(batch, length, 512), torch.randint(0, 10, (batch,))


def make(given):
    if given.module in BERTS:
        return text_classifier(given.module, given.batch, given.length, given.dropout)
    if given.module in ("gpt", "gpt2"):
        return language_model(given)
    if given.module in ("lstm", "gru"):
        return sequence_classifier(given.module, given.batch, given.length, given.bidirectional)
    return picture_classifier(given.module, given.batch)


def inferrer(way, module, x):
    import torch

    module.eval()
    if way == "tutti":
        import tutti.torch  # noqa: F401: the backend
        run = torch.compile(module, backend="tutti")
    else:
        run = torch.compile(module) if way == "compile" else module

    def step():
        with torch.no_grad():
            return float(run(x).sum())
    return step


def loss_of(given):
    import torch
    if given.module in ("gpt", "gpt2"):
        from gpt import token_loss
        return token_loss
    return torch.nn.CrossEntropyLoss()


def trainer_of(way, module, x, y, loss, rate):
    """What does a step of a training by SGD with momentum in this way, and returns its loss."""
    import torch

    optimizer = torch.optim.SGD(module.parameters(), rate, momentum=0.9)
    if way == "tutti":
        from tutti.torch import Trainer
        trainer = Trainer(module, loss=loss, optimizer=optimizer)
        return lambda: float(trainer.step(x, y))
    if way == "channels_last":
        module, x = module.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    run = torch.compile(module) if way == "compile" else module

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = loss(run(x), y)
        value.backward()
        optimizer.step()
        return value.item()
    return step


def stepper(way, given):
    import torch

    torch.manual_seed(0)
    module, x, y = make(given)
    if given.infer:
        return inferrer(way, module, x)
    return trainer_of(way, module.train(), x, y, loss_of(given), 0.01)


def most_memory():
    """MiB that the process had at once so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def turn_of(way, step, steps):
    """Prints a line on the steps that step() does."""
    times, before = [], most_memory()
    for number in range(UNTIMED + steps):
        start = time.perf_counter()
        loss = step()
        if number >= UNTIMED:
            times.append(time.perf_counter() - start)
    print(f"{way:14} min {1e3 * min(times):.0f} ms, median {1e3 * statistics.median(times):.0f} ms, "
          f"{most_memory():.0f} MiB ({before:.0f} before the steps), loss {loss:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", default="resnet18")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--length", type=int, help="tokens or steps of a sample (default: see above)")
    parser.add_argument("--dropout", type=float, help="of networks for texts: with it, losses are not the same (default: gpt 0.2, others 0)")
    parser.add_argument("--steps", type=int, default=6, help="that are timed in a turn (default 6)")
    parser.add_argument("--ways", help=f"of {', '.join(WAYS)}, with commas (default: all that the module has)")
    parser.add_argument("--bidirectional", action="store_true", help="of lstm and gru")
    parser.add_argument("--infer", action="store_true", help="instead of training; in the place of the loss: the sum of outputs")
    parser.add_argument("--way", choices=WAYS, help="one turn, in this process")
    given = parser.parse_args()
    given.length = given.length or LENGTHS.get(given.module, 128)
    given.dropout = DROPOUTS.get(given.module, 0.0) if given.dropout is None else given.dropout
    if given.way:
        return turn_of(given.way, stepper(given.way, given), given.steps)
    pictures = given.module not in ("lstm", "gru", "gpt", "gpt2", *BERTS)
    ways = given.ways.split(",") if given.ways else [way for way in WAYS if way != "channels_last" or pictures]
    for way in ways * given.rounds:
        subprocess.run([sys.executable, "-B", __file__, "--way", way, *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
