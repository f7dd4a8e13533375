"""plateau.py FILE...: compares the learning rates of plateau_test.cc with those of PyTorch's ReduceLROnPlateau."""
import json
import sys

import torch
from safetensors import safe_open

BASE = 0.1  # of probe.h's run


def differences(path):
    with safe_open(path, "pt") as file:
        options = json.loads(file.metadata()["options"])
        rates, values = file.get_tensor("rates").tolist(), file.get_tensor("values").tolist()
    assert len(rates) == len(values) == 200
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=BASE)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    found, theirs = [], []
    for epoch, (rate, value) in enumerate(zip(rates, values)):
        theirs.append(optimizer.param_groups[0]["lr"])
        if not abs(rate - theirs[-1]) <= 1e-12 * BASE:
            found.append(f"{options}, epoch {epoch}: {rate!r} here, {theirs[-1]!r} in PyTorch")
        scheduler.step(value)
    if len(set(theirs)) < 3:
        found.append(f"{options}: the rate changes {len(set(theirs)) - 1} times, too few to tell")
    return found[:5]


problems = [line for path in sys.argv[1:] for line in differences(path)]
print("\n".join(problems))
sys.exit(1 if problems or len(sys.argv) < 2 else 0)
