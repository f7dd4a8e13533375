#include "gantry/file_system.h"
#include "plugin_under_test.h"
#include "unit/files.h"
#include "unit/messages.h"

namespace fs = std::filesystem;

namespace {

std::unique_ptr<gantry::FileSystem> open(const std::string& prefix, const std::string& root) {
  return PluginUnderTest("gantry-local-fs")
      .build<gantry::FileSystem>("LocalFs", map_config({{"PREFIX", text_config(prefix)}, {"ROOT", text_config(root)}}));
}

}  // namespace

TEST_CASE("LocalFs has a folder under a prefix") {
  const TemporaryDirectory directory;
  const auto data = open("data://", directory / "root");
  CHECK(data->prefix() == "data://");
  data->put_object("1", "data://a/one");
  CHECK(bytes_of(directory / "root/a/one") == "1");
  CHECK(data->get_object("data://a/one") == "1");
  CHECK(data->size("data://a/one") == 1);
  CHECK(data->exists("data://a"));
  CHECK(data->is_dir("data://a/"));
  CHECK(data->is_dir("data://"));
  CHECK(data->is_file("data:///a/one"));
  CHECK_FALSE(data->exists("data://a/two"));
  CHECK(data->map_to_local("data://a/one") == directory / "root/a/one");
  CHECK(data->map_to_local("data://a/x/../") == directory / "root/a");

  data->make_dir("data://b/c");
  data->make_link("data://a/one", "data://a/link");
  CHECK(fs::read_symlink(directory / "root/a/link") == "one");
  data->put_object_from_local_file(directory / "root/a/one", "data://b/copy");
  data->put_dir_from_local_dir(directory / "root/a", "data://b/c");
  data->get_object_to_local_file("data://b/copy", directory / "fetched");
  data->get_dir_to_local_dir("data://b", directory / "folder");
  CHECK(bytes_of(directory / "fetched") == "1");
  CHECK(bytes_of(directory / "folder/c/one") == "1");

  const std::vector<std::string> files = {"data://a/link", "data://a/one", "data://b/c/link", "data://b/c/one",
                                          "data://b/copy"};
  CHECK(data->walk_dir("data://") == files);
  CHECK(data->walk_dir("data://a") == std::vector<std::string>(files.begin(), files.begin() + 2));
  CHECK(data->walk_dir("data://a/") == std::vector<std::string>(files.begin(), files.begin() + 2));
}

TEST_CASE("paths of LocalFs cannot lead out of its folder") {
  const TemporaryDirectory directory;
  put_bytes(directory / "secret", "");
  const auto data = open("data://", directory / "root");
  for (const char* path : {"data://../secret", "data://a/../../secret", "data:///../secret", "data://.."})
    CHECK(contains(message_of([&] { data->exists(path); }), path));
  CHECK(contains(message_of([&] { data->exists("other://x"); }), "'data://'"));
}

TEST_CASE("LocalFs without a prefix has every path as it is") {
  const TemporaryDirectory directory;
  const auto all = open("", "");
  all->put_object("1", directory / "one");
  CHECK(bytes_of(directory / "one") == "1");
  CHECK(all->walk_dir(directory / "").size() == 1);
  CHECK(all->map_to_local("file://" + (directory / "one")) == directory / "one");
  const std::string text = PluginUnderTest("gantry-local-fs")
                               .config_error<gantry::FileSystem>("LocalFs", map_config({{"ROOT", text_config("/x")}}));
  CHECK(contains(text, "ROOT"));
  CHECK(contains(text, "PREFIX is empty"));
}

TEST_CASE("a run reads through LocalFs what its prefix names") {
  const TemporaryDirectory directory;
  put_bytes(directory / "file", "bytes");
  gantry::FileSystems files;
  files.add(open("data://", directory / ""));
  CHECK(files.get_from("data://file").path() == directory / "file");
  CHECK(contains(message_of([&] { files.get_from("data://absent"); }), "data://absent (" + (directory / "absent")));
  gantry::PutTo put = files.put_to("data://new/file");
  put_bytes(put.path(), "new");
  put.commit();
  CHECK(bytes_of(directory / "new/file") == "new");
}
