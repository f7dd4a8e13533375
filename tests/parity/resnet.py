"""resnet.py FILE...: loads the weights of resnet_test.cc into the same network in PyTorch, strictly, and compares."""
import sys

import torch
from safetensors import safe_open
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, depth, stem, in_channels, width):
        super().__init__()
        small = stem == "cifar"
        self.conv1 = nn.Conv2d(in_channels, width, *((3, 1, 1) if small else (7, 2, 3)), bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.pool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        inputs = width
        for stage, blocks in enumerate({18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}[depth]):
            outputs = width * 2**stage
            layer = []
            for block in range(blocks):
                layer.append(Block(inputs, outputs, 2 if stage > 0 and block == 0 else 1))
                inputs = outputs
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layer))

    def forward(self, x):
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return x.mean((2, 3))


def fits(path):
    with safe_open(path, "pt") as file:
        texts = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    image, features = tensors.pop("input"), tensors.pop("features")
    model = nn.Module()
    model.backbone = ResNet(int(texts["depth"]), texts["stem"], int(texts["in_channels"]), int(texts["width"]))
    model.load_state_dict(tensors, strict=True)
    model.eval()
    with torch.no_grad():
        difference = (model.backbone(image) - features).abs().max().item()
    size = features.abs().max().item()
    print(f"{texts}: largest difference {difference}, largest feature {size}")
    return size > 0.1 and difference < 1e-5 * max(1, size)


if __name__ == "__main__":
    results = [fits(path) for path in sys.argv[1:]]
    sys.exit(0 if results and all(results) else 1)
