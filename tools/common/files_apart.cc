#include "stagecraft/tools/common/files_apart.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/output_place.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

/// Returns where a write to `path` ends: follows links, also to a file that does not exist yet.
fs::path end_of_links(const std::string& path) {
  std::error_code ignored;
  try {
    return fs::weakly_canonical(fs::absolute(output_place(path).path), ignored);
  } catch (const Error&) {  // not writable, so at most a file to read
    return fs::weakly_canonical(fs::absolute(path), ignored);
  }
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored) || end_of_links(a) == end_of_links(b);
}

/// Returns whether standard output goes to the file at `path`.
bool is_standard_output(const std::string& path) {
  struct stat out {};
  struct stat file {};
  return fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode) &&
         stat(path.c_str(), &file) == 0 && out.st_dev == file.st_dev && out.st_ino == file.st_ino;
}

bool is_file(const NamedFile& named) {
  return !named.second.empty() && named.second != "-";
}

}  // namespace

void check_apart(const NamedFile& output, const std::vector<NamedFile>& others) {
  if (output_place(output.second).is_stream()) {
    return;
  }
  if (is_standard_output(output.second)) {
    throw Error(Errc::UsageFile,
                fmt::format("{} names '{}', to which standard output goes; name another",
                            output.first,
                            output.second));
  }
  for (const auto& [option, path] : others) {
    if (same_file(output.second, path)) {
      throw Error(Errc::UsageFile,
                  fmt::format("{} and {} name one file, '{}', which would be lost; name another",
                              output.first,
                              option,
                              path));
    }
  }
}

void check_all_apart(std::vector<NamedFile> inputs, const std::vector<NamedFile>& outputs) {
  std::erase_if(inputs, [](const NamedFile& input) { return !is_file(input); });
  for (const NamedFile& output : outputs) {
    if (is_file(output)) {
      check_apart(output, inputs);
      inputs.push_back(output);
    }
  }
}

}  // namespace stagecraft::tools
