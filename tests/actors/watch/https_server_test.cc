/// Tests the server of a watched run over TLS: what it answers, and that strangers have the bounds
/// of a plain connection.

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <openssl/x509v3.h>

#include "stagecraft/actors/security/certificate_facts.h"
#include "stagecraft/actors/watch/http_server.h"
#include "stagecraft/tests/actors/watch/tls_peer.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

const std::string kSecretGet = "GET /state?token=t HTTP/1.1\r\nHost: h\r\n\r\n";

HttpAnswer echo_path(const HttpRequest& request) {
  return {.type = "text/plain", .body = request.path};
}

/// Holds a server over TLS.
struct SecureServer {
  explicit SecureServer(HttpHandler handler = echo_path)
      : server("127.0.0.1", 0, std::move(handler), &tls) {}

  HttpTls tls{"127.0.0.1"};
  HttpServer server;

  [[nodiscard]] std::string answer_to(const std::string& request) const {
    const TlsPeer peer(server.port());
    (void)peer.send_all(request);
    return peer.read_all();
  }
};

}  // namespace

TEST_CASE("a server answers over TLS 1.2 and 1.3, with the certificate that it names",
          "[actors][watch][tls]") {
  const SecureServer made;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const TlsPeer peer(made.server.port(), version);
    REQUIRE(peer.is_open());
    CHECK(peer.version() == version);
    CHECK(security::fingerprint_of(*peer.certificate()) == made.tls.fingerprint());
    REQUIRE(peer.send_all(kSecretGet));
    CHECK_THAT(peer.read_all(), StartsWith("HTTP/1.1 200") && EndsWith("\r\n\r\n/state"));
    CHECK(peer.was_told_the_end());
  }
  CHECK(HttpTls("127.0.0.1").fingerprint() != made.tls.fingerprint());
}

TEST_CASE("a certificate of a server is for a limited time and its host", "[actors][watch][tls]") {
  const SecureServer made;
  const TlsPeer peer(made.server.port());
  const security::Certificate shown = peer.certificate();
  const security::CertificateFacts facts = security::facts_of(shown);
  const auto now = std::chrono::system_clock::now();
  CHECK(facts.valid_from < now);
  CHECK(facts.valid_until > now + std::chrono::hours(24));
  CHECK(facts.valid_until <= now + std::chrono::hours(24 * 90));
  CHECK(facts.role == security::Role::None);
  CHECK(X509_check_ip_asc(shown.get(), "127.0.0.1", 0) == 1);
  CHECK(X509_check_ip_asc(shown.get(), "127.0.0.2", 0) == 0);
  CHECK(X509_check_ca(shown.get()) == 0);
}

TEST_CASE("a request that is not over TLS gets nothing from a server with TLS",
          "[actors][watch][tls]") {
  std::atomic<int> asked{0};
  const SecureServer made([&](const HttpRequest& request) {
    ++asked;
    return echo_path(request);
  });
  const HttpPeer plain(made.server.port());
  REQUIRE(plain.send_all(kSecretGet));
  CHECK(plain.read_all().empty());
  CHECK(asked == 0);
  CHECK_THAT(made.answer_to(kSecretGet), StartsWith("HTTP/1.1 200"));
  CHECK(asked == 1);
}

TEST_CASE("garbage and half handshakes end their connections alone", "[actors][watch][tls]") {
  const SecureServer made;
  // A record of a handshake that announces a ClientHello of 16 MiB; one of a version that is none.
  const std::string huge("\x16\x03\x01\x40\x00\x01\xff\xff\xff", 9);
  for (const std::string& garbage : {std::string(100, '\0'),
                                     std::string(4 * kHttpRequestBytes, 'x'),
                                     huge,
                                     std::string("\x16\x09\x09\x00\x01\x01", 6),
                                     std::string("\r\n\r\n")}) {
    const HttpPeer peer(made.server.port());
    (void)peer.send_all(garbage);
    CHECK_THAT(peer.read_all(), !ContainsSubstring("HTTP"));
  }
  CHECK_THAT(made.answer_to(kSecretGet), StartsWith("HTTP/1.1 200"));
}

TEST_CASE("strangers who say nothing are dropped in time, and others are served meanwhile",
          "[actors][watch][tls]") {
  const SecureServer made;
  const auto begin = std::chrono::steady_clock::now();
  const HttpPeer silent(made.server.port()), half(made.server.port());
  REQUIRE(half.send_all(std::string("\x16\x03\x01\x02\x00\x01\x00", 7)));
  const TlsPeer wordless(made.server.port()), late(made.server.port());
  REQUIRE(wordless.is_open());
  REQUIRE(late.send_all("GET / HTTP/1.1\r\n"));
  CHECK_THAT(made.answer_to(kSecretGet), StartsWith("HTTP/1.1 200"));
  CHECK(std::chrono::steady_clock::now() - begin < kHttpPatience);
  CHECK(silent.read_all().empty());
  CHECK(std::chrono::steady_clock::now() - begin >= kHttpPatience);
  CHECK(half.read_all().empty());
  CHECK(wordless.read_all().empty());
  CHECK(late.read_all().empty());
  CHECK(std::chrono::steady_clock::now() - begin < 3 * kHttpPatience);
}

