#include "step_folders.h"

#include <gantry/append_file.h>
#include <gantry/error.h>
#include <gantry/text.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace probe_data {

namespace {

namespace fs = std::filesystem;

constexpr char kStaged[] = ".new-", kReplaced[] = ".old-";

/// "step-100": the prefix and the number; -1 for any other name.
int64_t number_of(const std::string& name, std::string& prefix) {
  const std::size_t dash = name.rfind('-');
  if (name.front() == '.' || dash == std::string::npos || dash == 0) return -1;
  int64_t number = -1;
  const char* end = name.data() + name.size();
  const auto [stop, problem] = std::from_chars(name.data() + dash + 1, end, number);
  if (stop != end || problem != std::errc() || number < 0) return -1;
  prefix = name.substr(0, dash);
  return number;
}

template <class F>
void checked(const std::string& path, const char* what, F&& f) {
  std::error_code problem;
  f(problem);
  if (problem) throw gantry::Error(gantry::cat("cannot ", what, " ", path, ": ", problem.message()));
}

void rename(const std::string& from, const std::string& to) {
  checked(to, "write", [&](std::error_code& problem) { fs::rename(from, to, problem); });
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

StepFolders::StepFolders(const std::string& work_dir, std::string mode, std::string prefix)
    : root_(work_dir + "/" + mode + "_probe"), mode_(std::move(mode)), prefix_(std::move(prefix)) {}

std::vector<StepFolders::Folder> StepFolders::folders() const {
  std::vector<Folder> all;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_, none)) {
    std::string prefix;
    const std::string name = entry.path().filename().string();
    const int64_t iteration = number_of(name, prefix);
    if (iteration >= 0 && !entry.is_symlink()) all.push_back({name, iteration});
  }
  std::sort(all.begin(), all.end(), [](const Folder& a, const Folder& b) {
    return a.iteration != b.iteration ? a.iteration < b.iteration : a.name < b.name;
  });
  return all;
}

void StepFolders::remove_from(int64_t first) {
  std::vector<std::string> gone;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(root_, none)) {
    std::string prefix;
    const std::string name = entry.path().filename().string();
    const bool half = name.starts_with(kStaged) || name.starts_with(kReplaced);
    if (half || (number_of(name, prefix) >= first && prefix == prefix_)) gone.push_back(name);
  }
  if (gone.empty()) return;
  for (const std::string& name : gone)
    checked(path(name), "remove", [&](std::error_code& problem) { fs::remove_all(path(name), problem); });
  const std::vector<Folder> all = folders();
  for (std::size_t i = 0; i < all.size(); ++i) refresh_neighbours(all, i);
  if (const std::string link = path(prefix_ + "-last"); fs::is_symlink(link)) {
    fs::remove(link, none);
    const auto mine = [&](const Folder& folder) { return folder.name.starts_with(prefix_ + "-"); };
    if (const auto last = std::find_if(all.rbegin(), all.rend(), mine); last != all.rend()) link_last(last->name);
  }
  refresh_list(all);
}

void StepFolders::add(int64_t iteration, bool link,
                      const std::function<void(const std::string&, const Neighbours&)>& write) {
  const std::string name = gantry::cat(prefix_, "-", iteration);
  std::vector<Folder> all = folders();
  const auto same = [&](const Folder& folder) { return folder.name == name; };
  if (std::none_of(all.begin(), all.end(), same)) {
    const auto after = std::find_if(all.begin(), all.end(), [&](const Folder& folder) {
      return folder.iteration > iteration || (folder.iteration == iteration && folder.name > name);
    });
    all.insert(after, {name, iteration});
  }
  const auto index = static_cast<std::size_t>(std::find_if(all.begin(), all.end(), same) - all.begin());

  const std::string staged = path(kStaged + name), replaced = path(kReplaced + name);
  for (const std::string& left_over : {staged, replaced})
    checked(left_over, "remove", [&](std::error_code& problem) { fs::remove_all(left_over, problem); });
  checked(staged, "create", [&](std::error_code& problem) { fs::create_directories(staged, problem); });
  write(staged, {index > 0 ? all[index - 1].name : "", index + 1 < all.size() ? all[index + 1].name : ""});
  if (fs::exists(path(name))) rename(path(name), replaced);
  rename(staged, path(name));
  checked(replaced, "remove", [&](std::error_code& problem) { fs::remove_all(replaced, problem); });

  if (index > 0) refresh_neighbours(all, index - 1);
  if (index + 1 < all.size()) refresh_neighbours(all, index + 1);
  if (link) link_last(name);
  refresh_list(all);
}

void StepFolders::link_last(const std::string& name) {
  const std::string link = path(prefix_ + "-last"), staged = path(kStaged + prefix_ + "-last");
  checked(link, "write", [&](std::error_code& problem) {
    fs::remove(staged, problem);
    fs::create_directory_symlink(name, staged, problem);
    if (!problem) fs::rename(staged, link, problem);
  });
}

void StepFolders::refresh_neighbours(const std::vector<Folder>& all, std::size_t index) {
  const std::string file = path(all[index].name) + "/index.html";
  const std::string before = content_of(file);
  const std::string now = with_neighbours(
      before, {index > 0 ? all[index - 1].name : "", index + 1 < all.size() ? all[index + 1].name : ""});
  if (now != before) gantry::replace_file(file, now);
}

void StepFolders::refresh_list(const std::vector<Folder>& all) {
  constexpr std::size_t kMostPictures = 3;
  std::vector<StepLink> links;
  for (const Folder& folder : all) {
    StepLink link{folder.name, {}};
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(path(folder.name), none))
      if (entry.path().extension() == ".png") link.pictures.push_back(entry.path().filename().string());
    std::sort(link.pictures.begin(), link.pictures.end());
    if (link.pictures.size() > kMostPictures) link.pictures.resize(kMostPictures);
    links.push_back(std::move(link));
  }
  gantry::replace_file(path("index.html"), steps_page(mode_, links));
}

}  // namespace probe_data
