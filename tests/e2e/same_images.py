#!/usr/bin/env python3
"""same_images.py FOLDER OUT: the images of an image folder, in the order and with the labels of ImageFolder, as IDX files, as
arrays of numpy and as a safetensors file."""
import pathlib
import struct
import sys

import numpy
import safetensors.numpy
from PIL import Image

folder, out = map(pathlib.Path, sys.argv[1:])
files = [(path, label) for label, name in enumerate(sorted(p.name for p in folder.iterdir()))
         for path in sorted((folder / name).iterdir())]
images = numpy.stack([numpy.asarray(Image.open(path)) for path, _ in files])
labels = numpy.array([label for _, label in files])
numpy.save(out / "images.npy", images[:, None])
numpy.save(out / "labels.npy", labels)
safetensors.numpy.save_file({"img": images[:, None], "label": labels}, out / "all.safetensors")
(out / "images.idx").write_bytes(bytes((0, 0, 8, 3)) + struct.pack(">3I", *images.shape) + images.tobytes())
(out / "labels.idx").write_bytes(bytes((0, 0, 8, 1)) + struct.pack(">I", len(labels)) + labels.astype("u1").tobytes())