TEST_CASE("connections beyond the bound are closed before any handshake", "[actors][watch][tls]") {
  const SecureServer made;
  std::vector<HttpPeer> silent;
  for (std::size_t i = 0; i < kHttpConnections; ++i) {
    silent.emplace_back(made.server.port());
  }
  CHECK_FALSE(TlsPeer(made.server.port()).is_open());
  silent.clear();
  CHECK(eventually([&] { return made.answer_to(kSecretGet).starts_with("HTTP/1.1 200"); }));
}

TEST_CASE("requests over TLS have the bound of plain ones", "[actors][watch][tls]") {
  const SecureServer made;
  CHECK_THAT(made.answer_to("GET / HTTP/1.1\r\nX: " + std::string(4 * kHttpRequestBytes, 'x')),
             !StartsWith("HTTP/1.1 200"));
  CHECK_THAT(made.answer_to("GET / HTTP/1.1\r\nX: " + std::string(kHttpRequestBytes / 2, 'x') +
                            "\r\n\r\n"),
             StartsWith("HTTP/1.1 200"));
}

TEST_CASE("a large answer comes whole over TLS, and one that is not taken is dropped",
          "[actors][watch][tls]") {
  const std::string large(std::size_t{64} << 20U, 'x');
  const SecureServer made(
      [&](const HttpRequest&) { return HttpAnswer{.type = "text/plain", .body = large}; });
  CHECK_THAT(made.answer_to(kSecretGet), EndsWith(large));
  const TlsPeer slow(made.server.port());
  REQUIRE(slow.send_all(kSecretGet));
  REQUIRE(slow.read_until("\r\n") == "HTTP/1.1 200 OK\r\n");
  // Each is dropped after its time: the answer has been given up by then.
  (void)HttpPeer(made.server.port()).read_all();
  (void)HttpPeer(made.server.port()).read_all();
  CHECK(slow.read_all().size() < large.size());
}

TEST_CASE("a stream over TLS comes text by text, and the server's end ends it",
          "[actors][watch][tls]") {
  int sent = 0;
  const SecureServer made([&](const HttpRequest&) {
    return HttpAnswer{.type = "text/event-stream", .stream = [&]() -> std::optional<std::string> {
                        return ++sent > 3 ? std::nullopt
                                          : std::optional<std::string>("data: a\n\n");
                      }};
  });
  CHECK_THAT(made.answer_to(kSecretGet),
             ContainsSubstring("text/event-stream") &&
                 EndsWith("\r\n\r\ndata: a\n\ndata: a\n\ndata: a\n\n"));

  auto endless = std::make_unique<SecureServer>([](const HttpRequest&) {
    return HttpAnswer{.type = "text/event-stream",
                      .stream = [] { return std::optional<std::string>("data: a\n\n"); }};
  });
  const TlsPeer peer(endless->server.port());
  REQUIRE(peer.send_all(kSecretGet));
  CHECK_THAT(peer.read_until("data: "), ContainsSubstring("data: "));
  const auto begin = std::chrono::steady_clock::now();
  endless.reset();
  CHECK(std::chrono::steady_clock::now() - begin < kHttpPatience);
}

TEST_CASE("a peer over TLS that goes in the midst of an answer does not end the process",
          "[actors][watch][tls]") {
  struct sigaction before {};
  struct sigaction deadly {};
  deadly.sa_handler = SIG_DFL;
  REQUIRE(sigaction(SIGPIPE, &deadly, &before) == 0);
  std::atomic<bool> gone{false};
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> answering = held;
  const SecureServer made([&](const HttpRequest& request) {
    return request.path == "/end"
               ? HttpAnswer{}
               : HttpAnswer{.stream = [&, is_first = true]() mutable -> std::optional<std::string> {
                              if (!std::exchange(is_first, false)) {
                                gone.wait(false);
                              }
                              return "data: a\n\n";
                            },
                            .held = std::exchange(held, nullptr)};
  });
  {
    const TlsPeer peer(made.server.port());
    CHECK(peer.send_all(kSecretGet));
    // It leaves nothing unread: then its system refuses what comes later, and that is the signal.
    CHECK_THAT(peer.read_until("data: a\n\n"), EndsWith("data: a\n\n"));
  }
  gone = true;
  gone.notify_all();
  CHECK(eventually([&] { return answering.expired(); }));
  CHECK_THAT(made.answer_to("GET /end HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  sigaction(SIGPIPE, &before, nullptr);
}

}  // namespace stagecraft
