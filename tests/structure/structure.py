#!/usr/bin/env python3
"""structure.py ROOT RULE       checks one rule of how the source tree is put together
structure.py ROOT --self-test   breaks each rule in a copy of the tree and sees it reported"""
import pathlib
import re
import shutil
import sys
import tempfile

POSIX = re.compile(r"(sys/\w+|unistd|fcntl|dlfcn|link|elf|malloc|signal|dirent|pwd|grp|poll|errno)\.h")
STANDARD = re.compile(r"[a-z_0-9]+")
LIBTORCH = ("torch/", "ATen/", "c10/")
FOLDERS = ("host", "sdk", "plugins", "tests", "tools")
MOST_HOST_LINES = 2000
# What the host may know of the SDK: reading and checking configurations, plugins, starting a run.
HOST_SDK = {f"gantry/{name}.h" for name in (
    "catalogue", "compose", "config", "describe", "error", "export", "json", "log", "plugin_entry",
    "plugin_file", "run_command", "session", "text", "version")}
HOST_LIBRARIES = ("yaml-cpp/", "spdlog/", "boost/")
# The one library that a plugin exists for, by folder.
PLUGIN_LIBRARY = {
    "commands/stop_and_go": {"boost/program_options.hpp"}, "data/idx": {"zlib.h"},
    "data/image_folder": {"png.h", "jpeglib.h", "jerror.h"}, "optim/lambda_lr": {"muParser.h"}}
NOT_IN_SDK_HEADERS = ("yaml-cpp/", "spdlog/", "fmt/", "boost/")
LIGHT_LIBTORCH = {"ATen/core/Tensor.h", "c10/core/Device.h", "torch/version.h"}


def sources(root, folder):
    return sorted(p for p in (root / folder).rglob("*") if p.suffix in (".cc", ".h", ".cpp", ".hpp", ".in")
                  and p.name != "GantryConfig.cmake.in")


