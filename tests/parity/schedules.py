"""schedules.py FILE...: compares the learning rates of schedules_test.cc with those of PyTorch's schedulers."""
import json
import sys
import warnings

import torch
from safetensors import safe_open

warnings.simplefilter("ignore")  # schedulers expect optimizer steps between theirs


def python(options):
    """With lambdas made of what LambdaLR's expressions are."""
    if "lr_lambda" not in options:
        return options
    texts = options["lr_lambda"]
    functions = [eval(f"lambda epoch: {text}") for text in (texts if isinstance(texts, list) else [texts])]
    return {**options, "lr_lambda": functions if isinstance(texts, list) else functions[0]}


def differences(path):
    with safe_open(path, "pt") as file:
        texts = file.metadata()
        groups = [file.get_tensor(name).tolist() for name in sorted(file.keys()) if name.startswith("group")]
        momentum = file.get_tensor("momentum").tolist() if "momentum" in file.keys() else None
    # Each group: its base rate, then the rate at each position.
    optimizer = torch.optim.SGD([{"params": [torch.zeros(1, requires_grad=True)], "lr": rates[0]} for rates in groups],
                                momentum=0.1)
    parts = json.loads(texts["torch"])
    schedulers = [getattr(torch.optim.lr_scheduler, name)(optimizer, **python(options)) for name, options, _ in parts]
    scheduler = schedulers[0]
    if len(parts) > 1:
        starts = [start for _, _, start in parts[1:]]
        scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, schedulers, starts)

    found = []
    positions = len(groups[0]) - 1
    assert len(groups) == 2 and positions == 200
    for position in range(positions):
        for group, rates in zip(optimizer.param_groups, groups):
            if not abs(rates[1 + position] - group["lr"]) <= 1e-12 * rates[0]:
                found.append(f"{texts['schedule']}, beside {texts['torch']}, at {position}, base rate {rates[0]}: "
                             f"{rates[1 + position]!r} here, {group['lr']!r} in PyTorch")
        theirs = optimizer.param_groups[0]["momentum"]
        if momentum and not abs(momentum[position] - theirs) <= 1e-12:
            found.append(f"{texts['schedule']}, beside {texts['torch']}, at {position}: momentum "
                         f"{momentum[position]!r} here, {theirs!r} in PyTorch")
        scheduler.step()
    if ("CyclicLR" in texts["torch"]) != (momentum is not None):
        found.append(f"{texts['schedule']}: a momentum {'is missing' if momentum is None else 'that is not PyTorch'}")
    return found


problems = [line for path in sys.argv[1:] for line in differences(path)]
print("\n".join(problems))
sys.exit(1 if problems or len(sys.argv) < 2 else 0)
