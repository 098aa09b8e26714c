/// Tests that a client of a watched run sends nothing before it knows the certificate.

#include "stagecraft/tools/watch/watch_client.h"

#include <atomic>
#include <fstream>
#include <optional>
#include <string>

#include "stagecraft/actors/security/certificate_parts.h"
#include "stagecraft/actors/watch/http_server.h"
#include "stagecraft/tests/actors/watch/tls_peer.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/support/error_of.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

const std::string kSomeToken = "0123456789abcdef";

/// Holds what answers as a run does, over TLS.
struct SecureRun {
  HttpTls tls{"127.0.0.1"};
  std::atomic<int> asked{0};
  HttpServer server{
      "127.0.0.1", 0, [this](const HttpRequest& request) { return answer(request); }, &tls};

  HttpAnswer answer(const HttpRequest& request) {
    ++asked;
    return request.bearer == kSomeToken
               ? HttpAnswer{.type = "application/json",
                            .body = R"({"stagecraft":"watch","phase":"running","why":"busy"})"}
               : HttpAnswer{.status = 403};
  }
  [[nodiscard]] std::string link(const std::string& after_token,
                                 const std::string& host = "127.0.0.1") const {
    return "https://" + host + ":" + std::to_string(server.port()) + "/?token=" + kSomeToken +
           after_token;
  }
  [[nodiscard]] std::string pinned() const { return link("#sha256=" + tls.fingerprint()); }
};

}  // namespace

TEST_CASE("a link with the fingerprint reaches the run over TLS, by any name", "[tools][watch]") {
  const SecureRun run;
  CHECK(WatchClient(run.pinned()).state()["phase"] == "running");
  CHECK(WatchClient(run.pinned()).wish("stop") == "busy");
  CHECK(WatchClient(run.link("#sha256=" + run.tls.fingerprint(), "localhost")).state()["phase"] ==
        "running");
  CHECK(run.asked == 3);
}

TEST_CASE("a token of another run is told over TLS, too", "[tools][watch]") {
  const SecureRun run;
  std::string link = run.pinned();
  link.replace(link.find(kSomeToken), 1, "f");
  const Error error = thrown_error([&] { (void)WatchClient(link).state(); });
  CHECK(error.code() == Errc::UsageArgument);
  CHECK_THAT(error.message(), ContainsSubstring("its token is that of another run"));
}

TEST_CASE("a certificate other than the link's is refused, and nothing is sent to it",
          "[tools][watch]") {
  const SecureRun run;
  const HttpTls other("127.0.0.1");
  const Error error =
      thrown_error([&] { (void)WatchClient(run.link("#sha256=" + other.fingerprint())).state(); });
  CHECK(error.code() == Errc::UsageArgument);
  CHECK_THAT(error.message(), ContainsSubstring("another certificate than the link says"));
  CHECK(run.asked == 0);
}

TEST_CASE("without a fingerprint the authorities of this host must know the certificate",
          "[tools][watch]") {
  const SecureRun run;
  const Error error = thrown_error([&] { (void)WatchClient(run.link("")).state(); });
  CHECK(error.code() == Errc::UsageArgument);
  CHECK_THAT(error.message(), ContainsSubstring("no authority") && ContainsSubstring("#sha256="));
  CHECK(run.asked == 0);

  const stagecraft::tests::TemporaryFolder folder;
  const std::string file = folder.path() + "/known.pem";
  std::ofstream(file) << security::to_pem(TlsPeer(run.server.port()).certificate());
  const stagecraft::tests::EnvironmentVariable known("SSL_CERT_FILE", file);
  CHECK(WatchClient(run.link("")).state()["phase"] == "running");
  CHECK_THAT(thrown_error([&] { (void)WatchClient(run.link("", "localhost")).state(); }).message(),
             ContainsSubstring("no authority"));  // it is another's name
}

TEST_CASE("a link that is cut, or has its fingerprint without TLS, is none", "[tools][watch]") {
  const SecureRun run;
  const std::string pinned = run.pinned();
  for (const std::string& link : {pinned.substr(0, pinned.size() - 1),
                                  pinned + "0",
                                  pinned.substr(0, pinned.find('=', pinned.find('#')) + 1),
                                  "http" + pinned.substr(5),
                                  "ftp" + pinned.substr(5)}) {
    CAPTURE(link);
    CHECK_THAT(thrown_error([&] { (void)WatchClient(link); }).message(),
               ContainsSubstring("expected the link of a run"));
  }
  CHECK(run.asked == 0);
}

}  // namespace stagecraft::tools
