#include "gantry/file_system.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <atomic>
#include <map>
#include <thread>

#include "gantry/error.h"
#include "unit/files.h"
#include "unit/messages.h"

namespace fs = std::filesystem;

using gantry::FileSystem;
using gantry::FileSystems;

namespace {

using Names = std::vector<std::string>;

std::unique_ptr<FileSystem> local() { return gantry::make_local_file_system(); }

// A remote store in memory. What it fetches and where to is for the test to see.
class MemoryFs final : public FileSystem {
 public:
  using Store = std::map<std::string, std::string>;
  MemoryFs(std::shared_ptr<Store> store, std::string prefix, std::string temp_dir)
      : store_(std::move(store)), prefix_(std::move(prefix)), temp_dir_(std::move(temp_dir)) {}

  std::string prefix() const override { return prefix_; }
  std::string temp_dir() const override { return temp_dir_; }
  bool exists(const std::string& path) const override { return is_file(path) || is_dir(path); }
  bool is_file(const std::string& path) const override { return store_->count(path) != 0; }
  bool is_dir(const std::string& path) const override { return !walk_dir(path).empty(); }
  int64_t size(const std::string& path) const override { return static_cast<int64_t>(get_object(path).size()); }
  std::vector<std::string> walk_dir(const std::string& path) const override {
    std::vector<std::string> files;
    for (const auto& [name, bytes] : *store_) {
      if (name.starts_with(path + "/")) files.push_back(name);
    }
    return files;
  }
  std::string get_object(const std::string& path) const override {
    if (!is_file(path)) throw gantry::Error("the store has no " + path);
    return store_->at(path);
  }
  void get_object_to_local_file(const std::string& path, const std::string& local_path) const override {
    put_bytes(local_path, "begun");  // as a download that breaks off
    put_bytes(local_path, get_object(path));
  }
  void get_dir_to_local_dir(const std::string& path, const std::string& local_path) const override {
    for (const std::string& file : walk_dir(path)) {
      const fs::path target = local_path + file.substr(path.size());
      fs::create_directories(target.parent_path());
      put_bytes(target, get_object(file));
    }
  }
  void put_object(std::string_view bytes, const std::string& path) const override { (*store_)[path] = bytes; }
  void put_object_from_local_file(const std::string& local_path, const std::string& path) const override {
    put_object(bytes_of(local_path), path);
  }
  void put_dir_from_local_dir(const std::string&, const std::string&) const override {}
  void make_dir(const std::string&) const override {}
  void make_link(const std::string&, const std::string&) const override {}

 private:
  std::shared_ptr<Store> store_;
  std::string prefix_, temp_dir_;
};

}  // namespace

TEST_CASE("what is put on this machine can be read back and looked at") {
  const TemporaryDirectory directory;
  const std::string file = directory / "a/b/file.bin";
  const std::string bytes("\0\xff\n ", 4);
  for (const std::string scheme : {"", "file://"}) {
    const std::string path = scheme + file;
    local()->put_object(bytes, path);
    CHECK(local()->get_object(path) == bytes);
    CHECK(local()->size(path) == 4);
    CHECK(local()->exists(path));
    CHECK(local()->is_file(path));
    CHECK_FALSE(local()->is_dir(path));
    CHECK(local()->is_dir(scheme + (directory / "a/b/")));
    CHECK_FALSE(local()->is_file(scheme + (directory / "a/b")));
    CHECK_FALSE(local()->exists(path + ".not"));
    CHECK_FALSE(local()->exists(path + "/below a file"));
    CHECK(local()->map_to_local(path) == file);
    local()->get_object_to_local_file(path, directory / "copies/file.bin");
    CHECK(bytes_of(directory / "copies/file.bin") == bytes);
    fs::remove_all(directory / "a");
    fs::remove_all(directory / "copies");
  }
  local()->make_dir(directory / "x/y");
  local()->make_dir(directory / "x/y");
  CHECK(fs::is_directory(directory / "x/y"));
}

TEST_CASE("a file that is put over another replaces it and nothing else appears") {
  const TemporaryDirectory directory;
  put_bytes(directory / "source", "new");
  put_bytes(directory / "target", "an earlier, longer one");
  local()->put_object_from_local_file(directory / "source", directory / "target");
  CHECK(bytes_of(directory / "target") == "new");
  local()->put_object("newer", directory / "target");
  CHECK(bytes_of(directory / "target") == "newer");
  CHECK(names_in(directory / "") == Names{"source", "target"});
}

