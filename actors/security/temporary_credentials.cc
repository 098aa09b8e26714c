#include "stagecraft/actors/security/temporary_credentials.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

std::vector<std::string> places() {
  std::vector<std::string> found;
  for (const char* const variable : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* const place = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): only read
    if (place != nullptr && place[0] == '/') {
      found.emplace_back(place);
    }
  }
  found.emplace_back("/tmp");
  return found;
}

std::string make_in(const std::string& place, const CredentialsRequest& request) {
  std::random_device random;
  const std::string dir = fmt::format("{}/stagecraft-{:08x}{:08x}", place, random(), random());
  make_credentials(dir, request);
  return dir;
}

}  // namespace

TemporaryCredentials::TemporaryCredentials(int members) {
  const CredentialsRequest request{
      .members = members, .valid_for = std::chrono::hours(24), .durable = false};
  const std::vector<std::string> all = places();
  for (std::size_t i = 0; dir_.empty(); ++i) {
    try {
      dir_ = make_in(all[i], request);
    } catch (const Error& error) {
      if (error.code() != Errc::UsageFile || i + 1 == all.size()) {
        throw;
      }
    }
  }
}

TemporaryCredentials::~TemporaryCredentials() {
  if (home_.is_here()) {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }
}

}  // namespace stagecraft
