#include "stagecraft/actors/watch/watch_access.h"

#include <array>
#include <charconv>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/process/host_name.h"

namespace stagecraft {
namespace {

constexpr int kMostPort = 65535;
/// The ports that browsers leave out.
constexpr int kWebPort = 80;
constexpr int kTlsWebPort = 443;

[[noreturn]] void refuse_place(const std::string& text) {
  throw Error(Errc::UsageArgument,
              fmt::format("expected ADDRESS:PORT, such as 127.0.0.1:0, found '{}'", text));
}

int port_in(std::string_view digits, const std::string& text) {
  int port = -1;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (failure != std::errc() || end != digits.data() + digits.size() || port < 0 ||
      port > kMostPort) {
    refuse_place(text);
  }
  return port;
}

bool is_token(const std::string& offered, const std::string& token) {
  return offered.size() == token.size() &&
         CRYPTO_memcmp(offered.data(), token.data(), token.size()) == 0;
}

/// Returns the address as browsers and the system write it; empty if it is none.
std::string as_browsers_write(const std::string& address) {
  char text[INET6_ADDRSTRLEN] = {};
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, address.c_str(), &four) == 1) {
    return inet_ntop(AF_INET, &four, text, sizeof text);
  }
  return inet_pton(AF_INET6, address.c_str(), &six) == 1
             ? inet_ntop(AF_INET6, &six, text, sizeof text)
             : std::string();
}

std::string scheme_of(const WatchPlace& place) {
  return needs_tls(place) ? "https://" : "http://";
}

/// Returns a host of a header with its port, which browsers leave out if it is that of the scheme.
std::string with_port(const std::string& host, const WatchPlace& place) {
  const int web_port = needs_tls(place) ? kTlsWebPort : kWebPort;
  const bool has_port = host.find(':', host.rfind(']') + 1) != std::string::npos;
  return has_port || place.port != web_port ? host : fmt::format("{}:{}", host, web_port);
}

std::string in_link(const WatchPlace& place) {
  return host_and_port(host_of_link(place), static_cast<std::uint16_t>(place.port));
}

/// Keeps WX-2.
bool is_host_of(const WatchPlace& place, const std::string& host) {
  return needs_tls(place) || host == in_link(place) ||
         host == fmt::format("localhost:{}", place.port);
}

}  // namespace

WatchPlace parse_watch_place(const std::string& text) {
  WatchPlace place;
  std::string address = text;
  const std::size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && !text.ends_with(']') &&
                        (text.starts_with('[') || text.find(':') == colon);
  if (has_port) {
    place.port = port_in(std::string_view(text).substr(colon + 1), text);
    address = text.substr(0, colon);
  }
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  if (address == "localhost") {
    address = "127.0.0.1";
  }
  if (!address.empty()) {
    place.address = as_browsers_write(address);
  }
  if (place.address.empty()) {
    refuse_place(text);
  }
  return place;
}

bool needs_tls(const WatchPlace& place) {
  return !is_loopback(place.address);
}

std::string host_of_link(const WatchPlace& place) {
  return place.address == "0.0.0.0" || place.address == "::" ? host_name() : place.address;
}

std::string make_token() {
  std::array<unsigned char, 16> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    throw Error(Errc::Internal, "OpenSSL has no random numbers for a token");
  }
  std::string token;
  for (const unsigned char byte : bytes) {
    token += fmt::format("{:02x}", byte);
  }
  return token;
}

bool may_watch(const HttpRequest& request, const WatchPlace& place, const std::string& token) {
  const std::string host = with_port(request.host, place);
  const std::string scheme = scheme_of(place);
  const bool is_own =
      request.origin.empty() || (request.origin.starts_with(scheme) &&
                                 with_port(request.origin.substr(scheme.size()), place) == host);
  const bool changes = request.method != "GET";
  return is_host_of(place, host) && is_own &&
         (is_token(request.bearer, token) || (!changes && is_token(request.token, token)));
}

std::string watch_link(const WatchPlace& place,
                       const std::string& token,
                       const std::string& fingerprint) {
  return fmt::format("{}{}/?token={}{}{}",
                     scheme_of(place),
                     in_link(place),
                     token,
                     fingerprint.empty() ? "" : "#sha256=",
                     fingerprint);
}

}  // namespace stagecraft
