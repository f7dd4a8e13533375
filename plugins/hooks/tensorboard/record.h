#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// TFRecord, the framing of event files (https://www.tensorflow.org/tutorials/load_data/tfrecord): for each record its
/// length in 8 bytes, the masked CRC32C of these, the data, the masked CRC32C of the data; all little-endian.

/// CRC32C (the polynomial of Castagnoli), rotated and shifted so that a checksum of data with checksums is none of
/// theirs.
uint32_t masked_crc32c(std::string_view bytes);

/// `data` as a record.
std::string record_of(std::string_view data);

/// The length in bytes, frame included, of the record that `bytes` begin with; 0 where they begin with no whole one.
std::size_t record_size(std::string_view bytes);
