#include "stagecraft/tools/watch/watch_client.h"

#include <charconv>
#include <regex>

#include <fmt/format.h>
#include <httplib.h>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

constexpr int kAskSeconds = 5;

nlohmann::ordered_json read_answer(const httplib::Result& result) {
  if (result->status == 403) {
    throw Error(Errc::UsageArgument,
                "the run refuses this link: its token is that of another run; use the link that "
                "`stagecraft train --serve` has printed");
  }
  auto object = nlohmann::ordered_json::parse(result->body, nullptr, false);
  if (!object.is_object() || object.value("stagecraft", "") != "watch") {
    throw Error(Errc::UsageFile,
                fmt::format("expected the answer of a run at this link, found status {} of another "
                            "program",
                            result->status));
  }
  return object;
}

}  // namespace

WatchClient::WatchClient(const std::string& link) {
  static const std::regex form(
      R"(http://((\[?)([0-9A-Za-z.:]+?)\]?:(\d{1,5}))/\?token=([0-9a-f]+))");
  std::smatch parts;
  if (!std::regex_match(link, parts, form)) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("expected the link of a run, http://ADDRESS:PORT/?token=..., found '{}'",
                    link));
  }
  place_ = parts[1];
  host_ = parts[3];
  const std::string digits = parts[4];
  std::from_chars(digits.data(), digits.data() + digits.size(), port_);
  token_ = parts[5];
}

std::optional<nlohmann::ordered_json> WatchClient::state() const {
  httplib::Client client(host_, port_);
  client.set_read_timeout(kAskSeconds);
  client.set_connection_timeout(kAskSeconds);
  const auto result =
      client.Get("/state", {{"Host", place_}, {"Authorization", "Bearer " + token_}});
  return result ? std::optional(read_answer(result)) : std::nullopt;
}

std::string WatchClient::wish(const std::string& name) const {
  httplib::Client client(host_, port_);
  client.set_read_timeout(kAskSeconds);
  client.set_connection_timeout(kAskSeconds);
  const auto result = client.Post(
      "/" + name, {{"Host", place_}, {"Authorization", "Bearer " + token_}}, "", "text/plain");
  if (!result) {
    refuse_without_answer();
  }
  return read_answer(result).value("why", "");
}

void refuse_without_answer() {
  throw Error(Errc::UsageFile,
              "nobody answers at this link: the run has ended, or it runs on another host; there, "
              "or through ssh -L, the link works");
}

}  // namespace stagecraft::tools
