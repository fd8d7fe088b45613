"""Modules of the kinds that people write themselves."""
import torch
from torch import nn
from torch.nn import functional

from cases import adamw, case


class Lambda(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)

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


@case((5, 7, 12), ((), 4))
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


class Variational(nn.Module):
    """The noise is an input: PyTorch and Tutti draw other numbers."""

    def __init__(self):
        super().__init__()
        self.encode, self.mean, self.spread = nn.Linear(20, 16), nn.Linear(16, 4), nn.Linear(16, 4)
        self.decode = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 20))

    def forward(self, x, noise):
        h = torch.relu(self.encode(x))
        mean, spread = self.mean(h), self.spread(h)
        return self.decode(mean + torch.exp(0.5 * spread) * noise), mean, spread


def evidence(outputs, targets):
    x, mean, spread = outputs
    return functional.binary_cross_entropy_with_logits(x, targets) - 0.5 * torch.mean(1 + spread - mean.pow(2) - spread.exp())


@case((20,), (4,), ((20,), "probability"), loss=evidence, rule=adamw)
def variational_autoencoder():
    return Variational()


class Adversaries(nn.Module):
    def __init__(self, generator, critic):
        super().__init__()
        self.generator, self.critic = generator, critic


class Judged(nn.Module):
    """The critic's part of a step: the generator does not train."""

    def __init__(self, both):
        super().__init__()
        self.both = both

    def forward(self, real, noise):
        return self.both.critic(real), self.both.critic(self.both.generator(noise).detach())


class Judging(nn.Module):
    def __init__(self, both):
        super().__init__()
        self.both = both

    def forward(self, noise):
        return self.both.critic(self.both.generator(noise))


def adversarial(judge, deceive, rule):
    """Two trainers of one module, in turn."""
    def loop(both, trainer, steps):
        critic = trainer(Judged(both), judge, rule(both.critic.parameters()))
        generator, losses = trainer(Judging(both), deceive, rule(both.generator.parameters())), []
        for real, noise, target in steps:
            losses.append(critic.step((real, noise), target))
            critic.sync()
            losses.append(generator.step(noise, target))
            generator.sync()
        return losses, both.state_dict()
    return loop


def found_out(outputs, targets):
    real, made = outputs
    return functional.binary_cross_entropy_with_logits(real, torch.ones_like(real)) + functional.binary_cross_entropy_with_logits(made, torch.zeros_like(made))


def taken_for_real(outputs, targets):
    return functional.binary_cross_entropy_with_logits(outputs, torch.ones_like(outputs))


def least_squares(outputs, targets):
    real, made = outputs
    return 0.5 * ((real - 1) ** 2).mean() + 0.5 * (made ** 2).mean()


@case((12,), (5,), (1,), loop=adversarial(found_out, taken_for_real, lambda parameters: torch.optim.Adam(parameters, 2e-4, betas=(0.5, 0.999))))
def adversarial_networks():
    return Adversaries(nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 12), nn.Tanh()), nn.Sequential(nn.Linear(12, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)))


@case((1, 16, 16), (6, 1, 1), (1,), batch=8, loop=adversarial(least_squares, lambda outputs, targets: ((outputs - 1) ** 2).mean(), lambda parameters: torch.optim.RMSprop(parameters, 1e-4)))
def adversarial_convolutions():
    return Adversaries(nn.Sequential(nn.ConvTranspose2d(6, 16, 4, bias=False), nn.BatchNorm2d(16), nn.ReLU(True), nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8),
                                     nn.ReLU(True), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh()),
                       nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(8, 16, 4, 2, 1, bias=False), nn.InstanceNorm2d(16),
                                     nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(16, 1, 4), nn.Flatten()))


class GraphLayer(nn.Module):
    """Each node gets the mean of the messages of its neighbours. The edges differ from sample to sample."""

    def __init__(self, width, out):
        super().__init__()
        self.message, self.own = nn.Linear(2 * width, out), nn.Linear(width, out)

    def forward(self, x, edges):
        start, end = (edges[:, part].unsqueeze(-1).expand(-1, -1, x.shape[-1]) for part in (0, 1))
        messages = torch.relu(self.message(torch.cat([x.gather(1, start), x.gather(1, end)], -1)))
        where = edges[:, 1].unsqueeze(-1).expand_as(messages)
        sums = torch.zeros(x.shape[0], x.shape[1], messages.shape[-1]).scatter_add(1, where, messages)
        counts = torch.zeros_like(sums).scatter_add(1, where, torch.ones_like(messages))
        return torch.relu(self.own(x) + sums / counts.clamp(min=1))


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.out = nn.ModuleList([GraphLayer(5, 8), GraphLayer(8, 8)]), nn.Linear(8, 3)

    def forward(self, nodes, edges):
        for layer in self.layers:
            nodes = layer(nodes, edges)
        return self.out(nodes.mean(1))


@case((6, 5), ((2, 9), 6), ((), 3))
def graph_network():
    return Graph()


