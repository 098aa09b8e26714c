/// Tests making and renewing: the contents of certificates, the modes of files under any umask, and
/// that a failure leaves nothing behind (CC-1, CC-2, NF-1, NF-2, NF-3).

#include "stagecraft/actors/security/cluster_credentials.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "stagecraft/actors/security/credentials.h"
#include "stagecraft/actors/security/credentials_report.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;
using namespace std::chrono_literals;

mode_t mode_of(const std::string& path) {
  struct stat found {};
  REQUIRE(lstat(path.c_str(), &found) == 0);
  return found.st_mode & 07777U;
}

std::set<std::string> names_in(const std::string& dir) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    names.insert(entry.path().lexically_relative(dir).string());
  }
  return names;
}

CredentialsRequest quick(int members) {
  return {.members = members, .durable = false};
}

/// Returns the text of `openssl x509` for a file, from a reader other than the tested one.
std::string openssl_text(const std::string& path) {
  const CommandResult result = run_command({"openssl", "x509", "-in", path, "-noout", "-text"});
  REQUIRE(result.exit_code == 0);
  return result.out;
}

std::string make_refusal(const std::string& dir,
                         const CredentialsRequest& request,
                         Errc expected = Errc::UsageFile) {
  return refusal([&] { make_credentials(dir, request); }, expected);
}

std::string issue_refusal(const std::string& dir,
                          const std::string& member,
                          Errc expected = Errc::UsageFile) {
  return refusal([&] { issue_member(dir, member, 1h); }, expected);
}

struct Umask {
  explicit Umask(mode_t mask) : old(umask(mask)) {}
  ~Umask() { umask(old); }
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;
  mode_t old;
};

/// Limits files of this process to this many bytes, like a full disk.
struct FileLimit {
  explicit FileLimit(rlim_t bytes) {
    handler = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    rlimit now = old;
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  rlimit old{};
  sighandler_t handler;
};

}  // namespace

TEST_CASE("a cluster has an authority, and a complete folder for each member", "[security]") {
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  make_credentials(dir + "/", {.members = 2, .valid_for = 48h, .cluster = "north"});
  std::set<std::string> expected{"ca.pem", "ca-key.pem"};
  for (const std::string member : {"driver", "worker-0", "worker-1"}) {
    expected.insert({member, member + "/ca.pem", member + "/certificate.pem", member + "/key.pem"});
    CHECK_NOTHROW(load_credentials(dir + "/" + member));
    CHECK(read_text_file(dir + "/" + member + "/ca.pem") == read_text_file(dir + "/ca.pem"));
  }
  CHECK(names_in(dir) == expected);
  CHECK(names_in(folder.path()).size() == expected.size() + 1);

  const std::string member = openssl_text(dir + "/worker-1/certificate.pem");
  for (const char* const part : {"Issuer: O = north, CN = authority",
                                 "Subject: O = north, CN = worker-1",
                                 "ASN1 OID: prime256v1",
                                 "ecdsa-with-SHA256",
                                 "CA:FALSE",
                                 "Digital Signature\n",
                                 "                TLS Web Client Authentication\n",
                                 "                URI:stagecraft://north/worker/worker-1\n"}) {
    CHECK_THAT(member, ContainsSubstring(part));
  }
  const std::string driver = openssl_text(dir + "/driver/certificate.pem");
  CHECK_THAT(driver,
             ContainsSubstring("                TLS Web Server Authentication\n") &&
                 ContainsSubstring("                URI:stagecraft://north/driver\n"));
  const std::string authority = openssl_text(dir + "/ca.pem");
  CHECK_THAT(authority, ContainsSubstring("CA:TRUE, pathlen:0"));
  CHECK_THAT(authority, ContainsSubstring("URI:stagecraft://north/authority\n"));
  CHECK_THAT(authority, ContainsSubstring("critical\n                Certificate Sign\n"));

  const security::CredentialsReport report = security::inspect_credentials(dir);
  CHECK(report.good());
  CHECK(report.authority->cluster == "north");
  REQUIRE(report.members.size() == 3);
  std::set<std::string> serials{report.authority->serial};
  for (const security::MemberReport& found : report.members) {
    serials.insert(found.certificate->serial);
    CHECK(found.certificate->valid_until - found.certificate->valid_from == 48h + 5min);
    CHECK_THAT(found.certificate->fingerprint, Matches("([0-9A-F]{2}:){31}[0-9A-F]{2}"));
  }
  CHECK(serials.size() == 4);
  std::size_t longest = 0;
  for (const std::string& serial : serials) {
    longest = std::max(longest, serial.size());
  }
  CHECK(longest >= 30);  // of 32 digits; four short ones do not happen
}

