#include <algorithm>
#include <cstdlib>

#include "gantry/dataset.h"
#include "gantry/file_system.h"
#include "plugin_under_test.h"
#include "unit/data_files.h"
#include "unit/messages.h"

namespace fs = std::filesystem;

using gantry::Dataset;

namespace {

using Names = std::vector<std::string>;

using Entries = std::vector<std::pair<std::string, gantry::Config>>;

gantry::Config folder_config(const std::string& folder, const Entries& more = {}) {
  Entries entries{{"DATA_DIR", text_config(folder)}};
  entries.insert(entries.end(), more.begin(), more.end());
  return map_config(std::move(entries));
}

std::unique_ptr<Dataset> open(const std::string& folder, const Entries& more = {}) {
  return PluginUnderTest("gantry-image-folder").build<Dataset>("ImageFolder", folder_config(folder, more));
}

std::string config_error(const std::string& folder, const Entries& more = {}) {
  return PluginUnderTest("gantry-image-folder").config_error<Dataset>("ImageFolder", folder_config(folder, more));
}

const Entries kPaths = {{"PATHS", text_config("true")}};

std::string path_of(const Dataset& dataset, int64_t index) {
  const gantry::Sample sample = dataset.get(index);
  return std::get<std::vector<std::string>>(*sample.find("path"))[0];
}

int64_t label_of(const Dataset& dataset, int64_t index) { return std::get<int64_t>(*dataset.get(index).find("label")); }

// The largest difference between an image and the bytes of a file.
int difference(const at::Tensor& image, const std::string& file) {
  const std::string expected = bytes_of(file);
  REQUIRE(static_cast<int64_t>(expected.size()) == image.numel());
  REQUIRE(image.is_contiguous());
  const auto* bytes = image.const_data_ptr<uint8_t>();
  int largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::abs(bytes[i] - static_cast<int>(static_cast<unsigned char>(expected[i]))));
  return largest;
}

// One image, of these bytes, and what reading it complains of.
class OneImage {
 public:
  explicit OneImage(const std::string& bytes, const Entries& more = {}) {
    fs::create_directories(directory_ / "a");
    write(bytes);
    dataset_ = open(directory_ / "", more);
  }
  void write(const std::string& bytes) { put_bytes(directory_ / "a/image.png", bytes); }
  std::string error() const {
    return message_of([&] { dataset_->get(0); });
  }
  std::string path() const { return directory_ / "a/image.png"; }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<Dataset> dataset_;
};

// A PNG or JPEG file that claims this size.
std::string with_size(std::string bytes, uint32_t height, uint32_t width) {
  const auto put = [&](std::size_t at, uint32_t value, int size) {
    for (int i = 0; i < size; ++i)
      bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> 8 * (size - 1 - i));
  };
  if (bytes[1] == 'P') {
    put(16, width, 4);
    put(20, height, 4);
    uint32_t crc = 0xFFFFFFFF;
    for (std::size_t i = 12; i < 29; ++i) {
      crc ^= static_cast<unsigned char>(bytes[i]);
      for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xEDB88320 : crc >> 1;
    }
    put(29, ~crc, 4);
  } else {
    const std::size_t frame = bytes.find("\xff\xc0");
    put(frame + 5, height, 2);
    put(frame + 7, width, 2);
  }
  return bytes;
}

}  // namespace

TEST_CASE("images of every kind have the pixels that Pillow reads") {
  const DataFiles files;
  if (!files) return;
  int seen = 0;
  for (const auto& [channels, mode] : {std::pair{"3", "RGB"}, std::pair{"1", "L"}}) {
    Entries more = kPaths;
    more.emplace_back("CHANNELS", text_config(channels));
    const auto dataset = open(files / "images", more);
    for (int64_t i = 0; i < dataset->size(); ++i) {
      const gantry::Sample sample = dataset->get(i);
      const std::string name = fs::path(path_of(*dataset, i)).filename();
      CAPTURE(name);
      CAPTURE(mode);
      const at::Tensor& image = sample.tensor("img");
      CHECK((image.scalar_type() == at::kByte));
      CHECK(image.sizes() == at::IntArrayRef({std::string(channels) == "3" ? 3 : 1, 13, 18}));
      // Pillow brings a JPEG library of its own, of another version.
      const int allowed = name.ends_with(".jpg") ? 2 : 0;
      CHECK(difference(image, files / ("expected/" + name + "." + mode)) <= allowed);
      ++seen;
    }
  }
  CHECK(seen == 2 * 18);
}

