/// checkpoint_file defines the layout of a checkpoint file.
///
///   8 bytes   "STGCRAFT"
///   8 bytes   format version, little-endian
///   8 bytes   length of the header in bytes, little-endian
///   header    msgpack: step, seed, optimizer; per tensor its name, type, shape and bytes; from
///             version 2 on also the processors of the ranks, from 3 on the scale of losses, from 4
///             on the state of the loop, from 5 on the updates in which groups were frozen
///   tensors   raw, each from a multiple of 64 bytes, in the header's order
///   32 bytes  SHA-256 of all bytes before
///
/// A reader reads from the disk that was current where it was made. checkpoint.h says what parts
/// mean to a trainer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/ScalarType.h>

#include "stagecraft/actors/executor/optimizer/group_updates.h"
#include "stagecraft/actors/executor/step/loss_scale.h"
#include "stagecraft/actors/trainer/state/loop_state.h"
#include "stagecraft/actors/trainer/state/sha256.h"
#include "stagecraft/base/files/disk.h"
#include "stagecraft/base/files/whole_file.h"

namespace stagecraft {

/// CheckpointFacts holds what a checkpoint says in addition to its tensors.
struct CheckpointFacts {
  std::int64_t step = 0;   ///< optimizer updates made
  std::uint64_t seed = 0;  ///< with `step`, the whole state of random operators
  std::string optimizer;   ///< its name in the registry (optimizer_registry.h)
  /// The texts by which the ranks chose their code (choice_text), each once. Empty if unknown, as
  /// in version 1.
  std::vector<std::string> processors = {};
  std::optional<LossScale> loss_scale = {};  ///< TrainerState::loss_scale; from version 3 on
  /// The state of the loop that trained, if it told one; from version 4 on.
  std::optional<LoopState> loop = {};
  /// In how many updates parameter groups were frozen; from version 5 on. None: as frozen_for of
  /// the groups says.
  std::optional<FrozenUpdates> frozen = {};

  friend bool operator==(const CheckpointFacts&, const CheckpointFacts&) = default;
};

/// Returns how many of the steps changed weights: a scale of losses counts those that did not.
[[nodiscard]] std::int64_t weight_changes(const CheckpointFacts& facts);

/// Returns the facts as text of any bytes, and the facts of such a text.
/// Errors: CheckpointFormat if it is none.
[[nodiscard]] std::string packed_facts(const CheckpointFacts& facts);
[[nodiscard]] CheckpointFacts unpacked_facts(const std::string& text);

/// TensorEntry is a tensor without its values.
struct TensorEntry {
  std::string name;
  std::string type;  ///< LibTorch's name
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;

  friend bool operator==(const TensorEntry&, const TensorEntry&) = default;
};

struct CheckpointHeader : CheckpointFacts {
  std::vector<TensorEntry> tensors;

  friend bool operator==(const CheckpointHeader&, const CheckpointHeader&) = default;
};

/// Returns the LibTorch type of this name. Knows every type that holds plain numbers; knows no
/// quantized type, which wraps other numbers.
[[nodiscard]] std::optional<at::ScalarType> type_named(std::string_view name);

/// Returns the entry with its bytes: one for each element of a type that type_named does not know.
[[nodiscard]] TensorEntry entry_of(std::string name,
                                   std::string type,
                                   std::vector<std::int64_t> shape);

class CheckpointWriter {
 public:
  /// Writes the preamble and the header. `file` outlives the writer. Errors of all functions:
  /// UsageFile.
  CheckpointWriter(WholeFile& file, const CheckpointHeader& header);

  /// Writes the next tensor of the header.
  void add(std::span<const char> tensor);
  /// Appends the checksum and returns it.
  Sha256::Digest seal();

 private:
  void write(std::span<const char> bytes);

  WholeFile& file_;
  Sha256 sha_;
  std::size_t size_ = 0;
};

/// CheckpointReader reads what it has checked: a chunk of the file that is read again must be as it
/// was when the checksum covered it. Thread: one at a time. Cost: about 300 bytes of memory for
/// each MiB of the file.
class CheckpointReader {
 public:
  /// Reads the file once to its end, and checks its checksum and then its header. Keeps CK-2.
  /// Errors of all functions: UsageFile if the file cannot be read, CheckpointFormat if it is no
  /// checkpoint.
  explicit CheckpointReader(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const CheckpointHeader& header() const { return header_; }
  [[nodiscard]] const Sha256::Digest& checksum() const { return checksum_; }

  /// Returns the position of the tensor of this name.
  [[nodiscard]] std::optional<std::size_t> position_of(std::string_view name) const;

  /// Fills `bytes` with the bytes of tensor `tensor` from byte `begin` on. Keeps CK-2.
  /// Requires: the tensor has that many bytes.
  void read(std::size_t tensor, std::size_t begin, std::span<char> bytes) const;

 private:
  /// Holds the open file as long as the reader lives, also while the reader is being made.
  struct Descriptor {
    explicit Descriptor(int number) : fd(number) {}
    ~Descriptor();
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    const int fd;
  };

  struct Preamble {
    std::uint64_t version = 0;
    std::uint64_t length = 0;  ///< of the header
  };

  [[noreturn]] void refuse(const std::string& found) const;
  void read_at(std::size_t at, std::span<char> bytes) const;
  /// Reads a chunk, which nobody has checked yet.
  void read_chunk(std::size_t number) const;
  /// Makes a chunk the present one. Keeps CK-2.
  void require_chunk(std::size_t number) const;
  void read_content(std::size_t at, std::span<char> bytes) const;

  [[nodiscard]] Preamble preamble() const;
  Preamble check_content();
  void read_header(const Preamble& found);
  void place_tensors(std::size_t begin);

  const std::shared_ptr<Disk> disk_ = Disk::current();
  const std::string path_;
  const Descriptor file_;
  std::size_t content_ = 0;  ///< bytes before the checksum
  Sha256::Digest checksum_{};
  std::vector<Sha256> sums_;                    ///< of what precedes each chunk, and of all
  mutable std::vector<char> chunk_;             ///< the last one that was read
  mutable std::optional<std::size_t> present_;  ///< its number, if it was checked
  CheckpointHeader header_;
  std::vector<std::size_t> places_;  ///< where each tensor begins
  std::map<std::string, std::size_t, std::less<>> positions_;
};

}  // namespace stagecraft
