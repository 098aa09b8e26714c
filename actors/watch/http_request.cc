#include "stagecraft/actors/watch/http_request.h"

#include <algorithm>
#include <utility>

namespace stagecraft {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

bool is_token_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

/// Returns whether the text is a method or the name of a header.
bool is_http_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_char);
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

/// Returns what stands before `end`, which it drops with it; all if there is no `end`.
std::string_view cut_at(std::string_view& text, std::string_view end) {
  const std::string_view found = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), found.size() + end.size()));
  return found;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

bool is_name(std::string_view name, std::string_view lower) {
  return std::ranges::equal(name, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

/// Returns the first value of `token`; empty without one.
std::string_view token_in(std::string_view query) {
  while (!query.empty()) {
    std::string_view one = cut_at(query, "&");
    if (cut_at(one, "=") == "token") {
      return one;
    }
  }
  return {};
}

bool read_request_line(std::string_view line, HttpRequest& request) {
  const std::string_view method = cut_at(line, " ");
  std::string_view target = cut_at(line, " ");
  if (!is_http_token(method) || !target.starts_with('/') ||
      (line != "HTTP/1.1" && line != "HTTP/1.0")) {
    return false;
  }
  request.method = method;
  request.path = cut_at(target, "?");
  request.token = token_in(target);
  return true;
}

/// Keeps the value of a header that may come once. Returns whether it has not come before.
bool keep_once(std::string_view value, bool& has_come, std::string& kept) {
  kept = value;
  return !std::exchange(has_come, true);
}

/// HeaderReader keeps the headers that matter.
class HeaderReader {
 public:
  explicit HeaderReader(HttpRequest& request) : request_(request) {}

  [[nodiscard]] bool read(std::string_view line) {
    constexpr std::string_view kBearer = "Bearer ";
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_http_token(line.substr(0, colon))) {
      return false;
    }
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = without_blanks(line.substr(colon + 1));
    if (is_name(name, "host")) {
      return keep_once(value, has_host_, request_.host);
    }
    if (is_name(name, "origin")) {
      return keep_once(value, has_origin_, request_.origin);
    }
    if (is_name(name, "authorization")) {
      return keep_once(value.starts_with(kBearer) ? value.substr(kBearer.size()) : "",
                       has_authorization_,
                       request_.bearer);
    }
    if (is_name(name, "transfer-encoding") || (is_name(name, "content-length") && value != "0")) {
      request_.has_body = true;
    }
    return true;
  }

 private:
  HttpRequest& request_;
  bool has_host_ = false, has_origin_ = false, has_authorization_ = false;
};

}  // namespace

std::optional<HttpRequest> parse_http_request(std::string_view head) {
  if (!head.ends_with("\r\n\r\n")) {
    return std::nullopt;
  }
  head.remove_suffix(kLineEnd.size());
  HttpRequest request;
  const std::string_view first = cut_at(head, kLineEnd);
  if (std::ranges::any_of(first, is_control) || !read_request_line(first, request)) {
    return std::nullopt;
  }
  HeaderReader headers(request);
  while (!head.empty()) {
    const std::string_view line = cut_at(head, kLineEnd);
    if (std::ranges::any_of(line, is_control) || !headers.read(line)) {
      return std::nullopt;
    }
  }
  return request;
}

}  // namespace stagecraft
