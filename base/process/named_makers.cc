#include "stagecraft/base/process/named_makers.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/process/host_name.h"

namespace stagecraft {

Error unnamed_maker(const NamedKind& kind, const std::string& name, bool has_maker) {
  return {Errc::UsageArgument,
          fmt::format("{} expects a name and a maker of the {}, found {} for \"{}\"",
                      kind.adds_by,
                      kind.name,
                      has_maker ? "a maker" : "no maker",
                      name)};
}

Error name_taken(const NamedKind& kind, const std::string& name) {
  return {Errc::UsageArgument,
          fmt::format("a {} \"{}\" is registered already: give this one another name, or register "
                      "it once",
                      kind.name,
                      name)};
}

Error name_unknown(const NamedKind& kind,
                   const std::string& name,
                   const std::vector<std::string>& known) {
  std::string list;
  for (const std::string& other : known) {
    list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", other);
  }
  std::error_code ignored;
  return {Errc::UsageArgument,
          fmt::format("no {} \"{}\" is registered in the program of this rank, {} on {}, which has "
                      "{}; call sc::{} in its main, before sc::worker_main, and name that program "
                      "as the worker's",
                      kind.name,
                      name,
                      std::filesystem::read_symlink("/proc/self/exe", ignored).string(),
                      host_name(),
                      list.empty() ? "none" : list,
                      kind.adds_by)};
}

}  // namespace stagecraft
