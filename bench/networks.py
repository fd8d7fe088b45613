"""The networks of models/ as PyTorch has them, with the same names and shapes of parameters."""
from collections import OrderedDict

SMALL = ("lenet", "mlp")
RECTIFIED = (*SMALL, "resnet18", "resnet50", "mobilenet_v2", "vgg16")  # whose activations are ReLU and ReLU6
NETWORKS = (*RECTIFIED, "efficientnet_b0", "convnext_tiny", "vit_b_16", "unet")
ALL = ("linear", *NETWORKS)


def sample_shape(name):
    if name == "linear":
        return (1,)
    return (1, 28, 28) if name in SMALL else (3, 128, 128) if name == "unet" else (3, 224, 224)


def target_shape(name):
    return sample_shape(name)[1:] if name == "unet" else ()


def default_classes(name):
    return 1 if name == "linear" else 10 if name in SMALL else 2 if name == "unet" else 1000


def unet(channels, classes):
    """As in github.com/milesial/Pytorch-UNet, with transposed convolutions."""
    import torch
    from torch import nn

    class DoubleConv(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            layers = [(nn.Conv2d(i, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()) for i in (inputs, outputs)]
            self.double_conv = nn.Sequential(*layers[0], *layers[1])

        def forward(self, x):
            return self.double_conv(x)

    class Down(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, outputs))

        def forward(self, x):
            return self.maxpool_conv(x)

    class Up(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.up, self.conv = nn.ConvTranspose2d(inputs, outputs, 2, stride=2), DoubleConv(inputs, outputs)

        def forward(self, x, skip):
            x = self.up(x)
            height, width = (skip.shape[i] - x.shape[i] for i in (2, 3))
            x = nn.functional.pad(x, (width // 2, width - width // 2, height // 2, height - height // 2))
            return self.conv(torch.cat((skip, x), 1))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.inc = DoubleConv(channels, 64)
            self.down1, self.down2, self.down3, self.down4 = (Down(64 << i, 128 << i) for i in range(4))
            self.up1, self.up2, self.up3, self.up4 = (Up(128 << i, 64 << i) for i in (3, 2, 1, 0))
            self.outc = nn.Sequential(OrderedDict(conv=nn.Conv2d(64, classes, 1)))

        def forward(self, x):
            skips = [self.inc(x)]
            for down in (self.down1, self.down2, self.down3, self.down4):
                skips.append(down(skips[-1]))
            x = skips.pop()
            for up in (self.up1, self.up2, self.up3, self.up4):
                x = up(x, skips.pop())
            return self.outc(x)

    return UNet()


def make(name, classes=None, dropout=True):
    import torchvision
    from torch import nn
    classes = classes or default_classes(name)
    if name == "linear":
        return nn.Sequential(OrderedDict(dense=nn.Linear(1, classes)))
    if name == "lenet":
        return nn.Sequential(OrderedDict(
            conv1=nn.Conv2d(1, 32, 5, padding=2), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(32, 64, 5, padding=2), relu2=nn.ReLU(), pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(), fc1=nn.Linear(3136, 128), relu3=nn.ReLU(), fc2=nn.Linear(128, classes)))
    if name == "mlp":
        return nn.Sequential(OrderedDict(
            flatten=nn.Flatten(), fc1=nn.Linear(784, 512), relu1=nn.ReLU(), fc2=nn.Linear(512, 512), relu2=nn.ReLU(),
            fc3=nn.Linear(512, classes)))
    if name == "unet":
        return unet(sample_shape(name)[0], classes)
    network = getattr(torchvision.models, name)(weights=None, num_classes=classes)
    if not dropout:
        for module in network.modules():
            if isinstance(module, (nn.Dropout, torchvision.ops.StochasticDepth)):
                module.p = 0.0
    return network
