/// Tests the bounds of the server of a watched run: what strangers send costs neither memory nor
/// threads, and disturbs no other connection.

#include "stagecraft/actors/watch/http_server.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <pthread.h>

#include "stagecraft/tests/actors/watch/http_peer.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

const std::string kGet = "GET /state?token=t HTTP/1.1\r\nHost: h\r\n\r\n";

HttpAnswer echo(const HttpRequest& r) {
  return {.type = "text/plain",
          .body = r.method + '|' + r.path + '|' + r.host + '|' + r.origin + '|' + r.bearer + '|' +
                  r.token};
}

HttpServer echo_server() {
  return HttpServer("127.0.0.1", 0, echo);
}

/// SmallStacks gives threads that begin while it lives small stacks.
class SmallStacks {
 public:
  SmallStacks() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, std::size_t{1} << 20U);
    REQUIRE(pthread_setattr_default_np(&small) == 0);
    pthread_attr_destroy(&small);
  }
  ~SmallStacks() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  SmallStacks(const SmallStacks&) = delete;
  SmallStacks& operator=(const SmallStacks&) = delete;

 private:
  pthread_attr_t before_{};
};

std::string answer_to(const HttpServer& server, const std::string& request) {
  const HttpPeer peer(server.port());
  (void)peer.send_all(request);
  return peer.read_all();
}

}  // namespace

TEST_CASE("a request's parts reach the handler, and the answer has no CORS headers",
          "[actors][watch]") {
  const HttpServer server = echo_server();
  const std::string answer = answer_to(server,
                                       "GET /a?token=t&x=1 HTTP/1.1\r\nHost: h:1\r\nOrigin: o\r\n"
                                       "Authorization: Bearer b\r\n\r\n");
  CHECK_THAT(answer, StartsWith("HTTP/1.1 200") && ContainsSubstring("GET|/a|h:1|o|b|t"));
  CHECK_THAT(answer, ContainsSubstring("no-store") && !ContainsSubstring("Access-Control"));
  CHECK_THAT(answer_to(server, "GET /a HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n"),
             StartsWith("HTTP/1.1 400"));
}

TEST_CASE("a range and an offer to compress change nothing, even long ones and on small stacks",
          "[actors][watch]") {
  const auto made = [] {
    const SmallStacks small;
    return std::make_unique<HttpServer>("127.0.0.1", 0, echo);
  }();
  const HttpServer& server = *made;
  const std::string plain = answer_to(server, kGet);
  CHECK_THAT(plain, StartsWith("HTTP/1.1 200"));
  for (const std::string& line : {std::string("Range: bytes=0-,0-,0-,0-"),
                                  std::string("Accept-Encoding: gzip"),
                                  "Range: bytes=0-" + std::string(8150, '0'),
                                  "Range: " + std::string(16000, ','),
                                  std::string(16000, 'x') + ": y"}) {
    CHECK(answer_to(server, "GET /state?token=t HTTP/1.1\r\nHost: h\r\n" + line + "\r\n\r\n") ==
          plain);
  }
}

TEST_CASE("what a handler or a stream throws ends its connection alone", "[actors][watch]") {
  const HttpServer server("127.0.0.1", 0, [&](const HttpRequest& request) {
    if (request.path == "/throws") {
      throw std::bad_alloc();
    }
    return HttpAnswer{.stream = []() -> std::optional<std::string> { throw std::bad_alloc(); }};
  });
  for (std::size_t i = 0; i < 2 * kHttpConnections; ++i) {
    CHECK(answer_to(server, "GET /throws HTTP/1.1\r\n\r\n").empty());
    CHECK_THAT(answer_to(server, "GET / HTTP/1.1\r\n\r\n"),
               StartsWith("HTTP/1.1 200") && Catch::Matchers::EndsWith("\r\n\r\n"));
  }
}

