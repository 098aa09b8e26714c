/// FlatBuffers cuts tensors out of flat buffers, one per FlatKind, in the order in which they were
/// reserved. FlatLease gives the memory of such a buffer back while its tensors stay.
///
/// They are values of one thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage/shard_layout.h"

namespace stagecraft {

/// Allocates a flat tensor, of zeros unless its maker says so.
using FlatMemory = std::function<at::Tensor(std::int64_t elements, at::ScalarType dtype)>;

/// Returns memory of a device.
[[nodiscard]] FlatMemory memory_of(const c10::Device& device);
/// Returns the same with any values.
[[nodiscard]] FlatMemory unset_memory_of(const c10::Device& device);
/// Returns no memory: tensors of a CPU that a FlatLease fills.
[[nodiscard]] FlatMemory no_memory();

/// FlatKind says in which buffer a tensor lies: with others of its dtype, or alone. The shards of a
/// buffer of one tensor depend on nothing but this tensor.
struct FlatKind {
  at::ScalarType dtype = at::kFloat;
  std::string alone = {};  ///< its name; empty: it lies with others

  friend auto operator<=>(const FlatKind&, const FlatKind&) = default;
};

class FlatBuffers {
 public:
  explicit FlatBuffers(FlatMemory memory, std::int32_t shards = 1);

  void reserve(const FlatKind& kind, std::int64_t elements);

  /// Returns the next tensor of the kind, zeros at first. Requires: it was reserved with as many
  /// elements, and so were all others.
  [[nodiscard]] at::Tensor cut(const FlatKind& kind, at::IntArrayRef sizes);

  [[nodiscard]] std::vector<at::Tensor> all() const;

  /// Returns the number of the kind's buffer in all().
  [[nodiscard]] std::size_t number_of(const FlatKind& kind) const;
  /// Returns the part of the tensor that was cut last, in a shard.
  [[nodiscard]] ShardLayout::Part last_part(const FlatKind& kind, std::int32_t shard) const;

 private:
  struct Buffer {
    std::vector<std::int64_t> elements;  // of its tensors
    std::size_t cut = 0;                 // so many of them
    ShardLayout layout;
    at::Tensor memory;
  };

  FlatMemory memory_;
  std::int32_t shards_;
  std::map<FlatKind, Buffer> buffers_;
};

/// FlatLease holds the memory of a flat tensor on a CPU. The tensor and all its views stay when it
/// gives the memory back, and have other memory after the next take(). Reading them in between ends
/// the process.
class FlatLease {
 public:
  /// `flat`: of no_memory(). It owns its storage alone, with its views.
  FlatLease(at::Tensor flat, FlatMemory memory);

  /// Gets memory unless it has some.
  void take() const;
  void give_back() const;
  /// Returns a flat tensor of the same values, to be lent (Transport::lend): who reads it after the
  /// end of its epoch keeps its memory, which a view of `flat` does not.
  [[nodiscard]] const at::Tensor& memory() const { return has_memory() ? memory_ : flat_; }
  [[nodiscard]] bool has_memory() const { return flat_.storage().data() != nullptr; }

 private:
  at::Tensor flat_;
  FlatMemory new_memory_;
  mutable at::Tensor memory_;  ///< owns what `flat_` shows
};

}  // namespace stagecraft
