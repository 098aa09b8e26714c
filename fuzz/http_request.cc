/// Requests to a watched run: an accepted head has what it is said to have, and what follows its
/// end is never read.
#include "stagecraft/actors/watch/http_request.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string head(reinterpret_cast<const char*>(data), size);
  const auto request = sc::parse_http_request(head);
  if (!request) {
    return 0;
  }
  sc::fuzz::require(head.ends_with("\r\n\r\n"), "an accepted head has its end");
  sc::fuzz::require(head.starts_with(request->method + ' ' + request->path),
                    "method and path are those of the request line");
  for (const std::string* part :
       {&request->method, &request->path, &request->token, &request->host, &request->bearer}) {
    sc::fuzz::require(part->find_first_of("\r\n") == std::string::npos, "a part lies in one line");
    sc::fuzz::require(head.find(*part) != std::string::npos, "a part comes from the head");
  }
  const auto again = sc::parse_http_request("GET /?token=" + request->token +
                                            " HTTP/1.1\r\nHost:" + request->host + "\r\n\r\n");
  sc::fuzz::require(again && again->token == request->token && again->host == request->host,
                    "parts read back the same");
  return 0;
}
