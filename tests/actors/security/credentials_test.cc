/// Tests load_credentials (CE-1): every possible fault in a member's folder has its own message,
/// which names the file and what to do.

#include "stagecraft/actors/security/credentials.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;

using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

constexpr auto kDay = 24h;

/// Makes a cluster with one worker, and the folder that a case spoils.
struct Place {
  TemporaryFolder folder;
  std::string cluster = folder.path() + "/cluster", worker = cluster + "/worker-0";

  explicit Place(const CredentialsRequest& request = {}) { make(cluster, request); }

  static void make(const std::string& dir, CredentialsRequest request) {
    request.members = 1;
    request.durable = false;
    make_credentials(dir, request);
  }
  /// Returns the worker's folder of another cluster of the same name.
  [[nodiscard]] std::string foreign() const {
    make(folder.path() + "/foreign", {.cluster = "alike"});
    return folder.path() + "/foreign/worker-0";
  }
  [[nodiscard]] std::string file(const std::string& name) const { return worker + "/" + name; }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary | std::ios::trunc) << text;  // keeps the mode
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    return read_text_file(file(name));
  }
  /// Has the authority sign another certificate for the worker, with these extensions.
  void certify(const std::string& extensions) const {
    const std::string request = folder.path() + "/request";
    const std::string with = folder.write("extensions", extensions);
    for (const std::vector<std::string>& step :
         {std::vector<std::string>{"req",
                                   "-new",
                                   "-key",
                                   file("key.pem"),
                                   "-subj",
                                   "/O=alike/CN=worker-0",
                                   "-out",
                                   request},
          std::vector<std::string>{"x509",
                                   "-req",
                                   "-in",
                                   request,
                                   "-CA",
                                   cluster + "/ca.pem",
                                   "-CAkey",
                                   cluster + "/ca-key.pem",
                                   "-CAcreateserial",
                                   "-days",
                                   "1",
                                   "-extfile",
                                   with,
                                   "-out",
                                   file("certificate.pem")}}) {
      std::vector<std::string> words{"openssl"};
      words.insert(words.end(), step.begin(), step.end());
      REQUIRE(run_command(words).exit_code == 0);
    }
  }
};