TEST_CASE("labels count the class folders by name and images come folder by folder") {
  const DataFiles files;
  if (!files) return;
  const TemporaryDirectory directory;
  const std::string png = bytes_of(files / "images/a/gray.png");
  const auto local = gantry::make_local_file_system();
  for (const char* name : {"b/x.png", "b/deep/0.PNG", "b/a.Jpeg", "B/1.png", "a/2.png", "a/.hidden.png", "a/notes.txt",
                           ".cache/3.png", "a/.thumbnails/4.png"}) {
    local->put_object(png, directory / name);
  }
  put_bytes(directory / "not in a class.png", png);
  const auto dataset = open(directory / "", kPaths);
  Names paths;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    paths.push_back(path_of(*dataset, i).substr((directory / "").size()));
    labels.push_back(label_of(*dataset, i));
  }
  CHECK(paths == Names{"B/1.png", "a/2.png", "b/a.Jpeg", "b/x.png", "b/deep/0.PNG"});
  CHECK(labels == std::vector<int64_t>{0, 1, 2, 2, 2});

  const auto chosen =
      open(directory / "", {{"CLASSES", list_config({"b", "a"})}, {"EXTENSIONS", list_config({"png"})}});
  CHECK(chosen->size() == 3);
  CHECK(label_of(*chosen, 0) == 0);
  CHECK(label_of(*chosen, 2) == 1);
}

TEST_CASE("images of one size are a tensor and of several sizes a list") {
  const DataFiles files;
  if (!files) return;
  const auto same = open(files / "images", kPaths);
  const std::vector<int64_t> indices = {3, 0, 3};
  const gantry::Batch batch = same->get_batch(indices);
  CHECK(batch.tensor("img").sizes() == at::IntArrayRef({3, 3, 13, 18}));
  CHECK(batch.tensor("img").select(0, 0).equal(same->get(3).tensor("img")));
  CHECK(batch.tensor("label").sizes() == at::IntArrayRef({3}));
  CHECK((batch.tensor("label").scalar_type() == at::kLong));
  CHECK(std::get<Names>(*batch.find("path")).size() == 3);

  const TemporaryDirectory directory;
  fs::create_directories(directory / "a");
  fs::copy(files / "images/a/rgb.png", directory / "a/1.png");
  REQUIRE(std::system((std::string(GANTRY_VENV_PYTHON) +
                       " -c \"from PIL import Image; Image.new('RGB', (4, 5), 'red').save('" + (directory / "a/2.png") +
                       "')\"")
                          .c_str()) == 0);
  const gantry::Batch ragged = open(directory / "")->get_batch(std::vector<int64_t>{0, 1});
  const auto& images = std::get<std::vector<at::Tensor>>(*ragged.find("img"));
  CHECK(images[1].sizes() == at::IntArrayRef({3, 5, 4}));
  CHECK(images[1].select(0, 0).eq(255).all().item<bool>());
  CHECK(images[1].slice(0, 1).eq(0).all().item<bool>());
  CHECK(contains(message_of([&] { ragged.tensor("img"); }), "Resize"));
}

