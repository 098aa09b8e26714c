#include "stagecraft/actors/security/temporary_credentials.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/actors/security/credentials.h"
#include "stagecraft/actors/security/new_folder.h"
#include "stagecraft/actors/security/small_file.h"
#include "stagecraft/base/check.h"
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

constexpr std::chrono::hours kLongestRun{24 * 365};

MemberIssuer made_for_a_day(const std::string& dir, int members) {
  return {dir,
          {.members = members,
           .valid_for = std::chrono::hours(24),
           .authority_valid_for = kLongestRun,
           .durable = false}};
}

/// Calls `make` with a folder in each of the places until one works. Returns its name.
template <class Make>
std::string make_in_place(const Make& make) {
  std::random_device random;
  const std::vector<std::string> all = places();
  for (std::size_t i = 0;; ++i) {
    try {
      const std::string dir = fmt::format("{}/stagecraft-{:08x}{:08x}", all[i], random(), random());
      make(dir);
      return dir;
    } catch (const Error& error) {
      if (error.code() != Errc::UsageFile || i + 1 == all.size()) {
        throw;
      }
    }
  }
}

constexpr std::string_view kGreeting = "stagecraft-member ";
/// Bounds the text of a member: certificates and keys are some KiB.
constexpr std::size_t kMostBytes = 256 * 1024;
/// The order of a member's files in its text.
constexpr std::array kFiles{
    security::kCertificateFile, security::kKeyFile, security::kAuthorityFile};

[[noreturn]] void throw_no_member() {
  throw Error(Errc::UsageFile,
              "expected a worker's credentials on this descriptor, which a driver sends to a "
              "worker on another host; found something else, or the driver has ended");
}

std::string read_bytes(int descriptor, std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t at = 0; at < count;) {
    const auto got = read(descriptor, bytes.data() + at, count - at);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      throw_no_member();
    }
    at += static_cast<std::size_t>(got);
  }
  return bytes;
}

/// Reads a line "<word>LENGTH", and LENGTH bytes after it.
std::string read_part(int descriptor, std::string_view word) {
  if (read_bytes(descriptor, word.size()) != word) {
    throw_no_member();
  }
  std::size_t length = 0;
  for (std::string digit = read_bytes(descriptor, 1); digit != "\n";
       digit = read_bytes(descriptor, 1)) {
    if (digit[0] < '0' || digit[0] > '9' || length > kMostBytes) {
      throw_no_member();
    }
    length = length * 10 + static_cast<std::size_t>(digit[0] - '0');
  }
  if (length > kMostBytes) {
    throw_no_member();
  }
  return read_bytes(descriptor, length);
}

}  // namespace

TemporaryCredentials::TemporaryCredentials(int members)
    : dir_(make_in_place([&](const std::string& dir) { issuer_ = made_for_a_day(dir, members); })) {
}

TemporaryCredentials::TemporaryCredentials(int members, const std::string& dir) : dir_(dir) {
  std::error_code ignored;  // making the folder reports the fault
  std::filesystem::create_directories(std::filesystem::path(dir).parent_path(), ignored);
  issuer_ = made_for_a_day(dir, members);
}

void TemporaryCredentials::issue(const std::string& member, std::chrono::seconds valid_for) const {
  SC_CHECK(issuer_, "a cluster's credentials issue members, not those of one member");
  issuer_->issue(member, valid_for);
}

std::unique_ptr<TemporaryCredentials> TemporaryCredentials::received(int descriptor) {
  std::array<std::string, kFiles.size()> texts;
  for (std::string& text : texts) {
    text = read_part(descriptor, kGreeting);
  }
  std::unique_ptr<TemporaryCredentials> made(new TemporaryCredentials());
  made->dir_ = make_in_place([&](const std::string& dir) {
    security::NewFolder folder(dir, false);
    for (std::size_t i = 0; i < kFiles.size(); ++i) {
      folder.write(kFiles[i], texts[i], 0600);
    }
    folder.publish();
  });
  return made;
}

TemporaryCredentials::~TemporaryCredentials() {
  if (home_.is_here()) {
    remove();
  }
}

void TemporaryCredentials::remove() const {
  // A second caller waits, since it may end the process next.
  const std::scoped_lock lock(removing_);
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

std::string text_of_member(const std::string& dir) {
  const Credentials files = load_credentials(dir);
  std::string text;
  for (const std::string& file : {files.certificate, files.key, files.authority}) {
    const std::string bytes = security::read_small_file(file).text;
    text += fmt::format("{}{}\n{}", kGreeting, bytes.size(), bytes);
  }
  return text;
}

}  // namespace stagecraft
