#include "stagecraft/base/files/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/write_all.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestStem = 230;  // a name has at most 255 bytes

[[noreturn]] void unwritable(const std::string& path, int error) {
  throw Error(Errc::UsageFile,
              fmt::format("'{}' cannot be written: {}; name another place or make room",
                          path,
                          std::generic_category().message(error)));
}

[[noreturn]] void unkept(const std::string& path, int error) {
  throw Error(Errc::UsageFile,
              fmt::format("'{}' is in its place, but its name may not outlive the end of the "
                          "machine: {}; write it again, or name another place",
                          path,
                          std::generic_category().message(error)));
}

[[noreturn]] void irreplaceable(const std::string& path, const std::string& what) {
  throw Error(
      Errc::UsageFile,
      fmt::format("'{}' is {}, which a file cannot replace; name another place", path, what));
}

/// Returns whether the folder is like /tmp, in which only a file's owner may replace the file.
bool protected_from_us(const OutputPlace& place, uid_t owner) {
  struct stat folder {};
  const uid_t we = geteuid();
  return stat(place.folder().c_str(), &folder) == 0 && (folder.st_mode & S_ISVTX) != 0 && we != 0 &&
         we != owner && we != folder.st_uid;
}

/// Checks the permissions of the file itself, because a rename asks only the folder: a user who
/// protected a file from writes also meant its place. Opening the file tests that and does not
/// change it.
void check_writable(const std::string& path, const OutputPlace& place) {
  const int file = open(place.path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) {
    unwritable(path, errno);
  }
  close(file);
}

/// Checks at the beginning for faults that would make the rename at the end fail.
void check_replaceable(const std::string& path, const OutputPlace& place) {
  struct statx found {};
  if (statx(AT_FDCWD, place.path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &found) != 0) {
    return;  // some sandboxes refuse the call
  }
  if ((found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) {
    irreplaceable(path, "a mounted file");
  }
  if (protected_from_us(place, found.stx_uid)) {
    irreplaceable(path, "another user's file in a folder that protects it");
  }
}

OutputPlace replaceable_place(const std::string& path) {
  OutputPlace place = output_place(path);
  if (place.kind == OutputPlace::Kind::File) {
    check_writable(path, place);
    check_replaceable(path, place);
  } else if (place.kind != OutputPlace::Kind::Absent) {
    irreplaceable(path, std::string(to_string(place.kind)));
  }
  return place;
}

}  // namespace

WholeFile::WholeFile(const std::string& path) : path_(path), place_(replaceable_place(path)) {
  open_beside();
}

WholeFile::~WholeFile() {
  if (fd_ >= 0) {
    close(fd_);
    disk_->remove(temporary_);  // keeps WF-2
  }
}

/// Opens the file with the wanted mode and lets the kernel apply the umask and the folder's rules.
/// Keeps WF-3.
void WholeFile::open_beside() {
  struct stat older {};
  const bool replaces = stat(place_.path.c_str(), &older) == 0;
  const mode_t mode = replaces ? older.st_mode & 0777U : 0666U;
  const std::string stem = fs::path(place_.path).filename().string().substr(0, kLongestStem);
  std::random_device random;
  do {
    temporary_ = fmt::format("{}/{}.part-{:08x}", place_.folder(), stem, random());
    fd_ = disk_->create(temporary_, mode);
  } while (fd_ < 0 && errno == EEXIST);
  if (fd_ < 0) {
    unwritable(path_, errno);
  }
  if (replaces) {
    // Set the owner first, because that clears bits of the mode. Neither failure is worth losing
    // the file.
    [[maybe_unused]] const int owner = fchown(fd_, older.st_uid, older.st_gid);
    [[maybe_unused]] const int bits = fchmod(fd_, older.st_mode & 07777U);
  }
}

void WholeFile::write(std::span<const char> bytes) {
  if (const int error = write_all(fd_, bytes, *disk_); error != 0) {
    unwritable(path_, error);
  }
}

void WholeFile::synchronize() {
  if (disk_->synchronize(fd_) != 0) {
    unwritable(path_, errno);
  }
  posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
}

void WholeFile::publish() {
  synchronize();
  if (disk_->rename(temporary_, place_.path) != 0) {
    unwritable(path_, errno);
  }
  close(std::exchange(fd_, -1));  // synchronized before, so close has nothing left to fail
  if (disk_->synchronize_folder(place_.folder()) != 0) {
    unkept(path_, errno);  // keeps WF-4
  }
}

}  // namespace stagecraft
