#!/usr/bin/env python3
"""The benchmark's job as a hand-written PyTorch loop: what a user would otherwise write.

usage: torch_loop.py mlp|cnn EPOCHS      Prints one line: images per second of training alone.
Set OMP_NUM_THREADS. One step runs before the clock starts, so that lazy imports are not counted.
"""
import gzip, os, sys, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F

kind, epochs = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
torch.manual_seed(2023)
root = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
if not os.path.isdir(root):
    sys.exit(f"torch_loop.py: {root} is missing: apt-get install dataset-fashion-mnist, or set FASHION_MNIST")


def read(name, offset):
    with gzip.open(os.path.join(root, name)) as f:
        return np.frombuffer(f.read(), np.uint8, offset=offset)


images = torch.from_numpy(read("train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).copy())
labels = torch.from_numpy(read("train-labels-idx1-ubyte.gz", 8).astype(np.int64))
models = {
    "mlp": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)),
    "cnn": lambda: nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1568, 10)),
}
model = models[kind]()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def step(indices):
    x = (images[indices].float() / 255 - 0.2860) / 0.3530
    loss = F.cross_entropy(model(x), labels[indices])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


step(torch.arange(128))
start = time.perf_counter()
for _ in range(epochs):
    for indices in torch.randperm(len(labels)).split(128):
        step(indices)
print(f"{len(labels) * epochs / (time.perf_counter() - start):.0f}")
