"""Kinds of blocks for differential.py: the register, and blocks of vectors and images. A block is a function of a random.Random
and the shape of a sample; it returns a module and the kind and shape of what the module makes, or None where the shape is too
small. Kinds of samples: vector [F], sequence [T, C], line [C, L], image [C, H, W], volume [C, D, H, W], ids [T]."""
import torch
from torch import nn
from torch.nn import functional as F

BLOCKS = {}  # by name: the kind of samples that the block takes, and the function


def block(kind):
    def register(function):
        BLOCKS[function.__name__] = (kind, function)
        return function
    return register


class Apply(nn.Module):
    """A function of a tensor."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class With(nn.Module):
    """A function of its own module (self) and a tensor; keywords are submodules, parameters and buffers."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, (nn.Module, nn.Parameter)):
                setattr(self, name, part)
            else:
                self.register_buffer(name, part)

    def forward(self, x):
        return self.function(self, x)


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


class Nested(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return self.body(x) * 1.0


class Listed(nn.Module):
    """The list is not called: no scope of TorchScript has its name."""

    def __init__(self, parts):
        super().__init__()
        self.layers = nn.ModuleList(parts)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class BatchRows(nn.Module):
    """A parameter of a row for each sample, or of one row; its rows are equal unless they are disturbed."""

    def __init__(self, function, own, number, shape):
        super().__init__()
        self.function, self.own, self.number, self.shape = function, own, number, shape

    def make_rows(self, samples):
        self.rows = nn.Parameter(torch.full((samples if self.own else 1, *self.shape), float(self.number)))

    def forward(self, x):
        return self.function(x, self.rows if self.own else self.rows.expand(x.shape[0], *self.shape))


def weight(*shape):
    return nn.Parameter(torch.randn(*shape) * 0.3)


def same(kind, shape, function):
    return (function if isinstance(function, nn.Module) else Apply(function)), (kind, shape)


def activations():
    """Functions of elements, for samples of any kind."""
    return {
        "relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "mish": F.mish, "elu": F.elu,
        "selu": F.selu, "celu": lambda x: F.celu(x, 0.7), "leaky": lambda x: F.leaky_relu(x, 0.2), "hardswish": F.hardswish,
        "hardsigmoid": F.hardsigmoid, "hardtanh": F.hardtanh, "relu6": F.relu6, "softplus": F.softplus, "softsign": F.softsign,
        "tanhshrink": F.tanhshrink, "hardshrink": lambda x: F.hardshrink(x, 0.3), "softshrink": lambda x: F.softshrink(x, 0.3),
        "sigmoid": torch.sigmoid, "tanh": torch.tanh, "logsigmoid": F.logsigmoid, "threshold": lambda x: F.threshold(x, 0.1, -0.5),
        "square": lambda x: x * x, "sqrt_abs": lambda x: (x.abs() + 0.5).sqrt(), "sin": torch.sin, "exp": lambda x: (0.3 * x).exp(),
        "log": lambda x: (x.abs() + 0.5).log(), "rsqrt": lambda x: (x * x + 0.5).rsqrt(), "clamp": lambda x: x.clamp(-0.7, 0.9),
        "clamp_min": lambda x: x.clamp(min=-0.2), "erf": torch.erf, "atan": torch.atan, "power": lambda x: (x.abs() + 0.3) ** 1.7,
        "reciprocal": lambda x: 1 / (x.abs() + 0.6), "where": lambda x: torch.where(x > 0.1, x * 2, x * 0.3),
        "maximum": lambda x: torch.maximum(x, 0.3 * x + 0.1), "expm1": lambda x: torch.expm1(0.4 * x), "log1p": lambda x: torch.log1p(x.abs()),
        "relu_squared": lambda x: F.relu(x) ** 2, "lerp": lambda x: torch.lerp(x, x.tanh(), 0.3), "masked": lambda x: x.masked_fill(x < -0.4, -0.4),
        "sign": lambda x: x * torch.sign(x + 0.2), "addcmul": lambda x: torch.addcmul(x, x, x.sigmoid(), value=0.5),
        "logit": lambda x: torch.logit(x.sigmoid() * 0.9 + 0.05), "truth": lambda x: x * (x > 0).float(), "round_part": lambda x: x - 0.1 * torch.round(x),
        "floor_div": lambda x: x + 0.1 * torch.div(x, 0.7, rounding_mode="floor"), "remainder": lambda x: torch.remainder(x, 1.3)}


def activation_block(name, function):
    def make(r, shape):
        return Apply(function), shape
    make.__name__ = f"act_{name}"
    BLOCKS[make.__name__] = ("any", make)


for _name, _function in activations().items():
    activation_block(_name, _function)


# ---------------------------------------------------------------------------------------------------------- vectors

@block("batch")
def batch_rows(r, s):
    uses = {"add": lambda x, p: x + p, "multiply": lambda x, p: x * p, "transpose": lambda x, p: (x.transpose(0, -1) - p.transpose(0, -1)).transpose(0, -1),
            "where": lambda x, p: torch.where(x > 0, x, x * p), "join": lambda x, p: torch.cat([x, p], 1)[:, 1:x.shape[1] + 1]}
    use = r.choice(sorted(uses))
    shape = s if use in ("join", "transpose") or r.random() < 0.6 else (1,) * len(s)
    return BatchRows(uses[use], r.random() < 0.7, r.choice((0, 1, 0.25)), shape), s


@block("vector")
def linear(r, s):
    out = r.choice((3, 5, 8))
    return nn.Linear(s[0], out, bias=r.random() < 0.7), ("vector", (out,))


@block("vector")
def mlp(r, s):
    hidden = r.choice((5, 8))
    return nn.Sequential(nn.Linear(s[0], hidden, bias=r.random() < 0.5), nn.ReLU(), nn.Linear(hidden, s[0])), ("vector", s)


@block("vector")
def nested_linear(r, s):
    return nn.Sequential(nn.Sequential(nn.Linear(s[0], 4, bias=False)), nn.Sequential(nn.Tanh(), nn.Linear(4, s[0], bias=False))), ("vector", s)


@block("vector")
def bilinear(r, s):
    return With(lambda m, x: m.product(x, x.tanh()), product=nn.Bilinear(s[0], s[0], 4)), ("vector", (4,))


@block("vector")
def batchnorm1d(r, s):
    return nn.BatchNorm1d(s[0]), ("vector", s)


@block("vector")
def batchnorm_plain(r, s):
    return nn.BatchNorm1d(s[0], affine=False), ("vector", s)


@block("vector")
def batchnorm_twice(r, s):
    return With(lambda m, x: m.norm(x) + m.norm(0.5 * x.tanh()), norm=nn.BatchNorm1d(s[0])), ("vector", s)


@block("vector")
def weight_norm(r, s):
    return nn.utils.parametrizations.weight_norm(nn.Linear(s[0], 4)), ("vector", (4,))


@block("vector")
def tied(r, s):
    """A decoder with its encoder's weight, transposed in one of several ways."""
    way = r.choice(("t", "T", "mT", "transpose", "permute", "linear", "numpy"))
    forms = {"t": lambda m, h: h @ m.encoder.weight.t().t(), "T": lambda m, h: h @ m.encoder.weight,
             "mT": lambda m, h: F.linear(h, m.encoder.weight.mT), "transpose": lambda m, h: F.linear(h, m.encoder.weight.transpose(0, 1)),
             "permute": lambda m, h: F.linear(h, m.encoder.weight.permute(1, 0)), "linear": lambda m, h: F.linear(h, m.encoder.weight.t()),
             "numpy": lambda m, h: torch.matmul(h, m.encoder.weight)}
    return With(lambda m, x: forms[way](m, m.encoder(x).tanh()), encoder=nn.Linear(s[0], 4, bias=r.random() < 0.5)), ("vector", s)


@block("vector")
def tied_square(r, s):
    first, second = nn.Linear(s[0], s[0]), nn.Linear(s[0], s[0])
    second.weight = first.weight
    return nn.Sequential(first, nn.Tanh(), second), ("vector", s)


@block("vector")
def copied(r, s):
    """Equal weights of two layers that are not shared."""
    first, second = nn.Linear(s[0], s[0]), nn.Linear(s[0], s[0])
    second.load_state_dict(first.state_dict())
    return nn.Sequential(first, nn.Tanh(), second), ("vector", s)


@block("vector")
def shared_layer(r, s):
    return With(lambda m, x: m.layer(m.layer(x).tanh()), layer=nn.Linear(s[0], s[0], bias=r.random() < 0.7)), ("vector", s)


@block("vector")
def glu(r, s):
    return With(lambda m, x: F.glu(m.layer(x)), layer=nn.Linear(s[0], 8)), ("vector", (4,))


@block("vector")
def maxout(r, s):
    return With(lambda m, x: m.layer(x).view(-1, 4, 3).max(dim=2)[0], layer=nn.Linear(s[0], 12)), ("vector", (4,))


@block("vector")
def experts(r, s):
    def run(m, x):
        gate = m.gate(x).softmax(-1)
        return sum(gate[:, i:i + 1] * layer(x) for i, layer in enumerate(m.layers))
    return With(run, gate=nn.Linear(s[0], 3), layers=nn.ModuleList(nn.Linear(s[0], 4) for _ in range(3))), ("vector", (4,))


@block("vector")
def cross_layer(r, s):
    return With(lambda m, x: x * m.layer(x) + x, layer=nn.Linear(s[0], 1)), ("vector", s)


@block("vector")
def radial(r, s):
    return With(lambda m, x: (-torch.cdist(x, m.centres) ** 2).exp(), centres=weight(4, s[0])), ("vector", (4,))


@block("vector")
def distances(r, s):
    return With(lambda m, x: (-0.3 * (x[:, None, :] - m.centres[None]).pow(2).sum(-1)).exp(), centres=weight(4, s[0])), ("vector", (4,))


@block("vector")
def softmax_vector(r, s):
    return same("vector", s, r.choice((lambda x: x.softmax(-1), lambda x: F.log_softmax(x, dim=1), lambda x: F.softmin(x, dim=-1))))


@block("vector")
def unit_vector(r, s):
    return same("vector", s, lambda x: F.normalize(x, dim=-1))


@block("vector")
def standardise(r, s):
    return same("vector", s, lambda x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 0.1))


