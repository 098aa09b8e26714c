/// A small file read once, with what the system says about it: who may read and write it is as much
/// a part of a credential as its bytes.
#pragma once

#include <sys/types.h>

#include <string>

namespace stagecraft::security {

struct SmallFile {
  std::string text;
  mode_t mode = 0;  ///< permissions alone, e.g. 0600
  uid_t owner = 0;
};

/// Returns the file at `path`; links are followed. A private key's `text` belongs into a
/// SecretText.
/// Errors: UsageFile when nothing is there, it is no regular file, may not be read, or is larger
/// than any certificate.
[[nodiscard]] SmallFile read_small_file(const std::string& path);

struct Folder {
  mode_t mode = 0;  ///< permissions and the sticky bit
  uid_t owner = 0;
};

/// Errors: UsageFile when nothing is there, it is no folder, or may not be entered.
[[nodiscard]] Folder find_folder(const std::string& path);

/// `path` without slashes at its end.
[[nodiscard]] std::string without_slashes(std::string path);

/// Whether something, a dangling link included, has this name.
[[nodiscard]] bool exists(const std::string& path);

/// "0644"
[[nodiscard]] std::string mode_text(mode_t mode);

}  // namespace stagecraft::security
