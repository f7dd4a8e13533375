#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "e2e/resume.h"

// ProbeDataHook, with what test/Shows shows. Files are read by Pillow, NumPy and Python's JSON and HTML readers.

namespace {

namespace fs = std::filesystem;
using e2e::at_iteration;
using e2e::Job;
using Names = std::vector<std::string>;

const std::string kPython = GANTRY_SOURCE_DIR "/.venv/bin/python";

/// The job with test/Shows, and with these hooks in its three lists.
Job job_with(const std::string& train, const std::string& eval = "", const std::string& all = "") {
  std::string config = e2e::replaced(e2e::kJob, "    - {NAME: test/RaiseSignal, SIGNAL: TERM}\n",
                                     "    - {NAME: test/RaiseSignal, SIGNAL: TERM}\n    - {NAME: test/Shows}\n" +
                                         (all.empty() ? "" : "    - " + all + "\n"));
  if (!train.empty())
    config = e2e::replaced(config, "{NAME: LrHook, WARMUP_EPOCHS: 1}", "{NAME: LrHook, WARMUP_EPOCHS: 1}, " + train);
  if (!eval.empty()) config += "  EVAL_HOOKS: [" + eval + "]\n";
  return Job(config);
}

/// Runs Python with `folder` as its current directory; what it asserts must hold.
void check_python(const std::string& folder, const std::string& script) {
  const e2e::RunResult result = e2e::run_program({kPython, "-c", "import json, sys\n" + script}, folder);
  INFO(result.describe());
  CHECK(result.exit_code == 0);
}

/// The steps' folders of a mode, sorted.
Names steps(const Job& job, const std::string& mode) {
  Names names;
  for (const std::string& name : job.names("work/" + mode + "_probe"))
    if (name != "index.html") names.push_back(name);
  return names;
}

/// All files of the steps' folders with their bytes.
std::vector<std::pair<std::string, std::string>> content(const Job& job, const std::string& mode) {
  std::vector<std::pair<std::string, std::string>> files;
  const std::string root = job.work(mode + "_probe");
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().lexically_relative(root).string();
    files.emplace_back(name, job.dir.read("work/" + mode + "_probe/" + name));
  }
  std::sort(files.begin(), files.end());
  return files;
}

const std::string kTwoEpochs = "SOLVER.MAX_EPOCHS=2";

}  // namespace

TEST_CASE("probes of training are written every PROB_INTERVAL iterations from the first on and at the last") {
  const Job job = job_with("{NAME: ProbeDataHook, PROB_INTERVAL: 8}");
  job.run({kTwoEpochs});
  CHECK(steps(job, "train") == Names{"step-0", "step-16", "step-19", "step-8"});
  CHECK_FALSE(job.dir.has("work/eval_probe"));
  CHECK(job.names("work/train_probe/step-8") == Names{"colors.png", "index.html", "inputs", "inputs.png", "meta.json",
                                                      "pair_ramps", "pair_ramps.png", "scores.npy"});
  CHECK(job.names("work/train_probe/step-8/inputs").size() == 7);
}

TEST_CASE("pictures tensors numbers texts and labels are what was shown") {
  const Job job = job_with("{NAME: ProbeDataHook, PROB_INTERVAL: 8, SAVE_PROBE_PREFIX: run1_}");
  job.run({kTwoEpochs});
  check_python(job.work("train_probe/step-8"), R"(
import numpy as np
from PIL import Image
meta = json.load(open("meta.json"))
assert (meta["mode"], meta["epoch"], meta["iteration"]) == ("train", 1, 8), meta
probes = {p["name"]: p for p in meta["probes"]}
assert len(probes) == len(meta["probes"])
colors = np.asarray(Image.open("run1_colors.png"))
assert colors.shape == (4, 6, 3) and colors.dtype == np.uint8
assert (colors[:, :, 0] == 40 * np.arange(6)[None, :]).all()
assert (colors[:, :, 1] == 60 * np.arange(4)[:, None]).all() and (colors[:, :, 2] == 8).all()
assert probes["colors"]["file"] == "run1_colors.png" and probes["colors"]["files"] == []
assert probes["colors"]["shape"] == [3, 4, 6] and probes["colors"]["dtype"] == "uint8"
pair = probes["pair/ramps"]
assert pair["kind"] == "image" and pair["labels"] == ["rises", 'falls & "<b>"'] and len(pair["files"]) == 2
rises, falls = (np.asarray(Image.open(f)) for f in pair["files"])
ramp = np.array([0, 32, 64, 96, 128, 159, 191, 223, 255]).reshape(3, 3)
assert rises.shape == (3, 3) and (rises == ramp).all() and (falls == ramp[::-1, ::-1]).all(), (rises, falls)
both = np.asarray(Image.open(pair["file"]))
assert both.shape == (7, 12) and (both[2:5, 2:5] == rises).all() and (both[2:5, 7:10] == falls).all()
scores = np.load("run1_scores.npy")
assert scores.dtype == np.float64 and (scores == np.arange(6).reshape(2, 3) + 8).all()
s = probes["scores"]
assert (s["file"], s["dtype"], s["shape"], s["min"], s["mean"], s["max"]) == ("run1_scores.npy", "float64", [2, 3], 8, 10.5, 13)
assert probes["temperature"]["value"] == 8.5 and probes["no number"]["value"] is None
assert probes["note"]["text"] == "iteration 8 <script>alert(1)</script>\nsecond line"
assert probes["inputs"]["shape"] == [7, 1, 8, 8]
assert all(" \u2192 " in label for label in probes["inputs"]["labels"])
)");
}

