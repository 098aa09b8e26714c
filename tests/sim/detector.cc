#include "stagecraft/tests/sim/detector.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace stagecraft::sim {
namespace {

void join(Detector::Clock& to, const Detector::Clock& from) {
  to.resize(std::max(to.size(), from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = std::max(to[i], from[i]);
  }
}

std::uintptr_t end_of(const Detector::Access& access) {
  return access.begin + access.bytes;
}

bool overlap(const Detector::Access& one, const Detector::Access& other) {
  return one.begin < end_of(other) && other.begin < end_of(one);
}

bool covers(const Detector::Access& one, const Detector::Access& other) {
  return one.begin <= other.begin && end_of(other) <= end_of(one);
}

}  // namespace

int Detector::add_stream(std::string name) {
  names_.push_back(std::move(name));
  clocks_.emplace_back();
  return static_cast<int>(names_.size()) - 1;
}

Detector::Clock& Detector::host() {
  static std::atomic<int> threads = 0;
  thread_local const int number = threads++;
  return hosts_.try_emplace(number, seen_).first->second;
}

std::uint64_t& Detector::own_tick(int stream) {
  const auto s = static_cast<std::size_t>(stream);
  Clock& clock = clocks_[s];
  join(clock, host());
  clock.resize(std::max(clock.size(), s + 1));
  return clock[s];
}

void Detector::issue(int stream, const std::string& kernel, const std::vector<Access>& accesses) {
  const std::uint64_t tick = ++own_tick(stream);
  for (const Access& access : accesses) {
    Block* const block = access.bytes == 0 ? nullptr : block_at(access.begin);
    if (block == nullptr) {
      continue;
    }
    if (!block->live) {
      reports_.push_back(fmt::format(
          "{} on {} uses freed memory", kernel, names_[static_cast<std::size_t>(stream)]));
    }
    note(*block, {access, stream, tick, kernel});
  }
}

Detector::Clock Detector::record(int stream) {
  (void)own_tick(stream);
  return clocks_[static_cast<std::size_t>(stream)];
}

void Detector::wait(int stream, const Clock& event) {
  join(clocks_[static_cast<std::size_t>(stream)], event);
}

void Detector::wait_on_host(const Clock& event) {
  join(host(), event);
  join(seen_, event);
}

void Detector::allocate(std::uintptr_t begin, std::size_t bytes, int stream) {
  Block& block = blocks_[begin];
  block.bytes = bytes;
  block.live = true;
  if (const std::uint64_t tick = own_tick(stream); tick > 0) {
    block.uses.push_back({{begin, bytes, true}, stream, tick, "an allocation"});
  }
}

void Detector::release(std::uintptr_t begin, const std::vector<int>& streams) {
  Block& block = blocks_.at(begin);
  Clock over = host();
  for (const int stream : streams) {
    join(over, clocks_[static_cast<std::size_t>(stream)]);
  }
  for (const Use& use : block.uses) {
    if (!is_before(use, over)) {
      reports_.push_back(fmt::format("memory is freed that nothing keeps for {}", text_of(use)));
    }
  }
  block.live = false;
}

void Detector::forget_uses(std::uintptr_t begin) {
  blocks_.at(begin).uses.clear();
}

std::vector<std::string> Detector::take_reports() {
  return std::exchange(reports_, {});
}

bool Detector::is_before(const Use& use, const Clock& clock) {
  const auto s = static_cast<std::size_t>(use.stream);
  return s < clock.size() && use.tick <= clock[s];
}

/// Compares the use with earlier ones, and keeps it in the place of those that it hides.
void Detector::note(Block& block, Use use) {
  std::erase_if(block.uses, [&](const Use& earlier) {
    const bool conflicts = earlier.access.writes || use.access.writes;
    if (overlap(earlier.access, use.access) && conflicts &&
        !is_before(earlier, clocks_[static_cast<std::size_t>(use.stream)])) {
      reports_.push_back(fmt::format("{} is not ordered after {}", text_of(use), text_of(earlier)));
    }
    const bool hides =
        use.access.writes || (!earlier.access.writes && earlier.stream == use.stream);
    return hides && covers(use.access, earlier.access);
  });
  block.uses.push_back(std::move(use));
}

Detector::Block* Detector::block_at(std::uintptr_t address) {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) {
    return nullptr;
  }
  auto& [begin, block] = *std::prev(after);
  return address < begin + block.bytes ? &block : nullptr;
}

std::string Detector::text_of(const Use& use) const {
  return fmt::format("{} ({}, {})",
                     use.kernel,
                     use.access.writes ? "writes" : "reads",
                     names_[static_cast<std::size_t>(use.stream)]);
}

}  // namespace stagecraft::sim
