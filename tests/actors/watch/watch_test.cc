/// Tests what a watched run answers to those with its link and to strangers.

#include "stagecraft/actors/watch/watch.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <regex>
#include <string>

#include "stagecraft/actors/security/certificate_facts.h"
#include "stagecraft/actors/watch/http_server.h"
#include "stagecraft/base/process/host_name.h"
#include "stagecraft/tests/actors/watch/http_peer.h"
#include "stagecraft/tests/actors/watch/tls_peer.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

/// Holds a watched run without a trainer, and what is in its link.
struct Watched {
  Watch watch{{.model = "mine", .schedule = "1f1b", .steps = 10, .ranks = {{"0"}}}};
  int port = std::stoi(watch.link().substr(watch.link().rfind(':') + 1));
  std::string token = watch.link().substr(watch.link().find('=') + 1);

  [[nodiscard]] std::string host() const { return "127.0.0.1:" + std::to_string(port); }

  /// Returns the answer to a request. `lines`: further headers.
  [[nodiscard]] std::string ask(const std::string& method,
                                const std::string& target,
                                const std::string& lines = "") const {
    return ask_as(host(), method, target, lines);
  }
  [[nodiscard]] std::string ask_as(const std::string& as_host,
                                   const std::string& method,
                                   const std::string& target,
                                   const std::string& lines) const {
    const HttpPeer peer(port);
    (void)peer.send_all(method + ' ' + target + " HTTP/1.1\r\nHost: " + as_host + "\r\n" + lines +
                        "\r\n");
    return peer.read_all();
  }
  [[nodiscard]] std::string bearer() const { return "Authorization: Bearer " + token + "\r\n"; }
};

}  // namespace

TEST_CASE("who has the link gets page, state and metrics", "[actors][watch]") {
  Watched run;
  run.watch.step({.step = 3, .mean_loss = 0.5, .seconds = 0.25}, 16);
  CHECK_THAT(run.ask("GET", "/?token=" + run.token),
             StartsWith("HTTP/1.1 200") && ContainsSubstring("<!doctype html>") &&
                 ContainsSubstring("connect-src 'self'"));
  CHECK_THAT(run.ask("GET", "/state", run.bearer()),
             ContainsSubstring("\"step\":3") && ContainsSubstring("\"per_second\":64.0"));
  CHECK_THAT(run.ask("GET", "/metrics", run.bearer()), ContainsSubstring("stagecraft_loss 0.5"));
  CHECK_THAT(run.ask("GET", "/other", run.bearer()), StartsWith("HTTP/1.1 404"));
  CHECK_THAT(run.ask("DELETE", "/state", run.bearer()), StartsWith("HTTP/1.1 405"));
}

TEST_CASE("strangers and pages of other origins get 403 and nothing else", "[actors][watch]") {
  Watched run;
  const std::string with_token = "/state?token=" + run.token;
  for (const std::string& answer :
       {run.ask("GET", "/state"),
        run.ask("GET", "/no/such/path"),
        run.ask("GET", "/state?token=0" + run.token.substr(1) + "0"),
        run.ask("GET", with_token, "Origin: http://evil.example\r\n"),
        run.ask_as("evil.example:" + std::to_string(run.port), "GET", with_token, ""),
        run.ask("POST", "/stop", "Content-Length: 5\r\n"),
        run.ask("GET", "/state", "Range: bytes=x\r\n"),
        run.ask("POST", "/stop?token=" + run.token)}) {
    CHECK_THAT(answer, StartsWith("HTTP/1.1 403") && EndsWith("\r\n\r\n"));
    CHECK_THAT(answer, !ContainsSubstring("Access-Control"));
  }
  CHECK_THAT(run.ask("POST", "/stop", run.bearer() + "Content-Length: 5\r\n"),
             StartsWith("HTTP/1.1 413"));
  CHECK_FALSE(run.watch.wants_end());
}

TEST_CASE("wishes reach the run, or say why they cannot", "[actors][watch]") {
  Watched run;
  CHECK_THAT(run.ask("POST", "/checkpoint", run.bearer()),
             StartsWith("HTTP/1.1 409") && ContainsSubstring("--save-dir"));
  CHECK_FALSE(run.watch.wants_checkpoint());
  CHECK_THAT(run.ask("POST", "/pause", run.bearer()), StartsWith("HTTP/1.1 202"));
  CHECK(run.watch.wants_pause(std::chrono::milliseconds(0)));
  CHECK_THAT(run.ask("POST", "/continue", run.bearer()), StartsWith("HTTP/1.1 202"));
  CHECK_FALSE(run.watch.wants_pause(std::chrono::milliseconds(0)));
  CHECK_THAT(run.ask("POST", "/stop", run.bearer()), ContainsSubstring("\"accepted\":true"));
  CHECK(run.watch.wants_end());
  run.watch.end("done");
  CHECK_THAT(run.ask("POST", "/stop", run.bearer()), ContainsSubstring("the run has ended"));
}

