#include "stagecraft/actors/watch/metrics_text.h"

#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/measured/measured_waits.h"

namespace stagecraft {
namespace {

constexpr std::array kWaitCauses{WaitCause::WarmUp,
                                 WaitCause::Dependency,
                                 WaitCause::Transfer,
                                 WaitCause::Overhead,
                                 WaitCause::Drain};

/// Returns the text with what is no UTF-8 replaced, as state_json() replaces it.
std::string as_utf8(std::string_view text) {
  using Json = nlohmann::json;
  const std::string quoted = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

std::string label_text(std::string_view text) {
  std::string escaped;
  for (const char c : as_utf8(text)) {
    escaped += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
  }
  return escaped;
}

std::string metric_value(double value) {
  return std::isnan(value)   ? "NaN"
         : std::isinf(value) ? (value > 0 ? "+Inf" : "-Inf")
                             : fmt::format("{}", value);
}

/// MetricsPage collects the lines of metrics, each metric with its head.
class MetricsPage {
 public:
  void head(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP stagecraft_{} {}\n", name, help);
    fmt::format_to(std::back_inserter(text_), "# TYPE stagecraft_{} {}\n", name, type);
  }
  /// Adds a value of the metric. `labels`: rank="0", without braces; may be empty.
  void value(double number, const std::string& labels = "") {
    fmt::format_to(std::back_inserter(text_),
                   "stagecraft_{}{} {}\n",
                   name_,
                   labels.empty() ? "" : "{" + labels + "}",
                   metric_value(number));
  }
  void one(std::string_view name,
           std::string_view type,
           std::string_view help,
           double number,
           const std::string& labels = "") {
    head(name, type, help);
    value(number, labels);
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string name_;
  std::string text_;
};

std::string counted_label(const WatchedState& state) {
  return fmt::format("of=\"{}\"", label_text(state.run.counted));
}

void add_waits(const WatchedState& state, MetricsPage& page) {
  const auto& timeline = state.last.timeline;
  if (!timeline) {
    return;
  }
  page.head("wait_seconds",
            "gauge",
            "Seconds in which a row of the schedule waited in the last step, by cause.");
  const TimeSpan span = tasks_span(*timeline);
  for (std::size_t row = 0; row < timeline->rows.size(); ++row) {
    std::array<double, kWaitCauses.size()> sums{};
    for (const MeasuredWait& wait : waits_of(timeline->rows[row], span)) {
      sums[static_cast<std::size_t>(wait.cause)] += wait.time.length();
    }
    for (const WaitCause cause : kWaitCauses) {
      page.value(sums[static_cast<std::size_t>(cause)],
                 fmt::format("row=\"{}\",cause=\"{}\"", row, to_string(cause)));
    }
  }
}

void add_last_step(const WatchedState& state, MetricsPage& page) {
  if (!state.has_step) {
    return;
  }
  const WatchedStep& last = state.last;
  page.one("loss", "gauge", "Mean loss of the last step.", last.loss);
  page.one("step_seconds", "gauge", "Seconds of the last step.", last.seconds);
  page.one("counted_per_second",
           "gauge",
           "Samples or tokens per second in the last step.",
           last.per_second,
           counted_label(state));
  page.one("bubble_ratio",
           "gauge",
           "Share of rank time in which nothing was computed, in the last step.",
           last.bubble);
  page.one("learning_rate", "gauge", "Learning rate of the last step.", last.learning_rate);
  page.one("gradient_norm", "gauge", "Norm of its gradient.", last.gradient_norm);
}

void add_ranks(const WatchedState& state, MetricsPage& page) {
  page.head("rank_seconds", "gauge", "Seconds of a rank in the last step, by use.");
  for (std::size_t r = 0; r < state.last.ranks.size(); ++r) {
    const RankTimes& times = state.last.ranks[r];
    page.value(times.forward, fmt::format("rank=\"{}\",use=\"forward\"", r));
    page.value(times.backward, fmt::format("rank=\"{}\",use=\"backward\"", r));
    page.value(times.update, fmt::format("rank=\"{}\",use=\"update\"", r));
    page.value(times.waiting, fmt::format("rank=\"{}\",use=\"waiting\"", r));
  }
  page.head("rank_memory_bytes", "gauge", "Memory that a rank has for its steps.");
  for (std::size_t r = 0; r < state.last.ranks.size(); ++r) {
    const RankMemory& memory = state.last.ranks[r].memory;
    page.value(static_cast<double>(memory.live), fmt::format("rank=\"{}\",kind=\"live\"", r));
    page.value(static_cast<double>(memory.cached), fmt::format("rank=\"{}\",kind=\"cached\"", r));
    page.value(static_cast<double>(memory.peak), fmt::format("rank=\"{}\",kind=\"peak\"", r));
  }
  page.head("rank_billed_bytes", "gauge", "Memory that a rank may hold by the bill of the run.");
  for (std::size_t r = 0; r < state.run.ranks.size(); ++r) {
    if (state.run.ranks[r].billed_bytes != 0) {
      page.value(static_cast<double>(state.run.ranks[r].billed_bytes),
                 fmt::format("rank=\"{}\"", r));
    }
  }
}

}  // namespace

std::string metrics_text(const WatchedState& state) {
  MetricsPage page;
  page.one("run_info",
           "gauge",
           "The run, in labels.",
           1,
           fmt::format("model=\"{}\",schedule=\"{}\"",
                       label_text(state.run.model),
                       label_text(state.run.schedule)));
  page.one("ended", "gauge", "1 once the run has ended.", state.phase == WatchPhase::Ended ? 1 : 0);
  page.one("paused", "gauge", "1 while it is paused.", state.phase == WatchPhase::Paused ? 1 : 0);
  page.one("step", "gauge", "Updates made.", static_cast<double>(state.last.step));
  page.one("steps", "gauge", "Step at which the run ends.", static_cast<double>(state.run.steps));
  page.one("running_seconds", "gauge", "Seconds of the step in progress.", state.running_seconds);
  page.one("counted_total",
           "counter",
           "Samples or tokens since this process began.",
           static_cast<double>(state.counted),
           counted_label(state));
  page.head("sent_bytes_total",
            "counter",
            "Bytes of activations and gradients between stages, by transport.");
  for (const RouteBytes& one : state.bytes) {
    page.value(static_cast<double>(one.bytes),
               fmt::format("route=\"{}\"", label_text(to_string(one.route))));
  }
  page.one("checkpoints_total",
           "counter",
           "Checkpoints that this process has written.",
           static_cast<double>(state.checkpoints_written));
  page.one("restarts_total",
           "counter",
           "Failures from which the run was healed.",
           static_cast<double>(state.healing.restarts));
  page.one("repeated_steps_total",
           "counter",
           "Steps that were made again after them.",
           static_cast<double>(state.healing.repeated_steps));
  page.one("healing_seconds_total",
           "counter",
           "Seconds from these failures until the run could go on.",
           state.healing.seconds);
  add_last_step(state, page);
  add_waits(state, page);
  add_ranks(state, page);
  return page.text();
}

}  // namespace stagecraft
