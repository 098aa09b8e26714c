#include "stagecraft/tools/plan/operator_constraints.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/scheduler/model/number_range.h"
#include "stagecraft/tools/common/command_line.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kCommand = "stagecraft plan";

struct Pin {
  std::string word;  ///< of --on-device
  int device = 0;
  NumberRange ids;
};

bool is_in(const OperatorCost& op, const NumberRange& ids) {
  return op.id >= ids.first && op.id <= ids.last;
}

/// Returns the ids in "3-9" or "3".
/// Errors: UsageArgument naming `option` and the whole `word`, unless the costs have such
/// operators.
NumberRange ids_of_word(const std::string& option,
                        const std::string& word,
                        std::string_view range,
                        const Costs& costs) {
  NumberRange ids;
  const char* const end = range.data() + range.size();
  std::from_chars_result read = std::from_chars(range.data(), end, ids.first);
  ids.last = ids.first;
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-') {
    read = std::from_chars(read.ptr + 1, end, ids.last);
  }
  const bool is_range = read.ec == std::errc() && read.ptr == end && ids.first <= ids.last;
  const auto is_known = [&] {
    return !costs.operators.empty() && ids.first >= costs.operators.front().id &&
           ids.last <= costs.operators.back().id &&
           std::ranges::any_of(costs.operators,
                               [&](const OperatorCost& op) { return is_in(op, ids); });
  };
  if (!is_range || !is_known()) {
    wrong_usage(kCommand,
                fmt::format("{} expects the numbers of the first and the last operator, e.g. "
                            "{}3-9; the costs have {}, {} to {}, found '{}'",
                            option,
                            option == "--on-device" ? "0:" : "",
                            count_text(costs.operators.size(), "operator"),
                            costs.operators.empty() ? 0 : costs.operators.front().id,
                            costs.operators.empty() ? 0 : costs.operators.back().id,
                            word));
  }
  return ids;
}

Pin pin_of_word(const std::string& word, const PlanRequest& request) {
  Pin pin{.word = word};
  const char* const end = word.data() + word.size();
  const auto [colon, error] = std::from_chars(word.data(), end, pin.device);
  if (error != std::errc() || colon == end || *colon != ':' || pin.device < 0 ||
      pin.device >= request.devices) {
    wrong_usage(kCommand,
                fmt::format("--on-device expects a device from 0 to {} and operators, e.g. 0:3-9, "
                            "found '{}'",
                            request.devices - 1,
                            word));
  }
  const std::string_view range(colon + 1, static_cast<std::size_t>(end - colon - 1));
  pin.ids = ids_of_word("--on-device", word, range, request.costs);
  return pin;
}

/// Joins the operators of these ids.
void join(Costs& costs, const NumberRange& ids) {
  bool behind_first = false;
  for (OperatorCost& op : costs.operators) {
    const bool is_one = is_in(op, ids);
    op.joined = op.joined || (is_one && behind_first);
    behind_first = behind_first || is_one;
  }
}

/// Refuses two words that put the same operators on different devices.
void require_apart(const std::vector<Pin>& pins) {
  for (std::size_t i = 0; i < pins.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const NumberRange both{std::max(pins[i].ids.first, pins[j].ids.first),
                             std::min(pins[i].ids.last, pins[j].ids.last)};
      if (both.first <= both.last && pins[i].device != pins[j].device) {
        wrong_usage(kCommand,
                    fmt::format("--on-device {} and --on-device {} put {} on devices {} and {}; "
                                "leave it out of one of the two",
                                pins[j].word,
                                pins[i].word,
                                counted("operator", {both}),
                                pins[j].device,
                                pins[i].device));
      }
    }
  }
}

/// Refuses two words for operators that one stage holds: by --together, or because the model needs
/// them together.
void require_one_device_a_stage(const std::vector<Pin>& pins, const Costs& costs) {
  const Pin* of_stage = nullptr;
  int pinned = 0;  // the operator by which the stage got its device
  for (const OperatorCost& op : costs.operators) {
    of_stage = op.joined ? of_stage : nullptr;
    const auto own = std::ranges::find_if(pins, [&](const Pin& pin) { return is_in(op, pin.ids); });
    if (own == pins.end()) {
      continue;
    }
    if (of_stage != nullptr && of_stage->device != own->device) {
      wrong_usage(kCommand,
                  fmt::format("--on-device {} and --on-device {} expect different stages, but "
                              "operators {} and {} stay in one stage; give both the same device, "
                              "or change --together",
                              of_stage->word,
                              own->word,
                              pinned,
                              op.id));
    }
    of_stage = &*own;
    pinned = op.id;
  }
}

}  // namespace

void constrain_operators(const std::vector<std::string>& together,
                         const std::vector<std::string>& on_device,
                         PlanRequest& request) {
  for (const std::string& word : together) {
    join(request.costs, ids_of_word("--together", word, word, request.costs));
  }
  std::vector<Pin> pins;
  for (const std::string& word : on_device) {
    pins.push_back(pin_of_word(word, request));
    join(request.costs, pins.back().ids);
  }
  require_apart(pins);
  require_one_device_a_stage(pins, request.costs);
  for (const OperatorCost& op : request.costs.operators) {
    const auto own = std::ranges::find_if(pins, [&](const Pin& pin) { return is_in(op, pin.ids); });
    if (own != pins.end()) {
      request.pinned.emplace_back(op.id, own->device);
    }
  }
}

}  // namespace stagecraft::tools
