#include "stagecraft/bench/step/call_times.h"

namespace stagecraft::bench {
namespace {

constexpr std::size_t kAllocator = 0;

}  // namespace

void CallTimes::begin(std::string_view name, std::int64_t now) {
  const std::size_t account = account_of(name);
  ++accounts_[account].calls;
  times_.begin(account, now);
}

void CallTimes::begin_allocator(std::int64_t now) {
  ++accounts_[kAllocator].calls;
  times_.begin(kAllocator, now);
}

std::vector<CallTime> CallTimes::take() {
  std::vector<CallTime> all;
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    CallTime& account = accounts_[i];
    account.seconds = 1e-9 * static_cast<double>(times_.of(i));
    all.push_back(account);
    account.calls = 0;
  }
  times_.clear();
  return all;
}

std::size_t CallTimes::account_of(std::string_view name) {
  const auto known = numbers_.find(name);
  if (known != numbers_.end()) {
    return known->second;
  }
  numbers_.emplace(name, accounts_.size());
  accounts_.push_back({.name = std::string(name), .part = part_of(name)});
  return accounts_.size() - 1;
}

}  // namespace stagecraft::bench
