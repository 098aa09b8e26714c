#include "stagecraft/actors/security/new_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/actors/security/small_file.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/files/write_all.h"

namespace stagecraft::security {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestStem = 230;  // a name has at most 255 bytes

[[noreturn]] void unwritable(const std::string& path, int error) {
  if (error == ENOENT) {
    throw Error(
        Errc::UsageFile,
        fmt::format("'{}' cannot be made: its parent folder does not exist; make that folder "
                    "first",
                    path));
  }
  throw Error(Errc::UsageFile,
              fmt::format("'{}' cannot be written: {}; name another place or make room",
                          path,
                          std::generic_category().message(error)));
}

[[noreturn]] void taken(const std::string& path) {
  throw Error(Errc::UsageFile,
              fmt::format("'{}' exists, and credentials are never overwritten; name a new folder, "
                          "or inspect this one with stagecraft credentials show and extend it "
                          "with stagecraft credentials renew",
                          path));
}

/// Returns the place for the parts of `path` while it is made: beside it, hidden, with a unique
/// name.
std::string temporary_name(const std::string& path) {
  std::random_device random;
  const fs::path place(path);
  const std::string stem = place.filename().string().substr(0, kLongestStem);
  return (place.parent_path() / fmt::format(".{}.part-{:08x}", stem, random())).string();
}

/// Makes a file. The umask reduces the mode of a new file, so the mode is set again (keeps NF-3).
int make_private_file(const std::string& path, std::string_view bytes, mode_t mode, bool durable) {
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_t{0600});
  if (file < 0) {
    return errno;
  }
  int error = write_all(file, bytes);
  if (error == 0 && (fchmod(file, mode) != 0 || (durable && fsync(file) != 0))) {
    error = errno;
  }
  close(file);
  return error;
}

int make_private_folder(const std::string& path) {
  return mkdir(path.c_str(), mode_t{0700}) == 0 && chmod(path.c_str(), mode_t{0700}) == 0 ? 0
                                                                                          : errno;
}

/// Synchronizes a folder. Ignores failures: not every file system can do it, and the files are
/// synchronized.
void synchronize_folder(const std::string& path) {
  const int folder = open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
}

/// Keeps NF-1 even if another process takes the name now. A file system that cannot do it in one
/// move needs two steps.
int move_to_free_name(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return errno;
  }
  if (exists(to)) {
    return EEXIST;
  }
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

NewFolder::NewFolder(const std::string& path, bool durable)
    : path_(without_slashes(path)), durable_(durable) {
  if (exists(path_)) {
    taken(path_);
  }
  int error = EEXIST;
  while (error == EEXIST) {
    temporary_ = temporary_name(path_);
    error = make_private_folder(temporary_);
  }
  if (error != 0) {
    unwritable(path_, error);
  }
}

NewFolder::~NewFolder() {
  if (!published_) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);  // keeps NF-2
  }
}

void NewFolder::make_folder(const std::string& name) {
  if (const int error = make_private_folder(temporary_ + "/" + name); error != 0) {
    unwritable(path_ + "/" + name, error);
  }
}

void NewFolder::write(const std::string& name, std::string_view bytes, mode_t mode) {
  if (const int error = make_private_file(temporary_ + "/" + name, bytes, mode, durable_);
      error != 0) {
    unwritable(path_ + "/" + name, error);
  }
}

void NewFolder::publish() {
  if (durable_) {
    synchronize_folder(temporary_);
  }
  if (const int error = move_to_free_name(temporary_, path_); error == EEXIST) {
    taken(path_);
  } else if (error != 0) {
    unwritable(path_, error);
  }
  published_ = true;
  if (durable_) {
    synchronize_folder(fs::path(path_).parent_path().string());
  }
}

void replace_file(const std::string& path, std::string_view bytes, mode_t mode) {
  const std::string temporary = temporary_name(path);
  int error = make_private_file(temporary, bytes, mode, true);
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) {
    unlink(temporary.c_str());
    unwritable(path, error);
  }
  synchronize_folder(fs::path(path).parent_path().string());
}

}  // namespace stagecraft::security
