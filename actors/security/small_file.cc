#include "stagecraft/actors/security/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"

namespace stagecraft::security {
namespace {

constexpr std::size_t kLargest = std::size_t{64} << 10U;

[[noreturn]] void unusable_file(const std::string& message) {
  throw Error(Errc::UsageFile, message);
}

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void absent(const std::string& path, int error) {
  if (error == ENOENT && exists(path)) {
    unusable_file(fmt::format("'{}' is a link to nothing; correct or remove it", path));
  }
  if (error == ENOENT) {
    unusable_file(fmt::format(
        "'{}' is missing; a process needs ca.pem, certificate.pem and key.pem: copy its "
        "whole folder from where stagecraft credentials made it",
        path));
  }
  unusable_file(
      fmt::format("'{}' cannot be read: {}; allow the user of this process to read it, and "
                  "nobody else",
                  path,
                  reason_of(error)));
}

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) {
    return "a folder";
  }
  if (S_ISFIFO(mode)) {
    return "a pipe";
  }
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

/// Checks the type before the file is opened: opening a pipe or a device has effects.
void check_kind(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    absent(path, errno);
  }
  if (!S_ISREG(found.st_mode)) {
    unusable_file(fmt::format("expected a file at '{}', found {}; put the file in its place",
                              path,
                              kind_of(found.st_mode)));
  }
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

SmallFile read_small_file(const std::string& path) {
  check_kind(path);
  const int opened = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) {
    absent(path, errno);
  }
  const Descriptor file(opened);
  struct stat found {};
  fstat(opened, &found);
  SmallFile result{std::string(kLargest + 1, '\0'), found.st_mode & 07777U, found.st_uid};
  std::size_t size = 0;
  for (ssize_t count = 1; count != 0 && size < result.text.size();) {
    count = read(opened, result.text.data() + size, result.text.size() - size);
    if (count < 0 && errno != EINTR) {
      absent(path, errno);
    }
    size += static_cast<std::size_t>(count > 0 ? count : 0);
  }
  if (size > kLargest) {
    unusable_file(
        fmt::format("'{}' has more than {}, so it is neither a certificate nor a key; put "
                    "the right file in its place",
                    path,
                    bytes_text(static_cast<double>(kLargest))));
  }
  result.text.resize(size);
  return result;
}

Folder find_folder(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) {
      unusable_file(
          fmt::format("there is no folder '{}'; name the folder of a process's credentials, or "
                      "make a cluster's with stagecraft credentials make DIR",
                      path));
    }
    absent(path, errno);
  }
  if (!S_ISDIR(found.st_mode)) {
    unusable_file(
        fmt::format("'{}' is {}, expected the folder with ca.pem, certificate.pem and "
                    "key.pem; name the folder",
                    path,
                    S_ISREG(found.st_mode) ? "a file" : kind_of(found.st_mode)));
  }
  if (faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) {
    absent(path, errno);
  }
  return {found.st_mode & 07777U, found.st_uid};
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) {
    path.pop_back();
  }
  return path;
}

bool exists(const std::string& path) {
  struct stat found {};
  return lstat(path.c_str(), &found) == 0;
}

std::string mode_text(mode_t mode) {
  return fmt::format("{:04o}", mode);
}

}  // namespace stagecraft::security
