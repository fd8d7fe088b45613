#!/usr/bin/env python3
"""Times training steps of a module, or inference, by PyTorch's own loop and by tutti.torch, in turns.

    tests/python/with-package build bench/module.py [--module resnet18] [--batch 16] [--rounds 2]
    tests/python/with-package build bench/module.py --module bert_small --batch 32 [--dropout 0.1]
    tests/python/with-package build bench/module.py --module lstm --batch 32 [--bidirectional] [--infer]

The module is one of timm for images of 224x224, bert_small: a classifier of transformers, 4 layers of 512, 128 tokens; or lstm,
gru: 2 layers of 512, 128 steps. Needs torch and timm or transformers in PYTHONPATH, as TUTTI_TORCH gives them to with-package. Each turn is a process of its own; a line has the
shortest and the median time of its steps, and the loss of the last one, which is the same for all.
"""
import argparse
import statistics
import subprocess
import sys
import time

WAYS = "eager", "channels_last", "compile", "tutti"


def picture_classifier(name, batch):
    import timm
    import torch

    return timm.create_model(name, num_classes=1000), torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))


def text_classifier(batch, dropout):
    import torch
    import transformers

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = transformers.BertForSequenceClassification(transformers.BertConfig(
                num_hidden_layers=4, hidden_size=512, num_attention_heads=8, intermediate_size=2048, num_labels=2,
                hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout))

        def forward(self, ids):
            return self.bert(input_ids=ids).logits
    return Classifier(), torch.randint(0, 30522, (batch, 128)), torch.randint(0, 2, (batch,))


def sequence_classifier(kind, batch, bidirectional):
    import torch

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = getattr(torch.nn, kind.upper())(512, 512, 2, batch_first=True, bidirectional=bidirectional)
            self.head = torch.nn.Linear(1024 if bidirectional else 512, 10)

        def forward(self, x):
            return self.head(self.layers(x)[0][:, -1])
    return Classifier(), torch.randn(batch, 128, 512), torch.randint(0, 10, (batch,))


def make(given):
    if given.module == "bert_small":
        return text_classifier(given.batch, given.dropout)
    if given.module in ("lstm", "gru"):
        return sequence_classifier(given.module, given.batch, given.bidirectional)
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


def stepper(way, given):
    import torch

    torch.manual_seed(0)
    module, x, y = make(given)
    if given.infer:
        return inferrer(way, module, x)
    module.train()
    loss, optimizer = torch.nn.CrossEntropyLoss(), torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)
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


def turn(way, given):
    step, times = stepper(way, given), []
    for number in range(9):
        start = time.perf_counter()
        loss = step()
        if number >= 3:     # the first ones compile
            times.append(time.perf_counter() - start)
    print(f"{way:14} min {1e3 * min(times):.0f} ms, median {1e3 * statistics.median(times):.0f} ms, loss {loss:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", default="resnet18")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.0, help="of bert_small: with it, losses are not the same")
    parser.add_argument("--bidirectional", action="store_true", help="of lstm and gru")
    parser.add_argument("--infer", action="store_true", help="instead of training; in the place of the loss: the sum of outputs")
    parser.add_argument("--way", choices=WAYS, help="one turn, in this process")
    given = parser.parse_args()
    if given.way:
        return turn(given.way, given)
    ways = [way for way in WAYS if way != "channels_last" or given.module not in ("bert_small", "lstm", "gru")]
    for way in ways * given.rounds:
        subprocess.run([sys.executable, "-B", __file__, "--way", way, *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
