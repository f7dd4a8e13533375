#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "gantry/dataset.h"
#include "gantry/file_system.h"
#include "gantry/gantry.h"
#include "image_file.h"

namespace fs = std::filesystem;

namespace gantry::image_folder {

namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool hidden(const fs::path& path) {
  return std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part.native().starts_with('.'); });
}

class ImageFolder final : public Dataset {
 public:
  static void declare(Parameters& p) {
    p.add<std::string>("DATA_DIR").not_empty().help("Folder with a folder of images for each class.");
    p.add<int64_t>("CHANNELS", 3)
        .at_least(1)
        .at_most(3)
        .help("3: colour, gray images are repeated; 1: gray, of colour images the luminance.");
    p.optional<std::vector<std::string>>("CLASSES").not_empty().help(
        "The folders to take, in the order of their labels; default: all, sorted by name.");
    p.add<std::vector<std::string>>("EXTENSIONS", {".png", ".jpg", ".jpeg"})
        .not_empty()
        .help("How names of images end, in any case; what a file is, its content tells.");
    p.add<bool>("PATHS", false).no_effect_on_result().help("Also gives 'path', the file of each sample.");
    p.add<int64_t>("MAX_PIXELS", 178956970)
        .at_least(1)
        .unit("pixels")
        .no_effect_on_result()
        .help("A larger image is an error: small files can claim to be huge.");
  }

  ImageFolder(const Config& config, Context& context)
      : given_(config.get<std::string>("DATA_DIR")),
        channels_(config.get<int64_t>("CHANNELS")),
        max_pixels_(config.get<int64_t>("MAX_PIXELS")),
        paths_(config.get<bool>("PATHS")),
        local_(make_local_file_system()) {
    if (channels_ == 2) throw config.error("CHANNELS", "is 2; it can be 1 (gray) or 3 (colour)");
    while (given_.size() > 1 && given_.back() == '/') given_.pop_back();
    std::vector<std::string> extensions = config.get<std::vector<std::string>>("EXTENSIONS");
    for (std::string& extension : extensions) {
      extension = lower(extension);
      if (!extension.starts_with('.')) extension.insert(0, ".");
    }
    try {
      copy_.emplace(context.files().get_from(given_));
      if (!local_->is_dir(copy_->path())) throw Error(cat(given_, " is no folder"));
      find_classes(config);
      for (std::size_t label = 0; label < classes_.size(); ++label) find_images(config, label, extensions);
    } catch (const ConfigError&) {
      throw;
    } catch (const std::exception&) {
      throw config.error("DATA_DIR", cat("cannot be used: ", current_exception_message()));
    }
    context.logger().info(cat("ImageFolder: ", files_.size(), " images of ", classes_.size(), " classes in ", given_,
                              " (", classes_text(), ")"));
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }

  Sample get(int64_t index) const override {
    if (index < 0 || index >= size()) throw Error(cat("there is no image ", index, "; there are ", size()));
    const File& file = files_[static_cast<std::size_t>(index)];
    const std::string path = cat(given_, "/", file.path);
    Sample sample;
    sample.entries().reserve(3);
    try {
      sample.set("img", read(cat(copy_->path(), "/", file.path)));
    } catch (...) {
      throw Error(cat("sample ", index, ", ", path, ": ", current_exception_message()));
    }
    sample.set("label", file.label);
    if (paths_) sample.set("path", std::vector<std::string>{path});
    return sample;
  }

 private:
  struct File {
    std::string path;  // below DATA_DIR
    int64_t label;
  };

  at::Tensor read(const std::string& path) const {
    constexpr int64_t kMostBytes = int64_t{1} << 30;
    if (const int64_t bytes = local_->size(path); bytes > kMostBytes)
      throw Error(cat("the file has ", bytes_text(bytes), "; an image may have ", bytes_text(kMostBytes)));
    return decode_image(local_->get_object(path), channels_, max_pixels_);
  }

  void find_classes(const Config& config) {
    std::vector<std::string> folders;
    for (const fs::directory_entry& entry : fs::directory_iterator(copy_->path())) {
      std::error_code problem;  // a link to nothing is no folder
      if (entry.is_directory(problem) && !hidden(entry.path().filename())) folders.push_back(entry.path().filename());
    }
    std::sort(folders.begin(), folders.end());
    if (folders.empty())
      throw config.error("DATA_DIR",
                         cat("has no classes: there is no folder in ", given_, ", and each class needs one"));
    if (!config.has("CLASSES")) {
      classes_ = std::move(folders);
      return;
    }
    classes_ = config.get<std::vector<std::string>>("CLASSES");
    for (auto name = classes_.begin(); name != classes_.end(); ++name) {
      if (std::find(classes_.begin(), name, *name) != name)
        throw config.error("CLASSES", cat("names '", *name, "' twice"));
      if (std::find(folders.begin(), folders.end(), *name) != folders.end()) continue;
      const std::vector<std::string> near = near_matches(*name, folders);
      throw config.error("CLASSES", cat("names '", *name, "', but there is no such folder in ", given_,
                                        near.empty() ? cat("; there are ", shortened(folders))
                                                     : cat("; did you mean '", near[0], "'?")));
    }
  }

  // In the order of torchvision's ImageFolder: folder by folder.
  void find_images(const Config& config, std::size_t label, const std::vector<std::string>& extensions) {
    const std::string folder = cat(copy_->path(), "/", classes_[label]);
    std::vector<fs::path> images;
    for (const std::string& file : local_->walk_dir(folder)) {
      const fs::path path = fs::path(file).lexically_relative(copy_->path());
      const bool wanted = std::any_of(extensions.begin(), extensions.end(), [&](const std::string& extension) {
        return lower(path.filename()).ends_with(extension);
      });
      if (wanted && !hidden(path)) images.push_back(path);
    }
    if (images.empty()) {
      throw config.error("DATA_DIR", cat("has no images of the class '", classes_[label], "': no file in ", given_, "/",
                                         classes_[label], " ends in ", join(extensions, ", ")));
    }
    std::sort(images.begin(), images.end(), [](const fs::path& a, const fs::path& b) {
      const int folders = a.parent_path().native().compare(b.parent_path().native());
      return folders != 0 ? folders < 0 : a.filename().native() < b.filename().native();
    });
    for (const fs::path& image : images) files_.push_back({image.string(), static_cast<int64_t>(label)});
  }

  static std::string shortened(std::vector<std::string> names) {
    constexpr std::size_t kShown = 10;
    if (names.size() <= kShown) return join(names, ", ");
    names.resize(kShown);
    return join(names, ", ") + ", ...";
  }
  std::string classes_text() const { return shortened(classes_); }

  std::string given_;
  const int64_t channels_, max_pixels_;
  const bool paths_;
  const std::unique_ptr<FileSystem> local_;
  std::optional<LocalCopy> copy_;
  std::vector<std::string> classes_;
  std::vector<File> files_;
};

}  // namespace

GANTRY_PLUGIN("gantry-image-folder", GANTRY_VERSION);
GANTRY_DATASET(ImageFolder, "ImageFolder", "PNG and JPEG images from a folder that has a folder for each class.");

}  // namespace gantry::image_folder