TEST_CASE("the images that a classifier shows carry its labels and predictions") {
  const Job job = job_with("", "{NAME: ProbeDataHook}, {NAME: test/SaveOutputs, FILE: outputs.safetensors}");
  job.run({"SOLVER.MAX_EPOCHS=1"});
  check_python(job.dir.path(), R"(
import numpy as np
from PIL import Image
from safetensors.numpy import load_file
outputs = load_file("outputs.safetensors")
img, logits = outputs["img"], outputs["logits"]
probes = {p["name"]: p for p in json.load(open("work/eval_probe/step-10/meta.json"))["probes"]}
inputs = probes["inputs"]
assert len(img) == 2 == len(inputs["files"]) == len(inputs["labels"])
assert [l.split(" \u2192 ")[1] for l in inputs["labels"]] == [str(k) for k in logits.argmax(1)]
assert all(l.split(" \u2192 ")[0] in "012" for l in inputs["labels"])
bytes = np.rint((img - img.min()) / (img.max() - img.min()) * 255)
for i, f in enumerate(inputs["files"]):
    picture = np.asarray(Image.open("work/eval_probe/step-10/" + f)).astype(float)
    assert np.abs(picture - bytes[i, 0]).max() <= 1
# All 12 images of the evaluation, not those of the last batch alone.
assert sum(probes["predictions_distribute"]["counts"]) == 12
)");
}

TEST_CASE("distributions are counted over the run each mode by itself") {
  const Job job = job_with("", "", "{NAME: ProbeDataHook, PROB_INTERVAL: 8}");
  job.run({kTwoEpochs});
  // 0, 1, 1 and t mod 3 for t of 0, 8, 16, 19.
  check_python(job.work("train_probe"), R"(
def probes(step): return {p["name"]: p for p in json.load(open(step + "/meta.json"))["probes"]}
digits = [probes(s)["digits_distribute"] for s in ("step-0", "step-8", "step-16", "step-19")]
assert [dict(zip(d["values"], d["counts"])) for d in digits] == [
    {0: 2, 1: 2}, {0: 3, 1: 4, 2: 1}, {0: 4, 1: 7, 2: 1}, {0: 5, 1: 10, 2: 1}], digits
norm = probes("step-8")["digits_norm_distribute"]
assert norm["values"] == [0, 1, 2] and norm["shares"] == [0.375, 0.5, 0.125]
noise = probes("step-19")["noise_distribute"]
assert sum(noise["counts"]) == 400 and noise["not_finite"] == 0
ends = list(zip(noise["from"], noise["to"], noise["counts"]))
assert all(a <= b for a, b, _ in ends) and [a for a, _, _ in ends] == sorted(a for a, _, _ in ends)
values = [(i - 50) / 10 for i in range(100)] * 4
# 0.1 is an edge to nobody: every bin has what lies in it.
for a, b, n in ends:
    inside = sum(a - 1e-6 <= v <= b + 1e-6 for v in values)
    assert inside >= n > 0, (a, b, n, inside)
)");
  // In three batches of each of two evaluations; t counts on.
  check_python(job.work("eval_probe"), R"(
probes = {p["name"]: p for p in json.load(open("step-20/meta.json"))["probes"]}
d = probes["digits_distribute"]
assert dict(zip(d["values"], d["counts"])) == {0: 6 + 2, 1: 12 + 2, 2: 2}, d
assert sum(probes["noise_distribute"]["counts"]) == 600
# Shown in the first batch of each alone, and still there in the others.
assert probes["once an evaluation_distribute"]["counts"] == [2]
assert probes["temperature"]["value"] == 5.5
)");
}

