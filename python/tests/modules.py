#!/usr/bin/env python3
"""Trains modules of PyTorch, unmodified, with tutti.torch and with PyTorch's own loop, and compares.

    tests/python/with-package build-tests python/tests/modules.py [--markdown] [NAME ...]        (with a Python that has torch)

Five steps in float32. The distance of two trainings is that of their losses, relative, or of a parameter or buffer: the largest
difference of its numbers, by their largest magnitude, which counts as 0.01 if it is smaller. It must be at most ten times that of
two trainings by PyTorch with one and two threads, or 1e-5 if that is more."""
import copy
import sys
import time
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional

from tutti.torch import Trainer

CASES = {}


def case(*shapes, loss=None, rule=None, batch=4, name=None, high=10, mode="train"):
    """A module. shapes: of the arrays of a sample, or of class numbers with a highest one, (shape, high); the last is the targets'."""
    def add(make):
        CASES[name or make.__name__] = (make, shapes, loss or nn.CrossEntropyLoss(), rule or (lambda parameters: torch.optim.SGD(parameters, 0.05, momentum=0.9)), batch, mode)
        return make
    return add


def arrays(shapes, batch, random):
    """Arrays of a batch. A shape is (sizes), whose numbers are normal, or (sizes, high): whole numbers below high; a string names it."""
    def one(shape):
        if isinstance(shape, dict):
            return {name: one(part) for name, part in shape.items()}
        if len(shape) == 2 and isinstance(shape[0], tuple):
            sizes, high = shape
            if high == "probability":
                return torch.rand(batch, *sizes, generator=random)
            return torch.randint(0, high, (batch, *sizes), generator=random)
        return torch.randn(batch, *shape, generator=random)
    return [one(shape) for shape in shapes]


def adamw(parameters):
    return torch.optim.AdamW(parameters, 1e-3)


class Lambda(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


# ---------------------------------------------------------------------------------------------------- own modules ----

@case((12,), ((), 5))
def mlp():
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 5))


@case((1, 28, 28), ((), 10))
def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 10))


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if stride > 1 else None

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


@case((3, 16, 16), ((), 10))
def resnet():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), Block(8, 8, 1), Block(8, 16, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(16, 10))


