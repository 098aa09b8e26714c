#include "stagecraft/tools/schedule/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <ostream>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void unwritable(const std::string& path, int error) {
  throw Error(Errc::UsageFile,
              fmt::format("'{}' cannot be written: {}; name another place",
                          path,
                          std::generic_category().message(error)));
}

/// Returns 0 or the errno of what failed.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return errno;
    }
    text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  return 0;
}

/// Devices and pipes have no place to be renamed to.
void write_in_place(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const int error = file < 0 ? errno : write_all(file, text);
  if (file >= 0) {
    close(file);
  }
  if (error != 0) {
    unwritable(path, error);
  }
}

/// The permissions the file has, or those that a new one would get.
mode_t mode_for(const std::string& place) {
  struct stat existing {};
  if (stat(place.c_str(), &existing) == 0) {
    return existing.st_mode & 07777U;
  }
  const mode_t mask = umask(0);
  umask(mask);
  return 0666U & ~mask;
}

void write_beside_and_rename(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const fs::path real = fs::canonical(path, ignored);  // a link stays a link
  const std::string place = real.empty() ? path : real.string();
  std::string beside = place + ".XXXXXX";
  const int file = mkostemp(beside.data(), O_CLOEXEC);
  if (file < 0) {
    unwritable(path, errno);
  }
  int error = write_all(file, text);
  error = error == 0 && fchmod(file, mode_for(place)) != 0 ? errno : error;
  error = error == 0 && fsync(file) != 0 ? errno : error;
  error = close(file) != 0 && error == 0 ? errno : error;
  if (error == 0 && std::rename(beside.c_str(), place.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) {
    unlink(beside.c_str());
    unwritable(path, error);
  }
}

}  // namespace

void write_output(const std::string& path, std::string_view text, Console& console) {
  if (path.empty() || path == "-") {
    console.out << text << std::flush;
    if (!console.out) {
      throw Error(Errc::UsageFile, "standard output cannot be written; is the disk full?");
    }
    return;
  }
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    write_in_place(path, text);
  } else {
    write_beside_and_rename(path, text);
  }
}

}  // namespace stagecraft::tools
