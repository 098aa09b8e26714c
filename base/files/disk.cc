#include "stagecraft/base/files/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace stagecraft {
namespace {

// Null: the system's. A pointer, because objects that end with the process ask for it after the end
// of their thread's objects.
thread_local const std::shared_ptr<Disk>* disk_of_thread = nullptr;

constexpr mode_t kModeOfFolders = 0777;  // the umask takes its part

/// Returns whether a file system that cannot synchronize folders says so.
bool cannot_synchronize(int error) {
  return error == EINVAL || error == ENOTSUP || error == ENOSYS;
}

}  // namespace

const std::shared_ptr<Disk>& Disk::system() {
  // Never destroyed: threads may write while the process ends.
  static const auto* const made = new std::shared_ptr<Disk>(std::make_shared<Disk>());
  return *made;
}

const std::shared_ptr<Disk>& Disk::current() {
  return disk_of_thread == nullptr ? system() : *disk_of_thread;
}

int Disk::create(const std::string& path, mode_t mode) {
  return open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
}

ssize_t Disk::write(int file, std::span<const char> bytes) {
  return ::write(file, bytes.data(), bytes.size());
}

ssize_t Disk::read(int file, std::size_t at, std::span<char> bytes) {
  return pread(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
}

int Disk::synchronize(int file) {
  return fsync(file);
}

int Disk::rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str());
}

int Disk::remove(const std::string& path) {
  return unlink(path.c_str());
}

int Disk::make_folder(const std::string& path) {
  return mkdir(path.c_str(), kModeOfFolders);
}

int Disk::synchronize_folder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    return errno == EACCES ? 0 : -1;  // one that may be written, but not read
  }
  const int error = fsync(folder) == 0 ? 0 : errno;
  close(folder);
  if (error == 0 || cannot_synchronize(error)) {
    return 0;
  }
  errno = error;
  return -1;
}

DiskOfThread::DiskOfThread(std::shared_ptr<Disk> disk)
    : disk_(std::move(disk)), before_(std::exchange(disk_of_thread, &disk_)) {}

DiskOfThread::~DiskOfThread() {
  disk_of_thread = before_;
}

}  // namespace stagecraft
