#include "stagecraft/tools/schedule/input/named_schedule.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"

namespace stagecraft::tools {

const BuilderInfo* builder_named(const std::string& name) {
  const auto all = builders();
  const auto found = std::ranges::find(all, name, &BuilderInfo::name);
  return found == all.end() ? nullptr : &*found;
}

void require_schedule_file(const std::string& command,
                           const std::string& option,
                           const std::string& word) {
  std::error_code ignored;
  if (word == "-" || std::filesystem::exists(word, ignored)) {
    return;
  }
  std::vector<std::string> names;
  for (const BuilderInfo& builder : builders()) {
    names.emplace_back(builder.name);
  }
  const bool looks_like_a_name = word.find_first_of("/.") == std::string::npos;
  throw Error(
      looks_like_a_name ? Errc::UsageArgument : Errc::UsageFile,
      fmt::format("{} expects a readable schedule file or one of {}, found '{}'; {}see {} --help",
                  option,
                  fmt::join(names, ", "),
                  word,
                  did_you_mean(word, names),
                  command));
}

}  // namespace stagecraft::tools
