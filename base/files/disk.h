/// Disk is what the system does for files that must survive the end of a machine: it makes, writes,
/// synchronizes, renames, removes and reads them. Code that promises to keep a file uses a Disk
/// instead of the system's calls, so that a test can let each of them fail, and knows what the end
/// of a machine would leave.
///
/// Every thread has a current disk, the system's unless a test sets another (DiskOfThread). Any
/// thread may use a disk.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace stagecraft {

/// The functions return what the system calls return, and set errno as these do.
class Disk {
 public:
  Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  virtual ~Disk() = default;

  /// Returns the disk of the system.
  [[nodiscard]] static const std::shared_ptr<Disk>& system();

  /// Returns this thread's disk.
  [[nodiscard]] static const std::shared_ptr<Disk>& current();

  /// Makes a file and opens it to be written and read. EEXIST: there is one.
  [[nodiscard]] virtual int create(const std::string& path, mode_t mode);
  [[nodiscard]] virtual ssize_t write(int file, std::span<const char> bytes);
  [[nodiscard]] virtual ssize_t read(int file, std::size_t at, std::span<char> bytes);
  /// Keeps what was written to the file.
  [[nodiscard]] virtual int synchronize(int file);

  [[nodiscard]] virtual int rename(const std::string& from, const std::string& to);
  /// Removes a file.
  virtual int remove(const std::string& path);
  [[nodiscard]] virtual int make_folder(const std::string& path);
  /// Keeps the names that were made, changed or removed in the folder.
  [[nodiscard]] virtual int synchronize_folder(const std::string& path);
};

/// DiskOfThread makes a disk the current one of its thread while it exists.
class DiskOfThread {
 public:
  explicit DiskOfThread(std::shared_ptr<Disk> disk);
  DiskOfThread(const DiskOfThread&) = delete;
  DiskOfThread& operator=(const DiskOfThread&) = delete;
  ~DiskOfThread();

 private:
  const std::shared_ptr<Disk> disk_;
  const std::shared_ptr<Disk>* const before_;
};

}  // namespace stagecraft
