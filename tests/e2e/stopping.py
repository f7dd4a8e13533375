#!/usr/bin/env python3
"""Runs that are stopped at random times must end in the same bytes as one that is not.

stopping.py kill    GANTRY PROBE_DIR [--times N]   SIGKILL, each time gone on from by auto
stopping.py ctrl-c  GANTRY PROBE_DIR [--times N]   Ctrl-C between "signals armed" and the last iteration
--seed takes a failure's times again, as far as a clock allows.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

FILES = ("model.safetensors", "optimizer.safetensors", "state.safetensors")

# A checkpoint every third iteration, so that many kills come while one is written, renamed or removed.
JOB = """
ENV: {SEED: 1, DEVICE: cpu, NUM_THREADS: 1}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: %d
  RESUME_FROM: auto
  TRAIN_DATA:
    NAME: Synthetic
    SIZE: 66
    SHAPE: [1, 8, 8]
    NUM_CLASSES: 3
    BATCH_SIZE: 7
    NUM_WORKERS: 2
    TRANSFORMS: [{NAME: RandomCrop, SIZE: 8, PADDING: 1}, {NAME: RandomHorizontalFlip}]
  EVAL_DATA: {NAME: Synthetic, SIZE: 12, SHAPE: [1, 8, 8], NUM_CLASSES: 3, BATCH_SIZE: 5, NUM_WORKERS: 1}
  MODEL:
    NAME: Classifier
    NUM_CLASSES: 3
    BACKBONE: {NAME: test/DropoutConvNet, CHANNELS: 1000}
  OPTIMIZER: {NAME: SGD, LEARNING_RATE: 0.01, MOMENTUM: 0.9}
  LR_SCHEDULER: {NAME: CosineAnnealingLR, T_MAX: 500, UNIT: step}
  METRICS: [{NAME: AccuracyMetric}]
  HOOKS:
    - {NAME: CheckpointHook, INTERVAL: 3 iters, SAVE_LAST: true, SAVE_BEST_BY: -loss, KEEP_LAST: 2}
    - {NAME: test/LossTrace, FILE: losses.txt}
    - {NAME: test/Counter, FILE: counts.txt}
  TRAIN_HOOKS: [{NAME: BackwardHook, ACCUMULATE_STEP: 3}]
