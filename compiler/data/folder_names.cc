#include "stagecraft/compiler/data/folder_names.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

namespace fs = std::filesystem;

std::vector<std::string> names_in_folder(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    std::string name = entry->path().filename().string();
    std::error_code unknown;
    if (!name.starts_with('.') && !entry->is_directory(unknown)) {
      names.push_back(std::move(name));
    }
  }
  if (failure) {
    throw Error(Errc::UsageFile,
                failure == std::errc::no_such_file_or_directory
                    ? fmt::format("{}: expected a folder of data, found none", folder)
                    : fmt::format("{}: expected a folder of data; {}", folder, failure.message()));
  }
  std::ranges::sort(names);
  return names;
}

std::string text_of_names(const std::vector<std::string>& names) {
  return names.size() == 1 ? names.front()
                           : fmt::format("{} and {} more", names.front(), names.size() - 1);
}

}  // namespace stagecraft
