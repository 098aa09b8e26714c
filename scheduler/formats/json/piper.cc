#include "stagecraft/scheduler/formats/json/piper.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/json/piper_directives.h"
#include "stagecraft/scheduler/formats/json/piper_words.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/parts/fault_list.h"

namespace stagecraft {
namespace {

using formats::kPassTag;
using formats::kStageTag;
using formats::quoted;

using formats::PiperDirective;
using formats::PiperFilter;

/// Returns the first key that no schedule needs; empty if there is none.
std::string further_key(const PiperDirective& directive) {
  constexpr std::array<std::string_view, 6> kKnown{
      "op", "filter", "filters", "devices", "dim_name", "num_microbatches"};
  const auto found = std::ranges::find_if(directive.keys, [&](const PiperDirective::Key& key) {
    return std::ranges::find(kKnown, key.name) == kKnown.end();
  });
  return found == directive.keys.end() ? "" : found->name;
}

class PiperReader {
 public:
  explicit PiperReader(std::string_view text) : json_(text, faults_) {}
  ReadSchedule run();

 private:
  using Devices = std::vector<int>;
  struct Order {
    std::size_t offset;
    std::vector<std::vector<PiperFilter>> groups;
  };

  void take(PiperDirective directive);
  void split(const PiperDirective& directive);
  void place(const PiperDirective& directive);
  [[nodiscard]] Task task(const PiperFilter& filter) const;
  [[nodiscard]] Schedule::Row row(const Order& order, const Devices*& devices);
  [[nodiscard]] std::vector<Schedule::Row> rows();
  void leave_out(std::string what);

