#include "stagecraft/tools/common/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/output_place.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/base/files/write_all.h"

namespace stagecraft::tools {
namespace {

/// Appends: the file of a descriptor may have other writers as well.
void write_in_place(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  int error = file < 0 ? errno : write_all(file, text);
  if (file >= 0 && close(file) != 0 && error == 0) {
    error = errno;
  }
  if (error != 0) {
    throw Error(Errc::UsageFile,
                fmt::format("'{}' cannot be written: {}; name another place",
                            path,
                            std::generic_category().message(error)));
  }
}

}  // namespace

void write_output(const std::string& path, std::string_view text, Console& console) {
  if (path.empty() || path == "-") {
    print(text, console);
  } else if (output_place(path).is_stream()) {
    write_in_place(path, text);
  } else {
    WholeFile file(path);
    file.write(text);
    file.publish();
  }
}

}  // namespace stagecraft::tools
