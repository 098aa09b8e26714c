/// OutputPlace describes the path of a file to write, before anything is written: what is there,
/// and where its links end.
///
/// It follows symbolic links to their end, even if nothing is there yet, so that a writer to `path`
/// leaves every link a link. It opens and changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft {

struct OutputPlace {
  enum class Kind : std::uint8_t {
    Absent,  ///< nothing yet, in a folder that exists
    File,    ///< a regular file
    Folder,
    Pipe,
    Device,
    Socket,
    Descriptor,  ///< an open descriptor of this process: /dev/stdout, /dev/fd/3
  };
  Kind kind = Kind::Absent;
  std::string path;  ///< the end of the links

  /// Returns the folder of `path`.
  [[nodiscard]] std::string folder() const;
  /// Returns whether the place can only be written to, not replaced.
  [[nodiscard]] bool is_stream() const {
    return kind == Kind::Pipe || kind == Kind::Device || kind == Kind::Descriptor;
  }
};

/// Returns "a directory", "a pipe", ...
[[nodiscard]] std::string_view to_string(OutputPlace::Kind kind);

/// Returns the place at the end of the path's links. Errors: UsageFile for an empty name, for a
/// folder that does not exist or cannot be searched, and for links in a circle.
[[nodiscard]] OutputPlace output_place(const std::string& path);

}  // namespace stagecraft
