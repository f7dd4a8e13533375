"""losses.py FILE...: the losses of losses_test.cc and their gradients by torch.nn.functional; all bits are the same."""
import json
import sys

import torch
import torch.nn.functional as F
from safetensors import safe_open


def differences(path):
    with safe_open(path, "pt") as file:
        texts = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    prediction = tensors["prediction"].clone().requires_grad_()
    options = json.loads(texts["options"])
    for name in ("weight", "pos_weight"):
        if name in options:
            options[name] = torch.tensor(options[name], dtype=prediction.dtype)
    theirs = getattr(F, texts["function"])(prediction, tensors["target"], **options)
    theirs.backward()
    what = f"{texts['function']} {texts['options']} of {prediction.dtype} {list(prediction.shape)}"
    found = []
    if not (torch.isfinite(theirs) and torch.equal(theirs.detach(), tensors["loss"])):
        found.append(f"{what}: {tensors['loss'].item()!r} here, {theirs.item()!r} in PyTorch")
    if not torch.equal(prediction.grad, tensors["gradient"]):
        found.append(f"{what}: the gradients differ")
    return found


problems = [line for path in sys.argv[1:] for line in differences(path)]
print("\n".join(problems[:40]))
sys.exit(1 if problems or len(sys.argv) < 2 else 0)
