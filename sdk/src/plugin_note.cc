#include <elf.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "gantry/plugin_entry.h"
#include "gantry/plugin_file.h"
#include "gantry/text.h"

namespace gantry {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "unknown machine: add its ELF number"
#endif
constexpr uint64_t kMaxNoteSegment = 1 << 20;

/// Why a file is no plugin; caught in read_plugin_note.
struct Refusal {
  std::string reason;
};

class Bytes {
 public:
  explicit Bytes(std::istream& file) : file_(file) {
    file_.seekg(0, std::ios::end);
    size_ = static_cast<uint64_t>(std::max<std::streamoff>(file_.tellg(), 0));
  }
  uint64_t size() const { return size_; }

  void read(uint64_t offset, void* to, uint64_t count) const {
    if (offset > size_ || size_ - offset < count) throw Refusal{"damaged ELF header"};
    file_.seekg(static_cast<std::streamoff>(offset));
    if (!file_.read(static_cast<char*>(to), static_cast<std::streamsize>(count))) throw Refusal{"cannot be read"};
  }

 private:
  std::istream& file_;
  uint64_t size_;
};

/// offset + size, refusing what no file can have.
uint64_t end_of(uint64_t offset, uint64_t size) {
  if (offset + size < offset) throw Refusal{"damaged ELF header"};
  return offset + size;
}

Elf64_Ehdr read_header(const Bytes& file) {
  if (file.size() == 0) throw Refusal{"empty file"};
  Elf64_Ehdr header{};
  const uint64_t known = std::min<uint64_t>(file.size(), sizeof(header));
  file.read(0, &header, known);
  const unsigned char* ident = header.e_ident;
  if (std::memcmp(ident, ELFMAG, std::min<uint64_t>(known, SELFMAG)) != 0) throw Refusal{"not an ELF file"};
  if (known < sizeof(header)) throw Refusal{cat("incomplete file (", known, " bytes, less than an ELF header)")};
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB || header.e_machine != kMachine)
    throw Refusal{"built for another machine"};
  if (header.e_type != ET_DYN) throw Refusal{"not a shared library"};
  return header;
}

std::vector<Elf64_Phdr> read_segments(const Bytes& file, const Elf64_Ehdr& header) {
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr)) throw Refusal{"damaged ELF header"};
  // Loading a file whose end is missing kills the process. The section headers stand last in what linkers
  // write; the segments are checked as well, since tools may move or remove the section headers.
  uint64_t needed = end_of(header.e_phoff, uint64_t{header.e_phnum} * header.e_phentsize);
  needed = std::max(needed, end_of(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize));
  std::vector<Elf64_Phdr> segments;
  if (needed <= file.size()) {
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr& segment = segments.emplace_back();
      file.read(header.e_phoff + i * sizeof(segment), &segment, sizeof(segment));
      if (segment.p_type == PT_LOAD || segment.p_type == PT_NOTE || segment.p_type == PT_DYNAMIC)
        needed = std::max(needed, end_of(segment.p_offset, segment.p_filesz));
    }
  }
  if (needed > file.size()) throw Refusal{cat("incomplete file (", file.size(), " of ", needed, " bytes)")};
  return segments;
}

std::vector<std::string> lines_of(std::string_view text) {
  const auto strange = [](char c) { return c != '\n' && (c < ' ' || c > '~'); };
  if (text.empty() || text.back() != '\n' || std::any_of(text.begin(), text.end(), strange))
    throw Refusal{"damaged note"};
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

void take_plugin_note(std::string_view text, PluginNote& note) {
  if (!note.text.empty()) throw Refusal{"damaged note: two plugins in one file"};
  for (const std::string& line : lines_of(text)) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || equals == 0) throw Refusal{"damaged note"};
    note.fields.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  note.text = text;
  const std::string* name = note.field("name");
  const std::string* version = note.field("version");
  if (name == nullptr || version == nullptr || name->empty() || version->empty())
    throw Refusal{"damaged note: no name or version"};
  note.name = *name;
  note.version = *version;
}

