#!/usr/bin/env python3
"""Trains torchvision's resnet18 on a folder with train/ and val/, by PyTorch's usual loop: tests/data/scenes_pytorch.py FOLDER.

The settings are those of the command in docs/experiments/scenes.md: the same crop, flip, batch, optimizer and schedule. Prints
each epoch's accuracy on val/ and the time. Needs torch and torchvision."""
import argparse
import time

import torch
import torchvision
from torchvision import transforms


def loader(folder, augment, size, batch, workers):
    steps = [transforms.RandomResizedCrop(size, scale=(0.6, 1.0)), transforms.RandomHorizontalFlip()] if augment else \
        [transforms.Resize(round(size * 256 / 224)), transforms.CenterCrop(size)]
    steps += [transforms.ToTensor(), transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
    data = torchvision.datasets.ImageFolder(folder, transforms.Compose(steps))
    return torch.utils.data.DataLoader(data, batch, shuffle=augment, num_workers=workers)


def accuracy(model, batches):
    model.eval()
    right = count = 0
    with torch.no_grad():
        for images, labels in batches:
            right += (model(images).argmax(1) == labels).sum().item()
            count += len(labels)
    return right / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.03)
    parser.add_argument("--input", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    train = loader(options.folder + "/train", True, options.input, options.batch, options.workers)
    val = loader(options.folder + "/val", False, options.input, options.batch, options.workers)
    model = torchvision.models.resnet18(num_classes=len(train.dataset.classes))
    optimizer = torch.optim.SGD(model.parameters(), options.lr, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.lr, options.epochs * len(train), cycle_momentum=False)
    begin = time.monotonic()
    for epoch in range(options.epochs):
        model.train()
        for images, labels in train:
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch + 1}: val accuracy {100 * accuracy(model, val):.2f} %, {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
