#!/usr/bin/env python3
"""Networks for texts compared with transformers': random weights of one configuration, saved by save_pretrained(), are loaded by
their own names; outputs are equal to 1e-5, gradients up to ten times the error that PyTorch's have in float32.

    published.py COMPARE [NAME...]     COMPARE: the program of compare.c; NAMEs: only these cases

Runs by a Python with PyTorch and transformers. Without TUTTI_TORCH, which names one, it says so and ends.
"""
import copy
import pathlib
import subprocess
import sys
import tempfile

import by_torch

SAMPLES, LENGTH, CLASSES = 3, 11, 3
LENGTHS = (11, 7, 2)     # tokens of each sample; the rest is padding

SMALL = {"vocab_size": 61, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 80,
         "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 40, "initializer_range": 0.3}
GPT2 = {"vocab_size": 61, "n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 40, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
        "initializer_range": 0.2}
LLAMA = {"vocab_size": 61, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 80,
         "max_position_embeddings": 40, "initializer_range": 0.2}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
# name: the model of Tutti, transformers' class, the class of its configuration, what it has, and whether there are pairs.
CASES = {
    "bert": ("bert_base", "BertForSequenceClassification", "BertConfig", SMALL, False),
    "bert of pairs": ("bert_tiny", "BertForSequenceClassification", "BertConfig", {**SMALL, "hidden_act": "gelu_new"}, True),
    "bert of tokens": ("bert_mini", "BertForTokenClassification", "BertConfig", {**SMALL, "hidden_act": "relu"}, False),
    "roberta": ("roberta_base", "RobertaForSequenceClassification", "RobertaConfig", {**SMALL, "type_vocab_size": 1}, False),
    "distilbert": ("distilbert", "DistilBertForSequenceClassification", "DistilBertConfig",
                   {"vocab_size": 61, "dim": 48, "n_layers": 2, "n_heads": 4, "hidden_dim": 80, "dropout": 0.0, "attention_dropout": 0.0,
                    "seq_classif_dropout": 0.0, "max_position_embeddings": 40, "initializer_range": 0.3}, False),
    "gpt2": ("gpt2", "GPT2LMHeadModel", "GPT2Config", GPT2, False),
    "gpt2 of classes": ("gpt2", "GPT2ForSequenceClassification", "GPT2Config", {**GPT2, "n_inner": 70}, False),
    "llama": ("llama", "LlamaForCausalLM", "LlamaConfig", LLAMA, False),
    "llama, tied, biases": ("llama", "LlamaForCausalLM", "LlamaConfig", {**LLAMA, "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}, False),
    "llama 3": ("llama", "LlamaForCausalLM", "LlamaConfig", {**LLAMA, "rope_parameters": LLAMA3}, False),
    "llama, linear": ("llama", "LlamaForCausalLM", "LlamaConfig",
                      {**LLAMA, "head_dim": 20, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 100.0}}, False),
    "llama of classes": ("llama", "LlamaForSequenceClassification", "LlamaConfig", LLAMA, False),
    "mistral": ("llama", "MistralForCausalLM", "MistralConfig", {**LLAMA, "sliding_window": 4, "head_dim": 12}, False),
    "qwen2": ("llama", "Qwen2ForCausalLM", "Qwen2Config", {**LLAMA, "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1}, False),
    "qwen3": ("llama", "Qwen3ForCausalLM", "Qwen3Config", {**LLAMA, "head_dim": 20, "tie_word_embeddings": True}, False),
}


def make(case):
    import torch
    import transformers
    _, name, configuration, options, _ = CASES[case]
    torch.manual_seed(sum(map(ord, case)))
    config = getattr(transformers, configuration)(**options, num_labels=CLASSES, pad_token_id=1 if configuration == "RobertaConfig" else 0)
    config._attn_implementation = "eager"
    network = getattr(transformers, name)(config).eval()
    for parameter in network.parameters():      # biases and norms begin as constants, which hide errors
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return network


def samples(pairs):
    """Numbers of tokens above those that transformers takes for padding; -1 pads, at the end."""
    import torch
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(2, 61, (SAMPLES, LENGTH), generator=generator)
    types = torch.randint(0, 2, (SAMPLES, LENGTH), generator=generator) if pairs else None
    for sample, length in enumerate(LENGTHS):
        ids[sample, length:] = -1
    return ids, types


def run_torch(network, ids, types, tokens):
    """Outputs, and gradients by name, of the mean over all samples or tokens, padding with the loss 0."""
    import torch
    mask = ids >= 0
    padding = network.config.pad_token_id
    given = {"token_type_ids": types} if types is not None else {}
    if not hasattr(network, "lm_head"):     # which sees no later token; with windows, such a mask gives NaN in float64
        given["attention_mask"] = mask.long()
    network.zero_grad()
    logits = network(input_ids=torch.where(mask, ids, padding), **given).logits
    count = SAMPLES * (LENGTH if tokens else 1)
    labels = torch.arange(count) % logits.shape[-1]
    losses = torch.nn.functional.cross_entropy(logits.reshape(count, -1), labels, reduction="none")
    (losses * mask.reshape(-1) if tokens else losses).mean().backward()
    gradients = {name: torch.zeros_like(p) if p.grad is None else p.grad.clone() for name, p in network.named_parameters()}
    return logits.detach(), gradients


def run_tutti(program, model, folder, network, ids, types, tokens):
    ids.numpy().astype("int32").tofile(folder / "ids")
    if types is not None:
        types.numpy().astype("int32").tofile(folder / "types")
    head = [0 if tokens and "Token" not in type(network).__name__ else CLASSES]
    done = subprocess.run([program, model, folder / "config.json", folder / "model.safetensors", folder / "ids", folder / "types" if types is not None else "-",
                           str(SAMPLES), str(LENGTH), str(head[0]), "tokens" if tokens else "texts", folder], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return by_torch.read_results(folder, network)


def compare(program, case):
    import torch
    model, _, _, _, pairs = CASES[case]
    network = make(case)
    ids, types = samples(pairs)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        network.save_pretrained(folder)
        tokens = "Causal" in type(network).__name__ or "LMHead" in type(network).__name__ or "Token" in type(network).__name__
        outputs, gradients = run_tutti(program, model, folder, network, ids, types, tokens)
    single, single_gradients = run_torch(network, ids, types, tokens)
    exact, exact_gradients = run_torch(copy.deepcopy(network).double(), ids, types, tokens)
    outputs = torch.from_numpy(outputs).reshape(exact.shape).double()
    seen = ids >= 0 if tokens else torch.ones(SAMPLES, dtype=torch.bool)
    error = ((outputs - exact)[seen].abs() / exact[seen].abs().max()).max().item()
    by_torch.check(case, error, gradients, single_gradients, exact_gradients, least=1e-9)


if __name__ == "__main__":
    sys.exit(by_torch.run(sys.argv[2:] or CASES, lambda case: compare(sys.argv[1], case), "networks for texts were not compared with transformers",
                          "PyTorch 2.15 and transformers 5"))
