/// Checkpoint: a trainer's whole state in one file, by the model's names and so independent of the
/// cut. `checkpoint_file.h` says how the file is laid out.
///
/// Written and read by Trainer::save and Trainer::load, on the caller's thread.
/// CK-1: a file is complete or absent: it is written beside its place, synchronized, and renamed.
/// CK-2: nothing of a file is believed before its checksum is right, and no length is used
///       unchecked.
/// CK-3: a file has its name only once it was read back and found equal to what it was made of, bit
///       by bit.
/// CK-4: neither writing nor reading holds more than one tensor beside those of the Checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/base/whole_file.h"

namespace stagecraft {

struct Checkpoint {
  std::int64_t step = 0;   ///< optimizer updates made
  std::uint64_t seed = 0;  ///< with `step`, the whole state of random operators
  std::string optimizer;   ///< its name in the registry (optimizer_registry.h)
  std::vector<StateTensor> tensors;
  /// By what the ranks chose their code (choice_text), each once; none: not known.
  std::vector<std::string> processors = {};
};

/// Errors: CheckpointFormat, naming the tensor, for one that is not dense (sparse, nested),
///         quantized or not in the memory of this machine: before anything is written. UsageFile
///         when `path` cannot be written, or reads back differently. The old file, if any, is still
///         there.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Its two halves. Errors: as write_checkpoint.
void fill_checkpoint(WholeFile& file, const Checkpoint& checkpoint);
/// Reads what is in the file and has it take its place. Keeps CK-1 and CK-3.
/// Requires: fill_checkpoint was called with both.
void publish_checkpoint(WholeFile& file, const Checkpoint& checkpoint);

/// Errors: UsageFile when `path` cannot be read; CheckpointFormat when it is no whole checkpoint.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& path);

/// Reads the file at `path` and compares all of it with what it is said to hold.
/// Errors: those of read_checkpoint; CheckpointFormat, naming the first tensor that differs.
void check_holds(const std::string& path, const Checkpoint& checkpoint);

/// Why a run that goes on with these processors has other bits than the one that was saved, or may
/// have: in one line; empty where it has the same, and where either is not known.
[[nodiscard]] std::string other_processors(const std::vector<std::string>& saved,
                                           const std::vector<std::string>& now);

/// What a trainer must find in a checkpoint.
struct ExpectedState {
  struct Entry {
    std::string name;
    std::string type;
    std::vector<std::int64_t> shape;
  };
  std::optional<std::uint64_t> seed;  ///< none: any
  std::string optimizer;
  std::vector<Entry> tensors;  ///< a name may come twice
};

/// Errors: CheckpointMismatch, naming the first difference: optimizer, seed, a missing, extra or
///         differently shaped tensor.
void check_same_model(const Checkpoint& found, const ExpectedState& expected);

}  // namespace stagecraft
