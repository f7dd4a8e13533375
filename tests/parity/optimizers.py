"""optimizers.py FILE...: takes the steps of optimizers_test.cc with PyTorch's optimizers and compares all bits."""
import json
import sys

import torch
from safetensors import safe_open


def difference(what, ours, theirs):
    """A line, or nothing where all bits are equal."""
    if ours.dtype == theirs.dtype and ours.shape == theirs.shape and ours.numpy().tobytes() == theirs.numpy().tobytes():
        return []
    size = (ours - theirs).abs().max().item() if ours.shape == theirs.shape else "-"
    return [f"{what} differs: {ours.dtype} {list(ours.shape)} here, {theirs.dtype} {list(theirs.shape)} in PyTorch; "
            f"largest difference {size}"]


def differences(path):
    with safe_open(path, "pt") as file:
        texts = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    names = sorted(name.removeprefix("initial/") for name in tensors if name.startswith("initial/"))
    steps = 1 + max(int(name.split("/")[0]) for name in tensors if name[0].isdigit())
    assert len(names) >= 4 and steps >= 10, (names, steps)

    parameters = {name: tensors[f"initial/{name}"].clone().requires_grad_() for name in names}
    kind = getattr(torch.optim, texts["optimizer"])
    optimizer = kind(list(parameters.values()), fused=True, **json.loads(texts["options"]))
    found = []
    for step in range(steps):
        if texts["rates"]:
            optimizer.param_groups[0]["lr"] = float(texts["rates"].split()[step])
        for name, parameter in parameters.items():
            parameter.grad = tensors.get(f"{step}/gradient/{name}")
        optimizer.step()
        for name, parameter in parameters.items():
            found += difference(f"{name} after step {step}", tensors[f"{step}/parameter/{name}"], parameter.detach())

    theirs = {f"state/{name}/{key}": value for name in names for key, value in optimizer.state[parameters[name]].items()}
    ours = {name for name in tensors if name.startswith("state/")}
    if ours != set(theirs):
        found.append(f"names of the state differ: {sorted(ours ^ set(theirs))}")
    for name in sorted(ours & set(theirs)):
        found += difference(name, tensors[name], theirs[name])
    return [f"{texts['optimizer']} {texts['options']}: {line}" for line in found]


problems = [line for path in sys.argv[1:] for line in differences(path)]
print("\n".join(problems))
sys.exit(1 if problems or len(sys.argv) < 2 else 0)