  formats::FaultList faults_;
  formats::PiperDirectiveReader json_;
  std::string dimension_;  ///< the tag of microbatches; empty: the step is one microbatch
  std::optional<int> microbatches_;
  std::map<int, Devices> placed_;    ///< by stage
  std::map<int, int> first_placed_;  ///< by device: the first stage there
  std::vector<Order> orders_;
  std::string left_out_;
};

void PiperReader::split(const PiperDirective& directive) {
  const int microbatches = directive.microbatches.value_or(0);
  if (!directive.filter.tags.empty() || directive.filter.pass || !dimension_.empty()) {
    json_.refuse(directive.offset,
                 "only one split directive is read, that of the whole model: \"filter\": {}");
  }
  if (directive.dimension.empty() || microbatches < 1 || microbatches > kMaxMicrobatches) {
    json_.refuse(
        directive.offset,
        fmt::format("a split directive needs \"dim_name\" and \"num_microbatches\" from 1 to {}",
                    kMaxMicrobatches));
  }
  if (directive.dimension == kStageTag || directive.dimension == kPassTag) {
    json_.refuse(directive.offset,
                 fmt::format("dim_name {} is the tag of something else; use MB",
                             quoted(directive.dimension)));
  }
  dimension_ = directive.dimension;
  microbatches_ = microbatches;
}

void PiperReader::place(const PiperDirective& directive) {
  const formats::PiperTag* const stage = directive.filter.tag(kStageTag);
  const bool one = directive.filter.tags.size() == 1 && !directive.filter.pass &&
                   stage != nullptr && stage->number && *stage->number >= 0 &&
                   *stage->number < kMaxStages;
  if (!one) {
    json_.refuse(directive.offset,
                 fmt::format("a place directive needs the filter of one stage below {}, {{\"PP\": "
                             "0}}; only stages can be placed",
                             kMaxStages));
  }
  if (directive.devices.empty()) {
    json_.refuse(directive.offset, "a place directive needs \"devices\", e.g. [0]");
  }
  constexpr std::string_view kAdvice = "a rank of Piper is one set of devices";
  if (const auto twice = std::ranges::adjacent_find(directive.devices);
      twice != directive.devices.end()) {
    json_.refuse(directive.offset, fmt::format("device {} is named twice; {}", *twice, kAdvice));
  }
  for (const int device : directive.devices) {
    const auto first = first_placed_.find(device);
    if (first != first_placed_.end() && placed_.at(first->second) != directive.devices) {
      json_.refuse(directive.offset, fmt::format("device {} is in two sets; {}", device, kAdvice));
    }
  }
  if (!placed_.emplace(*stage->number, directive.devices).second) {
    json_.refuse(directive.offset, fmt::format("stage {} is placed twice", *stage->number));
  }
  for (const int device : directive.devices) {
    first_placed_.emplace(device, *stage->number);
  }
  if (directive.devices.size() > 1) {
    leave_out("several devices for a stage");
  }
}

/// Keeps the first such thing, for a message.
void PiperReader::leave_out(std::string what) {
  if (left_out_.empty()) {
    left_out_ = std::move(what);
  }
}

void PiperReader::take(PiperDirective directive) {
  std::ranges::sort(directive.devices);
  if (directive.op == "split") {
    split(directive);
  } else if (directive.op == "place") {
    place(directive);
  } else if (directive.op == "order") {
    if (directive.groups.size() < 2) {
      json_.refuse(directive.offset,
                   "an order directive needs \"filters\" with two groups or more");
    }
    orders_.push_back({directive.offset, std::move(directive.groups)});
  } else if (directive.op == "replicate" || directive.op == "shard") {
    leave_out(fmt::format("{} directives", directive.op));
  } else {
    json_.refuse(directive.offset, formats::unknown_op(directive.op));
  }
  if (const std::string key = further_key(directive); !key.empty()) {
    leave_out(fmt::format("\"{}\" in a directive", key.substr(0, 40)));
  }
}

/// Returns the one task that a filter matches.
Task PiperReader::task(const PiperFilter& filter) const {
  const auto number = [&](std::string_view tag) {
    const formats::PiperTag* const found = filter.tag(tag);
    return found == nullptr ? std::nullopt : found->number;
  };
  const auto stage = number(kStageTag);
  const auto microbatch = dimension_.empty() ? std::optional<int>(0) : number(dimension_);
  const std::size_t tags = dimension_.empty() ? 1 : 2;
  if (!stage || !microbatch || !filter.pass || filter.tags.size() != tags) {
    json_.refuse(filter.offset,
                 fmt::format("a filter of an order needs exactly the tags PP{}{} and PASS, with "
                             "numbers, so that it matches one task",
                             dimension_.empty() ? "" : ", ",
                             dimension_));
  }
  if (!placed_.contains(*stage)) {
    json_.refuse(filter.offset, fmt::format("no directive places stage {}", *stage));
  }
  if (*microbatch < 0 || *microbatch >= microbatches_.value_or(1)) {
    json_.refuse(filter.offset,
                 fmt::format("{} is {}, but the step is split into {}",
                             dimension_,
                             *microbatch,
                             microbatches_.value_or(1)));
  }
  return {*filter.pass, StageId(*stage), Microbatch(*microbatch)};
}

/// Returns the cells of an order and the devices of its stages, which must be equal.
Schedule::Row PiperReader::row(const Order& order, const Devices*& devices) {
  Schedule::Row row;
  for (const std::vector<PiperFilter>& group : order.groups) {
    std::vector<Task> tasks;
    for (const PiperFilter& filter : group) {
      faults_.attempt([&] {
        tasks.push_back(task(filter));
        const Devices& here = placed_.at(tasks.back().stage.value);
        if (devices && *devices != here) {
          json_.refuse(filter.offset,
                       fmt::format("an order belongs to one set of devices, but this one has tasks "
                                   "of [{}] and of [{}]",
                                   fmt::join(*devices, ", "),
                                   fmt::join(here, ", ")));
        }
        devices = &here;
      });
    }
    row.push_back(tasks.size() == 1 ? Cell(tasks.front()) : Cell(std::move(tasks)));
  }
  return row;
}

std::vector<Schedule::Row> PiperReader::rows() {
  std::map<Devices, Schedule::Row> rows;  // Piper's ranks: sets of devices by their numbers
  for (const auto& [stage, devices] : placed_) {
    rows[devices];
  }
  for (const Order& order : orders_) {
    const Devices* devices = nullptr;
    Schedule::Row cells = row(order, devices);
    if (!devices) {
      continue;  // none of its filters could be read
    }
    faults_.attempt([&] {
      if (!rows[*devices].empty()) {
        json_.refuse(order.offset,
                     fmt::format("the devices [{}] have an order already; join the two",
                                 fmt::join(*devices, ", ")));
      }
      rows[*devices] = std::move(cells);
    });
  }
  faults_.refuse_if_any();
  std::vector<Schedule::Row> list;
  for (auto& [devices, row] : rows) {
    if (row.empty()) {
      throw Error(Errc::ScheduleParse,
                  fmt::format("the devices [{}] have no order directive; Piper then chooses their "
                              "order itself, so there is no schedule to read",
                              fmt::join(devices, ", ")));
    }
    list.push_back(std::move(row));
  }
  return list;
}

ReadSchedule PiperReader::run() {
  json_.read([this](PiperDirective directive) { take(std::move(directive)); });
  faults_.refuse_if_any();
  if (orders_.empty()) {
    throw Error(Errc::ScheduleParse,
                "the file has no order directive; Piper then chooses the order itself, so there is "
                "no schedule to read");
  }
  Schedule schedule(Schedule::Form::List, rows());
  if (schedule.microbatches() != microbatches_.value_or(1)) {  // else the cells tell the number
    Schedule::Headers headers;
    headers.microbatches = microbatches_;
    schedule = Schedule(Schedule::Form::List, schedule.rows(), std::move(headers));
  }
  return {.schedule = std::move(schedule), .left_out = std::move(left_out_)};
}

}  // namespace

bool looks_like_piper(std::string_view rows) {
  if (!rows.starts_with('[')) {
    return false;
  }
  const std::size_t inner = rows.find_first_not_of(" \t\r\n", 1);
  return inner != std::string_view::npos && rows[inner] == '{';
}

ReadSchedule parse_piper(std::string_view text) {
  return PiperReader(text).run();
}

}  // namespace stagecraft
