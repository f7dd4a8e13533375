#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gantry/export.h"
#include "gantry/parameters.h"

namespace gantry {

/// A place that files come from and go to: a kind of plugin, so that remote ones can be added (SCEPTER's client
/// contract). Paths are those of the configuration, prefix included ("oss://bucket/data/x.png"). Failures are
/// gantry::Error that names the path and the reason. Thread: `const` members from any thread, several at a time.
class GANTRY_API FileSystem {
 public:
  /// TEMP_DIR: where local copies of remote files are kept.
  static void declare_common(Parameters& parameters);

  virtual ~FileSystem();
  /// What its paths begin with; of several file systems the one with the longest prefix has the path. "": any path.
  virtual std::string prefix() const = 0;

  virtual bool exists(const std::string& path) const = 0;
  virtual bool is_file(const std::string& path) const = 0;
  virtual bool is_dir(const std::string& path) const = 0;
  virtual int64_t size(const std::string& path) const = 0;  ///< bytes of a file
  /// Files below a folder, all levels, whole paths, sorted.
  virtual std::vector<std::string> walk_dir(const std::string& path) const = 0;

  virtual std::string get_object(const std::string& path) const = 0;
  virtual void get_object_to_local_file(const std::string& path, const std::string& local_path) const = 0;
  virtual void get_dir_to_local_dir(const std::string& path, const std::string& local_path) const = 0;

  /// What is put appears whole or not at all, also where something of that name is there already; folders on the way
  /// are made.
  virtual void put_object(std::string_view bytes, const std::string& path) const = 0;
  virtual void put_object_from_local_file(const std::string& local_path, const std::string& path) const = 0;
  virtual void put_dir_from_local_dir(const std::string& local_path, const std::string& path) const = 0;
  virtual void make_dir(const std::string& path) const = 0;
  virtual void make_link(const std::string& target, const std::string& link) const = 0;  ///< replaces an earlier link

  /// Where the file is, or where it would be put, when that is on this machine; "" otherwise.
  virtual std::string map_to_local(const std::string& path) const;
  virtual std::string get_url(const std::string& path) const;  ///< for people; default: the path
  /// Where FileSystems keeps local copies of its files: TEMP_DIR. Default: the system's folder for temporary files.
  virtual std::string temp_dir() const;
};

/// A file or folder on this machine with what was asked for, for as long as this object lives.
class GANTRY_API LocalCopy final {
 public:
  LocalCopy(std::string path, bool temporary);
  ~LocalCopy();  ///< removes a temporary one
  LocalCopy(LocalCopy&&) noexcept;
  LocalCopy& operator=(LocalCopy&&) noexcept;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool temporary_;
};

/// A file that is being written on this machine; `commit` puts it where it belongs, at once. Without it, nothing
/// appears.
class GANTRY_API PutTo final {
 public:
  PutTo(const FileSystem& file_system, std::string target, std::string local_path);
  ~PutTo();
  PutTo(PutTo&&) noexcept;
  PutTo& operator=(PutTo&&) = delete;
  const std::string& path() const { return local_path_; }  ///< write here
  void commit();

 private:
  const FileSystem* file_system_;
  std::string target_, local_path_;
};

/// The file systems of a run: those of SOLVER.FILE_SYSTEM, and this machine's for every other path.
class GANTRY_API FileSystems final {
 public:
  FileSystems();
  ~FileSystems();
  void add(std::unique_ptr<FileSystem> file_system);  ///< before it is used; a prefix may be taken only once
  const FileSystem& of(const std::string& path) const;
  /// Fetches a file, or a folder with all that is in it; one that is on this machine is not copied.
  LocalCopy get_from(const std::string& path) const;
  PutTo put_to(const std::string& path) const;

 private:
  std::unique_ptr<FileSystem> local_;
  std::vector<std::unique_ptr<FileSystem>> others_;
};

/// This machine's files; what FileSystems has from the start, and what the plugin LocalFs is.
GANTRY_API std::unique_ptr<FileSystem> make_local_file_system();

}  // namespace gantry
