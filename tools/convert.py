"""Weights and checkpoints to PyTorch's .pth and back.

  convert to-torch SOURCE MODEL.pth
      SOURCE is a checkpoint's folder, a .safetensors file, or the index or the folder of a sharded one. The .pth holds
      {"model": state_dict} and, of a checkpoint whose optimizer has state, "optimizer": what load_state_dict of the same
      torch.optim optimizer takes. Its learning rate is LEARNING_RATE of the configuration: where a schedule has moved
      on, set it after loading. torch.load(..., weights_only=True) reads it.
  convert from-torch MODEL.pth FOLDER
      FOLDER gets model.safetensors, for MODEL.PRETRAINED_MODEL, and optimizer.safetensors where the .pth has an optimizer.
      The .pth holds a state_dict, or {"model": ..., "optimizer": ...}.
  convert to-checkpoint MODEL.pth --like CHECKPOINT FOLDER
      A checkpoint to RESUME_FROM: that of --like with the weights of the .pth and, where it has one, its optimizer.

PyTorch's optimizers know parameters by their order. It is taken from the names that an optimizer built with
model.named_parameters() keeps ("param_names"), else from the order of the state_dict.
"""
import argparse
import ctypes
import ctypes.util
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import save_file

ALIAS = "alias:"
# Keys of our optimizers, and what torch.optim calls them.
HYPERPARAMETERS = {
    "LEARNING_RATE": "lr", "MOMENTUM": "momentum", "DAMPENING": "dampening", "WEIGHT_DECAY": "weight_decay",
    "NESTEROV": "nesterov", "BETAS": "betas", "EPS": "eps", "AMSGRAD": "amsgrad", "ALPHA": "alpha",
    "CENTERED": "centered", "RHO": "rho", "LAMBD": "lambd", "T0": "t0", "LEARNING_RATE_DECAY": "lr_decay",
    "INITIAL_ACCUMULATOR_VALUE": "initial_accumulator_value", "ETAS": "etas", "STEP_SIZES": "step_sizes"}
OPTIMIZERS = ("SGD", "Adam", "AdamW", "Adamax", "Adagrad", "Adadelta", "ASGD", "RMSprop", "Rprop", "SparseAdam")


class Problem(Exception):
    """What the user is told."""


# --- reading ---

def read_file(path):
    """Tensors and metadata of one safetensors file."""
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})
    except Exception as error:  # the library's own classes differ from version to version
        raise Problem(f"{path}: {error}") from None


def read_weights(source):
    """A model's tensors under all of their names."""
    source = pathlib.Path(source)
    if source.is_dir():
        single, index = source / "model.safetensors", source / "model.safetensors.index.json"
        if not single.exists() and not index.exists():
            raise Problem(f"{source}: the folder has neither {single.name} nor {index.name}")
        source = single if single.exists() else index
    if not source.exists():
        raise Problem(f"{source}: there is no such file or folder")
    files = [source]
    if source.suffix == ".json":
        files = [source.parent / name for name in sorted(set(read_json(source, "weight_map").values()))]
    tensors = {}
    for path in files:
        own, metadata = read_file(path)
        tensors.update(own)
        for key, stored in metadata.items():
            if key.startswith(ALIAS) and stored in own:
                tensors[key[len(ALIAS):]] = own[stored]
    return tensors


def read_json(path, member):
    try:
        return json.loads(path.read_text())[member]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Problem(f"{path}: cannot read its {member}: {error!r}") from None


