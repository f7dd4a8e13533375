#!/usr/bin/env python3
"""Runs that are stopped at random times must end in the same bytes as one that is not.

stopping.py kill    GANTRY PROBE_DIR [--times N]   SIGKILL, each time gone on from by auto
stopping.py ctrl-c  GANTRY PROBE_DIR [--times N]   Ctrl-C between "signals armed" and the last iteration
stopping.py term    GANTRY PROBE_DIR [--times N]   SIGTERM in the same time, before it, and after the last save
--every-iteration saves after each iteration and not after each third; --async lets a thread write.
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

# Checkpoints so often that many kills come while one is written, renamed or removed.
JOB = """
ENV: {{SEED: 1, DEVICE: cpu, NUM_THREADS: 1}}
SOLVER:
  NAME: TrainValSolver
  WORK_DIR: work
  MAX_EPOCHS: {epochs}
  RESUME_FROM: auto
  TRAIN_DATA:
    NAME: Synthetic
    SIZE: 66
    SHAPE: [1, 8, 8]
    NUM_CLASSES: 3
    BATCH_SIZE: 7
    NUM_WORKERS: 2
    TRANSFORMS: [{{NAME: RandomCrop, SIZE: 8, PADDING: 1}}, {{NAME: RandomHorizontalFlip}}]
  EVAL_DATA: {{NAME: Synthetic, SIZE: 12, SHAPE: [1, 8, 8], NUM_CLASSES: 3, BATCH_SIZE: 5, NUM_WORKERS: 1}}
  MODEL:
    NAME: Classifier
    NUM_CLASSES: 3
    BACKBONE: {{NAME: test/DropoutConvNet, CHANNELS: 1000}}
  OPTIMIZER: {{NAME: SGD, LEARNING_RATE: 0.01, MOMENTUM: 0.9}}
  LR_SCHEDULER: {{NAME: CosineAnnealingLR, T_MAX: 500, UNIT: step}}
  METRICS: [{{NAME: AccuracyMetric}}]
  HOOKS:
    - {{NAME: CheckpointHook, INTERVAL: {window} iters, SAVE_LAST: true, SAVE_BEST_BY: -loss, KEEP_LAST: 2{more}}}
    - {{NAME: test/LossTrace, FILE: losses.txt}}
    - {{NAME: test/Counter, FILE: counts.txt}}
  TRAIN_HOOKS: [{{NAME: BackwardHook, ACCUMULATE_STEP: {window}}}]
