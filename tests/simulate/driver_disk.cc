#include "stagecraft/tests/simulate/driver_disk.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft::simulation {

using namespace std::chrono_literals;

DriverDisk::DriverDisk(World& world, const std::string& folder)
    : world_(world), folder_(folder), disk_(folder) {}

void DriverDisk::before_operation(int number, bool counts_writes, World::Event strike) {
  coming_.push_back({number, counts_writes, std::move(strike)});
}

void DriverDisk::fail(tests::DiskFault::Kind kind) {
  world_.tell("disk", "fails");
  disk_.strike({.operation = disk_.operations(), .kind = kind});
  disturb(0s);
}

void DriverDisk::fill(Clock::Time::duration span) {
  world_.tell("disk", "is full");
  disk_.strike({.operation = disk_.operations(), .kind = tests::DiskFault::Kind::Full});
  const World::Time until = world_.clock().now() + span;
  full_until_ = std::max(full_until_, until);
  is_full_ = true;
  world_.at(until, [this] {
    if (is_full_ && world_.clock().now() >= full_until_) {
      world_.tell("disk", "has room");
      disk_.make_room();
      is_full_ = false;
      disturb(0s);
    }
  });
}

void DriverDisk::slow(Clock::Time::duration span) {
  world_.tell("disk", fmt::format("takes {:.3f} s", std::chrono::duration<double>(span).count()));
  disturb(span);
  pause_strand(span);
}

void DriverDisk::end_machine() {
  disk_.end_machine(
      [this](std::size_t count) { return static_cast<std::size_t>(world_.random().below(count)); });
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    const std::filesystem::path& path = entry.path();
    left.push_back(path.extension() == ".ckpt" || entry.is_directory() ? path.filename().string()
                                                                       : "a part");
  }
  std::ranges::sort(left);
  world_.tell("disk", fmt::format("loses its machine, and keeps [{}]", fmt::join(left, ", ")));
}

World::Time DriverDisk::disturbed_until() const {
  const World::Time now = world_.clock().now();
  return is_full_ ? now : std::min(disturbed_until_, now);
}

std::string DriverDisk::shown(std::string text) const {
  for (auto at = text.find(folder_); at != std::string::npos; at = text.find(folder_, at)) {
    text.erase(at, folder_.size());
  }
  return text;
}

int DriverDisk::create(const std::string& path, mode_t mode) {
  begin(false);
  return disk_.create(path, mode);
}

ssize_t DriverDisk::write(int file, std::span<const char> bytes) {
  begin(true);
  return disk_.write(file, bytes);
}

ssize_t DriverDisk::read(int file, std::size_t at, std::span<char> bytes) {
  begin(false);
  return disk_.read(file, at, bytes);
}

int DriverDisk::synchronize(int file) {
  begin(false);
  return disk_.synchronize(file);
}

int DriverDisk::rename(const std::string& from, const std::string& to) {
  begin(false);
  return disk_.rename(from, to);
}

int DriverDisk::remove(const std::string& path) {
  try {
    const InDestructor scope;
    begin(false);
  } catch (const ProcessEnded&) {
    errno = EIO;
    return -1;
  }
  return disk_.remove(path);
}

int DriverDisk::make_folder(const std::string& path) {
  begin(false);
  return disk_.make_folder(path);
}

int DriverDisk::synchronize_folder(const std::string& path) {
  begin(false);
  return disk_.synchronize_folder(path);
}

void DriverDisk::begin(bool is_write) {
  require_process();
  if (!is_write || world_.random().one_in(8)) {
    pause_strand(world_.random().up_to(100us));
    require_process();
  }
  for (Coming& one : coming_) {
    one.left -= is_write && !one.counts_writes ? 0 : 1;
  }
  const auto now = std::ranges::find_if(coming_, [](const Coming& one) { return one.left <= 0; });
  if (now != coming_.end()) {
    const World::Event strike = std::move(now->strike);
    coming_.erase(now);
    strike();
    require_process();
  }
}

void DriverDisk::disturb(Clock::Time::duration span) {
  disturbed_until_ = std::max(disturbed_until_, world_.clock().now() + span);
}

void DriverDisk::require_process() const {
  if (!world_.has_driver()) {
    throw ProcessEnded();
  }
}

}  // namespace stagecraft::simulation
