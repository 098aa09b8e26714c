#include "stagecraft/tools/doctor/talk/answer.h"

#include <unistd.h>

#include <chrono>
#include <istream>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/port/file_limit.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/doctor/talk/limits.h"
#include "stagecraft/tools/doctor/talk/talk.h"

namespace stagecraft::tools {
namespace {

class Helper {
 public:
  [[nodiscard]] std::string answer(const Json& question) {
    const auto word = question.at("ask").get<std::string>();
    if (word == "facts") {
      return line_of("doctor", "facts", facts(question.get<FactsQuestion>()));
    }
    if (word == "time") {
      const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
      return line_of("doctor", "time", TimeAnswer{now.count()});
    }
    if (word == "ways") {
      const auto ways = question.get<WaysQuestion>();
      return line_of("doctor",
                     "ways",
                     WaysAnswer{.ways = try_ways(ways.ways, kWayPatience),
                                .names = resolve(ways.names, kNamePatience)});
    }
    throw Error(Errc::UsageArgument, fmt::format("a doctor asks for no \"{}\"", word));
  }

 private:
  FactsAnswer facts(const FactsQuestion& question) {
    FactsAnswer answer{.facts = facts_of_this_machine(), .door = {}, .no_door = {}};
    if (question.driver.empty() && question.bind.empty()) {
      answer.no_door = "no address is known at which the driver would be reached";
      return answer;
    }
    try {
      // Choose the address as a worker does for its tensors.
      door_ = std::make_unique<Door>(question.bind.empty() ? address_towards(question.driver)
                                                           : address_of_interface(question.bind));
      answer.door = door_->place();
    } catch (const Error& error) {
      answer.no_door = error.message();
    }
    return answer;
  }

  std::unique_ptr<Door> door_;
};

}  // namespace

ExitCode answer(Console& console) {
  alarm(static_cast<unsigned>(kLongestTalk.count()));
  raise_file_limit();
  Helper helper;
  for (std::string line; std::getline(console.in, line);) {
    const Json question = content_of(line, "ask");
    if (question.is_null()) {
      throw Error(Errc::UsageArgument,
                  "expected a question of a doctor on another host: this is how it is answered, "
                  "and nothing for people");
    }
    print(helper.answer(question), console);
  }
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