TEST_CASE("one who follows sees each state, and the end", "[actors][watch]") {
  Watched run;
  const HttpPeer peer(run.port);
  REQUIRE(peer.send_all("GET /events?token=" + run.token + " HTTP/1.1\r\nHost: " + run.host() +
                        "\r\n\r\n"));
  run.watch.message("a note");
  run.watch.end("all is done");
  const std::string all = peer.read_all();
  CHECK_THAT(all,
             ContainsSubstring("text/event-stream") && ContainsSubstring("data: {") &&
                 ContainsSubstring("a note") && ContainsSubstring("all is done"));
}

TEST_CASE("a client that reads nothing delays no step", "[actors][watch]") {
  using Time = std::chrono::steady_clock;
  Watched run;
  // One event is larger than all that the sockets between hold, so its thread waits for the client.
  run.watch.message(std::string(std::size_t{16} << 20U, 'x'));
  const HttpPeer slow(run.port, 4096);
  REQUIRE(slow.send_all("GET /events?token=" + run.token + " HTTP/1.1\r\nHost: " + run.host() +
                        "\r\n\r\n"));
  REQUIRE(slow.read_until("data: ").ends_with("data: "));
  Time::duration longest{0};
  for (std::int64_t step = 1; step <= 200; ++step) {
    const Time::time_point begin = Time::now();
    run.watch.step({.step = step, .mean_loss = 1.0, .seconds = 0.001}, 1);
    longest = std::max(longest, Time::now() - begin);
  }
  CHECK(longest < kHttpPatience / 2);  // a step that waited for the client would wait as long
}

TEST_CASE("wishes are refused after the last step, and a pause is over then", "[actors][watch]") {
  Watched run;
  CHECK_THAT(run.ask("POST", "/pause", run.bearer()), StartsWith("HTTP/1.1 202"));
  CHECK(run.watch.wants_pause(std::chrono::milliseconds(0)));
  run.watch.take_no_wishes();
  CHECK_THAT(run.ask("GET", "/state", run.bearer()), ContainsSubstring("\"phase\":\"running\""));
  for (const char* wish : {"/stop", "/pause", "/continue"}) {
    CHECK_THAT(run.ask("POST", wish, run.bearer()), StartsWith("HTTP/1.1 409"));
  }
  CHECK_FALSE(run.watch.wants_end());
}

TEST_CASE("one who follows gets a timeline once", "[actors][watch]") {
  Watched run;
  auto timeline = std::make_shared<const MeasuredStep>();
  run.watch.step({.step = 1, .mean_loss = 1.0, .seconds = 0.5}, 1, timeline);
  const HttpPeer peer(run.port);
  REQUIRE(peer.send_all("GET /events?token=" + run.token + " HTTP/1.1\r\nHost: " + run.host() +
                        "\r\n\r\n"));
  CHECK_THAT(peer.read_until("\n\n"),
             StartsWith("HTTP/1.1 200") && ContainsSubstring("\"timeline\":{"));
  run.watch.end("done");
  const std::string rest = peer.read_all();
  CHECK_THAT(rest, ContainsSubstring("done") && !ContainsSubstring("\"timeline\""));
}

TEST_CASE("a place that others reach is served over TLS alone, with 403 for a wrong token",
          "[actors][watch][tls]") {
  Watch watch({.model = "mine", .schedule = "1f1b", .steps = 10, .ranks = {{"0"}}}, "0.0.0.0:0");
  const std::string link = watch.link();
  std::smatch parts;
  REQUIRE(std::regex_match(
      link,
      parts,
      std::regex(R"(https://(.+):(\d+)/\?token=([0-9a-f]{32})#sha256=([0-9A-F:]{95}))")));
  CHECK(parts[1] == host_name());
  CHECK(parts[4] == watch.fingerprint());
  const int port = std::stoi(parts[2]);
  const std::string token = parts[3];
  const auto get = [&](const std::string& path, const std::string& with) {
    return "GET " + path + "?token=" + with + " HTTP/1.1\r\nHost: any.example:1\r\n\r\n";
  };
  const auto answer = [&](const std::string& request) {
    const TlsPeer peer(port);
    CHECK(security::fingerprint_of(*peer.certificate()) == watch.fingerprint());
    (void)peer.send_all(request);
    return peer.read_all();
  };
  CHECK_THAT(answer(get("/state", token)), StartsWith("HTTP/1.1 200"));
  const std::string wrong = (token[0] == '0' ? '1' : '0') + token.substr(1);
  CHECK_THAT(answer(get("/state", wrong)), StartsWith("HTTP/1.1 403") && EndsWith("\r\n\r\n"));
  const HttpPeer plain(port);
  (void)plain.send_all(get("/state", token));
  CHECK(plain.read_all().empty());

  const TlsPeer follower(port);
  REQUIRE(follower.send_all(get("/events", token)));
  watch.message("a note");
  watch.end("all is done");
  CHECK_THAT(follower.read_all(),
             ContainsSubstring("text/event-stream") && ContainsSubstring("a note") &&
                 ContainsSubstring("all is done"));
  CHECK(follower.was_told_the_end());
}

TEST_CASE("a place of this host alone has neither TLS nor a certificate", "[actors][watch]") {
  const Watched run;
  CHECK(run.watch.fingerprint().empty());
  CHECK_THAT(run.watch.link(), StartsWith("http://127.0.0.1:"));
}

}  // namespace stagecraft
