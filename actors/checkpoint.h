/// Checkpoint: a trainer's whole state in one file, by the model's names and so independent of the
/// cut.
///
///   8 bytes   "STGCRAFT"
///   8 bytes   format version, little-endian
///   8 bytes   length of the header in bytes, little-endian
///   header    msgpack: step, seed, optimizer; per tensor its name, type, shape and bytes
///   tensors   raw, each from a multiple of 64 bytes, in the header's order
///   32 bytes  SHA-256 of all that comes before
///
/// Written and read by Trainer::save and Trainer::load, on the caller's thread.
/// CK-1: a file is complete or absent: it is written beside its place, synchronized, and renamed.
/// CK-2: nothing of a file is believed before its checksum is right, and no length is used
///       unchecked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage_executor.h"

namespace stagecraft {

struct Checkpoint {
  std::int64_t step = 0;   ///< optimizer updates made
  std::uint64_t seed = 0;  ///< with `step`, the whole state of random operators
  std::string optimizer;   ///< "adamw" or "sgd"
  std::vector<StateTensor> tensors;
};

/// Errors: UsageFile when `path` cannot be written; the old file, if any, is still there.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Errors: UsageFile when `path` cannot be read; CheckpointFormat when it is no whole checkpoint.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& path);

/// What a trainer must find in a checkpoint.
struct ExpectedState {
  struct Entry {
    std::string name;
    std::string type;
    std::vector<std::int64_t> shape;
  };
  std::uint64_t seed = 0;
  std::string optimizer;
  std::vector<Entry> tensors;  ///< a name may come twice
};

/// Errors: CheckpointMismatch, naming the first difference: optimizer, seed, a missing, extra or
///         differently shaped tensor.
void check_same_model(const Checkpoint& found, const ExpectedState& expected);

}  // namespace stagecraft
