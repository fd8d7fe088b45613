#!/usr/bin/env python3
"""Times training steps of gpt2 with dropout 0.1 and adapters of rank 8 in every dense layer (LoRA), by peft on PyTorch and by Tutti, in turns.

    tests/python/with-package build bench/lora.py [--batch 4] [--length 256] [--base bf16] [--rounds 2]

--base: how the frozen weights are kept: fp32, bf16 (of peft, a module in bfloat16 with adapters in float32) or, of Tutti alone, int8.
The ways are peft-eager, peft-compile, tutti, and tutti-bf16, whose products round their inputs to bfloat16 (precision="bf16"), as a
module in bfloat16 does. Needs torch, transformers and peft in PYTHONPATH, as TUTTI_TORCH gives them to with-package. Each turn is a process of
its own. A line has the shortest and the median time of its steps, the most memory that the process had at once, and the loss of the last step:
weights are random, so losses are near log(50257)."""
import argparse
import subprocess
import sys

from module import turn_of

WAYS = "peft-eager", "peft-compile", "tutti", "tutti-bf16"
VOCABULARY, RANK, RATE = 50257, 8, 1e-3


def peft_step(way, given, tokens):
    import peft
    import torch
    import transformers

    module = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
    if given.base == "bf16":
        module = module.to(torch.bfloat16)
    module = peft.get_peft_model(module, peft.LoraConfig(r=RANK, lora_alpha=RANK, target_modules="all-linear", fan_in_fan_out=True)).train()
    optimizer = torch.optim.AdamW([each for each in module.parameters() if each.requires_grad], RATE)
    run = torch.compile(module) if way == "peft-compile" else module
    ids, targets = (torch.from_numpy(each).long() for each in (tokens[:, :-1], tokens[:, 1:]))

    def step():
        optimizer.zero_grad(set_to_none=True)
        logits = run(input_ids=ids.contiguous()).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def tutti_step(way, given, tokens):
    import tutti

    net = tutti.models.gpt2()
    net.lora(rank=RANK, base=None if given.base == "fp32" else given.base)
    trainer = tutti.Trainer(net, loss="cross_entropy", optimizer=tutti.AdamW(RATE), batch_size=given.batch, sequence=given.length,
                            precision="bf16" if way == "tutti-bf16" else "fp32")
    ids, targets = (each.astype("int32") for each in (tokens[:, :-1], tokens[:, 1:]))
    return lambda: trainer.step(ids, targets).loss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--base", choices=("fp32", "bf16", "int8"), default="bf16")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--way", choices=WAYS, help="one turn, in this process")
    given = parser.parse_args()
    if given.way:
        import numpy
        tokens = numpy.random.default_rng(1).integers(0, VOCABULARY, (given.batch, given.length + 1))
        return turn_of(given.way, (tutti_step if given.way.startswith("tutti") else peft_step)(given.way, given, tokens), given.steps)
    for way in given.ways.split(",") * given.rounds:
        subprocess.run([sys.executable, "-B", __file__, "--way", way, *sys.argv[1:]], check=True)
    return None


if __name__ == "__main__":
    sys.exit(main())
