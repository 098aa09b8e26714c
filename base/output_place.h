/// OutputPlace: what stands where a file is to be written, looked at before anything is written.
///
/// Symbolic links are followed to their end, also where nothing is there yet: who writes to `path`
/// leaves every link a link. Nothing is opened or changed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft {

struct OutputPlace {
  enum class Kind : std::uint8_t {
    Absent,  ///< nothing yet, in a folder that is there
    File,    ///< a regular file
    Folder,
    Pipe,
    Device,
    Socket,
    Descriptor,  ///< one that this process has open: /dev/stdout, /dev/fd/3
  };
  Kind kind = Kind::Absent;
  std::string path;  ///< where the links end

  /// The folder in which it stands.
  [[nodiscard]] std::string folder() const;
  /// Whether what stands there can only be written to, not replaced.
  [[nodiscard]] bool is_stream() const {
    return kind == Kind::Pipe || kind == Kind::Device || kind == Kind::Descriptor;
  }
};

/// "a directory", "a pipe", ...
[[nodiscard]] std::string_view to_string(OutputPlace::Kind kind);

/// Errors: UsageFile for no name, a folder that is not there or cannot be searched, and links that
/// lead in a circle.
[[nodiscard]] OutputPlace output_place(const std::string& path);

}  // namespace stagecraft
