"""read_exported.py FOLDER ITERATION OUT: what SafetensorsHook wrote of test/OddTensors, read by Python's safetensors;
then a file with other values, written by it."""
import json
import pathlib
import sys

import safetensors
import torch
from safetensors.torch import load_file, load_model, save_model
from torch import nn


class OddTensors(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Parameter(torch.zeros(1, 4, dtype=torch.float64))
        self.decoder = nn.Module()
        self.decoder.weight = self.encoder
        self.bias = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        for name, value in (("mean", torch.zeros(4, dtype=torch.float64)), ("seen", torch.tensor(0)),
                            ("flags", torch.zeros(3, dtype=torch.bool)), ("scalar", torch.tensor(0.0)),
                            ("empty", torch.empty(0, 3)), ("fp16", torch.zeros(2, dtype=torch.float16)),
                            ("bf16", torch.zeros(3, dtype=torch.bfloat16)), ("turned", torch.zeros(3, 2))):
            self.register_buffer(name, value)


folder, iteration, out = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
single = folder / f"ldm_step-{iteration}.safetensors"
with safetensors.safe_open(single, "pt") as file:
    assert file.metadata()["format"] == "pt" and file.metadata()["iteration"] == iteration, file.metadata()
    assert file.metadata()["alias:decoder.weight"] == "encoder"
tensors = load_file(single)
expected = {"flags": torch.tensor([True, False, True]), "scalar": torch.tensor(2.5), "empty": torch.empty(0, 3),
            "fp16": torch.tensor([1.5, -0.25], dtype=torch.float16),
            "bf16": torch.tensor([3.0, 0.125, -1.0], dtype=torch.bfloat16),
            "turned": torch.arange(6.0).view(2, 3).t()}
for name, value in expected.items():
    assert tensors[name].dtype == value.dtype and tensors[name].shape == value.shape, name
    assert torch.equal(tensors[name], value), name
assert tensors["seen"].item() == 40 and tensors["encoder"].abs().sum() > 0

# The function for models with tied weights takes the file as it is: strictly.
model = OddTensors()
load_model(model, single)
assert torch.equal(model.decoder.weight, tensors["encoder"]) and torch.equal(model.mean, tensors["mean"])

shards = folder / f"many-{iteration}"
index = json.loads((shards / "model.safetensors.index.json").read_text())
assert set(index["weight_map"]) == set(tensors)
assert index["metadata"]["total_size"] == sum(t.numel() * t.element_size() for t in tensors.values())
assert sorted(set(index["weight_map"].values())) == sorted(p.name for p in shards.glob("*.safetensors"))
for name, shard in index["weight_map"].items():
    assert torch.equal(load_file(shards / shard)[name], tensors[name]), name

with torch.no_grad():
    model.encoder.fill_(0.75)
    model.bias.fill_(8.5)
    model.fp16.add_(1)
    model.bf16.mul_(2)
    model.flags.logical_not_()
    model.turned.copy_(torch.randn(3, 2))
save_model(model, out)
