#include "idx_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>

#include "gantry/error.h"
#include "gantry/text.h"

namespace gantry::idx {

namespace {

struct ElementType {
  uint32_t code;  // the third byte of a file
  at::ScalarType dtype;
  std::size_t size;
};
constexpr ElementType kTypes[] = {{0x08, at::kByte, 1}, {0x09, at::kChar, 1},  {0x0B, at::kShort, 2},
                                  {0x0C, at::kInt, 4},  {0x0D, at::kFloat, 4}, {0x0E, at::kDouble, 8}};
constexpr uint32_t kAny = 0;

class GzipReader {
 public:
  explicit GzipReader(const std::string& path) : path_(path) {
    errno = 0;
    file_.reset(gzopen(path.c_str(), "rbe"));
    // zlib leaves errno alone when it is memory that it lacks.
    if (!file_) throw Error(cat(path, " cannot be opened: ", std::strerror(errno != 0 ? errno : ENOMEM)));
    gzbuffer(file_.get(), 1 << 17);
  }

  /// Reads up to `size` bytes; fewer only at the end of the data, even where that comes too early.
  std::size_t read(uint8_t* out, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
      const int got = gzread(file_.get(), out + done, static_cast<unsigned>(size - done));
      if (got > 0) {
        done += static_cast<std::size_t>(got);
        continue;
      }
      int code = Z_OK;
      const char* text = gzerror(file_.get(), &code);
      if (code != Z_OK && code != Z_BUF_ERROR && code != Z_STREAM_END) throw Error(cat(path_, " is damaged: ", text));
      break;
    }
    return done;
  }

 private:
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  const std::string& path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

std::string hex(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

const ElementType& element_type(const std::string& path, uint32_t magic) {
  for (const ElementType& type : kTypes) {
    if (magic >> 8 == type.code && (magic & 0xFF) != 0) return type;
  }
  throw Error(cat(path, " is no IDX file: it begins with ", hex(magic),
                  ", not with two zero bytes, a type of elements and a number of dimensions"));
}

// IDX files have the high byte of an element first.
void to_machine_order(std::vector<uint8_t>& bytes, std::size_t element) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  if (element == 1) return;
  for (std::size_t i = 0; i < bytes.size(); i += element) std::reverse(&bytes[i], &bytes[i] + element);
}

IdxFile read(const std::string& path, uint32_t required) {
  GzipReader reader(path);
  std::vector<uint8_t> header(4);
  std::size_t header_size = reader.read(header.data(), header.size());
  uint32_t magic = required;
  if (header_size == header.size()) {
    magic = big_endian(header.data());
    if (required != kAny && magic != required) {
      throw Error(cat(path, " is no IDX file of unsigned bytes in ", required & 0xFF, " dimensions: it begins with ",
                      hex(magic), ", not with ", hex(required)));
    }
    element_type(path, magic);
  }
  header.resize(4 + 4 * std::size_t{magic & 0xFF});
  if (header_size == 4) header_size += reader.read(header.data() + 4, header.size() - 4);
  if (header_size < header.size() || magic == kAny) {
    throw Error(cat(path, " is cut off: its header should have ", magic == kAny ? "at least " : "", header.size(),
                    " bytes, the file has ", header_size));
  }

  const ElementType& type = element_type(path, magic);
  IdxFile file;
  file.dtype = type.dtype;
  uint64_t promised = type.size;
  for (std::size_t at = 4; at < header.size(); at += 4) {
    const uint32_t size = big_endian(header.data() + at);
    file.shape.push_back(size);
    if (size != 0 && promised > std::numeric_limits<int64_t>::max() / size) {
      throw Error(cat(path, " is damaged: its header promises more bytes than a file can have"));
    }
    promised *= size;
  }
  // In pieces, so that a forged header cannot make us allocate more than the file holds.
  constexpr uint64_t kPiece = 1 << 24;
  while (file.bytes.size() < promised) {
    const std::size_t have = file.bytes.size();
    const std::size_t want = std::min<uint64_t>(kPiece, promised - have);
    file.bytes.resize(have + want);
    const std::size_t got = reader.read(file.bytes.data() + have, want);
    if (got < want) {
      throw Error(
          cat(path, " is cut off: its header promises ", promised, " bytes of data, the file has ", have + got));
    }
  }
  uint8_t beyond = 0;
  if (reader.read(&beyond, 1) != 0) {
    throw Error(cat(path, " is damaged: it goes on after the ", promised, " bytes of data that its header promises"));
  }
  to_machine_order(file.bytes, type.size);
  return file;
}

}  // namespace

IdxFile read_idx(const std::string& path) { return read(path, kAny); }

IdxFile read_idx_bytes(const std::string& path, int dimensions) {
  return read(path, kTypes[0].code << 8 | static_cast<uint32_t>(dimensions));
}

}  // namespace gantry::idx
