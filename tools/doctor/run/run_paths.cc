#include "stagecraft/tools/doctor/run/run_paths.h"

#include <system_error>

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

bool is_same_folder(const fs::path& one, const fs::path& other) {
  std::error_code failed;
  return one == other || (fs::equivalent(one, other, failed) && !failed);
}

}  // namespace

RunPaths::RunPaths(const std::string& folder,
                   const std::string& before,
                   const std::string& directory)
    : here_(fs::absolute(folder).lexically_normal()),
      directory_(directory),
      before_(before.empty() || is_same_folder(before, here_) ? "" : before) {}

std::string RunPaths::now(const std::string& path) const {
  if (path.empty()) {
    return "";
  }
  const fs::path then = (directory_ / path).lexically_normal();
  const fs::path inside = before_.empty() ? fs::path() : then.lexically_relative(before_);
  if (inside.empty() || *inside.begin() == "..") {
    return then.string();
  }
  return inside == "." ? here_.string() : (here_ / inside).string();
}

}  // namespace stagecraft::tools
