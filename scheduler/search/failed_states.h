/// FailedStates holds states from which the remaining work does not fit the remaining time.
///
/// Let two states have equal progress, and let the second have no time later than the first. Then
/// the remaining work of the first can also be done in the second, in the same order and no later.
/// So a state fails if a failed state of equal progress has no time later than it. For each
/// progress the table keeps the times of several states, and none that another one makes
/// superfluous. OrderSearch fills and reads it. It is not shared between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace stagecraft {

class FailedStates {
 public:
  /// Key is the progress as a number of 128 bits. A collision is less likely than an error of the
  /// machine.
  struct Key {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };

  [[nodiscard]] static Key key_of(const std::vector<int>& progress);

  /// Returns whether a state of these times fails. `times`: the same number for equal keys. Cost,
  /// also of add(): one comparison for each state kept under the key.
  [[nodiscard]] bool covers(const Key& key, const std::vector<std::int32_t>& times) const;
  /// Adds a failed state. Does nothing after its memory is used up.
  void add(const Key& key, const std::vector<std::int32_t>& times);

 private:
  static constexpr std::size_t kMostNumbers = 64'000'000;
  static constexpr std::size_t kMostKeys = 4'000'000;
  static constexpr std::uint32_t kNone = 0xffffffffU;

  struct HashKey {
    std::size_t operator()(const Key& key) const { return key.low; }
  };

  /// Holds, for each state, the place of the next state of its key, then its times.
  std::vector<std::int32_t> numbers_;
  std::unordered_map<Key, std::uint32_t, HashKey> first_;
};

}  // namespace stagecraft
