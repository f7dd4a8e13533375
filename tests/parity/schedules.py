"""schedules.py FILE...: compares the learning rates of schedules_test.cc with those of PyTorch's schedulers."""
import json
import sys
import warnings

import torch
from safetensors import safe_open

warnings.simplefilter("ignore")  # schedulers expect optimizer steps between theirs


def differences(path):
    with safe_open(path, "pt") as file:
        texts = file.metadata()
        groups = [file.get_tensor(name).tolist() for name in sorted(file.keys())]
    # Each group: its base rate, then the rate at each position.
    optimizer = torch.optim.SGD([{"params": [torch.zeros(1, requires_grad=True)], "lr": rates[0]} for rates in groups])
    parts = json.loads(texts["torch"])
    schedulers = [getattr(torch.optim.lr_scheduler, name)(optimizer, **options) for name, options, _ in parts]
    scheduler = schedulers[0]
    if len(parts) > 1:
        starts = [start for _, _, start in parts[1:]]
        scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, schedulers, starts)

    found = []
    positions = len(groups[0]) - 1
    assert len(groups) == 2 and positions == 60
    for position in range(positions):
        for group, rates in zip(optimizer.param_groups, groups):
            if not abs(rates[1 + position] - group["lr"]) <= 1e-12 * rates[0]:
                found.append(f"{texts['schedule']}, beside {texts['torch']}, at {position}, base rate {rates[0]}: "
                             f"{rates[1 + position]!r} here, {group['lr']!r} in PyTorch")
        scheduler.step()
    return found


problems = [line for path in sys.argv[1:] for line in differences(path)]
print("\n".join(problems))
sys.exit(1 if problems or len(sys.argv) < 2 else 0)
