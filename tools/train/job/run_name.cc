#include "stagecraft/tools/train/job/run_name.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/actors/watch/watch_access.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/files/whole_file.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kDigits = 32;

}  // namespace

std::string run_name_in(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder) / "run-name";
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  std::string name(kDigits, '\0');
  std::ifstream file(path, std::ios::binary);
  if (file.read(name.data(), kDigits)) {
    return name;
  }
  if (std::filesystem::exists(path, failure)) {
    throw Error(Errc::UsageFile,
                fmt::format("'{}' is not the name of a run: remove it, and begin without --attach "
                            "to the workers of before",
                            path.string()));
  }
  name = make_token();
  WholeFile made(path.string());
  made.write(name);
  made.publish();
  return name;
}

}  // namespace stagecraft::tools
