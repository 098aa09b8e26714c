#include "stagecraft/base/files/output_place.h"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <linux/magic.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as many as Linux follows

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(Errc::UsageFile,
              fmt::format("'{}' cannot be written: {}; name another place", path, why));
}

fs::path folder_of(const fs::path& path) {
  const fs::path folder = path.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

/// Returns whether the link is one of /proc, which names an open file: its text is not a path.
bool is_descriptor(const fs::path& link) {
  struct statfs system {};
  return statfs(folder_of(link).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

OutputPlace::Kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) {
    return OutputPlace::Kind::File;
  }
  if (S_ISDIR(mode)) {
    return OutputPlace::Kind::Folder;
  }
  if (S_ISFIFO(mode)) {
    return OutputPlace::Kind::Pipe;
  }
  return S_ISSOCK(mode) ? OutputPlace::Kind::Socket : OutputPlace::Kind::Device;
}

}  // namespace

std::string_view to_string(OutputPlace::Kind kind) {
  switch (kind) {
    case OutputPlace::Kind::Absent:
      return "nothing";
    case OutputPlace::Kind::File:
      return "a file";
    case OutputPlace::Kind::Folder:
      return "a directory";
    case OutputPlace::Kind::Pipe:
      return "a pipe";
    case OutputPlace::Kind::Device:
      return "a device";
    case OutputPlace::Kind::Socket:
      return "a socket";
    case OutputPlace::Kind::Descriptor:
      return "an open descriptor";
  }
  return "";
}

std::string OutputPlace::folder() const {
  return folder_of(path).string();
}

OutputPlace output_place(const std::string& path) {
  if (path.empty()) {
    refuse(path, "the name is empty");
  }
  fs::path place = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    struct stat found {};
    if (lstat(place.c_str(), &found) != 0) {
      const int error = errno;
      std::error_code ignored;
      if (error == ENOENT && fs::is_directory(folder_of(place), ignored)) {
        return {OutputPlace::Kind::Absent, place.string()};
      }
      const std::string why = std::generic_category().message(error);
      refuse(path,
             error == ENOENT ? fmt::format("{} (no folder '{}')", why, folder_of(place).string())
                             : why);
    }
    if (!S_ISLNK(found.st_mode)) {
      return {kind_of(found.st_mode), place.string()};
    }
    if (is_descriptor(place)) {
      return {OutputPlace::Kind::Descriptor, place.string()};
    }
    std::error_code fault;
    const fs::path target = fs::read_symlink(place, fault);
    if (fault) {
      refuse(path, fault.message());
    }
    place = folder_of(place) / target;  // an absolute target replaces the folder
  }
  refuse(path, std::generic_category().message(ELOOP));
}

}  // namespace stagecraft
