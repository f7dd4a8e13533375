#include "work_folder.h"

#include <gantry/error.h>
#include <gantry/text.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace plugins_check {

namespace fs = std::filesystem;

WorkFolder::WorkFolder(const std::string& asked_for) : temporary_(asked_for.empty()) {
  if (temporary_) {
    std::string path = (fs::temp_directory_path() / "gantry-plugins-check-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) throw gantry::Error(gantry::cat("cannot make a temporary folder ", path));
    path_ = path;
    return;
  }
  path_ = fs::absolute(asked_for).lexically_normal().string();
  std::error_code problem;
  fs::create_directories(path_, problem);
  if (problem) throw gantry::Error(gantry::cat("cannot create ", path_, ": ", problem.message()));
  if (!fs::is_empty(path_, problem) || problem)
    throw gantry::Error(gantry::cat("--work-dir ", path_, " is not empty: name a new folder"));
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  if (temporary_) fs::remove_all(path_, ignored);
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw gantry::Error(gantry::cat("cannot write ", path));
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace plugins_check
