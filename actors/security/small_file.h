/// small_file reads a small file once, with its owner and mode: the permissions are as much a part
/// of a credential as its bytes.
#pragma once

#include <sys/types.h>

#include <string>

namespace stagecraft::security {

struct SmallFile {
  std::string text;
  mode_t mode = 0;  ///< permissions alone, e.g. 0600
  uid_t owner = 0;
};

/// Returns the file at `path`; follows links. Put a private key's `text` into a SecretText.
/// Errors: UsageFile if there is nothing, or if it is no regular file, may not be read, or is
///         larger than any certificate.
[[nodiscard]] SmallFile read_small_file(const std::string& path);

struct Folder {
  mode_t mode = 0;  ///< permissions and the sticky bit
  uid_t owner = 0;
};

/// Returns the folder. Errors: UsageFile if there is nothing, or if it is no folder, or may not be
/// entered.
[[nodiscard]] Folder find_folder(const std::string& path);

/// Returns `path` without slashes at its end.
[[nodiscard]] std::string without_slashes(std::string path);

/// Returns whether something has this name, a dangling link included.
[[nodiscard]] bool exists(const std::string& path);

/// Returns "0644".
[[nodiscard]] std::string mode_text(mode_t mode);

}  // namespace stagecraft::security