struct Fault {
  std::string name;
  std::function<void(const Place&)> spoil;
  std::vector<std::string> message;
};

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all{
      {"no folder",
       [](const Place& p) { fs::remove_all(p.worker); },
       {"there is no folder '", "worker-0'", "stagecraft credentials make DIR"}},
      {"a file for the folder",
       [](const Place& p) {
         fs::remove_all(p.worker);
         std::ofstream(p.worker) << "x";
       },
       {"worker-0' is a file, expected the folder with ca.pem"}},
      {"an empty folder",
       [](const Place& p) {
         fs::remove_all(p.worker);
         fs::create_directory(p.worker);
         fs::permissions(p.worker, fs::perms::owner_all);
       },
       {"worker-0/ca.pem' is missing",
        "copy its whole folder",
        "(2 more: stagecraft credentials show '"}},
      {"no certificate",
       [](const Place& p) { fs::remove(p.file("certificate.pem")); },
       {"worker-0/certificate.pem' is missing"}},
      {"no key",
       [](const Place& p) { fs::remove(p.file("key.pem")); },
       {"worker-0/key.pem' is missing"}},
      {"no authority",
       [](const Place& p) { fs::remove(p.file("ca.pem")); },
       {"worker-0/ca.pem' is missing"}},
      {"a link to nothing",
       [](const Place& p) {
         fs::remove(p.file("key.pem"));
         fs::create_symlink("nowhere", p.file("key.pem"));
       },
       {"key.pem' is a link to nothing"}},
      {"a folder for a file",
       [](const Place& p) {
         fs::remove(p.file("key.pem"));
         fs::create_directory(p.file("key.pem"));
       },
       {"key.pem', found a folder"}},
      {"a pipe for a file",
       [](const Place& p) {
         fs::remove(p.file("ca.pem"));
         REQUIRE(mkfifo(p.file("ca.pem").c_str(), 0600) == 0);
       },
       {"ca.pem', found a pipe"}},
      {"a device for a file",
       [](const Place& p) {
         fs::remove(p.file("ca.pem"));
         fs::create_symlink("/dev/zero", p.file("ca.pem"));
       },
       {"ca.pem', found a device"}},
      {"too large",
       [](const Place& p) { p.put("certificate.pem", std::string(100'000, 'x')); },
       {"certificate.pem' has more than 64.0 KiB"}},
      {"empty",
       [](const Place& p) { p.put("certificate.pem", ""); },
       {"certificate.pem' is empty, expected a certificate"}},
      {"no PEM",
       [](const Place& p) { p.put("certificate.pem", "\x30\x82\x01\x02garbage"); },
       {"certificate.pem' is not PEM", "stagecraft credentials renew"}},
      {"no PEM key",
       [](const Place& p) { p.put("key.pem", "hunter2"); },
       {"key.pem' is not PEM: expected a private key"}},
      {"certificate cut short",
       [](const Place& p) { p.put("certificate.pem", p.text("certificate.pem").substr(0, 300)); },
       {"certificate.pem' is cut short: its certificate has no end"}},
      {"key cut short",
       [](const Place& p) { p.put("key.pem", p.text("key.pem").substr(0, 100)); },
       {"key.pem' is cut short: its private key has no end"}},
      {"cut in its last line",
       [](const Place& p) {
         const std::string text = p.text("ca.pem");
         p.put("ca.pem", text.substr(0, text.rfind("CERTIFICATE")));
       },
       {"ca.pem' is cut short"}},
      {"damaged",
       [](const Place& p) {
         std::string text = p.text("certificate.pem");
         text.replace(text.find('\n') + 1, 8, "AAAAAAAA");
         p.put("certificate.pem", text);
       },
       {"certificate.pem' is a damaged certificate ("}},
      {"damaged key",
       [](const Place& p) {
         std::string text = p.text("key.pem");
         text.replace(text.find('\n') + 1, 8, "AAAAAAAA");
         p.put("key.pem", text);
       },
       {"key.pem' is a damaged private key ("}},
      {"key for certificate",
       [](const Place& p) { p.put("certificate.pem", p.text("key.pem")); },
       {"certificate.pem' holds a private key, expected a certificate"}},
      {"certificate for key",
       [](const Place& p) { p.put("key.pem", p.text("certificate.pem")); },
       {"key.pem' holds a certificate, expected a private key"}},
      {"something else",
       [](const Place& p) {
         p.put("ca.pem", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
       },
       {"ca.pem' holds something else, expected a certificate"}},
      {"two authorities",
       [](const Place& p) {
         p.put("ca.pem", p.text("ca.pem") + read_text_file(p.foreign() + "/ca.pem"));
       },
       {"ca.pem' holds 2 certificates, expected one"}},
      {"key under a passphrase",
       [](const Place& p) {
         REQUIRE(run_command({"openssl",
                              "pkcs8",
                              "-topk8",
                              "-in",
                              p.file("key.pem"),
                              "-passout",
                              "pass:secret",
                              "-out",
                              p.file("locked")})
                     .exit_code == 0);
         p.put("key.pem", p.text("locked"));
       },
       {"key.pem' is protected by a passphrase", "openssl pkey -in"}},
      {"key readable by the group",
       [](const Place& p) { chmod(p.file("key.pem").c_str(), 0640); },
       {"key.pem' (mode 0640), and anybody", "chmod 600 '"}},
      {"key readable by all",
       [](const Place& p) { chmod(p.file("key.pem").c_str(), 0604); },
       {"key.pem' (mode 0604), and anybody"}},
      {"key writable by others",
       [](const Place& p) { chmod(p.file("key.pem").c_str(), 0602); },
       {"key.pem' (mode 0602), and anybody"}},
      {"authority writable by others",
       [](const Place& p) { chmod(p.file("ca.pem").c_str(), 0646); },
       {"can write to '", "ca.pem' (mode 0646)", "chmod 644 '"}},
      {"certificate writable by the group",
       [](const Place& p) { chmod(p.file("certificate.pem").c_str(), 0664); },
       {"can write to '", "certificate.pem' (mode 0664)"}},
      {"folder writable by others",
       [](const Place& p) { chmod(p.worker.c_str(), 0707); },
       {"can write to the folder '", "worker-0' (mode 0707)", "chmod 700 '"}},
      {"folder writable by the group",
       [](const Place& p) { chmod(p.worker.c_str(), 0770); },
       {"can write to the folder '", "worker-0' (mode 0770)"}},
      {"key of another member",
       [](const Place& p) { p.put("key.pem", read_text_file(p.cluster + "/driver/key.pem")); },
       {"key.pem' is not the key of '", "copy both from the same folder"}},
      {"authority of another cluster of the same name",
       [](const Place& p) { p.put("ca.pem", read_text_file(p.foreign() + "/ca.pem")); },
       {"certificate.pem' is foreign: the authority of '", "(cluster 'alike', SHA-256 "}},
      {"a member's certificate for the authority's",
       [](const Place& p) {
         p.put("ca.pem", read_text_file(p.cluster + "/driver/certificate.pem"));
       },
       {"certificate.pem' is foreign"}},
      {"the authority itself for a member",
       [](const Place& p) {
         p.put("certificate.pem", p.text("ca.pem"));
         p.put("key.pem", read_text_file(p.cluster + "/ca-key.pem"));
       },
       {"certificate.pem' does not say whether its holder is the driver or a worker"}},
      {"a certificate without a role",
       [](const Place& p) { p.certify("extendedKeyUsage=serverAuth,clientAuth\n"); },
       {"certificate.pem' does not say whether its holder is the driver or a worker"}},
      {"the role of another",
       [](const Place& p) { p.certify("subjectAltName=URI:stagecraft://alike/worker/worker-1\n"); },
       {"certificate.pem' does not say whether its holder is the driver or a worker"}},
      {"two roles",
       [](const Place& p) {
         p.certify(
             "subjectAltName=URI:stagecraft://alike/worker/worker-0,"
             "URI:stagecraft://alike/driver\n");
       },
       {"certificate.pem' does not say whether its holder is the driver or a worker"}},
      {"a role for which TLS has no use",
       [](const Place& p) {
         p.certify(
             "subjectAltName=URI:stagecraft://alike/worker/worker-0\n"
             "extendedKeyUsage=serverAuth\n");
       },
       {"certificate.pem' as the certificate of a worker (unsuitable certificate purpose)"}},
  };
  return all;
}

std::string load_refusal(const std::string& dir) {
  return refusal([&] { (void)load_credentials(dir); }, Errc::UsageFile);
}

/// Acts as another user while it lives, if this process may: root reads everything. The tree
/// belongs to that user, except for a file that stays root's.
class AnotherUser {
 public:
  explicit AnotherUser(const std::string& tree, const std::string& of_root = "") {
    if (geteuid() == 0) {
      for (const auto& entry : fs::recursive_directory_iterator(tree)) {
        REQUIRE(lchown(entry.path().c_str(), kNobody, kNobody) == 0);
      }
      REQUIRE((of_root.empty() || lchown(of_root.c_str(), 0, getegid()) == 0));
      REQUIRE(chmod(fs::path(tree).c_str(), 0755) == 0);
      is_ = seteuid(kNobody) == 0;
    }
  }
  ~AnotherUser() {
    if (is_ && seteuid(0) != 0) {
      std::abort();
    }
  }
  AnotherUser(const AnotherUser&) = delete;
  AnotherUser& operator=(const AnotherUser&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  bool is_ = false;
};

}  // namespace

TEST_CASE("credentials are accepted as they were made", "[security]") {
  const Place place;
  const Credentials found = load_credentials(place.worker);
  CHECK(found.certificate == place.worker + "/certificate.pem");
  CHECK(found.key == place.worker + "/key.pem");
  CHECK(found.authority == place.worker + "/ca.pem");
  CHECK_NOTHROW(load_credentials(place.cluster + "/driver"));

  // Files in another place, with tighter modes, or behind a link are the same.
  const std::string copy = place.folder.path() + "/copy";
  fs::copy(place.worker, copy);
  chmod((copy + "/key.pem").c_str(), 0400);
  chmod((copy + "/ca.pem").c_str(), 0400);
  CHECK_NOTHROW(load_credentials(copy));
  fs::create_directory_symlink(copy, place.folder.path() + "/link");
  CHECK_NOTHROW(load_credentials(place.folder.path() + "/link"));
}

TEST_CASE("each fault of a member's folder has a message of its own (CE-1)", "[security]") {
  for (const Fault& fault : faults()) {
    CAPTURE(fault.name);
    const Place place({.cluster = "alike"});
    fault.spoil(place);
    const std::string message = load_refusal(place.worker);
    for (const std::string& part : fault.message) {
      CHECK_THAT(message, ContainsSubstring(part));
    }
    CHECK_THAT(message, ContainsSubstring("; "));        // says what to do
    CHECK_THAT(message, !ContainsSubstring("hunter2"));  // shows nothing of a key
    CHECK_THAT(load_refusal(place.worker + "/"), ContainsSubstring(fault.message.back()));
  }
}

TEST_CASE("the folder of a whole cluster is not a member's, and a worker is told of its own",
          "[security]") {
  const Place place;
  const std::string refused =
      refusal([&] { (void)load_worker_credentials(place.cluster); }, Errc::UsageFile);
  CHECK_THAT(refused,
             ContainsSubstring("'" + place.cluster + "' is the folder of a whole cluster") &&
                 ContainsSubstring("such as '" + place.worker + "'"));
  CHECK_THAT(refused, !ContainsSubstring("driver"));  // whose folder a worker may not take
  CHECK(load_refusal(place.cluster) == refused);
}

TEST_CASE("a worker refuses the driver's folder, and a driver that of a member", "[security]") {
  const Place place;
  CHECK(load_worker_credentials(place.worker).key == place.worker + "/key.pem");
  CHECK(load_driver_credentials(place.cluster).key == place.cluster + "/driver/key.pem");
  const auto refused = [](auto& load, const std::string& dir) {
    return refusal([&] { (void)load(dir); }, Errc::UsageFile);
  };
  const std::string driver = place.cluster + "/driver";
  CHECK_THAT(refused(load_worker_credentials, driver),
             ContainsSubstring("'" + driver + "' has the driver's certificate") &&
                 ContainsSubstring("such as worker-0"));
  fs::copy(driver, place.folder.path() + "/worker-1");  // the name of the folder does not count
  CHECK_THAT(refused(load_worker_credentials, place.folder.path() + "/worker-1"),
             ContainsSubstring("the driver's certificate"));
  for (const std::string& dir : {driver, place.worker, place.worker + "/"}) {
    CHECK_THAT(refused(load_driver_credentials, dir),
               ContainsSubstring("'" + dir + "' is the folder of one process") &&
                   ContainsSubstring("the folder of the cluster"));
  }
  fs::rename(driver, place.folder.path() + "/driver");
  fs::copy(place.worker, driver);
  CHECK_THAT(refused(load_driver_credentials, place.cluster),
             ContainsSubstring("'" + driver + "' has the certificate of worker-0"));
  CHECK_THAT(refused(load_driver_credentials, place.folder.path() + "/none"),
             ContainsSubstring("there is no folder"));
}

TEST_CASE("an authority of a version without roles is refused, and renews nothing", "[security]") {
  const Place place({.cluster = "alike"});
  const std::string authority = place.cluster + "/ca.pem";
  REQUIRE(run_command({"openssl",
                       "req",
                       "-x509",
                       "-key",
                       place.cluster + "/ca-key.pem",
                       "-subj",
                       "/O=alike/CN=authority",
                       "-days",
                       "1",
                       "-out",
                       authority})
              .exit_code == 0);
  place.put("ca.pem", read_text_file(authority));
  for (const std::string& told :
       {load_refusal(place.worker),
        refusal([&] { issue_member(place.cluster, "worker-0", kDay); }, Errc::UsageFile)}) {
    CHECK_THAT(told,
               ContainsSubstring("ca.pem' is of an older version") &&
                   ContainsSubstring("stagecraft credentials make DIR"));
  }
}

TEST_CASE("expired and not yet valid files are refused with their dates and this host's clock",
          "[security]") {
  const auto now = std::chrono::system_clock::now();
  {
    const Place place({.valid_for = kDay, .starts = now - 30 * kDay});
    CHECK_THAT(load_refusal(place.worker),
               ContainsSubstring("certificate.pem' has expired: it was valid until ") &&
                   ContainsSubstring("UTC, and the clock of this host says ") &&
                   ContainsSubstring("stagecraft credentials renew DIR worker-0") &&
                   !ContainsSubstring("more:"));
    issue_member(place.cluster, "worker-0", kDay);
    CHECK_NOTHROW(load_credentials(place.worker));
  }
  {
    const Place place({.valid_for = kDay, .starts = now - 400 * kDay});
    CHECK_THAT(load_refusal(place.worker),
               ContainsSubstring("ca.pem' has expired") &&
                   ContainsSubstring("make a new cluster with stagecraft credentials make DIR") &&
                   ContainsSubstring("(1 more: stagecraft credentials show '"));
  }
  {
    const Place place({.starts = now + kDay});
    CHECK_THAT(load_refusal(place.worker),
               ContainsSubstring("ca.pem' is not valid yet: it is valid from ") &&
                   ContainsSubstring("the clock of this host says "));
  }
  {
    const Place place;
    issue_member(place.cluster, "worker-0", kDay, now + kDay);
    CHECK_THAT(load_refusal(place.worker), ContainsSubstring("certificate.pem' is not valid yet"));
  }
  {
    // Clocks of hosts differ by minutes.
    const Place place({.starts = now + 4min});
    CHECK_NOTHROW(load_credentials(place.worker));
  }
}

TEST_CASE("a file that cannot be read has a message of its own", "[security]") {
  const Place place;
  chmod(place.file("key.pem").c_str(), 0);
  {
    const AnotherUser user(place.folder.path());
    if (geteuid() == 0) {
      SKIP("root reads everything, and may not become another user here");
    }
    CHECK_THAT(load_refusal(place.worker),
               ContainsSubstring("key.pem' cannot be read: Permission denied"));
    chmod(place.worker.c_str(), 0);
    CHECK_THAT(load_refusal(place.worker),
               ContainsSubstring("worker-0' cannot be read: Permission denied"));
    chmod(place.worker.c_str(), 0700);
  }
}

TEST_CASE("root may lend a key to a group, for reading only", "[security]") {
  if (geteuid() != 0) {
    SKIP("only root has a key to lend");
  }
  const auto [mode, is_taken] = GENERATE(table<mode_t, bool>(
      {{0440, true}, {0640, true}, {0444, false}, {0460, false}, {0450, false}, {0442, false}}));
  CAPTURE(mode);
  const Place place;
  chmod(place.file("key.pem").c_str(), mode);
  {
    const AnotherUser user(place.folder.path(), place.file("key.pem"));
    if (geteuid() == 0) {
      SKIP("root may not become another user here");
    }
    if (is_taken) {
      CHECK_NOTHROW(load_credentials(place.worker));
    } else {
      CHECK_THAT(load_refusal(place.worker),
                 ContainsSubstring("can read or write '") && ContainsSubstring("key.pem' (mode"));
    }
  }
  chmod(place.file("key.pem").c_str(), 0440);
  CHECK_THAT(load_refusal(place.worker),  // no other user can lend it to root
             ContainsSubstring("key.pem' (mode 0440), and anybody"));
}

TEST_CASE("a folder that everybody may write to needs the sticky bit and files of our own",
          "[security]") {
  const Place place;
  chmod(place.worker.c_str(), 01777);  // as Kubernetes mounts a secret
  CHECK_NOTHROW(load_credentials(place.worker));
  if (geteuid() != 0 || lchown(place.file("ca.pem").c_str(), 65534, 65534) != 0) {
    SKIP("only root can give files away");
  }
  CHECK_THAT(load_refusal(place.worker),
             ContainsSubstring("ca.pem' belongs to user 65534, in a folder that others can write"));
}

}  // namespace stagecraft::tests