TEST_CASE("a put that fails says why and leaves what was there") {
  const TemporaryDirectory directory;
  put_bytes(directory / "target", "earlier");
  const std::string missing =
      message_of([&] { local()->put_object_from_local_file(directory / "no such", directory / "target"); });
  CHECK(contains(missing, (directory / "no such") + ": No such file or directory"));
  CHECK(bytes_of(directory / "target") == "earlier");

  fs::create_directory(directory / "folder");
  put_bytes(directory / "folder/kept", "kept");
  CHECK(contains(message_of([&] { local()->put_object("bytes", directory / "folder"); }), "Is a directory"));
  CHECK(bytes_of(directory / "folder/kept") == "kept");
  CHECK(contains(message_of([&] { local()->put_object("bytes", directory / "target/below"); }), directory / "target"));
  CHECK(names_in(directory / "") == Names{"folder", "target"});
}

TEST_CASE("put_dir over an existing folder replaces it whole") {
  const TemporaryDirectory directory;
  local()->put_object("1", directory / "source/one");
  local()->put_object("2", directory / "source/deep/er/two");
  fs::create_symlink("one", directory / "source/link");
  local()->put_object("old", directory / "store/target/one");
  local()->put_object("old", directory / "store/target/earlier");
  local()->put_dir_from_local_dir(directory / "source/", directory / "store/target");
  CHECK(names_in(directory / "store") == Names{"target"});
  CHECK(names_in(directory / "store/target") == Names{"deep", "link", "one"});
  CHECK(bytes_of(directory / "store/target/one") == "1");
  CHECK(bytes_of(directory / "store/target/deep/er/two") == "2");
  CHECK(fs::read_symlink(directory / "store/target/link") == "one");

  local()->put_dir_from_local_dir(directory / "source", directory / "new/on/the/way");
  CHECK(bytes_of(directory / "new/on/the/way/one") == "1");
  local()->get_dir_to_local_dir(directory / "store/target", directory / "new/on");
  CHECK(names_in(directory / "new/on") == Names{"deep", "link", "one"});
  CHECK(names_in(directory / "new") == Names{"on"});
}

TEST_CASE("put_dir that cannot be done throws and changes nothing") {
  const TemporaryDirectory directory;
  local()->put_object("1", directory / "source/one");
  put_bytes(directory / "file", "kept");
  const auto put = [&](const std::string& from, const std::string& to) {
    return message_of([&] { local()->put_dir_from_local_dir(directory / from, directory / to); });
  };
  CHECK(contains(put("source", "file"), "a file of that name is there"));
  CHECK(contains(put("file", "target"), "is no folder"));
  CHECK(contains(put("no such", "target"), "is no folder"));
  CHECK(contains(put("source", "source/inside"), "one lies inside the other"));
  CHECK(contains(put("source", ""), "one lies inside the other"));
  CHECK(names_in(directory / "") == Names{"file", "source"});

  // It cannot be copied, which shows only when other files have been.
  REQUIRE(::mkfifo((directory / "source/pipe").c_str(), 0600) == 0);
  local()->put_object("old", directory / "target/earlier");
  CHECK(contains(put("source", "target"), (directory / "source/pipe") + ": it is not a regular file"));
  CHECK(names_in(directory / "") == Names{"file", "source", "target"});
  CHECK(names_in(directory / "target") == Names{"earlier"});
}

TEST_CASE("a link replaces an earlier link and is relative where both are beside each other") {
  const TemporaryDirectory directory;
  local()->put_object("1", directory / "one");
  local()->put_object("2", directory / "folder/two");
  local()->make_link(directory / "one", directory / "link");
  CHECK(fs::read_symlink(directory / "link") == "one");
  local()->make_link(directory / "folder/", directory / "link");
  CHECK(fs::read_symlink(directory / "link") == "folder");
  local()->make_link(directory / "folder/two", directory / "link");
  CHECK(fs::read_symlink(directory / "link") == directory / "folder/two");
  CHECK(bytes_of(directory / "link") == "2");

  const auto link = [&](const std::string& to, const std::string& at) {
    return message_of([&] { local()->make_link(directory / to, directory / at); });
  };
  CHECK(contains(link("one", "folder"), "a file or folder of that name is there"));
  CHECK(contains(link("folder", "one"), "a file or folder of that name is there"));
  CHECK(contains(link("no such", "link"), "there is no " + (directory / "no such")));
  CHECK(bytes_of(directory / "link") == "2");
  CHECK(names_in(directory / "") == Names{"folder", "link", "one"});
}

