/// SelfTimes measures how long each of several accounts ran, without the accounts that began and
/// ended inside it.
///
/// It is made for one thread, gets every begin and end there, and is used there alone.
/// SLF-1: between the first begin and the last end every moment counts for one account: the one
///        that began last and has not ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stagecraft::bench {

class SelfTimes {
 public:
  /// Units: nanoseconds of any clock that does not go back.
  void begin(std::size_t account, std::int64_t now) {
    pass(now);
    open_.push_back(account);
  }
  /// Requires: something has begun that has not ended.
  void end(std::int64_t now) {
    pass(now);
    open_.pop_back();
  }

  [[nodiscard]] std::int64_t of(std::size_t account) const {
    return account < sums_.size() ? sums_[account] : 0;
  }
  /// Clears the sums. Open accounts stay open.
  void clear() { sums_.clear(); }

 private:
  void pass(std::int64_t now) {
    if (!open_.empty()) {
      if (open_.back() >= sums_.size()) {
        sums_.resize(open_.back() + 1);
      }
      sums_[open_.back()] += now - last_;
    }
    last_ = now;
  }

  std::vector<std::size_t> open_;
  std::vector<std::int64_t> sums_;
  std::int64_t last_ = 0;
};

}  // namespace stagecraft::bench
