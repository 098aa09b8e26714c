#include "stagecraft/tools/watch/watch_client.h"

#include <charconv>
#include <chrono>
#include <regex>
#include <thread>

#include <fmt/format.h>
#include <httplib.h>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

/// The longest that a question is asked again, and that one waits for its answer.
constexpr std::chrono::seconds kAskPatience{3};
constexpr std::chrono::milliseconds kAskAgain{200};

[[noreturn]] void refuse_without_answer(httplib::Error error) {
  throw Error(Errc::UsageFile,
              error == httplib::Error::Connection
                  ? std::string("nobody answers at this link: the run has ended, or it runs on "
                                "another host; there, or through ssh -L, the link works")
                  : fmt::format("the run at this link does not answer within {} s: it is stopped, "
                                "or as many as it answers at once ask it; try again",
                                kAskPatience.count()));
}

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

template <class Ask>
nlohmann::ordered_json WatchClient::ask(Ask&& ask_through) const {
  using Time = std::chrono::steady_clock;
  const httplib::Headers headers{{"Host", place_}, {"Authorization", "Bearer " + token_}};
  for (const Time::time_point begun = Time::now();; std::this_thread::sleep_for(kAskAgain)) {
    httplib::Client client(host_, port_);
    client.set_read_timeout(kAskPatience);
    client.set_connection_timeout(kAskPatience);
    const httplib::Result result = ask_through(client, headers);
    if (result) {
      return read_answer(result);
    }
    if (Time::now() - begun >= kAskPatience) {
      refuse_without_answer(result.error());
    }
  }
}

nlohmann::ordered_json WatchClient::state() const {
  return ask([](httplib::Client& client, const httplib::Headers& headers) {
    return client.Get("/state", headers);
  });
}

std::string WatchClient::wish(const std::string& name) const {
  const nlohmann::ordered_json answer =
      ask([&](httplib::Client& client, const httplib::Headers& headers) {
        return client.Post("/" + name, headers, "", "text/plain");
      });
  return answer.value("why", "");
}

}  // namespace stagecraft::tools
