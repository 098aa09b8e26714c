/// Checkpoint is the whole state of a trainer in one file. Tensors have the model's names, so the
/// file does not depend on the cut. `checkpoint_file.h` describes the layout.
///
/// Trainer::save and Trainer::load write and read it on the caller's thread.
/// CK-1: a file is complete or absent: it is written beside its place, synchronized, and renamed.
/// CK-2: a reader uses no part of a file before its checksum is right, no part that it reads again
///       and finds changed, and no length before it is checked.
/// CK-3: a file gets its name only after it was read back and found to be what was written, by its
///       checksum.
/// CK-4: beside the tensors that the caller holds, reading holds at most one, and writing those
///       that are not in the file yet: at most kHeldBytes, or one larger tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/actors/trainer/state/checkpoint_file.h"
#include "stagecraft/actors/trainer/state/write_behind.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft {

struct Checkpoint : CheckpointFacts {
  std::vector<StateTensor> tensors;
};

/// Writes a checkpoint.
/// Errors: CheckpointFormat, naming the tensor, if a tensor is not dense (sparse, nested), is
/// quantized or is not in this machine's memory; nothing is written then. UsageFile if `path`
/// cannot be written, or reads back differently. An old file at `path` does not change.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Returns the header of its file. Errors: CheckpointFormat, as write_checkpoint.
[[nodiscard]] CheckpointHeader header_of(const Checkpoint& checkpoint);

/// Bytes of tensors that a save holds until they are in the file, unless a single one has more:
/// four times what is read from the ranks at once (kReadBytes).
inline constexpr std::size_t kHeldBytes = std::size_t{256} << 20U;

/// CheckpointSave writes a checkpoint tensor by tensor. Nobody needs to hold all of them. A thread
/// of its own computes the checksum and writes, so that the caller can fetch the next tensors.
class CheckpointSave {
 public:
  /// Begins the file beside its place. Errors of all functions: those of write_checkpoint. A
  /// failure of the thread is thrown by the next call, and nothing is left beside the place.
  CheckpointSave(const std::string& path, CheckpointHeader header);

  /// Hands over the next tensor of the header, which must not change before it is written. Waits
  /// while the thread has more than it may hold (CK-4).
  void add(const at::Tensor& tensor);
  /// Waits until the tensors are written. Requires: all were added.
  void finish_writing();
  /// Finishes writing, reads the file back and puts it in its place. Keeps CK-1 and CK-3. May run
  /// in another thread than the functions before. Requires: all tensors were added.
  void publish();

  /// Returns the path that holds the bytes until publish().
  [[nodiscard]] const std::string& temporary() const { return file_.temporary(); }

 private:
  const CheckpointHeader header_;
  WholeFile file_;
  CheckpointWriter writer_;  // of the thread, until all tensors are written
  std::size_t added_ = 0;
  WriteBehind thread_;  // last: it uses file and writer
};

/// Reads a checkpoint. Errors: UsageFile if `path` cannot be read; CheckpointFormat if it is no
/// whole checkpoint.
[[nodiscard]] Checkpoint read_checkpoint(const std::string& path);

/// Returns the tensor of this name, or the share of it (share_name). Requires: the file has it.
/// Errors: those of CheckpointReader.
[[nodiscard]] at::Tensor read_tensor(const CheckpointReader& reader, const std::string& name);

/// Returns the weights and buffers under the module's names, a tie under one of them.
/// Errors: those of CheckpointReader.
[[nodiscard]] std::vector<NamedTensor> read_module_state(const CheckpointReader& reader);

/// Returns, in one line, the reason why a run that continues on these processors gets or may get
/// other bits than the saved run. Empty if it gets the same bits, or if either side is unknown.
[[nodiscard]] std::string other_processors(const std::vector<std::string>& saved,
                                           const std::vector<std::string>& now);

/// ExpectedState is the state that a trainer must find in a checkpoint.
struct ExpectedState {
  std::optional<std::uint64_t> seed;  ///< none: any seed
  std::string optimizer;
  std::vector<TensorEntry> tensors;  ///< a name may occur twice
};

/// Compares a checkpoint with it.
/// Errors: CheckpointMismatch, naming the first difference: the optimizer, the seed, masters that
/// only one of them has, or a tensor that is missing, extra or of another shape.
void check_same_model(const CheckpointHeader& found, const ExpectedState& expected);

}  // namespace stagecraft
