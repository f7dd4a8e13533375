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

namespace gantry::fashion_mnist {

namespace {

constexpr int kUnsignedByte = 0x08;

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

}  // namespace

IdxFile read_idx(const std::string& path, int dimensions) {
  GzipReader reader(path);
  std::vector<uint8_t> header(4 + 4 * static_cast<std::size_t>(dimensions));
  const std::size_t header_size = reader.read(header.data(), header.size());
  const uint32_t magic = kUnsignedByte << 8 | static_cast<uint32_t>(dimensions);
  if (header_size >= 4 && big_endian(header.data()) != magic) {
    throw Error(cat(path, " is no IDX file of unsigned bytes in ", dimensions, " dimensions: it begins with ",
                    hex(big_endian(header.data())), ", not with ", hex(magic)));
  }
  if (header_size < header.size()) {
    throw Error(cat(path, " is cut off: its header should have ", header.size(), " bytes, the file has ", header_size));
  }

  IdxFile file;
  uint64_t promised = 1;
  for (int d = 0; d < dimensions; ++d) {
    const uint32_t size = big_endian(header.data() + 4 + 4 * d);
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
  return file;
}

}  // namespace gantry::fashion_mnist