def read_pth(path):
    """The state_dict and the optimizer's, or None."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise Problem(f"{path}: there is no such file") from None
    except Exception:  # whose text is about PyTorch's own defaults
        raise Problem(f"{path}: torch.load cannot read it with weights_only=True: it is no .pth, or has more in it than "
                      "tensors, numbers, text, lists and maps") from None
    optimizer = content.get("optimizer") if isinstance(content, dict) else None
    model = content
    for key in ("model", "state_dict"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            model = content[key]
    if not isinstance(model, dict) or not model or not all(torch.is_tensor(t) for t in model.values()):
        raise Problem(f'{path}: it should hold a state_dict, or {{"model": state_dict, "optimizer": state_dict}}')
    if optimizer is not None and not ({"state", "param_groups"} <= set(optimizer)):
        raise Problem(f'{path}: its "optimizer" is no state_dict of a torch.optim optimizer')
    return model, optimizer


# --- the optimizer ---

def value_of(text):
    """A setting as checkpoint.json has it: "0.1", "true", "[0.9, 0.999]"."""
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("["):
        return tuple(float(item) for item in text[1:-1].split(","))
    return float(text)


def hyperparameters(settings, prefix):
    return {name: value_of(settings[prefix + key]) for key, name in HYPERPARAMETERS.items() if prefix + key in settings}


def optimizer_for_torch(checkpoint):
    """The state_dict of the torch.optim optimizer that the checkpoint's is, or None."""
    state, metadata = read_file(checkpoint / "optimizer.safetensors")
    if not state:
        return None
    settings = read_json(checkpoint / "checkpoint.json", "settings")
    kind = settings.get("SOLVER.OPTIMIZER")
    if kind not in OPTIMIZERS:
        print(f"convert: optimizer {kind} has no counterpart in torch.optim: the model alone is written", file=sys.stderr)
        return None
    names = metadata["parameters"].split()
    if set(names) != {name.rpartition("/")[0] for name in state}:
        raise Problem(f"{checkpoint}: the names in optimizer.safetensors are not those in its metadata")

    prefix = "SOLVER.OPTIMIZER."
    groups = [({"params": []}, None)]
    while (match := settings.get(f"{prefix}PARAM_GROUPS[{len(groups) - 1}].MATCH")) is not None:
        own = hyperparameters(settings, f"{prefix}PARAM_GROUPS[{len(groups) - 1}].")
        groups.append(({"params": [], **own}, [re.compile(p) for p in match[1:-1].split(", ")]))
    owners = {}
    for name in names:  # as Optimizer::group_of: the first that matches, else the first of all
        group = next((g for g, patterns in groups[1:] if any(p.search(name) for p in patterns)), groups[0][0])
        group["params"].append((name, torch.nn.Parameter(torch.zeros(1))))
    filled = [group for group, _ in groups if group["params"]]
    # Built for its param_groups, which have every option that there is.
    made = getattr(torch.optim, kind)(filled, **hyperparameters(settings, prefix)).state_dict()
    for group in made["param_groups"]:
        owners.update(zip(group["params"], group["param_names"]))
    made["state"] = {index: {} for index in owners}
    for index, name in owners.items():
        for path, tensor in state.items():
            parameter, _, entry = path.rpartition("/")
            if parameter == name:
                made["state"][index][entry] = tensor
    return made


def optimizer_for_gantry(model, optimizer):
    """Our names for the state of an optimizer: <parameter>/<state>."""
    indices = [index for group in optimizer["param_groups"] for index in group["params"]]
    if all("param_names" in group for group in optimizer["param_groups"]):
        names = [name for group in optimizer["param_groups"] for name in group["param_names"]]
    else:
        names = names_by_order(model, optimizer, indices)
    result = {}
    for index, name in zip(indices, names):
        if name not in model:
            raise Problem(f"the optimizer has a parameter {name}, which the model has not")
        for entry, value in optimizer["state"].get(index, {}).items():
            if torch.is_tensor(value):
                result[f"{name}/{entry}"] = value
            elif value is not None:
                result[f"{name}/{entry}"] = torch.tensor(float(value))
    return result, names


def names_by_order(model, optimizer, indices):
    """The names of a state_dict that are parameters: each once, no buffers."""
    buffers = ("running_mean", "running_var", "num_batches_tracked")
    seen, names = set(), []
    for name, tensor in model.items():
        if name.rpartition(".")[2] in buffers or not tensor.is_floating_point() or storage_of(tensor) in seen:
            continue
        seen.add(storage_of(tensor))
        names.append(name)
    fits = len(names) == len(indices) and sorted(indices) == list(range(len(indices)))
    ordered = [names[i] for i in indices] if fits else []
    for index, name in zip(indices, ordered):
        for entry in optimizer["state"].get(index, {}).values():
            fits &= not torch.is_tensor(entry) or entry.dim() == 0 or entry.shape == model[name].shape
    if not fits:
        raise Problem(f"the optimizer has {len(indices)} parameters, and which of the model's {len(model)} tensors they are "
                      "cannot be told: build it with model.named_parameters(), so that its state_dict has their names")
    return ordered


# --- writing ---

def storage_of(tensor):
    return (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tuple(tensor.shape), tensor.stride(),
            tensor.dtype) if tensor.numel() else object()


def once(tensors):
    """Tied tensors under the first of their names, and metadata with the others."""
    first, kept, metadata = {}, {}, {"format": "pt"}
    for name, tensor in tensors.items():
        owner = first.setdefault(storage_of(tensor), name)
        if owner == name:
            kept[name] = tensor.detach().clone(memory_format=torch.contiguous_format)
        else:
            metadata[ALIAS + name] = owner
    return kept, metadata


def write_weights(path, tensors):
    kept, metadata = once(tensors)
    save_file(kept, path, metadata)


def write_optimizer(path, tensors, names):
    metadata = {"format": "pt"}
    if tensors:
        metadata["parameters"] = "".join(name + "\n" for name in names if any(t.startswith(name + "/") for t in tensors))
    save_file({name: t.detach().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}, path, metadata)