class FixedGraph(nn.Module):
    """A graph convolution on one graph for all samples."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
        self.register_buffer("edges", torch.tensor([[0, 1, 2, 3, 4, 0, 2], [1, 2, 3, 4, 0, 3, 0]]))

    def spread(self, x):
        return torch.zeros_like(x).index_add(1, self.edges[1], x[:, self.edges[0]]) + x

    def forward(self, x):
        return self.second(self.spread(torch.relu(self.first(self.spread(x)))))


@case((5, 4), (5, 2), loss=nn.MSELoss())
def graph_convolution():
    return FixedGraph()


class SpectralLayer(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes, self.real, self.imaginary = modes, nn.Parameter(torch.randn(2, width, width, modes, modes) / width), nn.Parameter(torch.randn(2, width, width, modes, modes) / width)
        self.skip = nn.Conv2d(width, width, 1)

    def forward(self, x):
        found = torch.view_as_real(torch.fft.rfft2(x))
        parts = []
        for part, rows in enumerate((slice(None, self.modes), slice(-self.modes, None))):
            a, b = found[:, :, rows, :self.modes, 0], found[:, :, rows, :self.modes, 1]
            def times(one, weight):
                return torch.einsum("bixy,ioxy->boxy", one, weight)
            parts.append(torch.stack([times(a, self.real[part]) - times(b, self.imaginary[part]), times(a, self.imaginary[part]) + times(b, self.real[part])], -1))
        middle = torch.zeros(x.shape[0], x.shape[1], x.shape[2] - 2 * self.modes, self.modes, 2)
        made = functional.pad(torch.cat([parts[0], middle, parts[1]], 2), (0, 0, 0, x.shape[3] // 2 + 1 - self.modes))
        return functional.gelu(torch.fft.irfft2(torch.view_as_complex(made.contiguous()), s=x.shape[2:]) + self.skip(x))


class FourierOperator(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift, self.layers, self.out = nn.Conv2d(1, 6, 1), nn.ModuleList(SpectralLayer(6, 3) for _ in range(2)), nn.Conv2d(6, 1, 1)

    def forward(self, x):
        x = self.lift(x)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


@case((1, 12, 12), (1, 12, 12), loss=nn.MSELoss(), rule=adamw)
def fourier_operator():
    return FourierOperator()


class Repeated(nn.Module):
    """One layer, used three times; the encoder's weights are the decoder's, transposed."""

    def __init__(self):
        super().__init__()
        self.first, self.again, self.norm, self.bias = nn.Linear(10, 8), nn.Linear(8, 8), nn.LayerNorm(8), nn.Parameter(torch.zeros(10))

    def forward(self, x):
        x = self.first(x)
        for _ in range(3):
            x = x + self.norm(torch.tanh(self.again(x)))
        return functional.linear(x, self.first.weight.t(), self.bias)


@case((10,), (10,), loss=nn.MSELoss())
def shared_layers():
    return Repeated()


def small():
    return nn.Sequential(nn.Linear(12, 16), nn.SiLU(), nn.LayerNorm(16), nn.Linear(16, 5))


def clipped(module, trainer, steps):
    trained = trainer(module, nn.CrossEntropyLoss(), torch.optim.SGD(module.parameters(), 0.5, momentum=0.9), clip_norm=0.2)
    return [trained.step(x, y) for x, y in steps], module.state_dict()


@case((12,), ((), 5), loop=clipped)
def clipped_gradients():
    return small()


def accumulated(module, trainer, steps):
    """Gradients of four parts of a batch: tutti.torch takes the whole batch."""
    trained = trainer(module, nn.CrossEntropyLoss(), adamw(module.parameters()), parts=4)
    return [trained.step(x, y) for x, y in steps], module.state_dict()


@case((12,), ((), 5), batch=8, loop=accumulated)
def accumulated_gradients():
    return small()


def averaged(module, trainer, steps):
    trained, losses = trainer(module, nn.CrossEntropyLoss(), torch.optim.SGD(module.parameters(), 0.1)), []
    average = torch.optim.swa_utils.AveragedModel(module, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    for x, y in steps:
        losses.append(trained.step(x, y))
        trained.sync()
        average.update_parameters(module)
    return losses, average.state_dict()


@case((12,), ((), 5), loop=averaged)
def averaged_parameters():
    return small()


def scheduled(module, trainer, steps):
    rule = torch.optim.AdamW([{"params": [one for one in module.parameters() if one.ndim > 1], "weight_decay": 0.1}, {"params": [one for one in module.parameters() if one.ndim < 2]}],
                             1e-2, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(rule, 1e-2, total_steps=8)
    trained, losses = trainer(module, nn.CrossEntropyLoss(), rule), []
    for x, y in steps:
        losses.append(trained.step(x, y))
        schedule.step()
    return losses, module.state_dict()


@case((12,), ((), 5), loop=scheduled)
def groups_and_schedule():
    return small()


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(30, 16), nn.Embedding(30, 16)
        self.transformer = nn.Transformer(16, 2, 1, 1, 24, dropout=0.0, batch_first=True)
        self.out = nn.Linear(16, 30)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.out(self.transformer(self.source(source), self.target(target), tgt_mask=mask, tgt_is_causal=True)).transpose(1, 2)


@case(((7,), 30), ((6,), 30), ((6,), 30), rule=adamw)
def transformer():
    return Translator()


class Factors(nn.Module):
    """A table of users and one of things, with wide and deep parts."""

    def __init__(self):
        super().__init__()
        self.users, self.things, self.bias = nn.Embedding(20, 6), nn.Embedding(30, 6), nn.Embedding(30, 1)
        self.deep = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, user, thing):
        a, b = self.users(user), self.things(thing)
        return (a * b).sum(-1) + self.bias(thing).squeeze(-1) + self.deep(torch.cat([a, b], -1)).squeeze(-1)


@case(((), 20), ((), 30), (), loss=nn.MSELoss(), rule=adamw)
def recommender():
    return Factors()


class Causal(nn.Module):
    """A temporal convolution: dilated, padded on one side, with weight normalisation."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.utils.parametrizations.weight_norm(nn.Conv1d(6 if step else 3, 6, 3, dilation=2 ** step)) for step in range(3))
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        for step, conv in enumerate(self.convs):
            x = torch.relu(conv(functional.pad(x, (2 * 2 ** step, 0))))
        return self.out(x[:, :, -1])


@case((3, 16), ((), 2))
def temporal_convolution():
    return Causal()