TEST_CASE("PROB_INTERVAL says nothing about when evaluations run") {
  const auto evaluations = [](const Job& job) {
    int64_t n = 0;
    for (const std::string& line : job.lines("trace.txt")) n += line.starts_with("evaluated");
    return n;
  };
  const Job without = job_with(""), with = job_with("", "{NAME: ProbeDataHook, PROB_INTERVAL: 3}");
  without.run({"SOLVER.MAX_EPOCHS=4", "SOLVER.EVAL_INTERVAL=2"});
  with.run({"SOLVER.MAX_EPOCHS=4", "SOLVER.EVAL_INTERVAL=2"});
  CHECK(evaluations(without) == 2);
  CHECK(evaluations(with) == 2);
  CHECK(steps(with, "eval") == Names{"step-20", "step-40"});
  CHECK(with.losses() == without.losses());
}

TEST_CASE("SAVE_IMAGE_POSTFIX is obeyed or refused and never ignored") {
  const Job job = job_with("{NAME: ProbeDataHook, PROB_INTERVAL: 8, SAVE_IMAGE_POSTFIX: png}");
  job.run({kTwoEpochs});
  CHECK(job.dir.has("work/train_probe/step-0/colors.png"));
  const std::string hook = "SOLVER.TRAIN_HOOKS[ProbeDataHook].";
  const e2e::RunResult refused = job.run({hook + "SAVE_IMAGE_POSTFIX=jpg"}, 2);
  CHECK(refused.err.find("pictures are written as png") != std::string::npos);
  CHECK(job.run({hook + "SAVE_IMAGE_POSTFIX=gif"}, 2).err.find("SAVE_IMAGE_POSTFIX") != std::string::npos);
  CHECK(job.run({hook + "SAVE_VIDEO_POSTFIX=avi"}, 2).err.find("no videos are written") != std::string::npos);
}

TEST_CASE("prefixes that are no names and unknown keys are refused") {
  const Job job = job_with("{NAME: ProbeDataHook}");
  const std::string hook = "SOLVER.TRAIN_HOOKS[ProbeDataHook].";
  for (const std::string prefix : {"a/b", ".hidden", "'a b'", "''", "'<i>'"}) {
    INFO(prefix);
    CHECK(job.run({hook + "SAVE_NAME_PREFIX=" + prefix}, 2).err.find("SAVE_NAME_PREFIX") != std::string::npos);
  }
  CHECK(job.run({hook + "SAVE_PROBE_PREFIX=../x"}, 2).err.find("SAVE_PROBE_PREFIX") != std::string::npos);
  CHECK(job.run({hook + "PROBE_INTERVAL=3"}, 2).err.find("PROB_INTERVAL") != std::string::npos);
  CHECK_FALSE(job.dir.has("work"));
}

TEST_CASE("a PROB_INTERVAL of zero writes nothing") {
  const Job job = job_with("", "", "{NAME: ProbeDataHook, PROB_INTERVAL: 0}");
  job.run({kTwoEpochs});
  CHECK_FALSE(job.dir.has("work/train_probe"));
  CHECK_FALSE(job.dir.has("work/eval_probe"));
}

TEST_CASE("instances in the lists of training and evaluation write apart and change no training") {
  const Job without = job_with("");
  const Job with = job_with("{NAME: ProbeDataHook, PROB_INTERVAL: 8, SAVE_LAST: true}",
                            "{NAME: ProbeDataHook, PROB_INTERVAL: 3, SAVE_LAST: true, SAVE_NAME_PREFIX: at}");
  without.run({kTwoEpochs});
  with.run({kTwoEpochs});
  CHECK(steps(with, "train") == Names{"step-0", "step-16", "step-19", "step-8", "step-last"});
  CHECK(steps(with, "eval") == Names{"at-10", "at-20", "at-last"});
  CHECK(fs::read_symlink(with.work("train_probe/step-last")) == "step-19");
  CHECK(fs::read_symlink(with.work("eval_probe/at-last")) == "at-20");
  CHECK(with.losses() == without.losses());
}