def publish(target, fill):
    """A file or folder that appears whole or not at all."""
    target = pathlib.Path(target)
    if target.is_dir() or target.is_symlink():
        raise Problem(f"{target} is there already: remove it, or write to another name")
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = pathlib.Path(tempfile.mkdtemp(prefix=f".tmp-{target.name}-", dir=target.parent))
    try:
        os.rename(fill(staged), target)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def xxh3(data):
    library = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
    library.XXH3_64bits.restype = ctypes.c_uint64
    library.XXH3_64bits.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    return f"{library.XXH3_64bits(data, len(data)):016x}"


def renew_account(folder):
    """checkpoint.json for the files as they are now. Its lines stay, but for sizes and hashes; see checkpoint_json.cc."""
    path = folder / "checkpoint.json"
    lines = path.read_text().splitlines(keepends=True)[:-2]  # without its own hash
    for name in read_json(path, "files"):
        data = (folder / name).read_bytes()
        entry = json.dumps({"size": len(data), "xxh3": xxh3(data)})
        pattern = re.compile(rf"    {re.escape(json.dumps(name))}: \{{[^}}]*\}}")
        lines = [pattern.sub(lambda _: f"    {json.dumps(name)}: {entry}", line) for line in lines]
    text = "".join(lines)
    path.write_text(f'{text}  "xxh3": "{xxh3(text.encode())}"\n}}\n')


# --- commands ---

def to_torch(arguments):
    content = {"model": read_weights(arguments.source)}
    source = pathlib.Path(arguments.source)
    if (source / "checkpoint.json").exists():
        optimizer = optimizer_for_torch(source)
        if optimizer is not None:
            content["optimizer"] = optimizer

    def fill(staged):
        torch.save(content, staged / "model.pth")
        return staged / "model.pth"
    publish(arguments.target, fill)


def from_torch(arguments):
    model, optimizer = read_pth(arguments.pth)

    def fill(staged):
        folder = staged / "folder"
        folder.mkdir()
        write_weights(folder / "model.safetensors", model)
        if optimizer is not None:
            write_optimizer(folder / "optimizer.safetensors", *optimizer_for_gantry(model, optimizer))
        return folder
    publish(arguments.target, fill)


def to_checkpoint(arguments):
    like = pathlib.Path(arguments.like)
    if not (like / "checkpoint.json").exists():
        raise Problem(f"{like} is no checkpoint: it has no checkpoint.json")
    model, optimizer = read_pth(arguments.pth)
    weights = taken_as("model.safetensors", read_file(like / "model.safetensors")[0], model, extra_is_fine=True)

    def fill(staged):
        folder = staged / "folder"
        shutil.copytree(like.resolve(), folder)
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        if optimizer is not None:
            own, metadata = read_file(like / "optimizer.safetensors")
            state, names = optimizer_for_gantry(model, optimizer)
            write_optimizer(folder / "optimizer.safetensors", taken_as("optimizer.safetensors", own, state),
                            metadata.get("parameters", "").split() or names)
        renew_account(folder)
        return folder
    publish(arguments.target, fill)


def taken_as(file, expected, given, extra_is_fine=False):
    """`given` with the dtypes of `expected`, whose names and shapes it must have. Tied names beyond are no matter."""
    problems = [f"missing: {name}" for name in expected if name not in given]
    stored = {storage_of(given[name]) for name in expected if name in given}
    problems += [f"unexpected: {name}" for name in given
                 if name not in expected and not (extra_is_fine and storage_of(given[name]) in stored)]
    problems += [f"{name}: {list(given[name].shape)} in the .pth, {list(tensor.shape)} in the checkpoint"
                 for name, tensor in expected.items() if name in given and given[name].shape != tensor.shape]
    if problems:
        raise Problem(f"the .pth does not fit the checkpoint's {file}:\n  " + "\n  ".join(problems))
    return {name: given[name].to(tensor.dtype).clone(memory_format=torch.contiguous_format)
            for name, tensor in expected.items()}


def main():
    parser = argparse.ArgumentParser(prog="tools/convert", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser("to-torch", help="a checkpoint or safetensors to a .pth")
    command.add_argument("source", metavar="SOURCE")
    command.add_argument("target", metavar="MODEL.pth")
    command.set_defaults(run=to_torch)
    command = commands.add_parser("from-torch", help="a .pth to a folder for PRETRAINED_MODEL")
    command.add_argument("pth", metavar="MODEL.pth")
    command.add_argument("target", metavar="FOLDER")
    command.set_defaults(run=from_torch)
    command = commands.add_parser("to-checkpoint", help="a .pth to a checkpoint for RESUME_FROM")
    command.add_argument("pth", metavar="MODEL.pth")
    command.add_argument("--like", required=True, metavar="CHECKPOINT")
    command.add_argument("target", metavar="FOLDER")
    command.set_defaults(run=to_checkpoint)
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except Problem as problem:
        print(f"convert: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