@block("vector")
def variance_scale(r, s):
    return same("vector", s, lambda x: x / (x.var(dim=1, keepdim=True, unbiased=False) + 1).sqrt())


@block("vector")
def cumulative(r, s):
    return same("vector", s, lambda x: torch.cumsum(x, dim=-1) * 0.5)


@block("vector")
def pieces(r, s):
    def run(x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat([b, a * 2, b.tanh()[:, :1]], -1)
    return Apply(run), ("vector", (s[0] + 1,)) if s[0] >= 2 else None


@block("vector")
def rolled(r, s):
    return same("vector", s, lambda x: torch.roll(x, 1, -1) + 0.5 * x.flip(-1))


@block("vector")
def top_values(r, s):
    return (Apply(lambda x: x.topk(3, dim=-1)[0]), ("vector", (3,))) if s[0] >= 3 else None


@block("vector")
def sorted_values(r, s):
    return same("vector", s, lambda x: torch.sort(x, dim=-1)[0])


@block("vector")
def fixed_gather(r, s):
    order = torch.randperm(s[0])
    return With(lambda m, x: x[:, m.order] * 1.5, order=order), ("vector", s)


@block("vector")
def buffers(r, s):
    return With(lambda m, x: (x - m.mean) / m.deviation, mean=torch.randn(s[0]), deviation=torch.rand(s[0]) + 0.5), ("vector", s)


@block("vector")
def constants(r, s):
    return same("vector", s, lambda x: x * torch.ones(s[0]) + torch.arange(s[0]) * 0.1 + torch.zeros(s[0]))


@block("vector")
def embedded_classes(r, s):
    return With(lambda m, x: m.table(x.argmax(-1)) + x.sum(-1, keepdim=True), table=nn.Embedding(s[0], 4)), ("vector", (4,))


@block("vector")
def hard_mask(r, s):
    return same("vector", s, lambda x: x * (x > x.mean(-1, keepdim=True)).to(x.dtype) + (x < 0).to(torch.int64).float())


@block("vector")
def counted_mean(r, s):
    def run(x):
        mask = (x > 0).long()
        return (x * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1) + x
    return same("vector", s, run)


@block("vector")
def integer_arithmetic(r, s):
    return same("vector", s, lambda x: x + (x * 4).long().abs().float() / 3)


@block("vector")
def equal_count(r, s):
    return same("vector", s, lambda x: x + (x.argmax(-1, keepdim=True) == torch.arange(s[0])).sum(-1, keepdim=True) / 3)


@block("vector")
def to_sequence(r, s):
    return With(lambda m, x: m.layer(x).view(x.shape[0], 3, 4), layer=nn.Linear(s[0], 12)), ("sequence", (3, 4))


@block("vector")
def to_image(r, s):
    return With(lambda m, x: m.layer(x).reshape(-1, 3, 5, 5), layer=nn.Linear(s[0], 75)), ("image", (3, 5, 5))


@block("vector")
def unflatten(r, s):
    return nn.Sequential(nn.Linear(s[0], 20), nn.Unflatten(1, (4, 5))), ("line", (4, 5))


@block("vector")
def outer(r, s):
    return same("vector", (s[0],), lambda x: torch.einsum("bi,bj->bij", x, x.tanh()).mean(-1))


@block("vector")
def low_rank(r, s):
    return With(lambda m, x: x + x @ m.a @ m.b, a=weight(s[0], 2), b=weight(2, s[0])), ("vector", s)


@block("vector")
def cosine_classifier(r, s):
    return With(lambda m, x: 5 * F.linear(F.normalize(x), F.normalize(m.weight)), weight=weight(4, s[0])), ("vector", (4,))


@block("vector")
def prelu_vector(r, s):
    return nn.PReLU(r.choice((1, s[0]))), ("vector", s)


@block("vector")
def learned_power(r, s):
    return With(lambda m, x: (x.abs() + 0.1) ** m.power, power=nn.Parameter(torch.rand(s[0]) + 0.5)), ("vector", s)


@block("vector")
def scalar_scale(r, s):
    return With(lambda m, x: x * m.scale.exp() + m.shift, scale=nn.Parameter(torch.tensor(0.3)), shift=weight(s[0])), ("vector", s)


@block("vector")
def dropout(r, s):
    return nn.Sequential(nn.Linear(s[0], 5), nn.Dropout(0.0), nn.ReLU()), ("vector", (5,))


@block("vector")
def rms_vector(r, s):
    return nn.RMSNorm(s[0]), ("vector", s)


@block("vector")
def group_norm_vector(r, s):
    return (nn.GroupNorm(2, s[0], affine=r.random() < 0.7), ("vector", s)) if s[0] % 2 == 0 else None


# ----------------------------------------------------------------------------------------------------------- images

def convolved(size, kernel, stride, padding, dilation=1):
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


@block("image")
def conv2d(r, s):
    out, kernel, stride, padding = r.choice((3, 4, 6)), r.choice((1, 2, 3)), r.choice((1, 1, 2)), r.choice((0, 1))
    sizes = tuple(convolved(n, kernel, stride, padding) for n in s[1:])
    return (nn.Conv2d(s[0], out, kernel, stride, padding, bias=r.random() < 0.6), ("image", (out, *sizes))) if min(sizes) > 0 else None


@block("image")
def conv_dilated(r, s):
    return nn.Conv2d(s[0], 4, 3, padding=2, dilation=2), ("image", (4, *s[1:]))


@block("image")
def conv_same(r, s):
    return nn.Conv2d(s[0], 4, (3, 2), padding="same", padding_mode=r.choice(("zeros", "reflect", "circular", "replicate"))), ("image", (4, *s[1:]))


@block("image")
def depthwise(r, s):
    return nn.Sequential(nn.Conv2d(s[0], s[0], 3, padding=1, groups=s[0], bias=False), nn.Conv2d(s[0], 4, 1)), ("image", (4, *s[1:]))


@block("image")
def conv_groups(r, s):
    return (nn.Conv2d(s[0], 4, 3, padding=1, groups=2), ("image", (4, *s[1:]))) if s[0] % 2 == 0 else None


@block("image")
def conv_transposed(r, s):
    return nn.ConvTranspose2d(s[0], 3, 3, stride=2, padding=1, output_padding=1), ("image", (3, 2 * s[1], 2 * s[2]))


@block("image")
def conv_bn_relu(r, s):
    return nn.Sequential(nn.Conv2d(s[0], 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU()), ("image", (4, *s[1:]))


@block("image")
def residual_bn(r, s):
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(s[0], s[0], 3, padding=1, bias=False), nn.BatchNorm2d(s[0])
            self.conv2, self.bn2 = nn.Conv2d(s[0], s[0], 3, padding=1, bias=False), nn.BatchNorm2d(s[0])

        def forward(self, x):
            return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
    return Residual(), ("image", s)


@block("image")
def batchnorm2d(r, s):
    return nn.BatchNorm2d(s[0], affine=r.random() < 0.7, momentum=r.choice((0.1, 0.3))), ("image", s)


@block("image")
def instance_norm(r, s):
    return (nn.InstanceNorm2d(s[0], affine=r.random() < 0.5), ("image", s)) if s[1] * s[2] > 1 else None


@block("image")
def group_norm(r, s):
    return nn.GroupNorm(2 if s[0] % 2 == 0 else 1, s[0], affine=r.random() < 0.7), ("image", s)


@block("image")
def layer_norm_channels(r, s):
    return With(lambda m, x: m.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), norm=nn.LayerNorm(s[0])), ("image", s)


@block("image")
def layer_norm_image(r, s):
    return nn.LayerNorm(s, elementwise_affine=r.random() < 0.7), ("image", s)


@block("image")
def response_norm(r, s):
    return nn.LocalResponseNorm(3), ("image", s)


@block("image")
def max_pool(r, s):
    ceil = r.random() < 0.5
    sizes = tuple((-(-(n - 2) // 2) if ceil else (n - 2) // 2) + 1 for n in s[1:])
    return (nn.MaxPool2d(2, ceil_mode=ceil), ("image", (s[0], *sizes))) if min(s[1:]) >= 2 else None


@block("image")
def max_pool_padded(r, s):
    return nn.MaxPool2d(3, 2, 1), ("image", (s[0], *((n - 1) // 2 + 1 for n in s[1:])))


@block("image")
def average_pool(r, s):
    return nn.AvgPool2d(3, 2, 1, count_include_pad=r.random() < 0.5), ("image", (s[0], *((n - 1) // 2 + 1 for n in s[1:])))


@block("image")
def lp_pool(r, s):
    return (nn.Sequential(nn.Softplus(), nn.LPPool2d(2, 2)), ("image", (s[0], s[1] // 2, s[2] // 2))) if min(s[1:]) >= 2 else None


@block("image")
def adaptive_pool(r, s):
    size = (r.choice((1, 2, 3)), 2)
    return nn.AdaptiveAvgPool2d(size), ("image", (s[0], *size)) if s[1] % size[0] == 0 and s[2] % 2 == 0 else None


@block("image")
def adaptive_max(r, s):
    return nn.AdaptiveMaxPool2d(1), ("image", (s[0], 1, 1))


@block("image")
def upsample_nearest(r, s):
    return nn.Upsample(scale_factor=2), ("image", (s[0], 2 * s[1], 2 * s[2]))


@block("image")
def upsample_bilinear(r, s):
    align = r.random() < 0.5
    return Apply(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=align)), ("image", (s[0], 2 * s[1], 2 * s[2]))


@block("image")
def resize_fraction(r, s):
    align = r.random() < 0.5
    return Apply(lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=align)), ("image", (s[0], int(s[1] * 1.5), int(s[2] * 1.5)))


@block("image")
def resize_size(r, s):
    mode = r.choice(("nearest", "bilinear", "bicubic"))
    return Apply(lambda x: F.interpolate(x, size=(7, 4), mode=mode)), ("image", (s[0], 7, 4))


@block("image")
def pixel_shuffle(r, s):
    return nn.Sequential(nn.Conv2d(s[0], 12, 1), nn.PixelShuffle(2)), ("image", (3, 2 * s[1], 2 * s[2]))


@block("image")
def pixel_unshuffle(r, s):
    return (nn.PixelUnshuffle(2), ("image", (4 * s[0], s[1] // 2, s[2] // 2))) if s[1] % 2 == 0 and s[2] % 2 == 0 and s[0] <= 4 else None


@block("image")
def channel_shuffle(r, s):
    return (nn.ChannelShuffle(2), ("image", s)) if s[0] % 2 == 0 else None


@block("image")
def channel_shuffle_view(r, s):
    def run(x):
        b, c, h, w = x.size()
        return x.view(b, 2, c // 2, h, w).transpose(1, 2).contiguous().view(b, -1, h, w)
    return (Apply(run), ("image", s)) if s[0] % 2 == 0 else None


@block("image")
def pad_image(r, s):
    mode = r.choice(("constant", "reflect", "replicate", "circular"))
    value = 0.5 if mode == "constant" else None
    return (Apply(lambda x: F.pad(x, (1, 0, 1, 1), mode, value)), ("image", (s[0], s[1] + 2, s[2] + 1))) if min(s[1:]) >= 2 else None


@block("image")
def crop(r, s):
    return (Apply(lambda x: x[:, :, 1:, :-1]), ("image", (s[0], s[1] - 1, s[2] - 1))) if min(s[1:]) >= 2 else None


@block("image")
def space_slices(r, s):
    """The stem of YOLO."""
    if s[1] % 2 or s[2] % 2 or s[0] > 4:
        return None
    return Apply(lambda x: torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)), ("image", (4 * s[0], s[1] // 2, s[2] // 2))


@block("image")
def squeeze_excite(r, s):
    return With(lambda m, x: x * torch.sigmoid(m.b(F.relu(m.a(F.adaptive_avg_pool2d(x, 1))))), a=nn.Conv2d(s[0], 2, 1), b=nn.Conv2d(2, s[0], 1)), ("image", s)


@block("image")
def squeeze_excite_linear(r, s):
    def run(m, x):
        y = m.fc(x.mean((2, 3)))
        return x * y.view(x.shape[0], -1, 1, 1).sigmoid()
    return With(run, fc=nn.Sequential(nn.Linear(s[0], 3, bias=False), nn.ReLU(), nn.Linear(3, s[0], bias=False))), ("image", s)


@block("image")
def spatial_gate(r, s):
    return With(lambda m, x: x * m.conv(torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)).sigmoid(), conv=nn.Conv2d(2, 1, 3, padding=1, bias=False)), ("image", s)


@block("image")
def inception(r, s):
    return With(lambda m, x: torch.cat([m.a(x), m.b(x), F.max_pool2d(x, 3, 1, 1)], 1), a=nn.Conv2d(s[0], 2, 1), b=nn.Conv2d(s[0], 3, 3, padding=1)), ("image", (s[0] + 5, *s[1:]))


@block("image")
def global_response_norm(r, s):
    def run(m, x):
        norm = torch.norm(x, p=2, dim=(2, 3), keepdim=True)
        return m.gamma * (x * (norm / (norm.mean(1, keepdim=True) + 1e-2))) + m.beta + x
    return With(run, gamma=weight(1, s[0], 1, 1), beta=weight(1, s[0], 1, 1)), ("image", s)


@block("image")
def layer_scale(r, s):
    return With(lambda m, x: x + m.gamma.view(-1, 1, 1) * m.conv(x), gamma=weight(s[0]), conv=nn.Conv2d(s[0], s[0], 3, padding=1, groups=s[0])), ("image", s)


@block("image")
def position_image(r, s):
    return With(lambda m, x: x + m.position, position=weight(1, *s)), ("image", s)


@block("image")
def coordinates(r, s):
    def run(m, x):
        ys, xs = torch.linspace(-1, 1, s[1]), torch.linspace(-1, 1, s[2])
        grid = torch.stack(torch.meshgrid(ys, xs, indexing="ij"))[None].expand(x.shape[0], -1, -1, -1)
        return m.conv(torch.cat([x, grid], 1))
    return With(run, conv=nn.Conv2d(s[0] + 2, 3, 1)), ("image", (3, *s[1:]))


@block("image")
def grid_sample(r, s):
    grid = torch.rand(1, 4, 5, 2) * 1.8 - 0.9
    return With(lambda m, x: F.grid_sample(x, m.grid.expand(x.shape[0], -1, -1, -1), align_corners=False), grid=grid), ("image", (s[0], 4, 5))


@block("image")
def prelu_image(r, s):
    return nn.PReLU(s[0]), ("image", s)


@block("image")
def softmax_channels(r, s):
    return same("image", s, lambda x: x.softmax(1) * 3)


@block("image")
def softmax2d(r, s):
    return same("image", s, lambda x: x.flatten(2).softmax(-1).view_as(x) * 4)


@block("image")
def unfold(r, s):
    return With(lambda m, x: m.layer(F.unfold(x, 2).transpose(1, 2)), layer=nn.Linear(4 * s[0], 4)), ("sequence", ((s[1] - 1) * (s[2] - 1), 4)) if min(s[1:]) >= 2 else None


@block("image")
def fold(r, s):
    return same("image", s, lambda x: F.fold(F.unfold(x, 3, padding=1), s[1:], 3, padding=1) / 9)


@block("image")
def window_partition(r, s):
    """Windows of 2 x 2 joined with the batch, as Swin has them."""
    def run(m, x):
        b, c, h, w = x.shape
        y = x.permute(0, 2, 3, 1).view(b, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, c)
        y = y + m.layer(y.softmax(1))
        return y.view(b, h // 2, w // 2, 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c).permute(0, 3, 1, 2)
    return (With(run, layer=nn.Linear(s[0], s[0])), ("image", s)) if s[1] % 2 == 0 and s[2] % 2 == 0 else None


@block("image")
def flatten_image(r, s):
    return nn.Flatten(), ("vector", (s[0] * s[1] * s[2],)) if s[0] * s[1] * s[2] <= 80 else None


@block("image")
def global_pool(r, s):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), ("vector", (s[0],))


@block("image")
def mean_image(r, s):
    return r.choice((Apply(lambda x: x.mean((-2, -1))), Apply(lambda x: x.flatten(2).mean(2)), Apply(lambda x: x.amax((2, 3))))), ("vector", (s[0],))


@block("image")
def gem(r, s):
    return With(lambda m, x: x.clamp(min=0.1).pow(m.power).mean((-2, -1)).pow(1 / m.power), power=nn.Parameter(torch.ones(1) * 3)), ("vector", (s[0],))


@block("image")
def patches(r, s):
    conv = nn.Conv2d(s[0], 4, 2, 2)
    return (With(lambda m, x: m.proj(x).flatten(2).transpose(1, 2), proj=conv), ("sequence", ((s[1] // 2) * (s[2] // 2), 4))) if min(s[1:]) >= 2 else None


@block("image")
def to_sequence_of_pixels(r, s):
    return Apply(lambda x: x.flatten(2).permute(0, 2, 1)), ("sequence", (s[1] * s[2], s[0])) if s[1] * s[2] <= 36 else None


@block("image")
def to_line(r, s):
    return Apply(lambda x: x.mean(2)), ("line", (s[0], s[2]))


@block("image")
def to_volume(r, s):
    return Apply(lambda x: torch.stack([x, x.flip(-1)], 2)), ("volume", (s[0], 2, *s[1:])) if s[1] * s[2] * s[0] < 120 else None


@block("image")
def standardised_conv(r, s):
    def run(m, x):
        w = m.conv.weight
        w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-2)
        return F.conv2d(x, w, m.conv.bias, padding=1)
    return With(run, conv=nn.Conv2d(s[0], 3, 3, padding=1)), ("image", (3, *s[1:]))


@block("image")
def shared_heads(r, s):
    """One head with batch normalisation on two levels."""
    head = nn.Sequential(nn.Conv2d(s[0], 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU())
    return With(lambda m, x: m.head(x) + F.interpolate(m.head(F.avg_pool2d(x, 2)), size=s[1:]), head=head), ("image", (3, *s[1:])) if min(s[1:]) >= 2 else None


@block("image")
def axial_attention(r, s):
    def run(m, x):
        b, c, h, w = x.shape
        y = x.permute(0, 2, 3, 1).reshape(b * h, w, c)
        q, k, v = m.qkv(y).chunk(3, -1)
        y = (q @ k.transpose(1, 2) / c ** 0.5).softmax(-1) @ v
        return y.view(b, h, w, c).permute(0, 3, 1, 2)
    return With(run, qkv=nn.Linear(s[0], 3 * s[0])), ("image", s)


@block("image")
def non_local(r, s):
    def run(m, x):
        q, k, v = m.q(x).flatten(2), m.k(x).flatten(2), m.v(x).flatten(2)
        y = torch.bmm(v, torch.bmm(q.transpose(1, 2), k).softmax(-1).transpose(1, 2))
        return x + m.gamma * y.view_as(x)
    return With(run, q=nn.Conv2d(s[0], 2, 1), k=nn.Conv2d(s[0], 2, 1), v=nn.Conv2d(s[0], s[0], 1), gamma=nn.Parameter(torch.ones(1) * 0.4)), ("image", s)
