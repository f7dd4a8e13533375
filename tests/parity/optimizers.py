"""optimizers.py FILE...: takes the steps of optimizers_test.cc with PyTorch's optimizers. Where PyTorch is told to use a
fused kernel all bits are the same; else all parameters together, and each state, are as near as rounding lets them be."""
import json
import sys

import torch
from safetensors import safe_open

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6}


def bits(what, ours, theirs):
    """A line, or nothing where all bits are equal."""
    if ours.dtype == theirs.dtype and ours.shape == theirs.shape and ours.numpy().tobytes() == theirs.numpy().tobytes():
        return []
    size = (ours - theirs).abs().max().item() if ours.shape == theirs.shape else "-"
    return [f"{what} differs: {ours.dtype} {list(ours.shape)} here, {theirs.dtype} {list(theirs.shape)} in PyTorch; "
            f"largest difference {size}"]


def nearness(what, ours, theirs):
    """A line, or nothing where the difference has almost no length."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return [f"{what}: {ours.dtype} {list(ours.shape)} here, {theirs.dtype} {list(theirs.shape)} in PyTorch"]
    distance = ((ours - theirs).norm() / theirs.norm()).item() if theirs.norm() > 0 else ours.norm().item()
    return [] if distance <= TOLERANCE[ours.dtype] else [f"{what}: relative distance {distance:.3g}"]


def as_one(tensors):
    return torch.cat([tensor.flatten() for tensor in tensors])


def set_momentum(group, momentum):
    if "betas" in group:
        group["betas"] = (momentum, group["betas"][1])
    else:
        group["momentum"] = momentum


def differences(path):
    with safe_open(path, "pt") as file:
        texts = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    names = sorted(name.removeprefix("initial/") for name in tensors if name.startswith("initial/"))
    steps = 1 + max(int(name.split("/")[0]) for name in tensors if name[0].isdigit())
    assert len(names) >= 4 and steps >= 50, (names, steps)

    parameters = {name: tensors[f"initial/{name}"].clone().requires_grad_() for name in names}
    own = json.loads(texts["own_group"])  # {} or {"names": [...], "lr": ..., ...}
    of_own = own.pop("names", [])
    groups = [{"params": [parameters[name] for name in names if name not in of_own]}]
    if own:
        groups.append({"params": [parameters[name] for name in of_own], **own})
    fused = texts["fused"] == "true"
    how = {"fused": True} if fused else {"foreach": False}
    optimizer = getattr(torch.optim, texts["optimizer"])(groups, **how, **json.loads(texts["options"]))
    rates, momenta = json.loads(texts["rates"]), json.loads(texts["momenta"])

    found = []
    for step in range(steps):
        for index, group in enumerate(optimizer.param_groups):
            if rates:
                group["lr"] = rates[step] * (1 + index)
            if momenta:
                set_momentum(group, momenta[step])
        for name, parameter in parameters.items():
            parameter.grad = tensors.get(f"{step}/gradient/{name}")
        optimizer.step()
        ours = {name: tensors[f"{step}/parameter/{name}"] for name in names}
        if fused:
            for name, parameter in parameters.items():
                found += bits(f"{name} after step {step}", ours[name], parameter.detach())
        else:
            found += nearness(f"all parameters after step {step}", as_one(ours.values()),
                              as_one(parameter.detach() for parameter in parameters.values()))

    theirs = {f"state/{name}/{key}": value for name in names for key, value in optimizer.state[parameters[name]].items()
              if value is not None}
    ours = {name for name in tensors if name.startswith("state/")}
    if ours != set(theirs):
        found.append(f"names of the state differ: {sorted(ours ^ set(theirs))}")
    for name in sorted(ours & set(theirs)):
        found += (bits if fused else nearness)(name, tensors[name], theirs[name])
    return [f"{texts['optimizer']} {texts['options']} {texts['own_group']}: {line}" for line in found]


problems = [line for path in sys.argv[1:] for line in differences(path)]
print("\n".join(problems[:40]))
sys.exit(1 if problems or len(sys.argv) < 2 else 0)