TEST_CASE("an image that cannot be read is named with its sample and the reason") {
  const DataFiles files;
  if (!files) return;
  const std::string png = bytes_of(files / "images/a/rgb.png"), jpeg = bytes_of(files / "images/a/rgb.jpg");
  std::string flipped = png;
  flipped[flipped.size() / 2] ^= 1;
  const std::pair<std::string, std::string> cases[] = {
      {"", "the file is empty"},
      {"GIF89a", "neither a PNG nor a JPEG file: it begins with 47 49 46 38 39 61"},
      {png.substr(0, png.size() / 2), "damaged PNG file: the file is cut off"},
      {png.substr(0, png.size() - 1), "damaged PNG file: the file is cut off"},
      {png.substr(0, 20), "damaged PNG file: the file is cut off"},
      {flipped, "damaged PNG file: IDAT: "},
      {jpeg.substr(0, jpeg.size() / 2), "damaged JPEG file: "},
      {jpeg.substr(0, jpeg.size() * 3 / 4), "damaged JPEG file: Premature end of JPEG file"},
      {jpeg.substr(0, 30), "damaged JPEG file: "},
      {with_size(png, 0x7FFFFFFF, 0x7FFFFFFF), "2147483647 x 2147483647 pixels; MAX_PIXELS allows 178956970"},
      {with_size(png, 0, 5), "damaged PNG file: "},
      {with_size(jpeg, 65500, 65500), "65500 x 65500 pixels; MAX_PIXELS allows 178956970"},
      {with_size(png, 10000, 10000), "damaged PNG file: "},
      {with_size(jpeg, 8000, 8000), "damaged JPEG file: "},
  };
  for (const auto& [bytes, reason] : cases) {
    const OneImage image(bytes);
    CAPTURE(image.error());
    CHECK(contains(image.error(), "sample 0, " + image.path() + ": "));
    CHECK(contains(image.error(), reason));
  }
  const OneImage limited(png, {{"MAX_PIXELS", text_config("233")}});
  CHECK(contains(limited.error(), "13 x 18 pixels; MAX_PIXELS allows 233"));
  CHECK(OneImage(png, {{"MAX_PIXELS", text_config("234")}}).error() == "nothing was thrown");

  OneImage gone(png);
  fs::remove(gone.path());
  CHECK(contains(gone.error(), "No such file or directory"));
}

TEST_CASE("no damage to an image does more than make an error") {
  const DataFiles files;
  if (!files) return;
  for (const char* name : {"palette_transparent.png", "interlaced.png", "rgb.jpg", "progressive.jpg", "cmyk.jpg"}) {
    CAPTURE(name);
    const std::string whole = bytes_of(files / (std::string("images/a/") + name));
    OneImage image(whole);
    REQUIRE(image.error() == "nothing was thrown");
    for (std::size_t size = 0; size < whole.size(); ++size) {
      image.write(whole.substr(0, size));
      CAPTURE(size);
      REQUIRE(contains(image.error(), "sample 0, "));
    }
    int refused = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const int change : {0x01, 0x80, 0xFF}) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ change);
        image.write(bytes);
        refused += contains(image.error(), "sample 0, ");
      }
    }
    CHECK(refused > 0);
  }
}

TEST_CASE("a JPEG file of a thousand scans is refused") {
  const DataFiles files;
  if (!files) return;
  const std::string whole = bytes_of(files / "images/a/progressive.jpg");
  const std::size_t first = whole.find("\xff\xda"), second = whole.find("\xff\xda", first + 1);
  const std::string scan = whole.substr(first, second - first);
  std::string bytes = whole.substr(0, whole.size() - 2);
  for (int i = 0; i < 1000; ++i) bytes += scan;
  const std::string error = OneImage(bytes + whole.substr(whole.size() - 2)).error();
  CAPTURE(error);
  CHECK(contains(error, "it has more than 500 scans"));
}

TEST_CASE("an image folder without classes or without images of a class is a configuration error") {
  const TemporaryDirectory directory;
  CHECK(contains(config_error(directory / "absent"), "DATA_DIR"));
  CHECK(contains(config_error(directory / "absent"), directory / "absent"));
  put_bytes(directory / "file", "");
  CHECK(contains(config_error(directory / "file"), "is no folder"));
  fs::create_directory(directory / "data");
  put_bytes(directory / "data/image.png", "");
  CHECK(contains(config_error(directory / "data"), "has no classes: there is no folder in " + (directory / "data")));
  fs::create_directories(directory / "data/cat");
  put_bytes(directory / "data/cat/1.png", "");
  fs::create_directories(directory / "data/dog");
  put_bytes(directory / "data/dog/1.gif", "");
  const std::string empty = config_error(directory / "data");
  CHECK(contains(empty, "no images of the class 'dog'"));
  CHECK(contains(empty, ".png, .jpg, .jpeg"));
  CHECK(contains(config_error(directory / "data", {{"CLASSES", list_config({"cats"})}}), "did you mean 'cat'?"));
  CHECK(contains(config_error(directory / "data", {{"CLASSES", list_config({"cat", "cat"})}}), "names 'cat' twice"));
  CHECK(contains(config_error(directory / "data", {{"CHANNELS", text_config("2")}}), "1 (gray) or 3 (colour)"));
  CHECK(contains(config_error("s3://bucket/data"), "'s3://'"));
  CHECK(open(directory / "data", {{"CLASSES", list_config({"cat"})}})->size() == 1);
}
