#!/usr/bin/env python3
"""configs.py GANTRY ROOT: every configuration that is shipped passes `gantry check` and a dry run. What their comments say
to make first is made small."""
import os
import pathlib
import subprocess
import sys
import tempfile

gantry, root = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
files = sorted([*(root / "configs").glob("*.yaml"), *(root / "tools/bench").glob("*.yaml")])
made = tempfile.TemporaryDirectory()
environment = {**os.environ, "GANTRY_PLUGIN_PATH": "", "XDG_DATA_HOME": "/nonexistent", "OMP_NUM_THREADS": "1",
               "IMAGE_FOLDER": f"{made.name}/images", "PRETRAINED": f"{made.name}/work/checkpoints/last",
               "CHECKPOINT": f"{made.name}/work/checkpoints/last"}
for command in ([root / "tools/make-image-folder", f"{made.name}/images", "--limit", "20"],
                [gantry, "run", root / "configs/fashion_mnist.yaml", f"SOLVER.WORK_DIR={made.name}/work",
                 "SOLVER.MAX_EPOCHS=1", "SOLVER.LIMIT_TRAIN_BATCHES=2", "SOLVER.LIMIT_EVAL_BATCHES=1"]):
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
failed = len(files) < 3
for path in files:
    for command in (["check"], ["run", "--dry-run"]):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([gantry, *command, path], cwd=folder, env=environment, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            left = os.listdir(folder)
        good = result.returncode == 0 and not left
        print("ok    " if good else "FAILED", *command, path.relative_to(root), f"left behind: {left}" if left else "")
        if not good:
            print(result.stdout)
            failed = True
sys.exit(1 if failed else 0)