TEST_CASE("the pages lead from step to step and hold nothing that was shown as markup") {
  const Job job = job_with("{NAME: ProbeDataHook, PROB_INTERVAL: 8, SAVE_LAST: true}");
  job.run({kTwoEpochs});
  check_python(job.work("train_probe"), R"(
import os
from html.parser import HTMLParser
class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.tags, self.links, self.pictures, self.words, self.scripts, self.path = [], [], [], [], 0, path
        self.nested, self.open = True, []
        self.feed(open(path, encoding="utf-8").read())
        assert self.open == [], self.open
    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        self.tags.append(tag)
        if tag == "a": self.links.append(a["href"])
        if tag == "img": self.pictures.append(a["src"])
        if tag == "script": self.scripts += 1
        assert tag not in ("b", "i") or self.path == "index.html"
        assert not any(k.startswith("on") for k in a)
        if tag not in ("meta", "img"): self.open.append(tag)
    def handle_startendtag(self, tag, attributes): self.tags.append(tag)
    def handle_endtag(self, tag): assert self.open.pop() == tag, (tag, self.open)
    def handle_data(self, data): self.words.append(data)
steps = ["step-0", "step-8", "step-16", "step-19"]
for i, step in enumerate(steps):
    page = Page(step + "/index.html")
    assert page.scripts == 1  # the arrow keys
    text = "".join(page.words)
    assert "<script>alert(2)</script>" in text and "<script>alert(1)</script>" in text and 'falls & "<b>"' in text
    for link in page.links + page.pictures:
        assert "://" not in link and not link.startswith("/")
        assert os.path.exists(os.path.join(step, link)), link
    neighbours = [l.split("/")[1] for l in page.links if l.startswith("../") and l != "../index.html"]
    assert neighbours == steps[max(i - 1, 0):i] + steps[i + 1:i + 2], neighbours
    assert page.pictures == ["inputs/%03d.png" % k for k in range(6 if step == "step-19" else 7)
                             ][:len(page.pictures) - 3] + ["colors.png", "pair_ramps/000.png", "pair_ramps/001.png"]
    assert page.tags.count("svg") == 4  # three distributions and the tensor
    assert "8.5" in text or step != "step-8"
index = Page("index.html")
assert index.links == [s + "/index.html" for s in reversed(steps)]
assert all(os.path.exists(p) for p in index.pictures) and len(index.pictures) == 12
)");
}

TEST_CASE("probes of a run that stopped and went on are those of one that did not") {
  const std::string hooks = "{NAME: ProbeDataHook, PROB_INTERVAL: 4, SAVE_LAST: true}";
  const Job undisturbed = job_with("", "", hooks), stopped = job_with("", "", hooks);
  const std::vector<std::string> three = {"SOLVER.MAX_EPOCHS=3"};
  undisturbed.run(three);
  stopped.run({three[0], at_iteration(5)}, 75);
  stopped.resume({three[0], at_iteration(13)}, 75);
  std::vector<std::string> in_evaluation = e2e::at_point("eval.after_iter", 2, 1);
  in_evaluation.push_back(three[0]);
  stopped.resume(in_evaluation, 75);
  CHECK_FALSE(stopped.dir.has("work/eval_probe/step-20"));  // it was cut short
  stopped.resume(three);
  REQUIRE(steps(undisturbed, "train").size() == 10);  // 0, 4, ..., 28, 29, last
  for (const std::string mode : {"train", "eval"}) {
    CHECK(steps(stopped, mode) == steps(undisturbed, mode));
    CHECK(content(stopped, mode) == content(undisturbed, mode));
  }
  e2e::check_same_training(undisturbed, stopped);
}

TEST_CASE("what a killed run wrote of later steps is gone once it goes on from before") {
  const Job job = job_with("", "", "{NAME: ProbeDataHook, PROB_INTERVAL: 4, SAVE_LAST: true}");
  // Checkpoints after 10 and 20 iterations; killed in the 26th.
  job.run({"SOLVER.MAX_EPOCHS=3", at_iteration(25), "SOLVER.HOOKS[test/RaiseSignal].SIGNAL=KILL"}, -1);
  CHECK(steps(job, "train") ==
        Names{"step-0", "step-12", "step-16", "step-20", "step-24", "step-4", "step-8", "step-last"});
  fs::create_directories(job.work("train_probe/.new-step-28"));
  // A larger interval: nothing would overwrite what stands there.
  job.resume({"SOLVER.MAX_EPOCHS=3", at_iteration(21), "SOLVER.HOOKS[ProbeDataHook].PROB_INTERVAL=100"}, 75);
  CHECK(steps(job, "train") == Names{"step-0", "step-12", "step-16", "step-4", "step-8", "step-last"});
  CHECK(fs::read_symlink(job.work("train_probe/step-last")) == "step-16");
  CHECK(job.dir.read("work/train_probe/step-16/index.html").find("step-20") == std::string::npos);
  CHECK(job.dir.read("work/train_probe/index.html").find("step-20") == std::string::npos);
}

TEST_CASE("a run that shows nothing says so once") {
  const Job job = job_with("{NAME: ProbeDataHook, PROB_INTERVAL: 2}");
  const e2e::RunResult result =
      job.run({"SOLVER.HOOKS=[]", "SOLVER.MODEL={NAME: test/Regression}", "SOLVER.METRICS=[]", "SOLVER.MAX_EPOCHS=1",
               "SOLVER.LR_SCHEDULER=null", "SOLVER.EVAL_DATA=null",
               "SOLVER.TRAIN_DATA={NAME: test/Points, SIZE: 66, BATCH_SIZE: 7, NUM_WORKERS: 0}"});
  const std::size_t at = result.err.find("nothing was shown");
  CHECK(at != std::string::npos);
  CHECK(at == result.err.rfind("nothing was shown"));
  CHECK_FALSE(job.dir.has("work/train_probe"));
}
