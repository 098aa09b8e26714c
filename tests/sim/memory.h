/// Memory is the memory of one simulated device: a cache of blocks by stream and size, as that of
/// LibTorch's CUDA.
///
/// The host has other addresses for it than the device, so that a host thread that reads a tensor
/// of a device faults. Machine owns it and locks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace stagecraft::sim {

struct Mark;
struct Stream;

/// Returns the address that kernels use for one of a device, or the reverse.
[[nodiscard]] void* on_host(const void* device_address);
[[nodiscard]] void* on_device(void* host_address);

struct Block {
  char* data = nullptr;  ///< the host's address
  std::size_t bytes = 0;
  Stream* stream = nullptr;  ///< for which it was made
  std::set<Stream*> also_used_on;
};

class Memory {
 public:
  /// Returns a block that the stream freed, or a new one. Errors: c10::OutOfMemoryError.
  [[nodiscard]] Block& take(Stream& stream, std::size_t bytes, std::size_t limit);
  /// Returns the block with this address, or null.
  [[nodiscard]] Block* find(void* host_address);
  /// Says that the user has freed the block.
  void end_use(const Block& block);
  /// Makes the block available to its stream.
  void keep(Block& block) { free_[{block.stream, block.bytes}].push_back(&block); }
  /// Makes it available once all marks are done.
  void keep_after(Block& block, std::vector<std::shared_ptr<Mark>> marks) {
    pending_.push_back({&block, std::move(marks)});
  }
  /// Returns the blocks whose marks are done.
  [[nodiscard]] std::vector<Block*> take_over();

  [[nodiscard]] std::int64_t in_use() const { return in_use_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  void reset_peak() { peak_ = in_use_; }

 private:
  struct Pending {
    Block* block;
    std::vector<std::shared_ptr<Mark>> marks;
  };

  std::map<void*, std::unique_ptr<Block>> blocks_;  ///< by the host's address
  std::map<std::pair<Stream*, std::size_t>, std::vector<Block*>> free_;
  std::vector<Pending> pending_;
  std::int64_t in_use_ = 0, peak_ = 0;
};

}  // namespace stagecraft::sim
