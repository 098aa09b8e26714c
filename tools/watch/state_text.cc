#include "stagecraft/tools/watch/state_text.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/common/table.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kNewest = 5;

/// Returns a figure in a form such as "{:.4f}" or, for a function, in its words. What is not finite
/// comes as null.
template <class Form>
std::string state_number(const nlohmann::ordered_json& value, Form&& words) {
  return value.is_number() ? words(value.get<double>()) : "not finite";
}

std::string state_number(const nlohmann::ordered_json& value) {
  return state_number(value, [](double number) { return fmt::format("{:.4g}", number); });
}

std::string rank_rows(const nlohmann::ordered_json& state) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& rank : state.at("ranks")) {
    const auto seconds = [&](const char* name) {
      return rank.contains(name)
                 ? state_number(rank.at(name), [](double s) { return fmt::format("{:.4f}", s); })
                 : "";
    };
    const auto bytes = [&](const char* name) {
      return rank.contains(name) ? state_number(rank.at(name), bytes_text) : "";
    };
    rows.push_back({rank.at("rank").dump(),
                    rank.at("stages").get<std::string>(),
                    rank.at("place").get<std::string>(),
                    seconds("forward_seconds"),
                    seconds("backward_seconds"),
                    seconds("waiting_seconds"),
                    bytes("peak_bytes"),
                    bytes("billed_bytes")});
  }
  return table_text(
      {"rank", "stages", "place", "forward s", "backward s", "waiting s", "memory", "bill"}, rows);
}

std::string cause_line(const nlohmann::ordered_json& timeline) {
  std::map<std::string, double> sums;
  double whole = 0;
  const auto number = [](const nlohmann::ordered_json& value) {
    return value.is_number() ? value.get<double>() : 0.0;
  };
  for (const auto& row : timeline.at("rows")) {
    whole += number(timeline.at("makespan_seconds"));
    for (const auto& wait : row.at("waits")) {
      sums[wait.at("cause")] += number(wait.at("end_seconds")) - number(wait.at("start_seconds"));
    }
  }
  std::string text;
  for (const auto& [cause, seconds] : sums) {
    text += fmt::format("{}{} {}",
                        text.empty() ? "" : ", ",
                        cause == "warm_up"         ? "warm-up"
                        : cause == "communication" ? "transfer"
                                                   : cause,
                        percent_text(whole > 0 ? seconds / whole : 0.0));
  }
  return text.empty() ? "" : fmt::format("waits       {}\n", text);
}

std::string newest_lines(const nlohmann::ordered_json& events, const char* head, const char* name) {
  std::string text;
  const std::size_t first = events.size() > kNewest ? events.size() - kNewest : 0;
  for (std::size_t i = first; i < events.size(); ++i) {
    text += fmt::format("{:<12}step {}: {}\n",
                        head,
                        events[i].at("step").dump(),
                        events[i].at(name).get<std::string>());
  }
  return text;
}

}  // namespace

std::string state_line(const nlohmann::ordered_json& state) {
  const auto steps = state.at("steps").get<std::int64_t>();
  const std::string phase = state.at("phase");
  const std::string begin =
      fmt::format("{}: step {}{}",
                  phase == "ended" ? "ended: " + state.at("end").get<std::string>() : phase,
                  state.at("step").dump(),
                  steps == 0 ? "" : fmt::format(" of {}", steps));
  if (state.at("curve").at("step").empty()) {
    return begin + ", no step was made yet\n";
  }
  return fmt::format("{}, loss {}, {} {}/s, {} s a step, idle {}\n",
                     begin,
                     state_number(state.at("loss")),
                     state_number(state.at("per_second")),
                     state.at("counted").get<std::string>(),
                     state_number(state.at("seconds")),
                     state_number(state.at("bubble_fraction"), percent_text));
}

std::string state_text(const nlohmann::ordered_json& state) {
  std::string text = fmt::format("{} by {}\n{}\n",
                                 state.at("model").get<std::string>(),
                                 state.at("schedule").get<std::string>(),
                                 state_line(state));
  text += rank_rows(state);
  if (!state.at("timeline").is_null()) {
    text += cause_line(state.at("timeline"));
  }
  if (const std::string waits = state.at("waits"); !waits.empty()) {
    text += fmt::format(
        "late        after {} s: {}\n", state_number(state.at("running_seconds")), waits);
  }
  text += newest_lines(state.at("checkpoints"), "checkpoint", "file");
  return text + newest_lines(state.at("messages"), "message", "text");
}

}  // namespace stagecraft::tools
