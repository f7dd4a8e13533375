#include "publish.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>

#include "file_bytes.h"
#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry {
namespace {

int rename_to_free_name(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return errno;
  // A plain rename replaces an empty directory, and nothing that is of value.
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno == ENOTEMPTY ? EEXIST : errno;
}

[[noreturn]] void fail(const std::string& from, const std::string& to, int error) {
  throw Error(cat("cannot rename ", from, " to ", to, ": ", system_message(error)));
}

}  // namespace

int exchange_paths(const char* a, const char* b) {
  return ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0 ? 0 : errno;
}

bool publish(const std::string& staged, const std::string& target, const std::string& aside, ExchangePaths exchange) {
  const int first = rename_to_free_name(staged, target);
  if (first == 0) return false;
  if (first != EEXIST && first != ENOTDIR) fail(staged, target, first);

  const int exchanged = exchange(staged.c_str(), target.c_str());
  if (exchanged == 0) return true;
  if (exchanged != EINVAL && exchanged != ENOSYS && exchanged != ENOTSUP) fail(staged, target, exchanged);

  if (const int error = rename_to_free_name(target, aside)) fail(target, aside, error);
  if (const int error = rename_to_free_name(staged, target)) {
    put_back(aside, target);
    fail(staged, target, error);
  }
  // Under `staged` the earlier one is rubbish for certain; under `aside` it might be taken for the only one.
  if (const int error = rename_to_free_name(aside, staged)) fail(aside, staged, error);
  return true;
}

bool put_back(const std::string& aside, const std::string& target) {
  const int error = rename_to_free_name(aside, target);
  if (error != 0 && error != EEXIST && error != ENOTDIR) fail(aside, target, error);
  return error == 0;
}

}  // namespace gantry
