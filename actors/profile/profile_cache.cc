#include "stagecraft/actors/profile/profile_cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/scheduler/model/hash.h"

namespace stagecraft {
namespace {

/// Part of every key, so that results of versions that measured something else are not used.
constexpr int kCacheVersion = 5;

std::string usual_folder() {
  const auto value_of = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  // By the XDG base directory specification, only absolute paths count.
  const std::string cache = value_of("XDG_CACHE_HOME");
  const std::string home = value_of("HOME");
  if (cache.starts_with('/')) {
    return cache + "/stagecraft/profiles";
  }
  return home.empty() ? "" : home + "/.cache/stagecraft/profiles";
}

}  // namespace

ProfileCache::ProfileCache(const std::optional<std::string>& folder)
    : folder_(folder ? *folder : usual_folder()) {}

std::string ProfileCache::file_of(const std::string& key) const {
  return fmt::format(
      "{}/{:016x}.json", folder_, fnv1a(fmt::format("version {}\n{}", kCacheVersion, key)));
}

std::optional<Costs> ProfileCache::find(const std::string& key,
                                        const std::function<bool(const Costs&)>& fits) {
  if (folder_.empty()) {
    return std::nullopt;
  }
  const std::string path = file_of(key);
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) {
    return std::nullopt;
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string why = "it is of something else";
  try {
    Costs costs = parse_costs(text).costs;
    if (fits(costs)) {
      return costs;
    }
  } catch (const Error& error) {
    why = error.message();
  }
  notes_.push_back(fmt::format("'{}' cannot be used and is measured again: {}", path, why));
  return std::nullopt;
}

void ProfileCache::keep(const std::string& key, const Costs& costs) const {
  if (folder_.empty()) {
    return;
  }
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  if (failure) {
    throw Error(Errc::UsageFile,
                fmt::format("profiles are kept in '{}', which cannot be made: {}; name another "
                            "folder in XDG_CACHE_HOME",
                            folder_,
                            failure.message()));
  }
  WholeFile file(file_of(key));
  file.write(to_json(costs));
  file.publish();
}

}  // namespace stagecraft