def includes(path):
    """(line number, name) of each."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1)


def place(root, path, number, what):
    return f"{path.relative_to(root)}:{number}: {what}"


def is_system(name):
    return STANDARD.fullmatch(name) or POSIX.fullmatch(name)


def host_size(root):
    lines = sum(len(p.read_text().splitlines()) for p in sources(root, "host"))
    return [f"host/ has {lines} lines; it should have fewer than {MOST_HOST_LINES}"] if lines >= MOST_HOST_LINES else []


def host_includes(root):
    return [place(root, path, number, f"the host includes {name}")
            for path in sources(root, "host") for number, name in includes(path)
            if not (is_system(name) or name in HOST_SDK or name.startswith(HOST_LIBRARIES)
                    or name.startswith("host/") and (root / name).is_file())]


def sdk_headers(root):
    return [place(root, path, number, f"a public header includes {name}")
            for path in sources(root, "sdk/include") for number, name in includes(path)
            if name.startswith(NOT_IN_SDK_HEADERS)]


def plugin_includes(root):
    problems = []
    for path in sources(root, "plugins"):
        folder = path.parent.relative_to(root / "plugins").as_posix()
        for number, name in includes(path):
            public = name == "gantry/version.h" or (
                name.startswith("gantry/") and (root / "sdk/include" / name).is_file())
            own = "/" not in name and (path.parent / name).is_file()
            if not (public or own or is_system(name) or name.startswith(LIBTORCH)
                    or name in PLUGIN_LIBRARY.get(folder, ())):
                problems.append(place(root, path, number, f"a plugin includes {name}"))
    return problems


def private_folders(root):
    problems = []
    for folder in FOLDERS:
        for path in sources(root, folder):
            for number, name in includes(path):
                # The tests of the host include what they test.
                host = name.startswith("host/") or "/host/" in name
                if host and folder not in ("host", "tests") or "plugins/" in name and not name.startswith("tests/"):
                    problems.append(place(root, path, number, f"{name} is private"))
    return problems


def light_headers(root):
    problems, seen, todo = [], set(), ["gantry/gantry.h"]
    while todo:
        header = todo.pop()
        path = root / "sdk/include" / header
        if header in seen or not path.is_file():
            continue
        seen.add(header)
        for number, name in includes(path):
            if name.startswith("gantry/"):
                todo.append(name)
            elif name.startswith(LIBTORCH) and name not in LIGHT_LIBTORCH:
                problems.append(place(root, path, number, f"gantry/gantry.h leads to {name}, which is slow to compile"))
    if len(seen) < 10:
        problems.append("gantry/gantry.h leads to almost no header: this check looks in the wrong place")
    return problems


def plugin_readmes(root):
    folders = {path.parent for path in sources(root, "plugins") if path.suffix == ".cc"}
    return [f"{folder.relative_to(root)}: README.md is missing" for folder in sorted(folders)
            if not (folder / "README.md").is_file()]


def no_globs(root):
    files = [root / "CMakeLists.txt"]
    for folder in FOLDERS:
        files += [p for p in (root / folder).rglob("*") if p.name == "CMakeLists.txt" or p.suffix == ".cmake"]
    return [place(root, path, number, "sources are listed by hand, not found by file(GLOB)")
            for path in files for number, line in enumerate(path.read_text().splitlines(), 1)
            if re.search(r"file\s*\(\s*GLOB", line, re.IGNORECASE)]


RULES = {f.__name__: f for f in (host_size, host_includes, sdk_headers, plugin_includes, private_folders,
                                 light_headers, plugin_readmes, no_globs)}

# rule, file that is appended to or created, text, part of the message
BREAKS = [
    ("host_size", "host/main.cc", "// x\n" * MOST_HOST_LINES, "lines"),
    ("host_includes", "host/main.cc", "#include <torch/torch.h>\n", "torch/torch.h"),
    ("host_includes", "host/main.cc", '#include "gantry/base_solver.h"\n', "gantry/base_solver.h"),
    ("host_includes", "host/plugin_index.h", '#include "sdk/src/message.h"\n', "sdk/src/message.h"),
    ("host_includes", "host/plugin_index.h", "# include <zlib.h>\n", "zlib.h"),
    ("sdk_headers", "sdk/include/gantry/session.h", "#include <yaml-cpp/yaml.h>\n", "yaml-cpp/yaml.h"),
    ("sdk_headers", "sdk/include/gantry/log.h", "#include <spdlog/fmt/fmt.h>\n", "spdlog/fmt/fmt.h"),
    ("sdk_headers", "sdk/include/gantry/new.h", "#include <fmt/core.h>\n", "fmt/core.h"),
    ("sdk_headers", "sdk/include/gantry/text.h", "#include <boost/any.hpp>\n", "boost/any.hpp"),
    ("plugin_includes", "plugins/hooks/log/log_hook.cc", "#include <zlib.h>\n", "zlib.h"),
    ("plugin_includes", "plugins/hooks/log/log_hook.cc", '#include "solver_impl.h"\n', "solver_impl.h"),
    ("plugin_includes", "plugins/data/idx/idx_file.h", '#include "host/yaml_reader.h"\n', "host/"),
    ("plugin_includes", "plugins/optim/sgd/sgd.cc", "#include <boost/any.hpp>\n", "boost/any.hpp"),
    ("private_folders", "sdk/src/text.cc", '#include "host/main.h"\n', "host/main.h"),
    ("private_folders", "tests/doctest_main.cc", '#include "plugins/optim/sgd/sgd.h"\n', "plugins/optim"),
    ("private_folders", "plugins/optim/sgd/sgd.cc", '#include "../../host/main.h"\n', "host/main.h"),
    ("light_headers", "sdk/include/gantry/config.h", "#include <ATen/ATen.h>\n", "ATen/ATen.h"),
    ("light_headers", "sdk/include/gantry/hook.h", '#include "gantry/model.h"\n', "torch/nn/module.h"),
    ("plugin_readmes", "plugins/hooks/new/new.cc", "", "plugins/hooks/new"),
    ("no_globs", "plugins/hooks/CMakeLists.txt", "file (glob_recurse all *.cc)\n", "plugins/hooks/CMakeLists.txt"),
    ("no_globs", "CMakeLists.txt", "file(GLOB x *.cc)\n", "CMakeLists.txt"),
]


def self_test(root):
    problems = [f"no break for the rule {rule}" for rule in RULES if rule not in {b[0] for b in BREAKS}]
    with tempfile.TemporaryDirectory() as tmp:
        copy = pathlib.Path(tmp)
        for folder in FOLDERS:
            shutil.copytree(root / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(root / "CMakeLists.txt", copy)
        for rule, name, text, part in BREAKS:
            path = copy / name
            before = path.read_text() if path.is_file() else None
            found_before = RULES[rule](copy)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((before or "") + text)
            new = [p for p in RULES[rule](copy) if p not in found_before]
            if not any(part in p for p in new):
                problems.append(f"{rule} does not see {text[:60]!r} in {name}")
            if before is None:
                path.unlink()
            else:
                path.write_text(before)
    return problems


def main():
    root, rule = pathlib.Path(sys.argv[1]), sys.argv[2]
    problems = self_test(root) if rule == "--self-test" else RULES[rule](root)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


sys.exit(main())