void take_component_note(std::string_view text, PluginNote& note) {
  const std::vector<std::string> lines = lines_of(text);
  if (lines.size() != 3 || lines[0].empty() || lines[2].empty()) throw Refusal{"damaged note"};
  ComponentNote component{lines[0], 0, lines[2]};
  const char* end = lines[1].data() + lines[1].size();
  const auto [stop, error] = std::from_chars(lines[1].data(), end, component.kind_abi);
  if (error != std::errc() || stop != end) throw Refusal{"damaged note"};
  for (const ComponentNote& other : note.components)
    if (other.kind == component.kind && other.name == component.name)
      throw Refusal{cat("damaged note: ", component.kind, " '", component.name, "' twice")};
  note.components.push_back(std::move(component));
}

std::string hexadecimal(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) out += {digits[byte >> 4], digits[byte & 15]};
  return out;
}

void take_segment(std::string_view bytes, std::size_t alignment, PluginNote& note) {
  // Sizes are 32 bits wide and sums are made in 64, so nothing here overflows.
  const auto aligned = [&](uint64_t size) { return (size + alignment - 1) / alignment * alignment; };
  while (bytes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    const uint64_t text_at = aligned(sizeof(header) + uint64_t{header.n_namesz});
    const uint64_t end = text_at + header.n_descsz;
    if (end > bytes.size()) throw Refusal{"damaged note"};
    const std::string_view owner = bytes.substr(sizeof(header), header.n_namesz);
    const std::string_view text = bytes.substr(text_at, header.n_descsz);
    if (owner == std::string_view(GANTRY_NOTE_OWNER, sizeof(GANTRY_NOTE_OWNER))) {
      if (header.n_type == GANTRY_NOTE_PLUGIN) take_plugin_note(text, note);
      if (header.n_type == GANTRY_NOTE_COMPONENT) take_component_note(text, note);
    } else if (owner == std::string_view(ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) && header.n_type == NT_GNU_BUILD_ID) {
      note.build_id = hexadecimal(text);
    }
    bytes.remove_prefix(std::min<uint64_t>(aligned(end), bytes.size()));
  }
}

PluginNote read_note(const Bytes& file) {
  const Elf64_Ehdr header = read_header(file);
  PluginNote note;
  for (const Elf64_Phdr& segment : read_segments(file, header)) {
    if (segment.p_type != PT_NOTE) continue;
    if (segment.p_filesz > kMaxNoteSegment) throw Refusal{"damaged note"};
    std::string bytes(segment.p_filesz, '\0');
    file.read(segment.p_offset, bytes.data(), bytes.size());
    take_segment(bytes, segment.p_align == 8 ? 8 : 4, note);
  }
  if (note.text.empty() && note.components.empty()) throw Refusal{"no Gantry note: not a Gantry plugin"};
  if (note.text.empty()) throw Refusal{"damaged note: components without GANTRY_PLUGIN(name, version)"};
  return note;
}

}  // namespace

const std::string* PluginNote::field(std::string_view key) const {
  for (const auto& [name, value] : fields)
    if (name == key) return &value;
  return nullptr;
}

NoteResult read_plugin_note(std::istream& file) {
  try {
    return {read_note(Bytes(file)), {}};
  } catch (const Refusal& refusal) {
    return {std::nullopt, refusal.reason};
  }
}

NoteResult read_plugin_note(const std::string& path) {
  namespace fs = std::filesystem;
  const auto refuse = [](std::string reason) { return NoteResult{std::nullopt, std::move(reason)}; };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    return refuse(fs::is_symlink(fs::symlink_status(path, error)) ? "a link to nothing" : "no such file");
  if (fs::is_directory(status)) return refuse("a directory");
  if (!fs::is_regular_file(status)) return refuse("not a regular file");
  // Read, not mapped: a file that shrinks under a map kills the process.
  std::ifstream file(path, std::ios::binary);
  return file ? read_plugin_note(file) : refuse(cat("cannot be read: ", std::strerror(errno)));
}

}  // namespace gantry
