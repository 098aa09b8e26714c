/// FailedStates: states from which the rest does not fit the time that is left.
///
/// Whatever is left to do in a state can be done in another of equal progress that has everything
/// earlier, in the same order and no later. So a state fails where a failed one has no time later
/// than it. Of each progress the times of several are kept, none of them earlier throughout than
/// another. Filled and asked by OrderSearch. Not shared between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace stagecraft {

class FailedStates {
 public:
  /// Progress as a number of 128 bits: that two of those met are taken for one is less likely than
  /// that the machine errs.
  struct Key {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };

  [[nodiscard]] static Key key_of(const std::vector<int>& progress);

  /// Whether a state of these times fails. `times`: equally many for one key. Cost, of add() too:
  /// one comparison for each state kept of the key.
  [[nodiscard]] bool covers(const Key& key, const std::vector<std::int32_t>& times) const;
  /// Does nothing where the memory for it is used up.
  void add(const Key& key, const std::vector<std::int32_t>& times);

 private:
  static constexpr std::size_t kMostNumbers = 64'000'000;
  static constexpr std::size_t kMostKeys = 4'000'000;
  static constexpr std::uint32_t kNone = 0xffffffffU;

  struct HashKey {
    std::size_t operator()(const Key& key) const { return key.low; }
  };

  /// Each state is the place of the next one of its key, then its times.
  std::vector<std::int32_t> numbers_;
  std::unordered_map<Key, std::uint32_t, HashKey> first_;
};

}  // namespace stagecraft
