"""The networks of models/ as PyTorch has them, with the same names and shapes of parameters."""
from collections import OrderedDict

SMALL = ("lenet", "mlp")
NETWORKS = (*SMALL, "resnet18", "resnet50", "mobilenet_v2", "vgg16")


def sample_shape(name):
    return (1, 28, 28) if name in SMALL else (3, 224, 224)


def default_classes(name):
    return 10 if name in SMALL else 1000


def make(name, classes=None, dropout=True):
    import torchvision
    from torch import nn
    classes = classes or default_classes(name)
    if name == "lenet":
        return nn.Sequential(OrderedDict(
            conv1=nn.Conv2d(1, 32, 5, padding=2), relu1=nn.ReLU(), pool1=nn.MaxPool2d(2),
            conv2=nn.Conv2d(32, 64, 5, padding=2), relu2=nn.ReLU(), pool2=nn.MaxPool2d(2),
            flatten=nn.Flatten(), fc1=nn.Linear(3136, 128), relu3=nn.ReLU(), fc2=nn.Linear(128, classes)))
    if name == "mlp":
        return nn.Sequential(OrderedDict(
            flatten=nn.Flatten(), fc1=nn.Linear(784, 512), relu1=nn.ReLU(), fc2=nn.Linear(512, 512), relu2=nn.ReLU(),
            fc3=nn.Linear(512, classes)))
    network = getattr(torchvision.models, name)(weights=None, num_classes=classes)
    if not dropout:
        for module in network.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
    return network
