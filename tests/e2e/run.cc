#include "e2e/run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace fs = std::filesystem;

namespace e2e {
namespace {

std::string read_all(int fd) {
  std::string text;
  char buffer[65536];
  off_t offset = 0;
  for (ssize_t n; (n = pread(fd, buffer, sizeof buffer, offset)) > 0; offset += n) text.append(buffer, n);
  return text;
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& extra) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : extra) variables[name] = value;
  std::vector<std::string> out;
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& text : strings) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  std::optional<std::string> find(const std::vector<std::string>& path) {
    for (const std::string& key : path) {
      if (!enter(key)) return std::nullopt;
    }
    skip_blanks();
    if (peek() == '"') return string();
    const std::size_t begin = at_;
    skip_value();
    return std::string(text_.substr(begin, at_ - begin));
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(peek()) != std::string_view::npos) ++at_;
  }

  // Stands at the key's value afterwards.
  bool enter(const std::string& key) {
    skip_blanks();
    if (peek() != '{') return false;
    ++at_;
    for (;;) {
      skip_blanks();
      if (peek() != '"') return false;
      const std::string name = string();
      skip_blanks();
      if (peek() != ':') return false;
      ++at_;
      if (name == key) return true;
      skip_value();
      skip_blanks();
      if (peek() != ',') return false;
      ++at_;
    }
  }

  void skip_value() {
    int depth = 0;
    skip_blanks();
    while (at_ < text_.size()) {
      const char c = peek();
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) return;
      if (c == '"') {
        string();
        if (depth == 0) return;
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
      if (depth == 0 && (c == '}' || c == ']')) return;
    }
  }

  std::string string() {
    std::string out;
    for (++at_; at_ < text_.size() && peek() != '"'; ++at_) {
      if (peek() != '\\') {
        out += peek();
        continue;
      }
      ++at_;
      switch (peek()) {
        case 'n':
          out += '\n';
          break;
        case 't':
          out += '\t';
          break;
        case 'r':
          out += '\r';
          break;
        case 'u':  // control characters are all that the program escapes so
          out += static_cast<char>(std::stoi(std::string(text_.substr(at_ + 1, 4)), nullptr, 16));
          at_ += 4;
          break;
        default:
          out += peek();
      }
    }
    ++at_;
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

TempDir::TempDir() {
  std::string pattern = (fs::temp_directory_path() / "gantry-e2e-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make a temporary folder");
  path_ = fs::canonical(pattern).string();
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void TempDir::write(const std::string& name, std::string_view content) const {
  const fs::path file = fs::path(path_) / name;
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

std::string TempDir::read(const std::string& name) const {
  std::ifstream in(fs::path(path_) / name, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path(name));
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

bool TempDir::has(const std::string& name) const { return fs::exists(fs::path(path_) / name); }

std::vector<std::string> TempDir::list() const {
  std::vector<std::string> out;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path_)) {
    out.push_back(entry.path().lexically_relative(path_).string() + (entry.is_directory() ? "/" : ""));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string RunResult::last_line() const {
  const std::size_t end = out.find_last_not_of("\r\n");
  if (end == std::string::npos) return {};
  const std::size_t begin = out.rfind('\n', end);
  return out.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

std::string RunResult::describe() const {
  std::ostringstream text;
  text << "exit code " << exit_code << ", signal " << signal << (timed_out ? ", timed out" : "") << ", " << seconds
       << " s\n--- stdout\n"
       << out << "\n--- stderr\n"
       << err << "\n---";
  return text.str();
}

RunResult run_program(const std::vector<std::string>& command, const std::string& cwd, const RunOptions& options) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = merged_environment(options.env);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  // Files rather than pipes: nobody has to drain them while the program runs.
  const int out = memfd_create("stdout", MFD_CLOEXEC);
  const int err = memfd_create("stderr", MFD_CLOEXEC);
  if (out < 0 || err < 0) throw std::runtime_error("memfd_create failed");

  const auto start = Clock::now();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    setpgid(0, 0);
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 || chdir(cwd.c_str()) != 0) _exit(126);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }

  RunResult result;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (result.seconds > options.timeout_s) {
      result.timed_out = true;
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.out = read_all(out);
  result.err = read_all(err);
  close(out);
  close(err);
  return result;
}

RunResult run_gantry(const std::vector<std::string>& arguments, const std::string& cwd, const RunOptions& options) {
  std::vector<std::string> command{GANTRY_BINARY};
  command.insert(command.end(), arguments.begin(), arguments.end());
  RunOptions isolated = options;
  isolated.env.emplace("GANTRY_PLUGIN_PATH", "");
  isolated.env.emplace("XDG_DATA_HOME", "/nonexistent");
  return run_program(command, cwd, isolated);
}

std::optional<std::string> json_value(std::string_view json, const std::vector<std::string>& path) {
  return JsonReader(json).find(path);
}

double json_number(std::string_view json, const std::vector<std::string>& path) {
  const std::optional<std::string> text = json_value(json, path);
  char* end = nullptr;
  const double number = text ? std::strtod(text->c_str(), &end) : 0;
  if (!text || text->empty() || *end != '\0') return std::numeric_limits<double>::quiet_NaN();
  return number;
}

int line_of(std::string_view text, std::string_view part) {
  const std::size_t at = text.find(part);
  if (at == std::string_view::npos) return 0;
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

std::string replaced(std::string text, std::string_view part, std::string_view by) {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) throw std::runtime_error("nothing to replace: " + std::string(part));
  return text.replace(at, part.size(), by);
}

}  // namespace e2e