"""


def fail(message, log=""):
    sys.exit(f"{log}\nFAILED: {message}")


class Job:
    def __init__(self, folder, gantry, probe, epochs):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        (self.folder / "job.yaml").write_text(JOB % epochs)
        self.command = [gantry, "run", "job.yaml", "--plugin-dir", probe]
        self.environment = dict(os.environ, GANTRY_PLUGIN_PATH="", XDG_DATA_HOME="/nonexistent")

    def start(self):
        """In a process group of its own, as a shell does it; all output through one pipe."""
        return subprocess.Popen(self.command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def finish(self):
        process = self.start()
        log, _ = process.communicate(timeout=300)
        if process.returncode != 0:
            fail(f"exit code {process.returncode}", log)

    def trained(self):
        """Iterations, by what the last line says."""
        path = self.folder / "losses.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return int(lines[-1].split()[0]) + 1 if lines else 0

    def wait_until_trained(self, process, iterations):
        deadline = time.monotonic() + 120
        while self.trained() < iterations and process.poll() is None:
            if time.monotonic() > deadline:
                process.kill()
                fail(f"no iteration {iterations} in two minutes", process.communicate()[0])
            time.sleep(0.001)

    def checkpoints(self):
        return self.folder / "work" / "checkpoints"

    def link(self, name):
        path = self.checkpoints() / name
        return os.readlink(path) if path.is_symlink() else ""

    def losses(self):
        losses = {}
        for line in (self.folder / "losses.txt").read_text().splitlines():
            iteration, bits = line.split()
            if losses.setdefault(int(iteration), bits) != bits:
                fail(f"iteration {iteration} was trained twice and had two losses, {losses[int(iteration)]} and {bits}")
        return losses

    def newest(self):
        """Whole by the account in checkpoint.json; read as another program would, without Gantry."""
        found = [path for path in self.checkpoints().iterdir()
                 if not path.name.startswith(".") and not path.is_symlink()]
        for path in found:
            account = json.loads((path / "checkpoint.json").read_text())
            for name, file in account["files"].items():
                size = (path / name).stat().st_size
                if size != file["size"]:
                    fail(f"{path / name} has {size} bytes, not {file['size']}")
        return max(found, key=lambda path: int(path.name.rsplit("-", 1)[1]), default=None)


def compare(undisturbed, other):
    if other.losses() != undisturbed.losses():
        fail("the losses differ")
    for link in ("last", "best"):
        if not other.link(link) or other.link(link) != undisturbed.link(link):
            fail(f"{link} is '{other.link(link)}', not '{undisturbed.link(link)}'")
    names = [sorted(os.listdir(job.checkpoints())) for job in (undisturbed, other)]
    if names[0] != names[1]:
        fail(f"there are {names[1]}, not {names[0]}")
    for name in names[0]:
        for file in FILES:
            one, another = (job.checkpoints() / name / file for job in (undisturbed, other))
            if one.read_bytes() != another.read_bytes():
                fail(f"{name}/{file} differs")
    if (other.folder / "counts.txt").read_text() != (undisturbed.folder / "counts.txt").read_text():
        fail("hooks were not called as often")


def aim(job, epochs, stops_to_come):
    """An iteration to stop at, random, and such that the run lasts for all stops. By iterations and not by the clock:
    how fast a machine is does not matter."""
    done = job.trained()
    last = 10 * epochs - 30
    return min(last, done + random.randrange(1 + int(1.6 * (last - done) / (stops_to_come + 1))))


def kill(arguments, root, epochs):
    undisturbed = Job(root / "undisturbed", arguments.gantry, arguments.probe, epochs)
    undisturbed.finish()
    killed = Job(root / "killed", arguments.gantry, arguments.probe, epochs)
    left_over = 0
    for i in range(arguments.times):
        aimed_at = aim(killed, epochs, arguments.times - i)
        process = killed.start()
        if random.random() < 0.9:
            killed.wait_until_trained(process, aimed_at // 3 * 3)
            time.sleep(random.uniform(0, 0.03))  # anywhere within the save that now comes
        else:
            time.sleep(random.uniform(0, 0.5))  # while it starts
        process.kill()
        log = process.communicate()[0]
        if process.returncode != -signal.SIGKILL:
            fail(f"exit code {process.returncode}", log)
        if killed.checkpoints().exists():
            left_over += any(name.startswith(".") for name in os.listdir(killed.checkpoints()))
            killed.newest()
    killed.finish()
    compare(undisturbed, killed)
    print(f"{arguments.times} kills, {left_over} of them within a save or a removal; the same bytes after "
          f"{len(killed.losses())} iterations")


def ctrl_c(arguments, root, epochs):
    undisturbed = Job(root / "undisturbed", arguments.gantry, arguments.probe, epochs)
    undisturbed.finish()
    stopped = Job(root / "stopped", arguments.gantry, arguments.probe, epochs)
    slowest = 0.0
    for i in range(arguments.times):
        aimed_at = aim(stopped, epochs, arguments.times - i)
        process = stopped.start()
        log = ""
        for line in process.stdout:
            log += line
            if "signals armed" in line:
                break
        if i % 3:  # else at once: nothing of this process is trained yet
            stopped.wait_until_trained(process, aimed_at)
            time.sleep(random.uniform(0, 0.02))
        sent = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        for pause in random.choices((0, 0.001, 0.003), k=random.randrange(3)):  # an impatient user
            time.sleep(pause)
            try:
                os.killpg(process.pid, random.choice((signal.SIGINT, signal.SIGTERM)))
            except ProcessLookupError:
                pass
        log += process.communicate(timeout=60)[0]
        slowest = max(slowest, time.monotonic() - sent)
        if process.returncode != 75:
            fail(f"exit code {process.returncode} at the Ctrl-C number {i + 1}", log)
        newest = stopped.newest()
        if newest is None or os.readlink(stopped.checkpoints() / "last") != newest.name:
            fail(f"the newest checkpoint is {newest}, and last names another", log)
        if "SIG" not in json.loads((newest / "checkpoint.json").read_text())["why"]:
            fail(f"{newest.name} was not saved for the signal", log)
        inspect = subprocess.run([arguments.gantry, "inspect", newest], env=stopped.environment,
                                 capture_output=True, text=True)
        if inspect.returncode != 0:
            fail(f"{newest.name} is not whole: {inspect.stdout}{inspect.stderr}", log)
    stopped.finish()
    compare(undisturbed, stopped)
    print(f"{arguments.times} times Ctrl-C, as many checkpoints; the slowest took {slowest:.2f} s; the same bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("how", choices=("kill", "ctrl-c"))
    parser.add_argument("gantry", type=os.path.abspath)
    parser.add_argument("probe", type=os.path.abspath, help="the folder of the test hooks")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    print("--seed", arguments.seed, flush=True)
    random.seed(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="gantry-stopping-") as root:
        (kill if arguments.how == "kill" else ctrl_c)(arguments, pathlib.Path(root), epochs=8 + 2 * arguments.times)


if __name__ == "__main__":
    main()
