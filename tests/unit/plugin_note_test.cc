#include <doctest/doctest.h>
#include <elf.h>
#include <unistd.h>

#include <boost/filesystem.hpp>  // LibTorch exports a std::filesystem::remove_all that crashes
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gantry/plugin_entry.h"
#include "gantry/plugin_file.h"

namespace {

using gantry::NoteResult;
using gantry::read_plugin_note;

NoteResult read(const std::string& bytes) {
  std::istringstream file(bytes);
  return read_plugin_note(file);
}

std::string reason_of(const std::string& bytes) { return read(bytes).reason; }

std::string padded(std::string bytes, std::size_t alignment) {
  while (bytes.size() % alignment != 0) bytes += '\0';
  return bytes;
}

std::string note(const std::string& owner, uint32_t type, const std::string& text) {
  const Elf64_Nhdr header{static_cast<Elf64_Word>(owner.size() + 1), static_cast<Elf64_Word>(text.size()), type};
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + padded(owner + '\0', 4) +
         padded(text, 4);
}

const std::string kPluginText = "name=acme\nversion=1.0\nsdk_abi=1\ntorch=2.11.0\n";

std::string good_notes() {
  return note("GNU", NT_GNU_BUILD_ID, "\xab\x01") + note("GANTRY", GANTRY_NOTE_PLUGIN, kPluginText) +
         note("Other", 1, "anything") + note("GANTRY", GANTRY_NOTE_COMPONENT, "hook\n1\nacme/A\n") +
         note("GANTRY", GANTRY_NOTE_COMPONENT, "loss\n3\nacme/B\n");
}

/// A shared library of notes alone: header, two segments, the notes, two section headers at the end.
std::string library(const std::string& notes) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
#if defined(__aarch64__)
  header.e_machine = EM_AARCH64;
#else
  header.e_machine = EM_X86_64;
#endif
  header.e_phoff = sizeof(Elf64_Ehdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  Elf64_Phdr load{}, segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
  segment.p_filesz = notes.size();
  segment.p_align = 4;
  load.p_type = PT_LOAD;
  load.p_filesz = segment.p_offset + notes.size();
  header.e_shoff = load.p_filesz;
  const auto bytes = [](const auto& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  return bytes(header) + bytes(load) + bytes(segment) + notes + std::string(2 * sizeof(Elf64_Shdr), '\0');
}

template <class T>
std::string with(std::string bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  return bytes;
}

}  // namespace

TEST_CASE("the notes of a plugin are read without loading it") {
  const NoteResult result = read(library(good_notes()));
  CHECK(result.reason == "");
  REQUIRE(result.note);
  CHECK(result.note->text == kPluginText);
  CHECK(result.note->name == "acme");
  CHECK(result.note->version == "1.0");
  REQUIRE(result.note->field("torch") != nullptr);
  CHECK(*result.note->field("torch") == "2.11.0");
  CHECK(result.note->field("nothing") == nullptr);
  CHECK(result.note->build_id == "ab01");
  REQUIRE(result.note->components.size() == 2);
  CHECK(result.note->components[0].kind == "hook");
  CHECK(result.note->components[0].kind_abi == 1);
  CHECK(result.note->components[1].kind_abi == 3);
  CHECK(result.note->components[1].name == "acme/B");
}

TEST_CASE("files that are no plugins are told apart") {
  const std::string good = library(good_notes());
  CHECK(reason_of("") == "empty file");
  CHECK(reason_of("hello, world: this is text, and longer than the header of an ELF file, which has 64 bytes") ==
        "not an ELF file");
  CHECK(reason_of("#!") == "not an ELF file");
  CHECK(reason_of(with(good, EI_CLASS, char{ELFCLASS32})) == "built for another machine");
  CHECK(reason_of(with(good, EI_DATA, char{ELFDATA2MSB})) == "built for another machine");
  CHECK(reason_of(with(good, offsetof(Elf64_Ehdr, e_machine), Elf64_Half{EM_S390})) == "built for another machine");
  CHECK(reason_of(with(good, offsetof(Elf64_Ehdr, e_type), Elf64_Half{ET_REL})) == "not a shared library");
  CHECK(reason_of(library(note("GNU", NT_GNU_BUILD_ID, "x"))) == "no Gantry note: not a Gantry plugin");
  CHECK(reason_of(library("")) == "no Gantry note: not a Gantry plugin");
}

TEST_CASE("a directory and a missing file and a dangling link are told apart") {
  std::string name = (std::filesystem::temp_directory_path() / "gantry-elf-XXXXXX").string();
  const std::filesystem::path directory = ::mkdtemp(name.data());
  std::filesystem::create_directory(directory / "folder.so");
  std::filesystem::create_symlink("nowhere.so", directory / "link.so");
  std::ofstream(directory / "good.so", std::ios::binary) << library(good_notes());
  CHECK(read_plugin_note((directory / "folder.so").string()).reason == "a directory");
  CHECK(read_plugin_note((directory / "none.so").string()).reason == "no such file");
  CHECK(read_plugin_note((directory / "link.so").string()).reason == "a link to nothing");
  CHECK(read_plugin_note(std::string("/dev/null")).reason == "not a regular file");
  CHECK(read_plugin_note((directory / "good.so").string()).note.has_value());
  boost::filesystem::remove_all(directory.string());
}

TEST_CASE("a file cut at any length is refused") {
  const std::string good = library(good_notes());
  for (std::size_t length = 1; length < good.size(); ++length) {
    const NoteResult result = read(good.substr(0, length));
    CAPTURE(length);
    CHECK_FALSE(result.note);
    CHECK(result.reason.starts_with("incomplete file ("));
  }
  CHECK(reason_of(good.substr(0, 100)) == "incomplete file (100 of " + std::to_string(good.size()) + " bytes)");
  // Without section headers, the segments say how long the file is.
  const std::string stripped =
      with(with(good, offsetof(Elf64_Ehdr, e_shoff), uint64_t{0}), offsetof(Elf64_Ehdr, e_shnum), Elf64_Half{0});
  CHECK(read(stripped.substr(0, stripped.size() - 2 * sizeof(Elf64_Shdr))).note);
  CHECK(reason_of(stripped.substr(0, stripped.size() - 2 * sizeof(Elf64_Shdr) - 1)).starts_with("incomplete file ("));
}

TEST_CASE("damaged notes are refused") {
  const auto damaged = [](const std::string& notes) { return reason_of(library(notes)).starts_with("damaged note"); };
  const std::string plugin = note("GANTRY", GANTRY_NOTE_PLUGIN, kPluginText);
  const auto component = [&](const std::string& text) { return plugin + note("GANTRY", GANTRY_NOTE_COMPONENT, text); };
  CHECK_FALSE(damaged(component("hook\n1\nacme/A\n")));
  CHECK(damaged(component("hook\n1\nacme/A")));
  CHECK(damaged(component("hook\nacme/A\n")));
  CHECK(damaged(component("hook\n1\nacme/A\nmore\n")));
  CHECK(damaged(component("hook\none\nacme/A\n")));
  CHECK(damaged(component("hook\n1x\nacme/A\n")));
  CHECK(damaged(component("hook\n99999999999999999999\nacme/A\n")));
  CHECK(damaged(component("hook\n1\n\n")));
  CHECK(damaged(component("")));
  CHECK(damaged(component("hook\n1\n\x1b[31m\n")));
  CHECK(damaged(component("hook\n1\nA\n") + note("GANTRY", GANTRY_NOTE_COMPONENT, "hook\n1\nA\n")));
  CHECK(damaged(plugin + plugin));
  CHECK(damaged(note("GANTRY", GANTRY_NOTE_COMPONENT, "hook\n1\nacme/A\n")));
  CHECK(damaged(note("GANTRY", GANTRY_NOTE_PLUGIN, "")));
  CHECK(damaged(note("GANTRY", GANTRY_NOTE_PLUGIN, "name=a\n")));
  CHECK(damaged(note("GANTRY", GANTRY_NOTE_PLUGIN, "name=\nversion=1\n")));
  CHECK(damaged(note("GANTRY", GANTRY_NOTE_PLUGIN, "name=a\nversion=1\nnoequals\n")));
  CHECK(damaged(with(plugin, 4, uint32_t{0xffffffff})));
  CHECK(damaged(with(plugin, 0, uint32_t{0xfffffffd})));
}

TEST_CASE("offsets and sizes that overflow are refused") {
  const std::string good = library(good_notes());
  const std::size_t segment = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  for (const uint64_t value : {UINT64_MAX, UINT64_MAX - 64, uint64_t{1} << 63, uint64_t{1} << 40}) {
    CAPTURE(value);
    CHECK_FALSE(read(with(good, offsetof(Elf64_Ehdr, e_phoff), value)).note);
    CHECK_FALSE(read(with(good, offsetof(Elf64_Ehdr, e_shoff), value)).note);
    CHECK_FALSE(read(with(good, segment + offsetof(Elf64_Phdr, p_offset), value)).note);
    CHECK_FALSE(read(with(good, segment + offsetof(Elf64_Phdr, p_filesz), value)).note);
  }
}

TEST_CASE("any changed byte gives a note or a reason") {
  const std::string good = library(good_notes());
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(value);
      const NoteResult result = read(bytes);
      if (result.note.has_value() != result.reason.empty()) FAIL("byte ", at, " value ", value);
      refused += result.note ? 0 : 1;
    }
  }
  CHECK(refused > 10'000);
}
