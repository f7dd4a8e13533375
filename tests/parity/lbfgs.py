"""lbfgs.py FILE...: takes the steps of lbfgs_test.cc with PyTorch's LBFGS and compares parameters and evaluations."""
import json
import sys

import torch
from safetensors import safe_open

STEPS = 50


def loss_of(objective, p, x, y):
    if objective == "rosenbrock":
        a, b = p[0][:3], p[0][1:]
        return (100 * (b - a * a) ** 2 + (a - 1) ** 2).sum()
    if objective == "wall":
        return ((8 * (p[0] - 1)).exp() * torch.arange(1, 5)).sum() - 4 * p[0].sum()
    if objective == "ripples":
        return (0.05 * (p[0] - 20) ** 2 + 0.3 * (2 * p[0]).sin()).sum()
    if objective == "hills":
        return (0.05 * (p[0] - 10) ** 2 + 0.3 * (3 * p[0]).sin()).sum()
    if objective == "convex":
        error = torch.nn.functional.linear(x, p[0], p[1]) - y
        return (3 * error).cosh().log().mean() + 0.01 * ((p[2] - 1) ** 2).sum()
    hidden = torch.tanh(torch.nn.functional.linear(x, p[0], p[1]))
    return ((torch.nn.functional.linear(hidden, p[2]) - y) ** 2).mean()


def differences(path):
    with safe_open(path, "pt") as file:
        texts = file.metadata()
        # Cloned, so that they are as well aligned as the test's own: sums are cut into pieces by that.
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}
    names = sorted(name.removeprefix("initial/") for name in tensors if name.startswith("initial/"))
    parameters = [tensors[f"initial/{name}"].clone().requires_grad_() for name in names]
    assert all(p.dtype == torch.float64 for p in parameters)
    optimizer = torch.optim.LBFGS(parameters, **json.loads(texts["options"]))
    evaluations = 0

    def closure():
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        loss = loss_of(texts["objective"], parameters, tensors["x"], tensors["y"])
        loss.backward()
        return loss

    found, moved = [], 0
    for step in range(STEPS):
        before = torch.cat([p.detach().flatten() for p in parameters])
        optimizer.step(closure)
        theirs = torch.cat([p.detach().flatten() for p in parameters])
        ours = torch.cat([tensors[f"{step}/{name}"].flatten() for name in names])
        moved += not torch.equal(before, theirs)
        error = ((ours - theirs).norm() / theirs.norm()).item()
        if not error <= 1e-12:
            found.append(f"step {step}: the relative norm of the difference is {error:.3g}")
        if tensors[f"{step}/evaluations"].item() != evaluations:
            found.append(f"step {step}: {tensors[f'{step}/evaluations'].item()} evaluations here, {evaluations} in PyTorch")
    if moved < 3:
        found.append(f"only {moved} steps move anything")
    print(f"{texts['objective']} {texts['options']}: {moved} steps moved, {evaluations} evaluations")
    return [f"{texts['objective']} {texts['options']}: {line}" for line in found[:5]]


problems = [line for path in sys.argv[1:] for line in differences(path)]
print("\n".join(problems))
sys.exit(1 if problems or len(sys.argv) < 2 else 0)
