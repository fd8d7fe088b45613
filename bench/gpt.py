"""nanoGPT's network in PyTorch, with its names of parameters and initial values: for language.py and module.py."""
import math

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads, layers, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.ln_1, self.ln_2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width, bias=False), "c_proj": nn.Linear(width, width, bias=False)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width, bias=False), "c_proj": nn.Linear(4 * width, width, bias=False)})
        for layer in (self.attn["c_attn"], self.mlp["c_fc"]):
            nn.init.normal_(layer.weight, std=0.02)
        for layer in (self.attn["c_proj"], self.mlp["c_proj"]):
            nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * layers))

    def drop(self, x):
        return functional.dropout(x, self.dropout, self.training) if self.dropout else x

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.attn["c_attn"](self.ln_1(x)).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True)
        x = x + self.drop(self.attn["c_proj"](y.transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop(self.mlp["c_proj"](functional.gelu(self.mlp["c_fc"](self.ln_2(x)))))


class GPT(nn.Module):
    """ids [samples, length] -> logits of each next token [samples, length, vocabulary]."""
    def __init__(self, vocabulary=65, length=256, layers=6, heads=6, width=384, dropout=0.0):
        super().__init__()
        self.dropout = dropout
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, width), "wpe": nn.Embedding(length, width),
            "h": nn.ModuleList(Block(width, heads, layers, dropout) for _ in range(layers)), "ln_f": nn.LayerNorm(width, bias=False)})
        for table in ("wte", "wpe"):
            nn.init.normal_(self.transformer[table].weight, std=0.02)

    def forward(self, ids):
        parts = self.transformer
        x = parts["wte"](ids) + parts["wpe"].weight[:ids.shape[1]]
        if self.dropout:
            x = functional.dropout(x, self.dropout, self.training)
        for block in parts["h"]:
            x = block(x)
        return functional.linear(parts["ln_f"](x), parts["wte"].weight)


def token_loss(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def decayed(module):
    """Groups of parameters for AdamW: matrices decay, others do not."""
    return [{"params": [p for p in module.parameters() if p.dim() >= 2]},
            {"params": [p for p in module.parameters() if p.dim() < 2], "weight_decay": 0.0}]
