/// DriverDisk is the disk of the driver's machine. One driver after the other writes to it.
///
/// An operation takes simulated time before it is done, so that other things happen meanwhile, and
/// the driver's process may end between any two. What a process that has ended still asks for while
/// it unwinds is not done.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tests/faults/simulated_disk.h"
#include "stagecraft/tests/simulate/world.h"

namespace stagecraft::simulation {

class DriverDisk final : public Disk {
 public:
  /// Keeps its files in a folder of the real file system, which exists and is empty.
  DriverDisk(World& world, const std::string& folder);

  // ---- faults ---------------------------------------------------------------------------------

  /// Calls `strike` on the strand that begins the operation of this number, from 1 on.
  /// `counts_writes`: else they are left out, which are nearly all operations of a save.
  void before_operation(int number, bool counts_writes, World::Event strike);

  // These are called by `strike`, and concern the operation that begins.

  void fail(tests::DiskFault::Kind kind);
  /// Has no room for so long.
  void fill(Clock::Time::duration span);
  /// Lets it take so long, and waits.
  void slow(Clock::Time::duration span);

  /// Ends the machine: leaves what POSIX permits. May be called at any time.
  void end_machine();

  [[nodiscard]] bool is_full() const { return is_full_; }
  /// Returns when a fault last disturbed an operation.
  [[nodiscard]] World::Time disturbed_until() const;
  /// Returns the text without the folder, whose name is another one in each process.
  [[nodiscard]] std::string shown(std::string text) const;

  // ---- Disk -----------------------------------------------------------------------------------

  // These throw ProcessEnded when the driver's process has ended.

  [[nodiscard]] int create(const std::string& path, mode_t mode) override;
  [[nodiscard]] ssize_t write(int file, std::span<const char> bytes) override;
  [[nodiscard]] ssize_t read(int file, std::size_t at, std::span<char> bytes) override;
  [[nodiscard]] int synchronize(int file) override;
  [[nodiscard]] int rename(const std::string& from, const std::string& to) override;
  int remove(const std::string& path) override;  // of destructors, too: does nothing instead
  [[nodiscard]] int make_folder(const std::string& path) override;
  [[nodiscard]] int synchronize_folder(const std::string& path) override;

 private:
  struct Coming {
    int left;
    bool counts_writes;
    World::Event strike;
  };

  /// Lets time pass, and a fault strike. Throws ProcessEnded after the end of the process.
  void begin(bool is_write);
  void disturb(Clock::Time::duration span);
  void require_process() const;

  World& world_;
  const std::string folder_;
  tests::SimulatedDisk disk_;
  std::vector<Coming> coming_;
  bool is_full_ = false;
  World::Time disturbed_until_, full_until_;
};

}  // namespace stagecraft::simulation
