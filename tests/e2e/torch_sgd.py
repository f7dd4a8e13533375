"""The training runs of optimizer_test.cc in PyTorch: prints "<case> <step> <parameters>" after each step."""
import torch

CASES = {
    "plain": {},
    "momentum": dict(momentum=0.9),
    "damped": dict(momentum=0.9, dampening=0.3, weight_decay=0.05),
    "nesterov": dict(momentum=0.9, nesterov=True, weight_decay=0.05),
}

torch.set_default_dtype(torch.float64)
x = torch.tensor([[(7 * i + 13 * j) % 17 / 8 - 1 for j in range(4)] for i in range(20)])
y = torch.tensor([[5 * i % 11 / 5 - 1] for i in range(20)])

for name, options in CASES.items():
    weight = torch.tensor([[0.1 * j - 0.25 for j in range(4)]], requires_grad=True)
    bias = torch.tensor([0.5], requires_grad=True)
    optimizer = torch.optim.SGD([weight, bias], lr=0.1, foreach=False, fused=True, **options)
    step = 0
    for _ in range(2):
        for first in range(0, 20, 6):
            optimizer.zero_grad()
            prediction = torch.nn.functional.linear(x[first:first + 6], weight, bias)
            ((prediction - y[first:first + 6]) ** 2).mean().backward()
            optimizer.step()
            step += 1
            print(name, step, *(repr(v) for v in torch.cat([weight.flatten(), bias]).tolist()))
