#include <c10/util/Exception.h>

#include <exception>

#include "gantry/error.h"

namespace gantry {

std::string current_exception_message() {
  const std::exception_ptr current = std::current_exception();
  if (!current) return "no exception";
  try {
    std::rethrow_exception(current);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that carries no message";
  }
}

}  // namespace gantry
