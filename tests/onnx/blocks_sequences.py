"""Kinds of blocks for differential.py: sequences, lines, volumes and ids."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

from blocks import Apply, With, block, convolved, same, weight


def heads_of(width):
    return 2 if width % 2 == 0 else 1


# -------------------------------------------------------------------------------------------------------- sequences

@block("sequence")
def token_linear(r, s):
    out = r.choice((4, 6))
    return nn.Linear(s[1], out, bias=r.random() < 0.6), ("sequence", (s[0], out))


@block("sequence")
def token_mlp(r, s):
    return With(lambda m, x: x + m.net(m.norm(x)), norm=nn.LayerNorm(s[1]), net=nn.Sequential(nn.Linear(s[1], 8), nn.GELU(), nn.Linear(8, s[1]))), ("sequence", s)


@block("sequence")
def swiglu(r, s):
    return With(lambda m, x: m.down(F.silu(m.gate(x)) * m.up(x)), gate=nn.Linear(s[1], 6, bias=False), up=nn.Linear(s[1], 6, bias=False), down=nn.Linear(6, s[1], bias=False)), ("sequence", s)


@block("sequence")
def layer_norm(r, s):
    return nn.LayerNorm(s[1], elementwise_affine=r.random() < 0.7, bias=r.random() < 0.7), ("sequence", s)


@block("sequence")
def rms_norm(r, s):
    return r.choice((nn.RMSNorm(s[1]), With(lambda m, x: m.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5), weight=weight(s[1])))), ("sequence", s)


@block("sequence")
def multihead(r, s):
    attention = nn.MultiheadAttention(s[1], heads_of(s[1]), batch_first=True, bias=r.random() < 0.7)
    return With(lambda m, x: m.attention(x, x, x, need_weights=False)[0], attention=attention), ("sequence", s)


@block("sequence")
def multihead_second(r, s):
    """The batch is the second axis inside."""
    attention = nn.MultiheadAttention(s[1], heads_of(s[1]))
    return With(lambda m, x: m.attention(x.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1))[0].transpose(0, 1), attention=attention), ("sequence", s)


@block("sequence")
def encoder_layer(r, s):
    layer = nn.TransformerEncoderLayer(s[1], heads_of(s[1]), 8, 0.0, batch_first=True, norm_first=r.random() < 0.5, activation=r.choice(("relu", "gelu")))
    return With(lambda m, x: m.layer(x), layer=layer), ("sequence", s)


@block("sequence")
def encoder(r, s):
    layer = nn.TransformerEncoderLayer(s[1], heads_of(s[1]), 6, 0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), ("sequence", s)


@block("sequence")
def decoder_layer(r, s):
    layer = nn.TransformerDecoderLayer(s[1], heads_of(s[1]), 6, 0.0, batch_first=True)
    return With(lambda m, x: m.layer(x, x.flip(1)), layer=layer), ("sequence", s)


@block("sequence")
def deep_copies(r, s):
    one = nn.Sequential(nn.LayerNorm(s[1]), nn.Linear(s[1], s[1]), nn.Tanh())
    return nn.Sequential(one, copy.deepcopy(one), copy.deepcopy(one)), ("sequence", s)


def attention_of(m, x, mask=None, causal=False):
    b, t, c = x.shape
    heads = heads_of(c)
    q, k, v = m.qkv(x).view(b, t, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
    return m.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal).transpose(1, 2).reshape(b, t, c))


@block("sequence")
def attention_causal(r, s):
    return With(lambda m, x: attention_of(m, x, causal=True), qkv=nn.Linear(s[1], 3 * s[1]), out=nn.Linear(s[1], s[1])), ("sequence", s)


@block("sequence")
def attention_plain(r, s):
    return With(lambda m, x: attention_of(m, x), qkv=nn.Linear(s[1], 3 * s[1], bias=False), out=nn.Linear(s[1], s[1])), ("sequence", s)


@block("sequence")
def attention_bias(r, s):
    return With(lambda m, x: attention_of(m, x, m.bias), qkv=nn.Linear(s[1], 3 * s[1]), out=nn.Linear(s[1], s[1]), bias=weight(1, heads_of(s[1]), s[0], s[0])), ("sequence", s)


@block("sequence")
def attention_by_hand(r, s):
    def run(m, x):
        b, t, c = x.shape
        q, k, v = m.q(x), m.k(x), m.v(x)
        scores = q @ k.transpose(-2, -1) / math.sqrt(c)
        scores = scores.masked_fill(torch.triu(torch.ones(t, t, dtype=torch.bool), 1), float("-inf"))
        return scores.softmax(-1) @ v
    return With(run, q=nn.Linear(s[1], s[1], bias=False), k=nn.Linear(s[1], s[1], bias=False), v=nn.Linear(s[1], s[1], bias=False)), ("sequence", s)


@block("sequence")
def attention_buffer_mask(r, s):
    mask = torch.tril(torch.ones(s[0], s[0])).view(1, s[0], s[0])

    def run(m, x):
        scores = m.q(x) @ m.k(x).transpose(1, 2)
        return scores.masked_fill(m.mask[:, :x.size(1), :x.size(1)] == 0, -1e9).softmax(-1) @ x
    return With(run, q=nn.Linear(s[1], 4), k=nn.Linear(s[1], 4), mask=mask), ("sequence", s)


@block("sequence")
def relative_positions(r, s):
    def run(m, x):
        t = x.shape[1]
        distance = torch.arange(t)[None] - torch.arange(t)[:, None]
        bias = m.table(distance.clamp(-2, 2) + 2).squeeze(-1)
        return (m.q(x) @ x.transpose(1, 2) + bias).softmax(-1) @ x
    return With(run, q=nn.Linear(s[1], s[1]), table=nn.Embedding(5, 1)), ("sequence", s)


@block("sequence")
def t5_buckets(r, s):
    def run(m, x):
        t = x.shape[1]
        distance = (torch.arange(t)[:, None] - torch.arange(t)[None]).abs()
        large = 2 + (torch.log(distance.float().clamp(min=1) / 2) / math.log(8 / 2) * 2).long()
        bucket = torch.where(distance < 2, distance, torch.min(large, torch.full_like(large, 3)))
        bias = m.table(bucket).permute(2, 0, 1).mean(0)
        return (x @ x.transpose(1, 2) * 0.3 + bias).softmax(-1) @ m.v(x)
    return With(run, v=nn.Linear(s[1], s[1], bias=False), table=nn.Embedding(4, 2)), ("sequence", s)


@block("sequence")
def rotary(r, s):
    if s[1] % 2:
        return None

    def run(m, x):
        t, c = x.shape[1], x.shape[2]
        frequencies = 1 / 100 ** (torch.arange(0, c, 2).float() / c)
        angles = torch.outer(torch.arange(t).float(), frequencies)
        cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
        a, b = x.chunk(2, -1)
        q = x * cos + torch.cat([-b, a], -1) * sin
        return (q @ m.k(x).transpose(1, 2)).softmax(-1) @ x
    return With(run, k=nn.Linear(s[1], s[1], bias=False)), ("sequence", s)


@block("sequence")
def rotary_buffer(r, s):
    if s[1] % 2:
        return None
    angles = torch.outer(torch.arange(8).float(), 1 / 50 ** (torch.arange(0, s[1], 2).float() / s[1]))

    def run(m, x):
        t = x.shape[1]
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack([even * m.cos[:t] - odd * m.sin[:t], even * m.sin[:t] + odd * m.cos[:t]], -1).flatten(-2)
    return (With(run, cos=angles.cos(), sin=angles.sin()), ("sequence", s)) if s[0] <= 8 else None


@block("sequence")
def sinusoidal(r, s):
    if s[1] % 2:
        return None
    position = torch.arange(s[0]).unsqueeze(1)
    table = torch.zeros(1, s[0], s[1])
    rate = torch.exp(torch.arange(0, s[1], 2) * (-math.log(100.0) / s[1]))
    table[0, :, 0::2], table[0, :, 1::2] = torch.sin(position * rate), torch.cos(position * rate)
    return With(lambda m, x: x + m.table[:, :x.size(1)], table=table), ("sequence", s)


@block("sequence")
def learned_positions(r, s):
    return r.choice((With(lambda m, x: x + m.positions, positions=weight(1, *s)), With(lambda m, x: x + m.table(torch.arange(x.shape[1])), table=nn.Embedding(s[0], s[1])))), ("sequence", s)


@block("sequence")
def class_token(r, s):
    return With(lambda m, x: torch.cat([m.token.expand(x.shape[0], -1, -1), x], 1), token=weight(1, 1, s[1])), ("sequence", (s[0] + 1, s[1]))


@block("sequence")
def class_token_repeat(r, s):
    return With(lambda m, x: torch.cat([m.token.repeat(x.shape[0], 1, 1), x], 1), token=weight(1, 1, s[1])), ("sequence", (s[0] + 1, s[1]))


@block("sequence")
def cross_queries(r, s):
    def run(m, x):
        q = m.queries.unsqueeze(0).expand(x.shape[0], -1, -1)
        return (q @ m.k(x).transpose(1, 2)).softmax(-1) @ x
    return With(run, queries=weight(3, s[1]), k=nn.Linear(s[1], s[1])), ("sequence", (3, s[1]))


@block("sequence")
def masked_mean(r, s):
    def run(x):
        mask = (x[..., 0] > -0.5).long()
        return (x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
    return Apply(run), ("vector", (s[1],))


@block("sequence")
def masked_mean_float(r, s):
    def run(x):
        mask = (x[..., 0] > 0).unsqueeze(-1).expand(x.size()).float()
        return torch.sum(x * mask, 1) / torch.clamp(mask.sum(1), min=1e-1)
    return Apply(run), ("vector", (s[1],))


@block("sequence")
def attention_pool(r, s):
    return With(lambda m, x: (m.score(x).softmax(1) * x).sum(1), score=nn.Linear(s[1], 1)), ("vector", (s[1],))


@block("sequence")
def first_token(r, s):
    return Apply(r.choice((lambda x: x[:, 0], lambda x: x[:, -1], lambda x: x.select(1, 0)))), ("vector", (s[1],))


@block("sequence")
def mean_tokens(r, s):
    return Apply(r.choice((lambda x: x.mean(1), lambda x: x.max(1).values, lambda x: x.sum(dim=1) / x.shape[1], lambda x: torch.logsumexp(x, 1)))), ("vector", (s[1],))


@block("sequence")
def statistics_pool(r, s):
    return Apply(lambda x: torch.cat([x.mean(1), (x.var(1, unbiased=False) + 1e-2).sqrt()], -1)), ("vector", (2 * s[1],))


@block("sequence")
def flatten_sequence(r, s):
    return Apply(lambda x: x.reshape(x.size(0), -1)), ("vector", (s[0] * s[1],)) if s[0] * s[1] <= 60 else None


@block("sequence")
def mixer(r, s):
    def run(m, x):
        x = x + m.tokens(m.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + m.channels(m.norm2(x))
    return With(run, norm1=nn.LayerNorm(s[1]), norm2=nn.LayerNorm(s[1]), tokens=nn.Sequential(nn.Linear(s[0], 4), nn.GELU(), nn.Linear(4, s[0])), channels=nn.Linear(s[1], s[1])), ("sequence", s)


@block("sequence")
def lstm(r, s):
    both = r.random() < 0.4
    layer = nn.LSTM(s[1], 3, r.choice((1, 1, 2)), batch_first=True, bidirectional=both, bias=r.random() < 0.8)
    return With(lambda m, x: m.layer(x)[0], layer=layer), ("sequence", (s[0], 6 if both else 3))


@block("sequence")
def gru(r, s):
    both = r.random() < 0.4
    layer = nn.GRU(s[1], 3, r.choice((1, 1, 2)), batch_first=True, bidirectional=both)
    return With(lambda m, x: m.layer(x)[0], layer=layer), ("sequence", (s[0], 6 if both else 3))


@block("sequence")
def rnn(r, s):
    return With(lambda m, x: m.layer(x)[0], layer=nn.RNN(s[1], 4, batch_first=True, nonlinearity=r.choice(("tanh", "relu")))), ("sequence", (s[0], 4))


@block("sequence")
def lstm_last(r, s):
    return With(lambda m, x: m.layer(x)[1][0][-1], layer=nn.LSTM(s[1], 4, batch_first=True)), ("vector", (4,))


@block("sequence")
def gru_second(r, s):
    return With(lambda m, x: m.layer(x.transpose(0, 1))[0].transpose(0, 1), layer=nn.GRU(s[1], 4)), ("sequence", (s[0], 4))


@block("sequence")
def lstm_zeros(r, s):
    def run(m, x):
        zeros = torch.zeros(1, x.shape[0], 3)
        return m.layer(x, (zeros, zeros))[0]
    return With(run, layer=nn.LSTM(s[1], 3, batch_first=True)), ("sequence", (s[0], 3))


@block("sequence")
def lstm_learned(r, s):
    def run(m, x):
        return m.layer(x, m.start.expand(-1, x.shape[0], -1).contiguous())[0]
    return With(run, layer=nn.GRU(s[1], 3, batch_first=True), start=weight(1, 1, 3)), ("sequence", (s[0], 3))


@block("sequence")
def gru_cell(r, s):
    def run(m, x):
        h = torch.zeros(x.shape[0], 3)
        for t in range(3):
            h = m.cell(x[:, t % s[0]], h)
        return h
    return With(run, cell=nn.GRUCell(s[1], 3)), ("vector", (3,))


@block("sequence")
def lstm_cell(r, s):
    def run(m, x):
        h, c = x.new_zeros(x.size(0), 3), x.new_zeros(x.size(0), 3)
        for t in range(2):
            h, c = m.cell(x[:, t % s[0]], (h, c))
        return h
    return With(run, cell=nn.LSTMCell(s[1], 3)), ("vector", (3,))


@block("sequence")
def batchnorm_tokens(r, s):
    return With(lambda m, x: m.norm(x.transpose(1, 2)).transpose(1, 2), norm=nn.BatchNorm1d(s[1])), ("sequence", s)


@block("sequence")
def batchnorm_rows(r, s):
    return With(lambda m, x: m.norm(x.flatten(0, 1)).view(x.shape), norm=nn.BatchNorm1d(s[1])), ("sequence", s)


@block("sequence")
def rows_linear(r, s):
    return With(lambda m, x: m.layer(x.reshape(-1, s[1])).reshape(-1, s[0], 4), layer=nn.Linear(s[1], 4)), ("sequence", (s[0], 4))


@block("sequence")
def similarity(r, s):
    return Apply(lambda x: F.cosine_similarity(x[:, :, None], x[:, None], dim=-1)), ("sequence", (s[0], s[0]))


@block("sequence")
def gated_shift(r, s):
    return same("sequence", s, lambda x: 0.5 * x + 0.5 * F.pad(x, (0, 0, 1, 0))[:, :-1])


@block("sequence")
def einsum_heads(r, s):
    return With(lambda m, x: torch.einsum("btc,hcd->bthd", x, m.weight).flatten(2), weight=weight(2, s[1], 3)), ("sequence", (s[0], 6))


@block("sequence")
def einsum_pairs(r, s):
    return same("sequence", (s[0], s[0]), lambda x: torch.einsum("bic,bjc->bij", x, x) * 0.3)


@block("sequence")
def gathered_tokens(r, s):
    def run(x):
        best = x.sum(-1).topk(2, dim=1)[1]
        return torch.gather(x, 1, best.unsqueeze(-1).expand(-1, -1, x.size(-1)))
    return (Apply(run), ("sequence", (2, s[1]))) if s[0] >= 2 else None


@block("sequence")
def last_by_length(r, s):
    def run(x):
        last = (x[..., 0] > -3).sum(1) - 1
        return x[torch.arange(x.shape[0]), last]
    return Apply(run), ("vector", (s[1],))


@block("sequence")
def interpolated_line(r, s):
    return Apply(lambda x: F.interpolate(x.transpose(1, 2), scale_factor=2, mode="linear").transpose(1, 2)), ("sequence", (2 * s[0], s[1])) if s[0] < 8 else None


@block("sequence")
def sequence_line(r, s):
    return Apply(lambda x: x.transpose(1, 2).contiguous()), ("line", (s[1], s[0]))


@block("sequence")
def sequence_image(r, s):
    return Apply(lambda x: x.unsqueeze(1)), ("image", (1, *s))


@block("sequence")
def distance_decay(r, s):
    slopes = torch.tensor([0.5])

    def run(m, x):
        t = x.size(1)
        bias = -m.slopes * (torch.arange(t)[None] - torch.arange(t)[:, None]).abs()
        return (x @ x.transpose(-1, -2) * 0.2 + bias).softmax(-1) @ x
    return With(run, slopes=slopes), ("sequence", s)


@block("sequence")
def linear_attention(r, s):
    def run(m, x):
        q, k = F.elu(m.q(x)) + 1, F.elu(m.k(x)) + 1
        state = torch.einsum("btd,bte->bde", k, x)
        return torch.einsum("btd,bde->bte", q, state) / torch.einsum("btd,bd->bt", q, k.sum(1)).unsqueeze(-1)
    return With(run, q=nn.Linear(s[1], 3), k=nn.Linear(s[1], 3)), ("sequence", s)


@block("sequence")
def group_queries(r, s):
    def run(m, x):
        b, t, _ = x.shape
        q = m.q(x).view(b, t, 2, 2).transpose(1, 2)
        k, v = m.k(x).view(b, t, 1, 2).transpose(1, 2), m.v(x).view(b, t, 1, 2).transpose(1, 2)
        k, v = k.repeat_interleave(2, 1), v[:, :, None].expand(b, 1, 2, t, 2).reshape(b, 2, t, 2)
        return m.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, 4))
    return With(run, q=nn.Linear(s[1], 4, bias=False), k=nn.Linear(s[1], 2, bias=False), v=nn.Linear(s[1], 2, bias=False), out=nn.Linear(4, s[1], bias=False)), ("sequence", s)


@block("sequence")
def scan(r, s):
    def run(m, x):
        a, state, states = m.decay.sigmoid(), torch.zeros_like(x[:, 0]), []
        for t in range(s[0]):
            state = a * state + (1 - a) * x[:, t]
            states.append(state)
        return torch.stack(states, 1)
    return (With(run, decay=weight(s[1])), ("sequence", s)) if s[0] <= 6 else None


# ------------------------------------------------------------------------------------------------------------ lines

@block("line")
def conv1d(r, s):
    out, kernel, stride = r.choice((3, 4)), r.choice((2, 3)), r.choice((1, 2))
    size = convolved(s[1], kernel, stride, 1)
    return (nn.Conv1d(s[0], out, kernel, stride, 1, bias=r.random() < 0.6), ("line", (out, size))) if size > 0 else None


@block("line")
def conv1d_causal(r, s):
    return With(lambda m, x: m.conv(F.pad(x, (2, 0))), conv=nn.Conv1d(s[0], 4, 3)), ("line", (4, s[1]))


@block("line")
def conv1d_norm(r, s):
    conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(s[0], 4, 3, padding=1))
    return conv, ("line", (4, s[1]))


@block("line")
def conv1d_transposed(r, s):
    return nn.ConvTranspose1d(s[0], 3, 4, 2, 1), ("line", (3, 2 * s[1])) if s[1] <= 8 else None


@block("line")
def conv1d_bn(r, s):
    return nn.Sequential(nn.Conv1d(s[0], 4, 3, padding=1), nn.BatchNorm1d(4), nn.PReLU(4)), ("line", (4, s[1]))


@block("line")
def instance_norm1d(r, s):
    return (nn.InstanceNorm1d(s[0], affine=r.random() < 0.5), ("line", s)) if s[1] > 1 else None


@block("line")
def group_norm1d(r, s):
    return nn.GroupNorm(heads_of(s[0]), s[0]), ("line", s)


@block("line")
def pool1d(r, s):
    pool = r.choice((nn.MaxPool1d(2), nn.AvgPool1d(2)))
    return (pool, ("line", (s[0], s[1] // 2))) if s[1] >= 2 else None


@block("line")
def wavenet(r, s):
    return With(lambda m, x: x + m.out(m.a(x).tanh() * m.b(x).sigmoid()), a=nn.Conv1d(s[0], 3, 3, padding=2, dilation=2), b=nn.Conv1d(s[0], 3, 3, padding=2, dilation=2), out=nn.Conv1d(3, s[0], 1)), ("line", s)


@block("line")
def snake(r, s):
    return With(lambda m, x: x + torch.sin(m.alpha * x) ** 2 / (m.alpha + 1e-2), alpha=nn.Parameter(torch.rand(1, s[0], 1) + 0.5)), ("line", s)


@block("line")
def mean_line(r, s):
    return nn.Sequential(nn.AdaptiveAvgPool1d(1), nn.Flatten()), ("vector", (s[0],))


@block("line")
def line_sequence(r, s):
    return Apply(lambda x: x.permute(0, 2, 1)), ("sequence", (s[1], s[0]))


@block("line")
def upsample_line(r, s):
    return nn.Upsample(scale_factor=2, mode=r.choice(("nearest", "linear"))), ("line", (s[0], 2 * s[1])) if s[1] <= 8 else None


# ---------------------------------------------------------------------------------------------------------- volumes

@block("volume")
def conv3d(r, s):
    return nn.Conv3d(s[0], 3, (1, 3, 3), padding=(0, 1, 1)), ("volume", (3, *s[1:]))


@block("volume")
def batchnorm3d(r, s):
    return nn.BatchNorm3d(s[0]), ("volume", s)


@block("volume")
def pool3d(r, s):
    if min(s[1:]) < 2:
        return None
    return r.choice((nn.MaxPool3d(2), nn.AvgPool3d(2))), ("volume", (s[0], *(n // 2 for n in s[1:])))


@block("volume")
def volume_image(r, s):
    return Apply(r.choice((lambda x: x.mean(2), lambda x: x[:, :, 0], lambda x: x.amax(2)))), ("image", (s[0], *s[2:]))


@block("volume")
def volume_joined(r, s):
    """Frames joined with the batch."""
    def run(m, x):
        b, c, d, h, w = x.shape
        y = m.conv(x.transpose(1, 2).reshape(b * d, c, h, w))
        return y.view(b, d, 3, h, w).transpose(1, 2)
    return With(run, conv=nn.Conv2d(s[0], 3, 3, padding=1)), ("volume", (3, *s[1:]))


# -------------------------------------------------------------------------------------------------------------- ids

@block("ids")
def embedding(r, s):
    return nn.Embedding(11, 4), ("sequence", (s[0], 4))


@block("ids")
def embedding_positions(r, s):
    return With(lambda m, x: m.words(x) + m.positions(torch.arange(x.shape[1]).unsqueeze(0)), words=nn.Embedding(11, 4), positions=nn.Embedding(s[0], 4)), ("sequence", (s[0], 4))


@block("ids")
def embedding_masked(r, s):
    def run(m, x):
        mask = (x != 0)
        h = m.words(x)
        scores = (h @ h.transpose(1, 2)).masked_fill(~mask[:, None, :], -1e4)
        h = scores.softmax(-1) @ h
        return (h * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
    return With(run, words=nn.Embedding(11, 4)), ("vector", (4,))


@block("ids")
def embedding_tied(r, s):
    """A language model's head with the table of its words."""
    way = r.randrange(3)

    def run(m, x):
        h = m.layer(m.words(x)).tanh()
        return (F.linear(h, m.words.weight), h @ m.words.weight.t(), torch.matmul(h, m.words.weight.transpose(0, 1)))[way]
    return With(run, words=nn.Embedding(7, 4), layer=nn.Linear(4, 4)), ("sequence", (s[0], 7))


@block("ids")
def embedding_head(r, s):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.layer, self.head = nn.Embedding(7, 4), nn.Linear(4, 4), nn.Linear(4, 7, bias=False)
            self.head.weight = self.wte.weight

        def forward(self, x):
            return self.head(self.layer(self.wte(x)).tanh())
    return Model(), ("sequence", (s[0], 7))


@block("ids")
def one_hot(r, s):
    return With(lambda m, x: m.layer(F.one_hot(x, 11).float()), layer=nn.Linear(11, 4)), ("sequence", (s[0], 4))


@block("ids")
def ids_cast(r, s):
    return With(lambda m, x: m.layer((x.abs().float() / 3 + (x == 2).float()).unsqueeze(-1)), layer=nn.Linear(1, 4)), ("sequence", (s[0], 4))


@block("ids")
def ids_buckets(r, s):
    return With(lambda m, x: m.table((x * 7 + 3) % 5) + m.words(x // 2), table=nn.Embedding(5, 4), words=nn.Embedding(6, 4)), ("sequence", (s[0], 4))
