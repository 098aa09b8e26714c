#include "stagecraft/actors/sealed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

[[noreturn]] void throw_unwritable(const std::string& path) {
  throw Error(
      Errc::UsageFile,
      fmt::format(
          "{} cannot be written: {}; give another path or make room", path, std::strerror(errno)));
}

}  // namespace

SealedFile::SealedFile(const std::string& place)
    : place_(place), path_(fmt::format("{}.{}.part", place, getpid())) {
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    throw_unwritable(place_);
  }
}

SealedFile::~SealedFile() {
  if (fd_ >= 0) {
    close(fd_);
  }
  if (!sealed_) {
    unlink(path_.c_str());
  }
}

void SealedFile::add(std::span<const char> bytes) {
  sha_.add(bytes);
  write_all(bytes);
  size_ += bytes.size();
}

void SealedFile::seal() {
  const Sha256::Digest digest = sha_.finish();
  write_all({reinterpret_cast<const char*>(digest.data()), digest.size()});
  if (fsync(fd_) != 0 || close(std::exchange(fd_, -1)) != 0 ||
      std::rename(path_.c_str(), place_.c_str()) != 0) {
    throw_unwritable(place_);
  }
  sealed_ = true;
  synchronize_folder();
}

void SealedFile::write_all(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) {
      throw_unwritable(place_);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
}

/// So that the new name survives a power cut too; not every file system can.
void SealedFile::synchronize_folder() const {
  const std::string folder = std::filesystem::absolute(place_).parent_path().string();
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    fsync(fd);
    close(fd);
  }
}

}  // namespace stagecraft
