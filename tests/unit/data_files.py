#!/usr/bin/env python3
"""data_files.py OUT: files as other programs write them, for the tests of datasets, and what those programs read from them.

OUT/images/a/*           pictures; beside the folder, in OUT/expected, <name>.RGB and <name>.L: what Pillow converts them
                         to, as the bytes of [C, H, W]; of 16 bits of gray, the high byte
OUT/arrays/*.npy         arrays of numpy.save, with <name>.bytes: their elements, rows first
OUT/tensors.safetensors  tensors of the Python package"""
import pathlib
import struct
import sys
import warnings
import zlib

import numpy
import safetensors.numpy
from PIL import Image

out = pathlib.Path(sys.argv[1])
random = numpy.random.default_rng(7)
HEIGHT, WIDTH = 13, 18


def smooth():
    """A colour picture that survives JPEG."""
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    return numpy.stack([10 * x, 15 * y, 255 - 6 * (x + y)], axis=-1).clip(0, 255).astype(numpy.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(path, rows, bits, colour_type, interlaced=False):
    """PNG files of kinds that Pillow does not write. `rows`: the bytes of all filtered rows."""
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, colour_type, 0, 0, interlaced)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
                     chunk(b"IEND", b""))


def rows_of(samples):
    """Each row after the number of its filter, none."""
    return b"".join(b"\0" + row.tobytes() for row in samples)


def packed_gray(bits):
    values = random.integers(0, 2 ** bits, (HEIGHT, WIDTH))
    as_bits = (values[:, :, None] >> numpy.arange(bits)[::-1]) & 1
    return rows_of(numpy.packbits(as_bits.reshape(HEIGHT, -1).astype(numpy.uint8), axis=1))


def adam7(image):
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    return b"".join(rows_of(image[y::dy, x::dx]) for x, y, dx, dy in passes)


def write_images(folder):
    rgb = random.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=numpy.uint8)
    picture = Image.fromarray(rgb)
    picture.save(folder / "rgb.png")
    picture.convert("L").save(folder / "gray.png")
    picture.convert("1").save(folder / "one_bit.png")
    picture.quantize(7).save(folder / "palette.png")
    picture.quantize(40).save(folder / "palette_transparent.png", transparency=bytes(range(40)))
    Image.fromarray(random.integers(0, 256, (HEIGHT, WIDTH, 4), dtype=numpy.uint8)).save(folder / "rgba.png")
    Image.fromarray(random.integers(0, 256, (HEIGHT, WIDTH, 2), dtype=numpy.uint8)).save(folder / "gray_alpha.png")
    picture.save(folder / "gamma.png", pnginfo=gamma())
    for bits in 2, 4:
        write_png(folder / f"gray_{bits}_bits.png", packed_gray(bits), bits, 0)
    write_png(folder / "rgb_16_bits.png",
              rows_of(random.integers(0, 65536, (HEIGHT, WIDTH, 3)).astype(">u2")), 16, 2)
    write_png(folder / "interlaced.png", adam7(rgb), 8, 2, interlaced=True)

    picture = Image.fromarray(smooth())
    picture.save(folder / "rgb.jpg", quality=90)
    picture.save(folder / "full_chroma.jpg", quality=90, subsampling=0)
    picture.save(folder / "progressive.jpg", quality=90, progressive=True)
    picture.convert("L").save(folder / "gray.jpg", quality=90)
    picture.convert("CMYK").save(folder / "cmyk.jpg", quality=90)


def gamma():
    from PIL import PngImagePlugin
    info = PngImagePlugin.PngInfo()
    info.add(b"gAMA", struct.pack(">I", 100000))
    return info


def write_arrays(folder):
    arrays = {name: random.integers(-100, 100, (5, 2, 3)).astype(name)
              for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                           "float64", "complex64", "complex128", "bool")}
    arrays["fortran"] = numpy.asfortranarray(random.standard_normal((5, 2, 3)))
    arrays["vector"] = numpy.arange(5)
    arrays["nothing"] = numpy.zeros((0, 4), numpy.float32)
    for name, array in arrays.items():
        numpy.save(folder / f"{name}.npy", array)
        (folder / f"{name}.bytes").write_bytes(array.tobytes())
    for version in (2, 0), (3, 0):
        with open(folder / f"version_{version[0]}.npy", "wb") as file:
            numpy.lib.format.write_array(file, arrays["float32"], version)
        (folder / f"version_{version[0]}.bytes").write_bytes(arrays["float32"].tobytes())
    numpy.save(folder / "swapped.npy", numpy.arange(5, dtype=">i4"))
    numpy.save(folder / "text.npy", numpy.array(["a", "b"]))
    numpy.save(folder / "objects.npy", numpy.array([{}, None]), allow_pickle=True)
    numpy.save(folder / "records.npy", numpy.zeros(5, dtype=[("x", "<f4"), ("y", "<i4")]))
    numpy.save(folder / "scalar.npy", numpy.float32(1))
    numpy.savez(folder / "many.npz", numpy.arange(5))


warnings.simplefilter("ignore", UserWarning)  # Pillow's, about the transparency that is dropped here on purpose
for name in "images/a", "expected", "arrays":
    (out / name).mkdir(parents=True)
write_images(out / "images/a")
for path in sorted((out / "images/a").iterdir()):
    with Image.open(path) as image:
        for mode in "RGB", "L":
            pixels = numpy.asarray(image.convert(mode)).reshape(HEIGHT, WIDTH, -1)
            (out / "expected" / f"{path.name}.{mode}").write_bytes(pixels.transpose(2, 0, 1).tobytes())
deep = random.integers(0, 65536, (HEIGHT, WIDTH), dtype=numpy.uint16)
Image.fromarray(deep).save(out / "images/a/gray_16_bits.png")
for mode, channels in ("RGB", 3), ("L", 1):  # where Pillow cuts off at 255
    (out / "expected" / f"gray_16_bits.png.{mode}").write_bytes((deep >> 8).astype(numpy.uint8).tobytes() * channels)
write_arrays(out / "arrays")
safetensors.numpy.save_file(
    {"x": numpy.arange(20, dtype=numpy.float32).reshape(5, 4), "y": numpy.arange(5) * 10}, out / "tensors.safetensors")