TEST_CASE("a certificate has the role of its name, also after a renewal (HR-1)", "[security]") {
  using security::Role;
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  make_credentials(dir, quick(1));
  for (const char* const member : {"driver", "worker-0", "authority", "node-b"}) {
    issue_member(dir, member, 1h);
  }
  const security::CredentialsReport report = security::inspect_credentials(dir);
  CHECK(report.good());
  CHECK(report.authority->role == Role::Authority);
  REQUIRE(report.members.size() == 4);
  for (const security::MemberReport& member : report.members) {
    CAPTURE(member.name);
    CHECK(member.certificate->role == (member.name == "driver" ? Role::Driver : Role::Worker));
  }
}

TEST_CASE("only the name of a worker with a number has one", "[security]") {
  CHECK(worker_number(worker_name(0)) == 0);
  CHECK(worker_number("worker-12") == 12);
  for (const char* const name :
       {"driver", "", "worker-", "worker--1", "worker-03", "worker-3b", "worker-99999999999"}) {
    CAPTURE(name);
    CHECK_FALSE(worker_number(name));
  }
}

TEST_CASE("modes do not follow the umask (NF-3)", "[security]") {
  const mode_t mask = GENERATE(mode_t{0}, mode_t{0022}, mode_t{0777});
  CAPTURE(mask);
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  {
    const Umask umask(mask);
    make_credentials(dir, quick(1));
    issue_member(dir, "driver", 1h);
    issue_member(dir, "worker-1", 1h);
  }
  CHECK(mode_of(dir) == 0700);
  CHECK(mode_of(dir + "/ca-key.pem") == 0600);
  CHECK(mode_of(dir + "/ca.pem") == 0644);
  for (const char* const member : {"/driver", "/worker-0", "/worker-1"}) {
    CHECK(mode_of(dir + member) == 0700);
    CHECK(mode_of(dir + member + "/key.pem") == 0600);
    CHECK(mode_of(dir + member + "/certificate.pem") == 0644);
    CHECK(mode_of(dir + member + "/ca.pem") == 0644);
  }
}

TEST_CASE("an existing folder is never overwritten (NF-1)", "[security]") {
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  make_credentials(dir, quick(1));
  const std::string key = read_text_file(dir + "/ca-key.pem");
  CHECK_THAT(make_refusal(dir, quick(1)),
             ContainsSubstring("cluster' exists, and credentials") &&
                 ContainsSubstring("stagecraft credentials show") &&
                 ContainsSubstring("stagecraft credentials renew"));
  CHECK(read_text_file(dir + "/ca-key.pem") == key);
  (void)folder.write("file", "x");
  fs::create_directory(folder.path() + "/empty");
  fs::create_symlink("nowhere", folder.path() + "/link");
  for (const char* const name : {"/file", "/empty", "/empty/", "/link"}) {
    CHECK_THAT(make_refusal(folder.path() + name, quick(1)),
               ContainsSubstring("exists, and credentials are never overwritten"));
  }
  CHECK(fs::is_empty(folder.path() + "/empty"));
}

TEST_CASE("a failure leaves nothing half-made (NF-2)", "[security]") {
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  CHECK_THAT(make_refusal(folder.path() + "/no/cluster", quick(1)),
             ContainsSubstring("its parent folder does not exist"));
  CHECK_THAT(make_refusal(folder.write("file", "x") + "/cluster", quick(1)),
             ContainsSubstring("cannot be written: Not a directory"));
  // The limit is reached in the first file, in one of the last, and after all were written.
  for (const rlim_t bytes : {0, 100, 260}) {
    CAPTURE(bytes);
    std::string message;
    {
      const FileLimit limit(bytes);
      message = make_refusal(dir, quick(2));
    }
    CHECK_THAT(message, ContainsSubstring("cannot be written: File too large"));
    CHECK(names_in(folder.path()) == std::set<std::string>{"file"});
  }

  make_credentials(dir, quick(1));
  const auto before = names_in(folder.path());
  const std::string certificate = read_text_file(dir + "/worker-0/certificate.pem");
  for (const char* const member : {"worker-0", "worker-1"}) {
    std::string message;
    {
      const FileLimit limit(100);
      message = issue_refusal(dir, member);
    }
    CHECK_THAT(message, ContainsSubstring("cannot be written: File too large"));
  }
  CHECK(names_in(folder.path()) == before);
  CHECK(read_text_file(dir + "/worker-0/certificate.pem") == certificate);
}

