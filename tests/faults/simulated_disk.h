/// SimulatedDisk keeps files in a folder of the real file system, lets operations fail, and knows
/// what the end of the machine would leave.
///
/// It assumes no more than POSIX promises. Until a file is synchronized, any part of what was
/// written to it may be lost. Until a folder is synchronized, any of the names that were made,
/// changed or removed in it may be as before, each by itself. A rename is done or not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/base/files/disk.h"

namespace stagecraft::tests {

/// Remains holds the files that a machine's end has left, by their paths in the folder, and the
/// folders, without bytes.
using Remains = std::map<std::string, std::optional<std::string>>;

/// Choose returns a number below `count`.
using Choose = std::function<std::size_t(std::size_t count)>;

struct DiskFault {
  enum class Kind {
    Fail,    ///< the operation fails: with EIO, or ENOSPC if it needs room
    Full,    ///< from it on, all that needs room fails, until make_room()
    Short,   ///< a write takes half of the bytes, and says so
    Damage,  ///< a read finds another bit, or a write leaves one
    Cut,     ///< a read finds the end of the file
  };
  std::int64_t operation = 0;  ///< strikes the one with this number; the first has 0
  Kind kind = Kind::Fail;
};

class SimulatedDisk final : public Disk {
 public:
  /// Names what the disk leaves out when it is asked to synchronize.
  enum class Lie { None, OfFiles, OfFolders };

  /// `folder`: exists, and is empty.
  explicit SimulatedDisk(std::string folder, Lie lie = Lie::None);

  /// Lets a fault strike, besides those before it.
  void strike(DiskFault fault);
  void make_room();
  /// Counts the operations so far.
  [[nodiscard]] std::int64_t operations() const;
  /// Counts the faults that have struck.
  [[nodiscard]] int struck() const;

  /// Returns what the end of the machine may leave after so many operations: the names in all ways,
  /// each with whole, cut and partly lost contents.
  [[nodiscard]] std::vector<Remains> remains_after(std::int64_t operations) const;
  /// Ends the machine now, in one of these ways: lays out what is left.
  void end_machine(const Choose& choose);

  [[nodiscard]] int create(const std::string& path, mode_t mode) override;
  [[nodiscard]] ssize_t write(int file, std::span<const char> bytes) override;
  [[nodiscard]] ssize_t read(int file, std::size_t at, std::span<char> bytes) override;
  [[nodiscard]] int synchronize(int file) override;
  [[nodiscard]] int rename(const std::string& from, const std::string& to) override;
  int remove(const std::string& path) override;
  [[nodiscard]] int make_folder(const std::string& path) override;
  [[nodiscard]] int synchronize_folder(const std::string& path) override;

 private:
  /// Change is a change that an operation has made.
  struct Change {
    enum class Kind { Create, Write, Synchronize, Rename, Remove, MakeFolder, SynchronizeFolder };
    std::int64_t operation;
    Kind kind;
    int file = 0;           ///< its number: of Create, Write, Synchronize
    std::string path = {};  ///< of all others
    std::string to = {};    ///< of Rename: the path; of Write: the bytes
  };
  class Replay;

  struct Begun {
    std::int64_t operation;
    std::optional<DiskFault::Kind> fault;  ///< that strikes it
  };
  /// Counts an operation.
  Begun begin();
  /// Begins an operation. Returns its number; nothing if it fails, with errno.
  std::optional<std::int64_t> succeeds(bool needs_room);
  /// Returns the path in the folder; "" for the folder itself.
  [[nodiscard]] std::string inside(const std::string& path) const;

  const std::string folder_;
  const Lie lie_;

  mutable std::mutex mutex_;  // of what follows: a save has threads
  std::vector<DiskFault> faults_;
  bool is_full_ = false;
  std::int64_t operations_ = 0;
  int struck_ = 0, files_ = 0;
  std::map<int, int> numbers_;  ///< of files, by descriptor
  std::vector<Change> changes_;
};

/// Makes an empty folder with these files.
void lay_out(const Remains& remains, const std::string& folder);

}  // namespace stagecraft::tests