@case((3, 16, 16), ((), 10))
def mobilenet():
    def block(channels, out, stride):
        return nn.Sequential(nn.Conv2d(channels, channels * 2, 1, bias=False), nn.BatchNorm2d(channels * 2), nn.ReLU6(inplace=True),
                             nn.Conv2d(channels * 2, channels * 2, 3, stride, 1, groups=channels * 2, bias=False), nn.BatchNorm2d(channels * 2), nn.Hardswish(),
                             nn.Conv2d(channels * 2, out, 1, bias=False), nn.BatchNorm2d(out))
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.Hardswish(), block(8, 8, 1), block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.up1, self.up2 = nn.ConvTranspose2d(16, 16, 2, 2), nn.Upsample(scale_factor=2, mode="bilinear")
        self.d, self.e, self.out = nn.Conv2d(32, 16, 3, padding=1), nn.Conv2d(24, 8, 3, padding=1), nn.Conv2d(8, 3, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        a = torch.relu(self.a(x))
        b = torch.relu(self.b(self.pool(a)))
        c = torch.relu(self.c(self.pool(b)))
        d = torch.relu(self.d(torch.cat([self.up1(c), b], 1)))
        return self.out(torch.relu(self.e(torch.cat([self.up2(d), a], 1))))


@case((1, 16, 16), ((16, 16), 3))
def unet():
    return UNet()


@case((20,), (20,), loss=nn.MSELoss(), rule=lambda parameters: torch.optim.Adam(parameters, 1e-3))
def autoencoder():
    return nn.Sequential(nn.Linear(20, 8), nn.Sigmoid(), nn.Linear(8, 4), nn.SiLU(), nn.Linear(4, 20))


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.embed = nn.Embedding(30, 12)
        self.cells = kind(12, 10, batch_first=True, **options)
        self.fc = nn.Linear(10 * (2 if options.get("bidirectional") else 1), 4)

    def forward(self, ids):
        return self.fc(self.cells(self.embed(ids))[0][:, -1])


@case(((7,), 30), ((), 4))
def lstm_classifier():
    return Recurrent(nn.LSTM, num_layers=2)


@case(((7,), 30), ((), 4), rule=adamw)
def bidirectional_lstm():
    return Recurrent(nn.LSTM, bidirectional=True)


@case(((7,), 30), ((), 4))
def gru_classifier():
    return Recurrent(nn.GRU)


class LastState(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.fc = nn.LSTM(5, 8, num_layers=2), nn.Linear(8, 2)

    def forward(self, x):
        _, (h, _) = self.cells(x.transpose(0, 1))
        return self.fc(h[-1])


@case((6, 5), ((), 2))
def lstm_last_state():
    return LastState()


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(batch, length, width))


class GPT(nn.Module):
    def __init__(self, vocabulary=40, width=16, longest=10):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(nn.ModuleDict({"norm1": nn.LayerNorm(width), "attention": Attention(width, 4), "norm2": nn.LayerNorm(width),
                                                   "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))}) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = x + block["attention"](block["norm1"](x))
            x = x + block["mlp"](block["norm2"](x))
        return self.head(self.norm(x))


def language(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


@case(((10,), 40), ((10,), 40), loss=language, rule=adamw)
def tied_gpt():
    return GPT()


class ViT(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, width) * 0.02), nn.Parameter(torch.randn(1, 17, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 32, dropout=0.0, batch_first=True, norm_first=True, activation="gelu")
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.encoder(x)[:, 0])


@case((3, 16, 16), ((), 10))
def vit():
    return ViT()


@case((6, 16), ((6, 16)), loss=nn.MSELoss())
def transformer_encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 8))

    def forward(self, a, b):
        both = functional.normalize(self.body(torch.cat([a, b], 0)), dim=1)
        return (both[:a.shape[0]] * both[a.shape[0]:]).sum(1)


@case((1, 10, 10), (1, 10, 10), ((), "probability"), loss=nn.MSELoss())
def siamese():
    return Siamese()


class Dictionary(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.kind, self.size = nn.Linear(6, 12), nn.Linear(12, 3), nn.Linear(12, 1)

    def forward(self, x, y):
        h = torch.tanh(self.body(x) + y)
        return {"kind": self.kind(h), "size": self.size(h).squeeze(-1)}


def two_losses(outputs, targets):
    return functional.cross_entropy(outputs["kind"], targets["kind"], label_smoothing=0.1) + 0.5 * functional.smooth_l1_loss(outputs["size"], targets["size"], beta=0.5)


@case({"x": (6,), "y": (12,)}, {"kind": ((), 3), "size": ()}, loss=two_losses)
def dictionaries():
    return Dictionary()


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.fc = nn.Embedding(50, 8, padding_idx=0), nn.Linear(8, 3)

    def forward(self, ids):
        seen = (ids != 0).unsqueeze(-1).float()
        return self.fc((self.embed(ids) * seen).sum(1) / seen.sum(1).clamp(min=1))


@case(((9,), 50), ((), 3), rule=lambda parameters: torch.optim.Adagrad(parameters, 0.05))
def bag_of_words():
    return Words()


@case((4, 20), ((), 3), rule=lambda parameters: torch.optim.RMSprop(parameters, 1e-3, momentum=0.5))
def conv1d():
    return nn.Sequential(nn.Conv1d(4, 8, 3, padding="same", bias=False), nn.BatchNorm1d(8), nn.LeakyReLU(0.1), nn.MaxPool1d(2), nn.Conv1d(8, 8, 3, dilation=2), nn.ELU(),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 3))


@case((2, 6, 8, 8), ((), 3))
def conv3d():
    return nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten(), nn.Linear(4 * 3 * 16, 3))


@case((8, 6, 6), (8, 12, 12), loss=nn.L1Loss(), rule=lambda parameters: torch.optim.NAdam(parameters, 1e-3))
def norms_and_shuffles():
    return nn.Sequential(nn.Conv2d(8, 32, 3, padding=1, padding_mode="reflect", bias=False), nn.InstanceNorm2d(32, affine=True), nn.Mish(), nn.PixelShuffle(2),
                         nn.GroupNorm(2, 8), nn.PReLU(8), nn.Conv2d(8, 8, 1), Lambda(lambda x: x * x.softmax(1) + x.std((2, 3), keepdim=True)))


@case((10,), ((1,), "probability"), loss=nn.BCEWithLogitsLoss())
def binary():
    return nn.Sequential(nn.Linear(10, 8), nn.Softplus(), nn.LayerNorm(8), nn.Linear(8, 1))


def contrastive(embeddings, targets):
    return ((embeddings - targets).pow(2).sum(-1) + 1e-3 * embeddings.abs().mean(-1)).sqrt().mean()


@case((8,), (4,), loss=contrastive)
def loss_of_ones_own():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.branches, self.out = nn.Linear(8, 3), nn.ModuleList(nn.Linear(8, 6) for _ in range(3)), nn.Linear(6, 2)

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        return self.out((torch.stack([branch(x) for branch in self.branches], 1) * weights.unsqueeze(-1)).sum(1))


@case((8,), ((), 2))
def mixture_of_experts():
    return Experts()


@case((5, 7, 12), ((), 4), name="time_distributed")
def time_distributed():
    """Frames of a film are samples of the convolution."""
    class Film(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.cells, self.fc = nn.Conv1d(7, 6, 3), nn.GRU(6, 8, batch_first=True), nn.Linear(8, 4)

        def forward(self, x):
            frames = self.conv(x.reshape(-1, 7, 12)).mean(-1)
            return self.fc(self.cells(frames.view(x.shape[0], 5, 6))[0].mean(1))
    return Film()


# ----------------------------------------------------------------------------------------- timm and transformers ----

def of_timm(name, size=64, **options):
    """With small steps: at large ones, networks with batch normalisation double any difference in each step, also PyTorch's own."""
    def make():
        import timm
        return timm.create_model(name, num_classes=10, **options)
    case((3, size, size), ((), 10), name=f"timm {name}", rule=lambda parameters: torch.optim.SGD(parameters, 1e-3, momentum=0.9))(make)


def of_transformers(name, make, *shapes, loss):
    case(*shapes, loss=loss, name=f"transformers {name}", batch=3)(make)


for model in ("resnet18", "mobilenetv3_small_050", "ghostnet_050", "regnetx_002", "convnext_atto"):
    of_timm(model)
of_timm("swin_tiny_patch4_window7_224", img_size=64, window_size=4, drop_path_rate=0.0, embed_dim=16, depths=(2, 2), num_heads=(2, 2))
of_timm("poolformer_s12", drop_path_rate=0.0)
for model in ("vit_tiny_patch16_224", "mixer_s32_224", "resmlp_12_224", "gmlp_ti16_224", "xcit_nano_12_p16_224"):
    of_timm(model, img_size=64)


def logits_of(outputs, targets):
    return functional.cross_entropy(outputs.logits.flatten(0, -2), targets.flatten())


def states_of(outputs, targets):
    return functional.mse_loss(outputs.last_hidden_state, targets)


def tiny(kind, config, **options):
    def make():
        import transformers
        made = getattr(transformers, config)(**options)
        return getattr(transformers, kind)(made)
    return make


SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 16}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
IDS = {"input_ids": ((8,), 50)}
of_transformers("bert", tiny("BertForMaskedLM", "BertConfig", **SMALL, **NO_DROPOUT), IDS, ((8,), 50), loss=logits_of)
of_transformers("distilbert", tiny("DistilBertForMaskedLM", "DistilBertConfig", vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=24, max_position_embeddings=16, dropout=0.0,
                                   attention_dropout=0.0), IDS, ((8,), 50), loss=logits_of)
of_transformers("gpt2", tiny("GPT2LMHeadModel", "GPT2Config", vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                             use_cache=False), IDS, ((8,), 50), loss=logits_of)
of_transformers("llama", tiny("LlamaForCausalLM", "LlamaConfig", **SMALL, num_key_value_heads=1, use_cache=False), IDS, ((8,), 50), loss=logits_of)
of_transformers("t5 encoder", tiny("T5EncoderModel", "T5Config", vocab_size=50, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, dropout_rate=0.0), IDS, (8, 16), loss=states_of)
of_transformers("vit", tiny("ViTForImageClassification", "ViTConfig", hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, image_size=16, patch_size=4,
                            num_labels=5, **NO_DROPOUT), {"pixel_values": (3, 16, 16)}, ((), 5), loss=logits_of)


# ----------------------------------------------------------------------------------------------------- comparison ----

def by_pytorch(module, loss, rule, steps, threads):
    torch.set_num_threads(threads)
    optimizer, losses = rule(module.parameters()), []
    for *x, y in steps:
        optimizer.zero_grad()
        out = module(**x[0]) if isinstance(x[0], dict) else module(*x)
        value = loss(out, y)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    torch.set_num_threads(1)
    return losses, {name: array.detach().clone() for name, array in module.state_dict().items()}


def by_tutti(module, loss, rule, steps):
    trainer = Trainer(module, loss, rule(module.parameters()))
    losses = [trainer.step(x[0] if len(x) == 1 else tuple(x), y) for *x, y in steps]
    return losses, {name: array.detach().clone() for name, array in module.state_dict().items()}


def distance(one, other):
    """(largest distance, its name), losses first."""
    found = [(abs(a - b) / max(abs(b), 1e-12), f"loss {step}") for step, (a, b) in enumerate(zip(one[0], other[0]))]
    for name, b in other[1].items():
        a, b = one[1][name].double(), b.double()
        if b.numel():
            found.append(((a - b).abs().max().item() / max(b.abs().max().item(), 0.01), name))
    return max(found, key=lambda one: one[0] if one[0] == one[0] else float("inf"))


def run(name, steps=5):
    make, shapes, loss, rule, batch, mode = CASES[name]
    torch.manual_seed(1)
    module = make().train()
    random = torch.Generator().manual_seed(2)
    data = [arrays(shapes, batch, random) for _ in range(steps)]
    one = by_pytorch(copy.deepcopy(module), loss, rule, data, 1)
    two = by_pytorch(copy.deepcopy(module), loss, rule, data, 2)
    threads = distance(two, one)[0]
    found, where = distance(by_tutti(module, loss, rule, data), one)
    return threads, found, where, found <= max(10 * threads, 1e-5), sum(one.numel() for one in module.parameters())


def main():
    warnings.simplefilter("ignore")
    markdown, names, failed = "--markdown" in sys.argv, [one for one in sys.argv[1:] if not one.startswith("-")] or list(CASES), 0
    for name in names:
        begun = time.monotonic()
        try:
            threads, found, where, good, count = run(name)
            text = f"{found:.1e} | {threads:.1e} | {'yes' if good else 'NO'}" if markdown else f"{found:.1e} of {threads:.1e} {'agrees' if good else 'DIFFERS at ' + where}, {count} parameters"
            failed += not good
        except Exception as failure:    # noqa: BLE001: a module that does not run is a line of the table
            text, failed = f"{type(failure).__name__}: {failure}", failed + 1
            text = "refused: " + text.splitlines()[-1].strip() if markdown else text
        print(f"| {name} | {text} |" if markdown else f"{name}: {text} ({time.monotonic() - begun:.1f} s)", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    numpy.seterr(all="ignore")
    main()