TEST_CASE("requests out of range are refused", "[security]") {
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  const auto told = [&](const CredentialsRequest& request) {
    return make_refusal(dir, request, Errc::UsageArgument);
  };
  CHECK_THAT(told(quick(0)), ContainsSubstring("1 to 65536 workers, found 0"));
  CHECK_THAT(told(quick(65537)), ContainsSubstring("found 65537"));
  CHECK_THAT(told({.valid_for = 0s}),
             ContainsSubstring("valid for 1 second to 100 years, found 0"));
  CHECK_THAT(told({.valid_for = std::chrono::seconds::max()}), ContainsSubstring("100 years"));
  for (const std::string name : {"a b", "../x", "-x", ".x", "a/b", "ü", "a\n"}) {
    CHECK_THAT(told({.cluster = name}), ContainsSubstring("found '" + name + "'"));
  }
  CHECK_THAT(told({.cluster = std::string(65, 'x')}), ContainsSubstring("1 to 64 letters"));
  CHECK_THAT(make_refusal("", quick(1), Errc::UsageArgument), ContainsSubstring("an empty one"));
  CHECK(names_in(folder.path()).empty());

  make_credentials(dir, {.members = 1, .cluster = std::string(64, 'x'), .durable = false});
  for (const std::string name : {"", ".", "..", "../driver", "worker-0/", "worker 1"}) {
    CHECK_THAT(issue_refusal(dir, name, Errc::UsageArgument),
               ContainsSubstring("name of a process"));
  }
}

TEST_CASE("a renewed member keeps its key, a new one gets its own (CC-2)", "[security]") {
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  make_credentials(dir, quick(1));
  const std::string key = read_text_file(dir + "/worker-0/key.pem");
  const std::string certificate = read_text_file(dir + "/worker-0/certificate.pem");
  issue_member(dir, "worker-0", 1h);
  CHECK(read_text_file(dir + "/worker-0/key.pem") == key);
  CHECK(read_text_file(dir + "/worker-0/certificate.pem") != certificate);
  CHECK_NOTHROW(load_credentials(dir + "/worker-0"));

  fs::remove_all(dir + "/worker-0");
  issue_member(dir + "/", "worker-0", 1h);
  CHECK(read_text_file(dir + "/worker-0/key.pem") != key);
  CHECK_NOTHROW(load_credentials(dir + "/worker-0"));

  // No certificate outlives its authority.
  issue_member(dir, "driver", 24h * 5000);
  const security::CredentialsReport report = security::inspect_credentials(dir);
  CHECK(report.members.at(0).name == "driver");
  CHECK(report.members.at(0).certificate->valid_until == report.authority->valid_until);
}

TEST_CASE("an incomplete authority issues nothing", "[security]") {
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster", other = folder.path() + "/other";
  make_credentials(dir, quick(1));
  make_credentials(other, quick(1));
  CHECK_THAT(issue_refusal(folder.path() + "/none", "driver"),
             ContainsSubstring("there is no folder"));
  CHECK_THAT(issue_refusal(dir + "/driver", "x"),
             ContainsSubstring("driver/ca-key.pem' does not exist, and no certificate"));

  chmod((dir + "/ca-key.pem").c_str(), 0644);
  CHECK_THAT(issue_refusal(dir, "driver"),
             ContainsSubstring("can read or write '") && ContainsSubstring("ca-key.pem' (mode"));
  fs::copy_file(other + "/ca-key.pem", dir + "/ca-key.pem", fs::copy_options::overwrite_existing);
  chmod((dir + "/ca-key.pem").c_str(), 0600);
  CHECK_THAT(issue_refusal(dir, "driver"), ContainsSubstring("ca-key.pem' is not the key of '"));

  fs::remove_all(other + "/worker-0");
  fs::copy(dir + "/worker-0", other + "/worker-0");
  CHECK_THAT(
      issue_refusal(other, "worker-0"),
      ContainsSubstring("trusts another authority") && ContainsSubstring("remove the folder"));
  fs::remove(other + "/driver/key.pem");
  CHECK_THAT(issue_refusal(other, "driver"), ContainsSubstring("driver/key.pem' is missing"));

  const std::string old = folder.path() + "/old";
  make_credentials(
      old,
      {.members = 1, .starts = std::chrono::system_clock::now() - 24h * 400, .durable = false});
  CHECK_THAT(issue_refusal(old, "driver"), ContainsSubstring("ca.pem' has expired"));
}

}  // namespace stagecraft::tests
