"""The side of convert_test.cc that is PyTorch's. BATCHES is what test/SaveBatches wrote.

convert.py go-on OPTIMIZER MODEL.pth BATCHES FIRST     trains on, from iteration FIRST: every loss must be Gantry's to 1e-5
convert.py train OPTIMIZER BATCHES END MODEL.pth       trains a classifier of its own, up to iteration END
convert.py same OPTIMIZER A.pth B.pth                  both have the same weights and the same state of the optimizer
convert.py same-weights OPTIMIZER A.pth FILE           parameters of a .pth and a safetensors file
convert.py tied OPTIMIZER OUT.pth; check-tied OPTIMIZER A.pth FILE
"""
import sys

import torch
from safetensors.torch import load_file
from torch import nn


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
    def __init__(self):
        super().__init__()
        self.backbone = ConvNet()
        self.head = nn.Linear(8 * 4 * 4, 5)

    def forward(self, x):
        return self.head(self.backbone(x))


def optimizer_of(kind, model):
    """Built of parameters without names, as most programs do it: order is all that load_state_dict has."""
    if kind == "AdamW":
        return torch.optim.AdamW(model.parameters(), lr=0.5, weight_decay=0.9)  # a state_dict brings the options too
    if kind == "groups":
        biases = [p for n, p in model.named_parameters() if n.endswith("bias")]
        others = [p for n, p in model.named_parameters() if not n.endswith("bias")]
        return torch.optim.SGD([{"params": others}, {"params": biases}], lr=0.5, momentum=0.1)
    return torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.1)


def train(model, optimizer, batches, first, end):
    losses = []
    for iteration in range(first, end):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batches[f"{iteration}/img"]), batches[f"{iteration}/label"])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def go_on(kind, pth, batches, first):
    content = torch.load(pth, weights_only=True)
    model = Classifier()
    model.load_state_dict(content["model"], strict=True)
    optimizer = optimizer_of(kind, model)
    optimizer.load_state_dict(content["optimizer"])
    end = 1 + max(int(name.split("/")[0]) for name in batches)
    expected = [batches[f"{i}/loss"].item() for i in range(first, end)]
    found = train(model, optimizer, batches, first, end)
    difference = max(abs(a - b) for a, b in zip(found, expected))
    print(f"{len(found)} losses from {expected[0]} to {expected[-1]}: largest difference {difference}")
    assert len(found) >= 6 and difference < 1e-5
    # Without the optimizer's state they would not be the same: the comparison can fail.
    fresh = Classifier()
    fresh.load_state_dict(content["model"])
    other = optimizer_of(kind, fresh)
    other.load_state_dict({"state": {}, "param_groups": content["optimizer"]["param_groups"]})
    forgotten = train(fresh, other, batches, first, end)
    assert max(abs(a - b) for a, b in zip(forgotten, expected)) > 1e-4, forgotten


def state_by_name(content):
    names = [name for name in content["model"] if not name.endswith(("running_mean", "running_var", "num_batches_tracked"))]
    groups = content["optimizer"]["param_groups"]
    if "param_names" in groups[0]:
        names = {i: n for group in groups for i, n in zip(group["params"], group["param_names"])}
    return {names[i]: state for i, state in content["optimizer"]["state"].items()}


def same(a, b):
    assert set(a["model"]) == set(b["model"])
    for name, tensor in a["model"].items():
        assert torch.equal(tensor, b["model"][name]), name
    mine, other = state_by_name(a), state_by_name(b)
    assert set(mine) == set(other) and len(mine) == 10, (set(mine), set(other))
    for name, state in mine.items():
        assert set(state) == set(other[name])
        for entry, tensor in state.items():
            assert torch.equal(tensor, other[name][entry]), (name, entry)


command, kind = sys.argv[1:3]
torch.set_num_threads(1)
if command == "train":
    batches, end, pth = load_file(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    torch.manual_seed(5)
    model = Classifier()
    if kind == "AdamW":
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.003, weight_decay=0.01)
    else:
        optimizer = torch.optim.SGD(model.named_parameters(), lr=0.05, momentum=0.9)  # once with names, once by order
    train(model, optimizer, batches, 0, end)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, pth)
elif command == "same":
    same(*(torch.load(path, weights_only=True) for path in sys.argv[3:5]))
elif command == "same-weights":
    model, found = torch.load(sys.argv[3], weights_only=True)["model"], load_file(sys.argv[4])
    assert set(model) == set(found)
    for name, parameter in Classifier().named_parameters():
        assert torch.equal(model[name], found[name]), name
elif command == "tied":
    weight = torch.arange(6.0).view(2, 3).t()  # not contiguous either
    torch.save({"encoder": weight, "decoder": weight, "half": torch.ones(2, dtype=torch.float16)}, sys.argv[3])
elif command == "check-tied":
    model, stored = torch.load(sys.argv[3], weights_only=True)["model"], load_file(sys.argv[4])
    assert set(stored) == {"encoder", "half"} and set(model) == {"encoder", "decoder", "half"}
    assert torch.equal(model["decoder"], torch.arange(6.0).view(2, 3).t())
    assert model["decoder"].data_ptr() == model["encoder"].data_ptr() and model["half"].dtype == torch.float16
else:
    go_on(kind, sys.argv[3], load_file(sys.argv[4]), int(sys.argv[5]))
