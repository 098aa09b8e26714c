#include "stagecraft/actors/data/local_source.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/process/host_name.h"

namespace stagecraft {
namespace {

/// The sources that this program has registered. The mutex guards the map: ranks that are threads
/// look up sources at the same time.
struct Registry {
  std::mutex mutex;
  std::map<std::string, SourceMaker> makers;
};

Registry& registry() {
  static Registry all;
  return all;
}

std::string this_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

Error unknown(const std::string& name, const std::map<std::string, SourceMaker>& known) {
  std::vector<std::string> names;
  for (const auto& [other, maker] : known) {
    names.push_back('"' + other + '"');
  }
  return {Errc::UsageArgument,
          fmt::format("no source \"{}\" is registered in the program of this rank, {} on {}, "
                      "which has {}; call sc::register_source in its main, before "
                      "sc::worker_main, and name that program as the worker's",
                      name,
                      this_program(),
                      host_name(),
                      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))};
}

}  // namespace

void register_source(const std::string& name, SourceMaker make) {
  if (name.empty() || make == nullptr) {
    throw Error(Errc::UsageArgument,
                fmt::format("register_source expects a name and a maker of the source, found {} "
                            "for \"{}\"",
                            make == nullptr ? "no maker" : "a maker",
                            name));
  }
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  if (!all.makers.emplace(name, std::move(make)).second) {
    throw Error(Errc::UsageArgument,
                fmt::format("a source \"{}\" is registered already: give this one another name, "
                            "or register it once",
                            name));
  }
}

std::unique_ptr<StepSource> make_source(const std::string& name, const std::string& argument) {
  SourceMaker make;
  {
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    const auto found = all.makers.find(name);
    if (found == all.makers.end()) {
      throw unknown(name, all.makers);
    }
    make = found->second;
  }
  std::unique_ptr<StepSource> source = make(argument);
  if (source == nullptr) {
    throw Error(Errc::UsageArgument, "its registered maker returned no source");
  }
  return source;
}

}  // namespace stagecraft
