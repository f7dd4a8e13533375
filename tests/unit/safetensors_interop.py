"""Files go from Python's safetensors through Gantry's reader and writer and back, and must say the same.

safetensors_interop.py PROGRAM: the program that reads one file and writes another."""
import pathlib
import subprocess
import sys
import tempfile

import numpy
import safetensors
import safetensors.numpy
import safetensors.torch
import torch


def through(program, source, target):
    subprocess.run([program, source, target], check=True)


def check_equal(name, found, expected):
    assert found.dtype == expected.dtype, (name, found.dtype, expected.dtype)
    assert found.shape == expected.shape, (name, found.shape, expected.shape)
    as_bytes = lambda t: t.contiguous().flatten().view(torch.uint8).numpy().tobytes()
    assert as_bytes(found) == as_bytes(expected), name


def torch_tensors():
    generator = torch.Generator().manual_seed(1)
    tensors = {}
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        tensors[f"random {dtype}"] = torch.randn(5, 7, generator=generator).to(dtype)
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        tensors[f"random {dtype}"] = torch.randint(0, 120, (3, 2, 5), generator=generator).to(dtype)
    tensors["bool"] = torch.randint(0, 2, (13,), generator=generator).to(torch.bool)
    tensors["special"] = torch.tensor([float("nan"), float("inf"), -0.0, 1e-45])
    tensors["scalar"] = torch.tensor(2.5, dtype=torch.bfloat16)
    tensors["empty"] = torch.empty(0)
    tensors["empty 3"] = torch.empty(2, 0, 4, dtype=torch.float16)
    tensors["turned f32"] = torch.randn(4, 9, generator=generator)
    tensors["turned bf16"] = torch.randn(9, 4, generator=generator).to(torch.bfloat16)
    tensors['a "quoted" \\ name/with.dots ä 模型 😀'] = torch.ones(3)
    return tensors


def check_torch(program, folder):
    tensors = torch_tensors()
    metadata = {"format": "pt", 'a "key"': "two\nlines\tä 😀", "empty": ""}
    for number, given in enumerate((None, metadata)):
        source, target = folder / f"in{number}", folder / f"out{number}"
        safetensors.torch.save_file(tensors, source, metadata=given)
        through(program, source, target)
        found = safetensors.torch.load_file(target)
        assert set(found) == set(tensors), set(found) ^ set(tensors)
        for name, tensor in tensors.items():
            check_equal(name, found[name], tensor.t() if name.startswith("turned") else tensor)
        with safetensors.safe_open(target, "pt") as file:
            assert (file.metadata() or None) == given, file.metadata()
            check_equal("slice", file.get_slice("turned f32")[2:4], tensors["turned f32"].t()[2:4])


def check_numpy(program, folder):
    arrays = {str(dtype): numpy.arange(10, dtype=dtype) * 3 for dtype in ("uint16", "uint32", "uint64")}
    safetensors.numpy.save_file(arrays, folder / "n-in")
    through(program, folder / "n-in", folder / "n-out")
    found = safetensors.numpy.load_file(folder / "n-out")
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and (found[name] == array).all(), name


def check_empty(program, folder):
    safetensors.torch.save_file({}, folder / "e-in")
    through(program, folder / "e-in", folder / "e-out")
    assert safetensors.torch.load_file(folder / "e-out") == {}


def main():
    with tempfile.TemporaryDirectory() as name:
        for check in (check_torch, check_numpy, check_empty):
            check(sys.argv[1], pathlib.Path(name))


main()
