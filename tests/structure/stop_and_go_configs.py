#!/usr/bin/env python3
"""stop_and_go_configs.py GANTRY ROOT CONFIG   a shipped configuration, cut to a few batches, is the same with three random
                                            stops as without; one that trains nothing is refused
stop_and_go_configs.py GANTRY ROOT --named CONFIG...  every shipped configuration is among these"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SHORT = ["SOLVER.MAX_EPOCHS=2", "SOLVER.LIMIT_TRAIN_BATCHES=3", "SOLVER.LIMIT_EVAL_BATCHES=2"]
# What makes each one short. None: it trains nothing.
CHANGES = {
    "diffusion_fashion_mnist.yaml": ["SOLVER.MAX_STEPS=6", "SOLVER.EVAL_INTERVAL=3", "SOLVER.LIMIT_EVAL_BATCHES=1",
                                     "SOLVER.SAMPLE_ARGS.NUM=1", "SOLVER.SAMPLE_ARGS.STEPS=2", "SOLVER.SAVE_SAMPLES=10",
                                     "SOLVER.TRAIN_DATA.BATCH_SIZE=8", "SOLVER.EVAL_DATA.BATCH_SIZE=8",
                                     "SOLVER.HOOKS[ProbeDataHook].PROB_INTERVAL=2"],
    "fashion_mnist.yaml": SHORT,
    "fine_tune.yaml": SHORT,
    "large_batches.yaml": ["SOLVER.MAX_EPOCHS=2", "SOLVER.LIMIT_TRAIN_BATCHES=6", "SOLVER.LIMIT_EVAL_BATCHES=2"],
    "predict.yaml": None,
    "quickstart.yaml": SHORT,
    "scepter_classifier.yaml": [*SHORT, "SOLVER.TRAIN_DATA.BATCH_SIZE=16", "SOLVER.EVAL_DATA.BATCH_SIZE=16"],
}

gantry, root = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
if sys.argv[3] == "--named":
    shipped = {path.name for path in (root / "configs").glob("*.yaml")}
    print("shipped:", *sorted(shipped))
    sys.exit(0 if shipped and shipped == set(sys.argv[4:]) == set(CHANGES) else 1)

name = sys.argv[3]
with tempfile.TemporaryDirectory() as folder:
    environment = {**os.environ, "GANTRY_PLUGIN_PATH": "", "XDG_DATA_HOME": "/nonexistent", "OMP_NUM_THREADS": "1",
                   "TMPDIR": folder, "IMAGE_FOLDER": f"{folder}/images", "PRETRAINED": f"{folder}/work/checkpoints/last",
                   "CHECKPOINT": f"{folder}/work/checkpoints/last"}
    if name == "scepter_classifier.yaml":
        subprocess.run([root / "tools/make-image-folder", f"{folder}/images", "--limit", "20"], env=environment,
                       stdout=subprocess.DEVNULL, check=True)
    if name in ("fine_tune.yaml", "predict.yaml"):
        subprocess.run([gantry, "run", root / "configs/fashion_mnist.yaml", f"SOLVER.WORK_DIR={folder}/work",
                        "SOLVER.MAX_EPOCHS=1", "SOLVER.LIMIT_TRAIN_BATCHES=2", "SOLVER.LIMIT_EVAL_BATCHES=1"],
                       env=environment, stdout=subprocess.DEVNULL, check=True)
    before = set(os.listdir(folder))
    changes = CHANGES[name]
    result = subprocess.run([gantry, "stop-and-go", root / "configs" / name, "ENV.DEVICE=cpu", "ENV.NUM_THREADS=1",
                             *(changes or []), "--random", "3", "--seed", "7", "--json", f"{folder}/report.json"],
                            cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(result.stdout)
    left = set(os.listdir(folder)) - before - {"report.json"}
    if changes is None:
        good = result.returncode == 2 and f"{name} trains nothing: MODE is test" in result.stdout
    else:
        report = json.loads(pathlib.Path(f"{folder}/report.json").read_text())
        good = (result.returncode == 0 and report["result"] == "equal" and len(report["stops"]) == 3
                and report["steps"] > 0 and report["values"] > 100 and report["checkpoints"] > 0)
    print("left behind:", *sorted(left))
sys.exit(0 if good and not left else 1)