TEST_CASE("headers without an end are not read beyond the bound", "[actors][watch]") {
  std::atomic<int> asked{0};
  const HttpServer server("127.0.0.1", 0, [&](const HttpRequest&) {
    ++asked;
    return HttpAnswer{};
  });
  for (const std::string& endless :
       {"GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(4 * kHttpRequestBytes, 'x'),
        [] {
          std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
          while (many.size() < 4 * kHttpRequestBytes) {
            many += "X: y\r\n";
          }
          return many;
        }(),
        std::string(4 * kHttpRequestBytes, 'G')}) {
    CHECK_THAT(answer_to(server, endless), !StartsWith("HTTP/1.1 200"));
  }
  CHECK(asked == 0);
  CHECK_THAT(answer_to(server, kGet), StartsWith("HTTP/1.1 200"));
}

TEST_CASE("connections beyond the bound are closed at once, and the others are served after them",
          "[actors][watch]") {
  const HttpServer server = echo_server();
  std::vector<HttpPeer> silent;
  for (std::size_t i = 0; i < kHttpConnections; ++i) {
    silent.emplace_back(server.port());
  }
  // The silent ones are accepted in their order, before this one.
  CHECK(HttpPeer(server.port()).read_all().empty());
  REQUIRE(silent.front().send_all(kGet));
  CHECK_THAT(silent.front().read_all(), StartsWith("HTTP/1.1 200"));
  silent.clear();
  CHECK(eventually([&] { return answer_to(server, kGet).starts_with("HTTP/1.1 200"); }));
}

TEST_CASE("a request that does not come and an answer that is not taken end", "[actors][watch]") {
  const std::string large(std::size_t{64} << 20U, 'x');
  const HttpServer server("127.0.0.1", 0, [&](const HttpRequest&) {
    return HttpAnswer{.type = "text/plain", .body = large};
  });
  const auto begin = std::chrono::steady_clock::now();
  const HttpPeer silent(server.port()), slow(server.port());
  REQUIRE(slow.send_all(kGet));
  REQUIRE(slow.read_until("\r\n") == "HTTP/1.1 200 OK\r\n");  // it is being answered
  CHECK_THAT(silent.read_all(), !StartsWith("HTTP/1.1 200"));
  CHECK(std::chrono::steady_clock::now() - begin >= kHttpPatience);
  (void)HttpPeer(server.port()).read_all();  // as long again: the answer has been given up by then
  CHECK(slow.read_all().size() < large.size());
}

TEST_CASE("a stream is sent text by text until it ends, and the server's end ends it",
          "[actors][watch]") {
  std::atomic<int> sent{0};
  const HttpServer server("127.0.0.1", 0, [&](const HttpRequest&) {
    return HttpAnswer{.type = "text/event-stream", .stream = [&]() -> std::optional<std::string> {
                        return ++sent > 3 ? std::nullopt
                                          : std::optional<std::string>("data: a\n\n");
                      }};
  });
  const std::string all = answer_to(server, kGet);
  CHECK_THAT(all, ContainsSubstring("text/event-stream"));
  CHECK(sent == 4);

  auto endless = std::make_unique<HttpServer>("127.0.0.1", 0, [](const HttpRequest&) {
    return HttpAnswer{.type = "text/event-stream",
                      .stream = [] { return std::optional<std::string>("data: a\n\n"); }};
  });
  const HttpPeer peer(endless->port());
  REQUIRE(peer.send_all(kGet));
  CHECK_THAT(peer.read_until("data: "), ContainsSubstring("data: "));
  const auto begin = std::chrono::steady_clock::now();
  endless.reset();
  CHECK(std::chrono::steady_clock::now() - begin < 5 * std::chrono::seconds(1));
  CHECK_THAT(peer.read_all(), StartsWith("a\n\n"));  // a text is sent whole
}

TEST_CASE("a server leaves SIGPIPE as it was, and shares no port", "[actors][watch]") {
  struct sigaction before {
  }, after{};
  sigaction(SIGPIPE, nullptr, &before);
  const HttpServer server = echo_server();
  sigaction(SIGPIPE, nullptr, &after);
  CHECK(before.sa_handler == after.sa_handler);
  const Error taken = thrown_error([&] {
    (void)HttpServer("127.0.0.1", server.port(), [](const HttpRequest&) { return HttpAnswer{}; });
  });
  CHECK(taken.code() == Errc::UsageArgument);
  CHECK_THAT(taken.message(), ContainsSubstring("choose another port"));
}

}  // namespace stagecraft
