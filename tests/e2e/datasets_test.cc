#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "e2e/probe.h"

// Training from files of each kind, through the program.

namespace {

using e2e::Training;

// An image folder made from Fashion-MNIST, and the same images in other files.
class ImageFiles {
 public:
  ImageFiles() {
    if (!std::filesystem::exists(kPython)) {
      MESSAGE("skipped: there is no .venv to write the files with");
      return;
    }
    run({kPython, GANTRY_SOURCE_DIR "/tools/make-image-folder", dir_.path("images"), "--limit", "8"});
    run({kPython, GANTRY_SOURCE_DIR "/tests/e2e/same_images.py", dir_.path("images/train"), dir_.path()});
    made_ = true;
  }
  explicit operator bool() const { return made_; }
  const e2e::TempDir& dir() const { return dir_; }
  std::string path(const std::string& name) const { return dir_.path(name); }

  void run(const std::vector<std::string>& command) const {
    const e2e::RunResult result = e2e::run_program(command, dir_.path());
    INFO(result.describe());
    REQUIRE(result.exit_code == 0);
  }

  static constexpr char kPython[] = GANTRY_SOURCE_DIR "/.venv/bin/python";

 private:
  e2e::TempDir dir_;
  bool made_ = false;
};

std::vector<std::string> job(const std::string& dataset, const std::string& transforms = "") {
  const std::string normalize = "{NAME: Normalize, MEAN: [0.286], STD: [0.353]}";
  return {e2e::kDigest,
          "SOLVER.TRAIN_DATA={" + dataset + ", BATCH_SIZE: 7, NUM_WORKERS: 2, TRANSFORMS: [" + transforms + normalize +
              "]}",
          "SOLVER.MODEL={NAME: Classifier, NUM_CLASSES: 10, BACKBONE: {NAME: Mlp, INPUT_SIZE: 784, HIDDEN: [16]}}"};
}

std::string folder(const std::string& path) { return "NAME: ImageFolder, CHANNELS: 1, DATA_DIR: \"" + path + "\""; }

}  // namespace

TEST_CASE("the same images train the same weights from a folder from IDX files from arrays and from safetensors") {
  const ImageFiles files;
  if (!files) return;
  const Training first(job(folder(files.path("images/train"))));
  CHECK(first.digests().size() == 24);  // two epochs of 80 images, by 7
  const std::string datasets[] = {
      "NAME: IdxDataset, FILES: [{KEY: img, PATH: " + files.path("images.idx") +
          "}, {KEY: label, PATH: " + files.path("labels.idx") + "}]",
      "NAME: TensorDataset, FILES: [{KEY: img, PATH: " + files.path("images.npy") +
          "}, {KEY: label, PATH: " + files.path("labels.npy") + "}]",
      "NAME: TensorDataset, FILES: [{PATH: " + files.path("all.safetensors") + "}]",
  };
  for (const std::string& dataset : datasets) {
    CAPTURE(dataset);
    CHECK(Training(job(dataset)).digests() == first.digests());
  }
}

TEST_CASE("Fashion-MNIST trains the same weights by its name and as IDX files") {
  const std::string path = "/usr/share/datasets/fashion-mnist/train-";
  auto named = job("NAME: FashionMnist");
  auto files = job("NAME: IdxDataset, FILES: [{KEY: img, PATH: " + path +
                   "images-idx3-ubyte.gz}, {KEY: label, PATH: " + path + "labels-idx1-ubyte.gz}]");
  for (auto* changes : {&named, &files}) changes->push_back("SOLVER.LIMIT_TRAIN_BATCHES=10");
  const Training first(named);
  CHECK(first.digests().size() == 20);
  CHECK(Training(files).digests() == first.digests());
}

TEST_CASE("a dataset reads from the file system that its path begins with") {
  const ImageFiles files;
  if (!files) return;
  auto changes = job(folder("data://train"));
  changes.push_back("SOLVER.FILE_SYSTEM=[{NAME: LocalFs, PREFIX: \"data://\", ROOT: " + files.path("images") + "}]");
  CHECK(Training(changes).digests() == Training(job(folder(files.path("images/train")))).digests());
  CHECK(Training(job(folder("data://train")), 2).result.err.find("'data://'") != std::string::npos);
}

TEST_CASE("images of several sizes train once they are resized and are refused before that with what to do") {
  const ImageFiles files;
  if (!files) return;
  const std::string images = files.path("images/train");
  files.run({ImageFiles::kPython, "-c",
             "import pathlib, sys\nfrom PIL import Image\n"
             "for i, p in enumerate(sorted(pathlib.Path(sys.argv[1]).rglob('*.png'))):\n"
             "    Image.open(p).resize((20 + i % 30, 40)).save(p)\n",
             images});
  const Training resized(job(folder(images), "{NAME: Resize, SIZE: [28, 28]}, "));
  CHECK(resized.digests().size() == 24);
  const Training refused(job(folder(images)), 1);
  INFO(refused.result.err);
  CHECK(refused.result.err.find("a list of 7 tensors of different shapes, float32 [1, 40, ") != std::string::npos);
  CHECK(refused.result.err.find("Resize") != std::string::npos);
}

TEST_CASE("an image that is cut off ends the run with its name") {
  const ImageFiles files;
  if (!files) return;
  const std::string image = "images/train/Bag/" + [&] {
    for (const auto& entry : std::filesystem::directory_iterator(files.path("images/train/Bag")))
      return entry.path().filename().string();
    return std::string();
  }();
  std::filesystem::resize_file(files.path(image), 100);
  const Training run(job(folder(files.path("images/train"))), 1);
  INFO(run.result.err);
  CHECK(run.result.err.find(files.path(image) + ": it is a damaged PNG file: the file is cut off") !=
        std::string::npos);
  CHECK(run.result.err.find("ImageFolder") != std::string::npos);
}

TEST_CASE("a dataset without its files is a configuration error at its line") {
  e2e::TempDir dir;
  dir.write("empty/readme.txt", "");
  const auto error = [](const std::string& dataset) { return Training(job(dataset), 2).result.err; };
  CHECK(error(folder(dir.path("absent"))).find("DATA_DIR") != std::string::npos);
  CHECK(error(folder(dir.path("empty"))).find("there is no folder in " + dir.path("empty")) != std::string::npos);
  CHECK(error("NAME: IdxDataset").find("FILES") != std::string::npos);
  CHECK(error("NAME: IdxDataset, FILES: []").find("FILES must have at least one item") != std::string::npos);
  CHECK(error("NAME: IdxDataset, FILES: [{KEY: img}]").find("PATH") != std::string::npos);
  CHECK(error("NAME: TensorDataset, FILES: [{PATH: x.npy, KEYS: y}]").find("did you mean 'KEY'?") != std::string::npos);
  CHECK(error("NAME: TensorDataset, FILES: [{PATH: x.npy}]").find("there is no file x.npy") != std::string::npos);
}
