"""sparse_adam.py FILE...: takes the steps of sparse_adam_test.cc with PyTorch's SparseAdam and compares."""
import json
import sys

import torch
from safetensors import safe_open

STEPS = 50


def differences(path):
    with safe_open(path, "pt") as file:
        options = json.loads(file.metadata()["options"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    parameters = {name: tensors[f"initial/{name}"].clone().requires_grad_() for name in ("p0", "p1")}
    assert all(p.dtype == torch.float64 for p in parameters.values())
    optimizer = torch.optim.SparseAdam([{"params": [parameters["p0"]]}, {"params": [parameters["p1"]], "lr": 0.05}],
                                       **options)
    found = []

    def compare(what, ours, theirs):
        error = ((ours - theirs).norm() / theirs.norm()).item()
        if not error <= 1e-12:
            found.append(f"{options}: {what}: the relative norm of the difference is {error:.3g}")

    for step in range(STEPS):
        for name, parameter in parameters.items():
            rows = tensors.get(f"{step}/rows/{name}")
            parameter.grad = None if rows is None else torch.sparse_coo_tensor(
                rows, tensors[f"{step}/values/{name}"], parameter.shape)
        optimizer.step()
        for name, parameter in parameters.items():
            compare(f"{name} after step {step}", tensors[f"{step}/parameter/{name}"], parameter.detach())
    for name, parameter in parameters.items():
        state = optimizer.state[parameter]
        for key in ("exp_avg", "exp_avg_sq"):
            compare(f"{name}: {key}", tensors[f"state/{name}/{key}"], state[key])
        if tensors[f"state/{name}/step"].item() != state["step"]:
            found.append(f"{options}: {name}: {tensors[f'state/{name}/step'].item()} steps here, {state['step']} in PyTorch")
    return found


problems = [line for path in sys.argv[1:] for line in differences(path)]
print("\n".join(problems))
sys.exit(1 if problems or len(sys.argv) < 2 else 0)
