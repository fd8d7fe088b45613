#!/usr/bin/env python3
"""Builds small networks of the package transformers with random weights, exports them with both exporters of PyTorch, and
compares what Tutti computes with onnxruntime, for another number of samples than that of the export. Prints a table.

    python3 -m venv .dev/transformers
    .dev/transformers/bin/pip install torch numpy onnx onnxscript onnxruntime transformers
    .dev/transformers/bin/python tests/onnx/outside_transformers.py build/tools/tutti [KIND ...] [--keep FOLDER]
"""
import argparse
import contextlib
import io
import logging
import os
import pathlib
import subprocess
import tempfile
import warnings

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy
import onnxruntime
import torch
import transformers

LIMIT = 1e-5 # of the largest element
EXPORTED, SAMPLES, LENGTH, VOCABULARY = 2, 3, 10, 99
EXPORTERS = ("script", "dynamo")
COMMON = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
          "max_position_embeddings": 40}
DECODER = COMMON | {"num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def text(name, config, mask=True, **sizes):
    """A network of tokens, and of a mask that ends some sequences early."""
    def build(samples):
        made = getattr(transformers, name)(getattr(transformers, config)(**sizes))
        ids = torch.randint(3, VOCABULARY, (samples, LENGTH))
        attended = (torch.arange(LENGTH)[None] < torch.randint(LENGTH // 2, LENGTH + 1, (samples, 1))).long()
        return made, {"input_ids": ids} | ({"attention_mask": attended} if mask else {})
    return build


def images(name, config, size=32, **sizes):
    def build(samples):
        made = getattr(transformers, name)(getattr(transformers, config)(**sizes))
        return made, {"pixel_values": torch.randn(samples, 3, size, size)}
    return build


def sound(name, config, field, shape, part=None, **sizes):
    def build(samples):
        made = getattr(transformers, name)(getattr(transformers, config)(**sizes))
        return (getattr(made, part) if part else made), {field: torch.randn(samples, *shape)}
    return build


def encoder_decoder(name, config, **sizes):
    def build(samples):
        made = getattr(transformers, name)(getattr(transformers, config)(**sizes))
        return made, {"input_ids": torch.randint(3, VOCABULARY, (samples, LENGTH)),
                      "decoder_input_ids": torch.randint(3, VOCABULARY, (samples, LENGTH - 3))}
    return build


def clip(samples):
    tower = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "projection_dim": 16}
    config = transformers.CLIPConfig(text_config=tower | {"vocab_size": VOCABULARY, "max_position_embeddings": 40, "eos_token_id": 2},
                                     vision_config=tower | {"image_size": 32, "patch_size": 8}, projection_dim=16)
    return transformers.CLIPModel(config), {"input_ids": torch.randint(3, VOCABULARY, (samples, LENGTH)),
                                            "pixel_values": torch.randn(samples, 3, 32, 32),
                                            "attention_mask": torch.ones(samples, LENGTH, dtype=torch.long)}


VISION = {"image_size": 32, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
BARTS = {"vocab_size": VOCABULARY, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 40}
T5 = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
WAVES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "conv_dim": (16, 16),
         "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16,
         "num_conv_pos_embedding_groups": 4, "vocab_size": VOCABULARY}
STAGES = {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4, "image_size": 32, "patch_size": 4}

KINDS = {
    "bert": text("BertForSequenceClassification", "BertConfig", **COMMON),
    "roberta": text("RobertaModel", "RobertaConfig", **COMMON),
    "distilbert": text("DistilBertForSequenceClassification", "DistilBertConfig", vocab_size=VOCABULARY, dim=32, n_layers=2,
                       n_heads=4, hidden_dim=48, max_position_embeddings=40),
    "albert": text("AlbertModel", "AlbertConfig", embedding_size=16, **COMMON),
    "electra": text("ElectraModel", "ElectraConfig", embedding_size=16, **COMMON),
    "mpnet": text("MPNetModel", "MPNetConfig", **COMMON),
    "deberta": text("DebertaV2Model", "DebertaV2Config", relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"],
                    **COMMON),
    "mobilebert": text("MobileBertModel", "MobileBertConfig", embedding_size=16, intra_bottleneck_size=16, true_hidden_size=16,
                       **COMMON),
    "gpt2": text("GPT2LMHeadModel", "GPT2Config", vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=40, use_cache=False),
    "gpt_neox": text("GPTNeoXForCausalLM", "GPTNeoXConfig", use_cache=False, **COMMON),
    "llama": text("LlamaForCausalLM", "LlamaConfig", use_cache=False, **DECODER),
    "mistral": text("MistralForCausalLM", "MistralConfig", use_cache=False, sliding_window=4, **DECODER),
    "qwen2": text("Qwen2ForCausalLM", "Qwen2Config", use_cache=False, **DECODER),
    "gemma": text("GemmaForCausalLM", "GemmaConfig", use_cache=False, **DECODER),
    "phi": text("PhiForCausalLM", "PhiConfig", use_cache=False, **COMMON),
    "opt": text("OPTForCausalLM", "OPTConfig", vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, ffn_dim=48,
                num_attention_heads=4, max_position_embeddings=40, word_embed_proj_dim=32, use_cache=False),
    "bloom": text("BloomForCausalLM", "BloomConfig", vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4, use_cache=False),
    "t5": text("T5EncoderModel", "T5Config", **T5),
    "bart": encoder_decoder("BartModel", "BartConfig", use_cache=False, **BARTS),
    "vit": images("ViTForImageClassification", "ViTConfig", **VISION),
    "deit": images("DeiTModel", "DeiTConfig", **VISION),
    "clip": clip,
    "dinov2": images("Dinov2Model", "Dinov2Config", **VISION),
    "swin": images("SwinModel", "SwinConfig", **STAGES),
    "convnext": images("ConvNextModel", "ConvNextConfig", hidden_sizes=[16, 32], depths=[1, 1], num_stages=2),
    "segformer": images("SegformerForSemanticSegmentation", "SegformerConfig", hidden_sizes=[16, 32], depths=[1, 1],
                        num_encoder_blocks=2, sr_ratios=[2, 1], num_attention_heads=[1, 2], patch_sizes=[7, 3], strides=[4, 2],
                        mlp_ratios=[2, 2], decoder_hidden_size=16),
    "whisper": sound("WhisperModel", "WhisperConfig", "input_features", (20, 40), "encoder", vocab_size=VOCABULARY, num_mel_bins=20,
                     d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
                     encoder_ffn_dim=48, decoder_ffn_dim=48, max_source_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                     decoder_start_token_id=1),
    "wav2vec2": sound("Wav2Vec2Model", "Wav2Vec2Config", "input_values", (400,), **WAVES),
    "hubert": sound("HubertModel", "HubertConfig", "input_values", (400,), **WAVES),
}


class First(torch.nn.Module):
    """The tensors of what a network gives, by the names of its inputs."""
    def __init__(self, network, names):
        super().__init__()
        self.network, self.names = network, names

    def forward(self, *inputs):
        given = self.network(**dict(zip(self.names, inputs)), return_dict=True)
        if "image_embeds" in given: # their product compares each text with each image: samples with others
            return torch.cat([given["image_embeds"], given["text_embeds"]], 1)
        return given["logits" if "logits" in given else "last_hidden_state"]


def randomise(network):
    """Weights that matter: what is zero or tiny at first would hide all before it."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.3)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.1)


def export(network, inputs, exporter, path):
    names, batch = list(inputs), {0: "batch"}
    options = {"input_names": names, "output_names": ["y"], "dynamo": exporter == "dynamo"}
    if exporter == "script":
        options |= {"dynamic_axes": {name: batch for name in [*names, "y"]}, "opset_version": 17}
    else:
        options |= {"dynamic_shapes": [({0: torch.export.Dim("batch")} if value.dim() else None) for value in inputs.values()]}
        options["dynamic_shapes"] = {"inputs": tuple(options["dynamic_shapes"])}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(First(network, names), tuple(inputs.values()), str(path), **options)


def run_tutti(tutti, path, feeds, folder):
    numpy.savez(folder / "x.npz", **feeds)
    line = [tutti, "infer", path, "--inputs", folder / "x.npz", "--outputs", folder / "y.npz"]
    run = subprocess.run(line, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr.strip().splitlines()[-1] if run.stderr.strip() else f"exit {run.returncode}")
    return numpy.load(folder / "y.npz")["y"]


def check(tutti, kind, exporter, folder):
    """What the table says of a network: an error, or why there is none."""
    torch.manual_seed(7)
    path = folder / f"{kind}.{exporter}.onnx"
    try:
        network, inputs = KINDS[kind](EXPORTED)
        randomise(network)
        export(network.eval(), inputs, exporter, path)
        feeds = {name: value.numpy() for name, value in KINDS[kind](SAMPLES)[1].items()}
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        taken = {port.name for port in session.get_inputs()}
        feeds = {name: value for name, value in feeds.items() if name in taken}
        wanted = session.run(["y"], feeds)[0]
    except Exception as failure: # of the exporters, which have classes of their own
        return f"not exported: {str(failure).strip().splitlines()[0][:150] if str(failure).strip() else type(failure).__name__}", None
    try:
        got = run_tutti(tutti, path, feeds, folder)
    except RuntimeError as failure:
        return f"refused: {str(failure).replace(str(path), path.name)[:400]}", False
    if got.shape != wanted.shape:
        return f"shape {got.shape}, not {wanted.shape}", False
    error = float(numpy.abs(got - wanted).max() / numpy.abs(wanted).max())
    return f"{error:.1e}", error <= LIMIT


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tutti", type=pathlib.Path)
    parser.add_argument("kinds", nargs="*", help="all, if none is named")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the files in this folder")
    read = parser.parse_args()
    logging.disable(logging.ERROR)
    good = {exporter: 0 for exporter in EXPORTERS}
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, onnxruntime {onnxruntime.__version__}\n\n"
          "| network | TorchScript | dynamo |\n|---|--:|--:|", flush=True)
    kinds = read.kinds or list(KINDS)
    for kind in kinds:
        row = []
        for exporter in EXPORTERS:
            with tempfile.TemporaryDirectory() as folder:
                text_, fine = check(read.tutti, kind, exporter, read.keep or pathlib.Path(folder))
            good[exporter] += fine is not False and fine is not None
            row.append(text_)
        print(f"| {kind} | {' | '.join(row)} |", flush=True)
    print(f"| all {len(kinds)} | {' | '.join(str(good[exporter]) for exporter in EXPORTERS)} |")
    raise SystemExit(0)


main()
