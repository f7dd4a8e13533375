#include "publish.h"

#include <doctest/doctest.h>

#include <cerrno>

#include "unit/files.h"
#include "unit/messages.h"

namespace fs = std::filesystem;

namespace {

void make(const std::string& path, const std::string& content) {
  fs::create_directory(path);
  put_bytes(path + "/content", content);
}

int cannot_exchange(const char*, const char*) { return EINVAL; }
int breaks(const char*, const char*) { return EIO; }

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a directory is published under a free name") {
  const TemporaryDirectory directory;
  make(directory / "staged", "new");
  CHECK_FALSE(gantry::publish(directory / "staged", directory / "target", directory / "aside", cannot_exchange));
  CHECK(names_in(directory / "") == Names{"target"});
  CHECK(bytes_of(directory / "target/content") == "new");
}

TEST_CASE("a directory is exchanged with an earlier one whether or not the file system can") {
  for (const gantry::ExchangePaths exchange : {&gantry::exchange_paths, &cannot_exchange}) {
    const TemporaryDirectory directory;
    make(directory / "staged", "new");
    make(directory / "target", "earlier");
    CHECK(gantry::publish(directory / "staged", directory / "target", directory / "aside", exchange));
    CHECK(names_in(directory / "") == Names{"staged", "target"});
    CHECK(bytes_of(directory / "target/content") == "new");
    CHECK(bytes_of(directory / "staged/content") == "earlier");
  }
}

TEST_CASE("an exchange that fails changes nothing") {
  const TemporaryDirectory directory;
  make(directory / "staged", "new");
  make(directory / "target", "earlier");
  const std::string message =
      message_of([&] { gantry::publish(directory / "staged", directory / "target", directory / "aside", breaks); });
  CHECK(message ==
        "cannot rename " + (directory / "staged") + " to " + (directory / "target") + ": Input/output error");
  CHECK(bytes_of(directory / "target/content") == "earlier");
  CHECK(bytes_of(directory / "staged/content") == "new");
}

TEST_CASE("what was moved aside gets its name back only while that is free") {
  const TemporaryDirectory directory;
  make(directory / "aside", "earlier");
  CHECK(gantry::put_back(directory / "aside", directory / "target"));
  CHECK(bytes_of(directory / "target/content") == "earlier");
  make(directory / "aside", "older");
  CHECK_FALSE(gantry::put_back(directory / "aside", directory / "target"));
  CHECK(bytes_of(directory / "target/content") == "earlier");
}
