/// Tests how the head of a request is read.

#include "stagecraft/actors/watch/http_request.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr const char* kLine = "GET / HTTP/1.1\r\n";

std::optional<HttpRequest> with_lines(const std::string& lines) {
  return parse_http_request(kLine + lines + "\r\n");
}

}  // namespace

TEST_CASE("the parts of a request are read", "[actors][watch]") {
  const auto request = parse_http_request(
      "POST /a/b?x=1&token=t&token=u HTTP/1.1\r\nhOST:h:1 \r\nOrigin: o\r\n"
      "Authorization: Bearer b\r\nX: y\r\nContent-Length: 0\r\n\r\n");
  REQUIRE(request);
  CHECK(request->method == "POST");
  CHECK(request->path == "/a/b");
  CHECK(request->host == "h:1");
  CHECK(request->origin == "o");
  CHECK(request->bearer == "b");
  CHECK(request->token == "t");
  CHECK_FALSE(request->has_body);
  const auto bare = parse_http_request("GET / HTTP/1.0\r\n\r\n");
  REQUIRE(bare);
  CHECK((bare->host + bare->origin + bare->bearer + bare->token).empty());
}

TEST_CASE("a request with a body says so", "[actors][watch]") {
  for (const char* line : {"Content-Length: 5\r\n",
                           "content-length: 00\r\n",
                           "Transfer-Encoding: chunked\r\n",
                           "Content-Length: 0\r\nContent-Length: 7\r\n"}) {
    CAPTURE(line);
    const auto request = with_lines(line);
    REQUIRE(request);
    CHECK(request->has_body);
  }
}

TEST_CASE("a malformed request is no request", "[actors][watch]") {
  for (const char* line : {"",
                           "GET\r\n",
                           "GET /\r\n",
                           "GET / HTTP/2\r\n",
                           "GET / HTTP/1.1 \r\n",
                           "GET  / HTTP/1.1\r\n",
                           "GET http://h/ HTTP/1.1\r\n",
                           "G@T / HTTP/1.1\r\n",
                           "GET /a\nb HTTP/1.1\r\n",
                           " / HTTP/1.1\r\n"}) {
    CAPTURE(line);
    CHECK_FALSE(parse_http_request(line + std::string("\r\n")));
  }
  CHECK_FALSE(parse_http_request(kLine));
  CHECK_FALSE(parse_http_request(""));
  for (const std::string& lines :
       {std::string("no colon\r\n"),
        std::string(": v\r\n"),
        std::string("Host : h\r\n"),
        std::string("Host: h\r\n folded\r\n"),
        std::string("Host: h\ni\r\n"),
        std::string("Host: h\0i\r\n", 11),
        std::string("Host: h\r\nhost: h\r\n"),
        std::string("Origin: o\r\nOrigin: o\r\n"),
        std::string("Authorization: x\r\nAuthorization: Bearer b\r\n")}) {
    CAPTURE(lines);
    CHECK_FALSE(with_lines(lines));
  }
}

}  // namespace stagecraft
