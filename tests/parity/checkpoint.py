"""checkpoint.py resnet|conv_net CHECKPOINT OUTPUTS: the weights of checkpoint_test.cc's run in PyTorch's own modules."""
import json
import os
import pathlib
import sys

import torch
from safetensors.torch import load_file
from torch import nn

from resnet import ResNet


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        layers, channels = [], 1
        for width in (4, 8):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
            channels = width
        self.layers = nn.Sequential(*layers, nn.Flatten())

    def forward(self, x):
        return self.layers(x)


class Classifier(nn.Module):
    def __init__(self, backbone, features):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(features, 5)

    def forward(self, x):
        return self.head(self.backbone(x))


kind, checkpoint, outputs = sys.argv[1], pathlib.Path(sys.argv[2]), load_file(sys.argv[3])
account = json.loads((checkpoint / "checkpoint.json").read_text())
for name, file in account["files"].items():
    assert os.path.getsize(checkpoint / name) == file["size"], name
model = Classifier(ResNet(18, "cifar", 1, 8), 64) if kind == "resnet" else Classifier(ConvNet(), 8 * 4 * 4)
model.load_state_dict(load_file(checkpoint / "model.safetensors"), strict=True)
model.eval()

# Adam's state is there for every parameter, under its name, in its shape.
state = load_file(checkpoint / "optimizer.safetensors")
for name, parameter in model.named_parameters():
    assert state[f"{name}/exp_avg"].shape == parameter.shape, name
    assert state[f"{name}/exp_avg_sq"].shape == parameter.shape, name
    assert state[f"{name}/step"].item() == account["step"] == 6, name
assert len(state) == 3 * len(list(model.named_parameters()))
scalars = load_file(checkpoint / "state.safetensors")
assert scalars["trainer/epoch"].item() == 1 and bytes(scalars["trainer/phase"].tolist()) == b"epoch_done"

with torch.no_grad():
    difference = (model(outputs["img"]) - outputs["logits"]).abs().max().item()
spread = outputs["logits"].std().item()
print(f"largest difference {difference}, standard deviation of the logits {spread}")
sys.exit(0 if spread > 0.1 and difference < 1e-5 else 1)
