/// Tests which requests a watched run answers.

#include "stagecraft/actors/watch/watch_access.h"

#include <algorithm>

#include "stagecraft/base/process/host_name.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

const WatchPlace kPlace{.address = "127.0.0.1", .port = 8080};
const std::string kToken = "0123456789abcdef0123456789abcdef";

HttpRequest good_request() {
  return {.method = "GET", .path = "/state", .host = "127.0.0.1:8080", .token = kToken};
}

}  // namespace

TEST_CASE("a place is an address of this host in digits, and a port", "[actors][watch]") {
  struct Form {
    const char* text;
    const char* address;
    int port;
  };
  const Form forms[] = {{"127.0.0.1:0", "127.0.0.1", 0},
                        {"127.0.0.1:8080", "127.0.0.1", 8080},
                        {"127.0.0.2", "127.0.0.2", 0},
                        {"localhost:9", "127.0.0.1", 9},
                        {":8080", "127.0.0.1", 8080},
                        {"[::1]:8080", "::1", 8080},
                        {"[::1]", "::1", 0},
                        {"[0:0:0:0:0:0:0:1]:80", "::1", 80}};
  for (const Form& form : forms) {
    CAPTURE(form.text);
    const WatchPlace place = parse_watch_place(form.text);
    CHECK(place.address == form.address);
    CHECK(place.port == form.port);
  }
  for (const char* text : {"127.0.0.1:x",
                           "127.0.0.1:65536",
                           "127.0.0.1:-1",
                           "my.host:80",
                           "a b",
                           "127.1",
                           "127.0.0.256",
                           "[::1"}) {
    CAPTURE(text);
    CHECK_THAT(thrown_error([&] { (void)parse_watch_place(text); }).message(),
               ContainsSubstring("expected ADDRESS:PORT"));
  }
}

TEST_CASE("an address that other hosts reach needs TLS, and all addresses have this host's name",
          "[actors][watch]") {
  for (const char* text : {"127.0.0.1:8080", "127.9.9.9", "[::1]:80", "localhost:1"}) {
    CAPTURE(text);
    CHECK_FALSE(needs_tls(parse_watch_place(text)));
  }
  struct Form {
    const char* text;
    std::string host;
  };
  for (const Form& form : {Form{"0.0.0.0:8080", host_name()},
                           {"[::]:80", host_name()},
                           {"192.168.0.7:80", "192.168.0.7"},
                           {"[fd00::1]", "fd00::1"}}) {
    CAPTURE(form.text);
    const WatchPlace place = parse_watch_place(form.text);
    CHECK(needs_tls(place));
    CHECK(host_of_link(place) == form.host);
  }
}

TEST_CASE("tokens are long, and no two are equal", "[actors][watch]") {
  const std::string token = make_token();
  CHECK(token.size() == 32);
  CHECK(token.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(token != make_token());
}

TEST_CASE("a request needs the token, in the query or in a header", "[actors][watch]") {
  HttpRequest request = good_request();
  CHECK(may_watch(request, kPlace, kToken));
  request.token = "";
  CHECK_FALSE(may_watch(request, kPlace, kToken));
  request.bearer = kToken;
  CHECK(may_watch(request, kPlace, kToken));
  for (const std::string& wrong :
       {std::string(), kToken.substr(1), kToken + '0', 'f' + kToken.substr(1)}) {
    CAPTURE(wrong);
    HttpRequest other = good_request();
    other.token = wrong;
    other.bearer = wrong;
    CHECK_FALSE(may_watch(other, kPlace, kToken));
  }
}

TEST_CASE("names that are made to point here are refused, and pages of other origins",
          "[actors][watch]") {
  for (const char* host :
       {"", "evil.example:8080", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:8080.evil.example"}) {
    CAPTURE(host);
    HttpRequest request = good_request();
    request.host = host;
    CHECK_FALSE(may_watch(request, kPlace, kToken));
  }
  for (const char* origin :
       {"http://evil.example", "null", "https://127.0.0.1:8080", "http://127.0.0.1:8081"}) {
    CAPTURE(origin);
    HttpRequest request = good_request();
    request.origin = origin;
    CHECK_FALSE(may_watch(request, kPlace, kToken));
  }
  HttpRequest own = good_request();
  own.origin = "http://127.0.0.1:8080";
  CHECK(may_watch(own, kPlace, kToken));
  own.host = "localhost:8080";
  own.origin = "http://localhost:8080";
  CHECK(may_watch(own, kPlace, kToken));
}

TEST_CASE("at port 80 browsers name no port", "[actors][watch]") {
  const WatchPlace place{.address = "127.0.0.1", .port = 80};
  HttpRequest request = good_request();
  for (const char* host : {"127.0.0.1", "127.0.0.1:80", "localhost"}) {
    CAPTURE(host);
    request.host = host;
    request.origin = "http://" + request.host;
    CHECK(may_watch(request, place, kToken));
    request.origin = "http://evil.example";
    CHECK_FALSE(may_watch(request, place, kToken));
  }
  request.host = "[::1]";
  request.origin = "http://[::1]";
  CHECK(may_watch(request, {.address = "::1", .port = 80}, kToken));
  CHECK_FALSE(may_watch(request, {.address = "::1", .port = 81}, kToken));
}

TEST_CASE("over TLS a host may have any name, and an origin must be its own page's",
          "[actors][watch]") {
  const WatchPlace place{.address = "192.168.0.7", .port = 8443};
  HttpRequest request = good_request();
  for (const char* host : {"192.168.0.7:8443", "node7.example:8443", "localhost:8443"}) {
    CAPTURE(host);
    request.host = host;
    request.origin = "";
    CHECK(may_watch(request, place, kToken));
    request.origin = "https://" + request.host;
    CHECK(may_watch(request, place, kToken));
    request.origin = "http://" + request.host;
    CHECK_FALSE(may_watch(request, place, kToken));
    request.origin = "https://evil.example:8443";
    CHECK_FALSE(may_watch(request, place, kToken));
  }
  request.origin = "";
  request.token = "";
  CHECK_FALSE(may_watch(request, place, kToken));
}

TEST_CASE("at port 443 browsers name no port over TLS", "[actors][watch]") {
  HttpRequest request = good_request();
  request.host = "node7.example";
  request.origin = "https://node7.example";
  CHECK(may_watch(request, {.address = "192.168.0.7", .port = 443}, kToken));
  request.origin = "https://node7.example:444";
  CHECK_FALSE(may_watch(request, {.address = "192.168.0.7", .port = 443}, kToken));
}

TEST_CASE("what changes the run takes the token in a header alone", "[actors][watch]") {
  HttpRequest request = good_request();
  request.method = "POST";
  CHECK_FALSE(may_watch(request, kPlace, kToken));
  request.bearer = kToken;
  CHECK(may_watch(request, kPlace, kToken));
}

TEST_CASE("a link names the place, also in brackets", "[actors][watch]") {
  CHECK(watch_link(kPlace, "t", "") == "http://127.0.0.1:8080/?token=t");
  CHECK(watch_link({.address = "::1", .port = 1}, "t", "") == "http://[::1]:1/?token=t");
  CHECK(watch_link({.address = "fd00::1", .port = 1}, "t", "AB:CD") ==
        "https://[fd00::1]:1/?token=t#sha256=AB:CD");
  CHECK(watch_link({.address = "0.0.0.0", .port = 1}, "t", "AB") ==
        "https://" + host_name() + ":1/?token=t#sha256=AB");
}

}  // namespace stagecraft
