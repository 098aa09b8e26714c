/// SealedFile: a file that appears whole, closed by the SHA-256 of its bytes, or not at all.
///
/// It is written beside its place and moved there last; given up before that, it leaves nothing
/// behind. Thread: the writer's.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "stagecraft/actors/sha256.h"

namespace stagecraft {

class SealedFile {
 public:
  /// Errors of all members: UsageFile, with the reason of the system.
  explicit SealedFile(const std::string& place);
  ~SealedFile();
  SealedFile(const SealedFile&) = delete;
  SealedFile& operator=(const SealedFile&) = delete;

  void add(std::span<const char> bytes);
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Appends the checksum, has the disk keep it all, and gives the file its name.
  void seal();

 private:
  void write_all(std::span<const char> bytes);
  void synchronize_folder() const;

  const std::string place_, path_;
  int fd_ = -1;
  std::size_t size_ = 0;
  Sha256 sha_;
  bool sealed_ = false;
};

}  // namespace stagecraft