TEST_CASE("a folder is walked to all levels in order and through links but not in circles") {
  const TemporaryDirectory directory;
  for (const char* name : {"walk/b", "walk/a/2", "walk/a/1", "walk/a.txt", "elsewhere/file"})
    local()->put_object("", directory / name);
  fs::create_directory(directory / "walk/empty");
  fs::create_directory_symlink(directory / "elsewhere", directory / "walk/link");
  fs::create_directory_symlink("..", directory / "walk/a/circle");
  fs::create_symlink("nothing", directory / "walk/broken");
  Names expected;
  for (const char* name : {"walk/a.txt", "walk/a/1", "walk/a/2", "walk/b", "walk/link/file"})
    expected.push_back(directory / name);
  CHECK(local()->walk_dir(directory / "walk") == expected);
  CHECK(local()->walk_dir(directory / "walk/") == expected);
  for (std::string& path : expected) path.insert(0, "file://");
  CHECK(local()->walk_dir("file://" + (directory / "walk")) == expected);
}

TEST_CASE("reading what is not there names the path and the reason") {
  const TemporaryDirectory directory;
  put_bytes(directory / "file", "");
  fs::create_directory(directory / "folder");
  const std::string absent = directory / "absent";
  for (const auto& message : {
           message_of([&] { local()->get_object(absent); }),
           message_of([&] { local()->size(absent); }),
           message_of([&] { local()->walk_dir(absent); }),
           message_of([&] { local()->get_object_to_local_file(absent, directory / "copy"); }),
       }) {
    CAPTURE(message);
    CHECK(contains(message, absent + ": No such file or directory"));
  }
  CHECK(contains(message_of([&] { local()->get_dir_to_local_dir(absent, directory / "copy"); }),
                 absent + " is no folder"));
  CHECK(contains(message_of([&] { local()->get_object(directory / "folder"); }), "it is not a regular file"));
  CHECK(contains(message_of([&] { local()->walk_dir(directory / "file"); }), directory / "file"));
  CHECK(contains(message_of([&] { local()->get_object("file://"); }), "is empty"));
  CHECK(names_in(directory / "") == Names{"file", "folder"});
}