"""


def fail(message, log=""):
    sys.exit(f"{log}\nFAILED: {message}")


class Job:
    def __init__(self, folder, arguments, epochs):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.epochs = epochs
        self.window = 1 if arguments.every_iteration else 3  # iterations; a save waits for its end
        text = JOB.format(epochs=epochs, window=self.window, more=", ASYNC: true" if arguments.asynchronous else "")
        (self.folder / "job.yaml").write_text(text)
        self.gantry = arguments.gantry
        self.command = [arguments.gantry, "run", "job.yaml", "--plugin-dir", arguments.probe]
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
    undisturbed = Job(root / "undisturbed", arguments, epochs)
    undisturbed.finish()
    killed = Job(root / "killed", arguments, epochs)
    left_over = 0
    for i in range(arguments.times):
        aimed_at = aim(killed, epochs, arguments.times - i)
        process = killed.start()
        if random.random() < 0.9:
            killed.wait_until_trained(process, aimed_at // killed.window * killed.window)
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


def check_paused(job, process, log):
    """Exit code 75, and a whole checkpoint of all that was trained, at a save point, because of the signal."""
    if process.returncode != 75:
        fail(f"exit code {process.returncode}", log)
    newest = job.newest()
    if newest is None or job.link("last") != newest.name:
        fail(f"the newest checkpoint is {newest}, and last names {job.link('last')}", log)
    account = json.loads((newest / "checkpoint.json").read_text())
    if "SIG" not in account["why"]:
        fail(f"{newest.name} was not saved for the signal", log)
    iteration = account["iteration"]
    if iteration % 10 % job.window != 0:
        fail(f"{newest.name} was saved within a window", log)
    if iteration != job.trained():
        fail(f"{newest.name} was saved after {job.trained()} iterations", log)
    inspect = subprocess.run([job.gantry, "inspect", newest], env=job.environment, capture_output=True, text=True)
    if inspect.returncode != 0:
        fail(f"{newest.name} is not whole: {inspect.stdout}{inspect.stderr}", log)


def signal_in_training(job, aimed_at, send):
    """The seconds from send(process) to its end. With aimed_at None as soon as signals are armed: nothing of this
    process is trained yet."""
    process = job.start()
    log = ""
    for line in process.stdout:
        log += line
        if "signals armed" in line:
            break
    if aimed_at is not None:
        job.wait_until_trained(process, aimed_at)
        time.sleep(random.uniform(0, 0.02))
    sent = time.monotonic()
    send(process)
    log += process.communicate(timeout=60)[0]
    seconds = time.monotonic() - sent
    check_paused(job, process, log)
    return seconds


def again(process, signals):
    """An impatient user, or a scheduler."""
    for pause in random.choices((0, 0.001, 0.003), k=random.randrange(3)):
        time.sleep(pause)
        try:
            os.killpg(process.pid, random.choice(signals))
        except ProcessLookupError:
            pass


def ctrl_c(arguments, root, epochs):
    undisturbed = Job(root / "undisturbed", arguments, epochs)
    undisturbed.finish()
    stopped = Job(root / "stopped", arguments, epochs)
    slowest = 0.0

    def send(process):
        os.killpg(process.pid, signal.SIGINT)
        again(process, (signal.SIGINT, signal.SIGTERM))

    for i in range(arguments.times):
        aimed_at = aim(stopped, epochs, arguments.times - i)
        slowest = max(slowest, signal_in_training(stopped, aimed_at if i % 3 else None, send))
    stopped.finish()
    compare(undisturbed, stopped)
    print(f"{arguments.times} times Ctrl-C, as many checkpoints; the slowest took {slowest:.2f} s; the same bytes")


def checkpoints_of(job):
    folder = job.checkpoints()
    return {name: (folder / name / "checkpoint.json").read_bytes() for name in os.listdir(folder)}


def term_before_armed(job, seconds):
    """Whether the signal came before "signals armed": then it ended the process, which had saved nothing."""
    before = checkpoints_of(job)
    trained = job.trained()
    process = job.start()
    time.sleep(random.uniform(0, seconds))
    process.send_signal(signal.SIGTERM)
    log = process.communicate(timeout=60)[0]
    if "signals armed" in log:
        check_paused(job, process, log)
        return False
    if process.returncode != -signal.SIGTERM:
        fail(f"exit code {process.returncode} before signals were armed", log)
    if checkpoints_of(job) != before or job.trained() != trained:
        fail("something was trained or saved before signals were armed", log)
    return True


def term_after_last_save(job):
    """Whether the signal came before the end of the process; which ends as if there had been none."""
    process = job.start()
    log = ""
    for line in process.stdout:
        log += line
        if f"saved checkpoints/ldm_step-{10 * job.epochs} (last" in line:
            break
    time.sleep(random.uniform(0, 0.01))
    came = process.poll() is None
    process.send_signal(signal.SIGTERM)
    log += process.communicate(timeout=60)[0]
    if process.returncode != 0:
        fail(f"exit code {process.returncode} after the last save", log)
    return came


def term(arguments, root, epochs):
    undisturbed = Job(root / "undisturbed", arguments, epochs)
    undisturbed.finish()
    stopped = Job(root / "stopped", arguments, epochs)
    slowest = 0.0

    def send(process):
        if random.random() < 0.5:  # to the process alone, as kill does it
            process.send_signal(signal.SIGTERM)
        else:  # to its group
            os.killpg(process.pid, signal.SIGTERM)
        again(process, (signal.SIGTERM,))

    for i in range(arguments.times):
        aimed_at = aim(stopped, epochs, arguments.times - i)
        slowest = max(slowest, signal_in_training(stopped, aimed_at if i % 4 else None, send))

    begun = time.monotonic()
    process = stopped.start()
    for line in process.stdout:
        if "signals armed" in line:
            break
    until_armed = time.monotonic() - begun
    process.kill()
    process.communicate()
    tries = max(5, arguments.times // 5)
    early = sum(term_before_armed(stopped, 0.9 * until_armed) for _ in range(tries))
    if early == 0:
        fail("no signal came before signals were armed")
    stopped.finish()
    compare(undisturbed, stopped)

    late = 0
    for i in range(tries):
        short = Job(root / f"short-{i}", arguments, 1)
        late += term_after_last_save(short)
        short.newest()
        if short.link("last") != "ldm_step-10":
            fail(f"last names {short.link('last')} after a signal that came too late to matter")
    if late == 0:
        fail("no signal came between the last save and the end")
    print(f"{arguments.times} times SIGTERM, as many checkpoints; the slowest took {slowest:.2f} s; {early} of {tries} "
          f"before signals were armed, {late} of {tries} after the last save; the same bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("how", choices=("kill", "ctrl-c", "term"))
    parser.add_argument("gantry", type=os.path.abspath)
    parser.add_argument("probe", type=os.path.abspath, help="the folder of the test hooks")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--every-iteration", action="store_true", help="a checkpoint after each, in place of each third")
    parser.add_argument("--async", dest="asynchronous", action="store_true", help="checkpoints are written by a thread")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    print("--seed", arguments.seed, flush=True)
    random.seed(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="gantry-stopping-") as root:
        run = {"kill": kill, "ctrl-c": ctrl_c, "term": term}[arguments.how]
        run(arguments, pathlib.Path(root), epochs=8 + 2 * arguments.times)


if __name__ == "__main__":
    main()
