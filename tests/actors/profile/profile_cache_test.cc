#include "stagecraft/actors/profile/profile_cache.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

using Catch::Matchers::ContainsSubstring;
using tests::EnvironmentVariable;
using tests::TemporaryFolder;

Costs measured_costs() {
  Costs costs;
  costs.stages.usual.forward = 0.25;
  costs.links.usual = {.latency = 0.5, .bandwidth = 1e9};
  return costs;
}

bool any_costs(const Costs&) {
  return true;
}

/// Returns the one file of the folder.
std::string only_file(const std::string& folder) {
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    CHECK(found.empty());
    found = entry.path().string();
  }
  return found;
}

TEST_CASE("costs are found by the key under which they were kept", "[profile][cache]") {
  const TemporaryFolder folder;
  ProfileCache cache(folder.path() + "/made/when/needed");
  CHECK_FALSE(cache.find("a model", any_costs));
  cache.keep("a model", measured_costs());
  CHECK(cache.find("a model", any_costs) == measured_costs());
  CHECK_FALSE(cache.find("another model", any_costs));
  CHECK(ProfileCache(folder.path() + "/made/when/needed").find("a model", any_costs));
  CHECK(cache.take_notes().empty());
}

TEST_CASE("a file that is broken or of something else counts as none, with a note",
          "[profile][cache][bad-input]") {
  const TemporaryFolder folder;
  ProfileCache cache(folder.path());
  cache.keep("a model", measured_costs());
  const std::string path = only_file(folder.path());
  CHECK_FALSE(cache.find("a model", [](const Costs&) { return false; }));
  std::ofstream(path, std::ios::trunc) << "{\"stages\": ";
  CHECK_FALSE(cache.find("a model", any_costs));
  std::ofstream(path, std::ios::trunc) << "";
  CHECK_FALSE(cache.find("a model", any_costs));
  const std::vector<std::string> notes = cache.take_notes();
  REQUIRE(notes.size() == 3);
  CHECK(notes[0] == "'" + path + "' cannot be used and is measured again: it is of something else");
  CHECK_THAT(notes[1], ContainsSubstring(path) && ContainsSubstring("is measured again"));
  CHECK(cache.take_notes().empty());
  cache.keep("a model", measured_costs());
  CHECK(cache.find("a model", any_costs));
}

TEST_CASE("the usual folder is the user's, and nothing is kept without one", "[profile][cache]") {
  const TemporaryFolder folder;
  const EnvironmentVariable home("HOME", folder.path());
  SECTION("below XDG_CACHE_HOME") {
    const EnvironmentVariable cache("XDG_CACHE_HOME", folder.path() + "/cache");
    ProfileCache(std::nullopt).keep("a model", measured_costs());
    CHECK_FALSE(only_file(folder.path() + "/cache/stagecraft/profiles").empty());
  }
  SECTION("below the home, if XDG_CACHE_HOME is no absolute path") {
    const EnvironmentVariable cache("XDG_CACHE_HOME", "cache");
    ProfileCache(std::nullopt).keep("a model", measured_costs());
    CHECK_FALSE(only_file(folder.path() + "/.cache/stagecraft/profiles").empty());
  }
  SECTION("nowhere without a home") {
    const EnvironmentVariable cache("XDG_CACHE_HOME", ""), none("HOME", "");
    ProfileCache nothing(std::nullopt);
    CHECK_NOTHROW(nothing.keep("a model", measured_costs()));
    CHECK_FALSE(nothing.find("a model", any_costs));
  }
  SECTION("nor in a folder without a name") {
    ProfileCache nothing("");
    CHECK_NOTHROW(nothing.keep("a model", measured_costs()));
    CHECK_FALSE(nothing.find("a model", any_costs));
  }
}

TEST_CASE("a folder that cannot be made is refused with what to do",
          "[profile][cache][bad-input]") {
  const TemporaryFolder folder;
  const ProfileCache cache(folder.write("file", "") + "/below");
  CHECK_THAT(refusal([&] { cache.keep("a model", measured_costs()); }, Errc::UsageFile),
             ContainsSubstring("name another folder in XDG_CACHE_HOME"));
}

}  // namespace
}  // namespace stagecraft
