"""transforms.py FILE...: what torch.nn.functional.interpolate makes of the images of transforms_test.cc, and Pillow of
bytes. Pieces that were cut out at random are looked for among all that there are."""
import json
import math
import random
import sys
from collections import Counter

import torch
import torch.nn.functional as F
from PIL import Image
from safetensors import safe_open


def interpolate(images, size, method):
    """[N, C, H, W]; the type stays."""
    narrow = images.dtype in (torch.float16, torch.bfloat16)
    planes = images.float() if narrow else images
    if method == "nearest":
        return F.interpolate(planes, size=size, mode="nearest-exact").to(images.dtype)
    return F.interpolate(planes, size=size, mode=method, antialias=True).to(images.dtype)


def output_size(images, size):
    """Of torchvision's Resize."""
    if len(size) == 2:
        return size
    height, width = images.shape[-2:]
    longer = int(size[0] * max(height, width) / min(height, width))
    return [longer, size[0]] if width <= height else [size[0], longer]


def between_pixels(size, result_size):
    """Which pixels of the result have their centre exactly between two: the nearest is either."""
    return [(2 * i + 1) * size % (2 * result_size) == 0 for i in range(result_size)]


def check_pillow(images, ours, method):
    """Pillow rounds between its two passes as well: a step of difference, two where bicubic exaggerates it."""
    filters = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}
    for image, result in zip(images.flatten(0, 1), ours.flatten(0, 1)):
        theirs = Image.fromarray(image.numpy()).resize((result.shape[1], result.shape[0]), filters[method])
        theirs = torch.frombuffer(bytearray(theirs.tobytes()), dtype=torch.uint8).view(result.shape)
        difference = (theirs.int() - result.int()).abs()
        if method == "nearest":
            difference[between_pixels(image.shape[0], result.shape[0])] = 0
            difference[:, between_pixels(image.shape[1], result.shape[1])] = 0
        if difference.max() > {"nearest": 0, "bilinear": 1, "bicubic": 2}[method]:
            return [f"differs from Pillow's by up to {difference.max()}"]
    return []


def check_resize(images, ours, args):
    size, method = output_size(images, args["size"]), args["method"]
    theirs = interpolate(images, size, method)
    found = []
    if theirs.dtype != ours.dtype or theirs.shape != ours.shape or not torch.equal(theirs, ours):
        found.append(f"{ours.dtype} {list(ours.shape)} here, {theirs.dtype} {list(theirs.shape)} in PyTorch")
    elif images.dtype == torch.uint8:
        found += check_pillow(images, ours, method)
    return found


def boxes(height, width):
    return [(top, left, h, w) for h in range(1, height + 1) for w in range(1, width + 1)
            for top in range(height - h + 1) for left in range(width - w + 1)]


def drawn(height, width, scale, ratio, numbers):
    """torchvision's way, written down once more, of an image in which most draws fit."""
    while True:
        area = height * width * numbers.uniform(*scale)
        aspect = math.exp(numbers.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return numbers.randint(0, height - h), numbers.randint(0, width - w), h, w


def distance(a, b):
    """Half of the sum of the differences of two distributions' shares."""
    return sum(abs(a[key] / a.total() - b[key] / b.total()) for key in a | b) / 2


def check_random_resized_crop(images, ours, args):
    """All images are the same one, whose pixels all differ."""
    image, method, size = images[:1], args["method"], args["size"]
    height, width = image.shape[-2:]
    every = boxes(height, width)
    table = torch.cat([interpolate(image[..., t:t + h, l:l + w], size, method) for t, l, h, w in every])
    matches = [(table == result).flatten(1).all(1).nonzero().flatten().tolist() for result in ours]
    lost = [i for i, match in enumerate(matches) if len(match) != 1]
    if lost:
        return [f"{len(lost)} of {len(ours)} results are no piece of the image, or not of one alone: {lost[:5]}"]
    found = [every[match[0]] for match in matches]

    numbers = random.Random(1)
    expected = [drawn(height, width, args["scale"], args["ratio"], numbers) for _ in range(100000)]
    problems = []
    for what, of in {"sizes": lambda box: box[2:], "tops": lambda box: (box[0], box[2]),
                     "lefts": lambda box: (box[1], box[3])}.items():
        here, there = Counter(map(of, found)), Counter(map(of, expected))
        off = distance(here, there)
        # Of samples of this size the distance is about half of sqrt(2 k / (pi n)), of k values that are equally likely.
        usual = math.sqrt(2 * len(there) / (math.pi * len(found))) / 2
        if set(here) - set(there) or off > 1.5 * usual:
            problems.append(f"{what}: {off:.3f} from those of torchvision's way, {usual:.3f} is usual; "
                            f"never there: {set(here) - set(there)}")
    return problems


CHECKS = {"resize": check_resize, "random_resized_crop": check_random_resized_crop}


def differences(path):
    with safe_open(path, "pt") as file:
        texts = file.metadata()
        images, ours = file.get_tensor("images"), file.get_tensor("result")
    found = CHECKS[texts["check"]](images, ours, json.loads(texts["args"]))
    return [f"{texts['check']} {texts['args']} of {images.dtype} {list(images.shape)}: {line}" for line in found]


problems = [line for path in sys.argv[1:] for line in differences(path)]
print("\n".join(problems[:40]))
sys.exit(1 if problems or len(sys.argv) < 2 else 0)