TEST_CASE("a file that many threads put is whole whenever it is read") {
  const TemporaryDirectory directory;
  local()->put_object(std::string(300000, 'z'), directory / "target");
  std::vector<std::thread> threads;
  std::atomic<int> running = 4;
  for (char c = 'a'; c < 'e'; ++c) {
    threads.emplace_back([&, bytes = std::string(300000, c)] {
      for (int i = 0; i < 5; ++i) local()->put_object(bytes, directory / "target");
      --running;
    });
  }
  bool whole = true;
  for (bool last = false; whole && !last;) {
    last = running == 0;
    const std::string bytes = bytes_of(directory / "target");
    whole = bytes.size() == 300000 && bytes.find_first_not_of(bytes[0]) == std::string::npos;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(whole);
  CHECK(names_in(directory / "") == Names{"target"});
}

TEST_CASE("of several file systems the one with the longest prefix has a path") {
  FileSystems files;
  const auto add = [&](const std::string& prefix) {
    auto added = std::make_unique<MemoryFs>(std::make_shared<MemoryFs::Store>(), prefix, "/tmp");
    const FileSystem* address = added.get();
    files.add(std::move(added));
    return address;
  };
  const FileSystem& machine = files.of("some/file");
  const FileSystem *bucket = add("mem://bucket/"), *all = add("mem://"), *other = add("mem2://");
  CHECK(&files.of("mem://bucket/x") == bucket);
  CHECK(&files.of("mem://buckets/x") == all);
  CHECK(&files.of("mem2://x") == other);
  CHECK(&files.of("/mem://x") == &machine);
  CHECK(&files.of("file:///x") == &machine);
  CHECK(contains(message_of([&] { add("mem://"); }), "'mem://'"));

  const std::string unknown = message_of([&] { files.of("oss://bucket/x"); });
  CHECK(contains(unknown, "'oss://'"));
  CHECK(contains(unknown, "'mem://bucket/', 'mem://', 'mem2://'"));
  CHECK(contains(unknown, "SOLVER.FILE_SYSTEM"));

  const FileSystem* any = add("");
  CHECK(&files.of("some/file") == any);
  CHECK(contains(message_of([&] { files.of("oss://bucket/x"); }), "'oss://'"));
}

TEST_CASE("get_from gives files of this machine as they are and never removes them") {
  const TemporaryDirectory directory;
  put_bytes(directory / "file", "bytes");
  const FileSystems files;
  for (const std::string scheme : {"", "file://"}) {
    CHECK(files.get_from(scheme + (directory / "file")).path() == directory / "file");
    CHECK(files.get_from(scheme + (directory / "")).path() == directory / "");
  }
  CHECK(bytes_of(directory / "file") == "bytes");
  CHECK(contains(message_of([&] { files.get_from(directory / "absent"); }), directory / "absent"));
}

TEST_CASE("get_from keeps a copy of a remote file or folder for as long as it is held") {
  const TemporaryDirectory directory;
  const auto store = std::make_shared<MemoryFs::Store>(
      MemoryFs::Store{{"mem://d/a.txt", "A"}, {"mem://d/e/b.txt", "B"}, {"mem://alone.png", "C"}});
  FileSystems files;
  files.add(std::make_unique<MemoryFs>(store, "mem://", directory / "temp"));
  std::string path;
  {
    gantry::LocalCopy copy = files.get_from("mem://alone.png");
    path = copy.path();
    CHECK(bytes_of(path) == "C");
    CHECK(path.starts_with(directory / "temp/"));
    CHECK(path.ends_with(".png"));
    const gantry::LocalCopy moved = std::move(copy);
    CHECK(moved.path() == path);
    copy = files.get_from("mem://d");
    CHECK(bytes_of(copy.path() + "/a.txt") == "A");
    CHECK(bytes_of(copy.path() + "/e/b.txt") == "B");
    CHECK(bytes_of(path) == "C");
    CHECK(names_in(directory / "temp").size() == 2);
  }
  CHECK(names_in(directory / "temp").empty());
  CHECK(contains(message_of([&] { files.get_from("mem://absent"); }), "the store has no mem://absent"));
  CHECK(names_in(directory / "temp").empty());
}

TEST_CASE("put_to shows a file of this machine at its commit and not before") {
  const TemporaryDirectory directory;
  put_bytes(directory / "file.txt", "earlier");
  const FileSystems files;
  {
    gantry::PutTo abandoned = files.put_to(directory / "file.txt");
    put_bytes(abandoned.path(), "half wri");
    CHECK(abandoned.path().ends_with(".txt"));
  }
  CHECK(bytes_of(directory / "file.txt") == "earlier");
  CHECK(names_in(directory / "") == Names{"file.txt"});

  gantry::PutTo put = files.put_to("file://" + (directory / "file.txt"));
  put_bytes(put.path(), "new");
  CHECK(bytes_of(directory / "file.txt") == "earlier");
  gantry::PutTo moved = std::move(put);
  moved.commit();
  CHECK(bytes_of(directory / "file.txt") == "new");
  CHECK_THROWS_AS(moved.commit(), std::logic_error);

  gantry::PutTo nothing = files.put_to(directory / "other/file");
  CHECK(contains(message_of([&] { nothing.commit(); }), "nothing was written"));
  CHECK(names_in(directory / "other").empty());
}

TEST_CASE("put_to brings a file to a remote place at its commit and leaves no copy") {
  const TemporaryDirectory directory;
  const auto store = std::make_shared<MemoryFs::Store>();
  FileSystems files;
  files.add(std::make_unique<MemoryFs>(store, "mem://", directory / "temp"));
  {
    const gantry::PutTo abandoned = files.put_to("mem://x");
    put_bytes(abandoned.path(), "half");
  }
  CHECK(store->empty());
  gantry::PutTo put = files.put_to("mem://x");
  put_bytes(put.path(), "whole");
  put.commit();
  CHECK(*store == MemoryFs::Store{{"mem://x", "whole"}});
  CHECK(names_in(directory / "temp").empty());
}
