#include "stagecraft/scheduler/builders/zero_bubble/zb_auto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h2.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The decisions that can go either way.
struct Choices {
  bool overrun;     ///< a forward may delay a backward input that arrives meanwhile
  bool spare_next;  ///< no forward while the next device is two behind
  bool fill;        ///< a weight half may overrun the wait that it fills
};

/// One run of all devices.
class Run {
 public:
  Run(int ranks, int microbatches, const ZbAutoOptions& options, Choices choices)
      : microbatches_(microbatches), choices_(choices), costs_(options.costs) {
    for (int r = 0; r < ranks; ++r) {
      Device device;
      const auto index = static_cast<std::size_t>(r);
      device.cap = options.cap.size() == 1 ? options.cap.front() : options.cap[index];
      device.inputs.assign(static_cast<std::size_t>(microbatches), r == 0 ? 0 : kNever);
      device.gradients.assign(static_cast<std::size_t>(microbatches), kNever);
      devices_.push_back(std::move(device));
      wake(r, 0);
    }
  }

  std::vector<Schedule::Row> rows() {
    while (!waking_.empty()) {
      const auto [time, device] = *waking_.begin();
      waking_.erase(waking_.begin());
      step(device, time);
    }
    std::vector<Schedule::Row> rows;
    for (Device& device : devices_) {
      SC_CHECK(device.weights == microbatches_, "every device of zb-auto runs to its end (ZA-2)");
      rows.push_back(device.list.take());
    }
    return rows;
  }

 private:
  struct Device {
    int cap = 0;
    int forwards = 0, backwards = 0, weights = 0;  // done so far
    double free = 0;
    std::optional<double> wakes;
    std::vector<double> inputs, gradients;  // by microbatch: the time of arrival
    RowList list;

    [[nodiscard]] bool has_room() const { return forwards - weights < cap; }
  };

  [[nodiscard]] Device& at(int r) { return devices_[static_cast<std::size_t>(r)]; }
  [[nodiscard]] int last() const { return static_cast<int>(devices_.size()) - 1; }

  void wake(int r, double time) {
    Device& device = at(r);
    const double when = std::max(time, device.free);
    if (device.wakes && *device.wakes <= when) {
      return;
    }
    if (device.wakes) {
      waking_.erase({*device.wakes, r});
    }
    device.wakes = when;
    waking_.insert({when, r});
  }

  [[nodiscard]] double duration(CellKind kind, int r) const {
    return costs_.stages.of_stage(StageId(r)).of(kind);
  }

  void step(int r, double now) {
    Device& d = at(r);
    d.wakes.reset();
    const double input =
        d.forwards < microbatches_ ? d.inputs[static_cast<std::size_t>(d.forwards)] : kNever;
    const double gradient =
        d.backwards < microbatches_ ? d.gradients[static_cast<std::size_t>(d.backwards)] : kNever;
    if (gradient <= now) {
      backward_input(r, now);
      return;
    }
    const bool can_forward = input <= now && d.has_room();
    const bool late = !choices_.overrun && now + duration(CellKind::Forward, r) > gradient;
    const bool crowd = choices_.spare_next && r < last() && d.forwards - at(r + 1).forwards >= 2 &&
                       d.backwards > 0;
    if (can_forward && !late && !crowd) {
      forward(r, now);
      return;
    }
    const double next = std::min(gradient, d.has_room() && input > now ? input : kNever);
    if (d.weights < d.backwards) {
      const bool short_of_room = !d.has_room() && d.forwards < microbatches_;
      if (short_of_room || choices_.fill || now + duration(CellKind::BackwardWeight, r) <= next) {
        backward_weight(r, now);
        return;
      }
    }
    if (next < kNever) {
      wake(r, next);
    } else if (can_forward) {
      forward(r, now);  // nothing else will wake this device
    }
  }

  /// Marks the device as busy until `end`, when it looks for work again.
  void busy(int r, double end) {
    at(r).free = end;
    wake(r, end);
  }

  void forward(int r, double now) {
    const int m = at(r).forwards++;
    at(r).list.forward(r, m);
    const double end = now + duration(CellKind::Forward, r);
    if (r == last()) {
      at(r).gradients[static_cast<std::size_t>(m)] = end;
    } else {
      const double there = end + costs_.links.transfer({r, r + 1}, r, r + 1);
      at(r + 1).inputs[static_cast<std::size_t>(m)] = there;
      wake(r + 1, there);
    }
    busy(r, end);
  }

  void backward_input(int r, double now) {
    const int m = at(r).backwards++;
    at(r).list.backward_input(r, m);
    const double end = now + duration(CellKind::BackwardInput, r);
    if (r > 0) {
      const double there = end + costs_.links.transfer({r - 1, r}, r, r - 1);
      at(r - 1).gradients[static_cast<std::size_t>(m)] = there;
      wake(r - 1, there);
    }
    busy(r, end);
  }

  void backward_weight(int r, double now) {
    at(r).list.backward_weight(r, at(r).weights++);
    busy(r, now + duration(CellKind::BackwardWeight, r));
  }

  const int microbatches_;
  const Choices choices_;
  const Costs& costs_;
  std::vector<Device> devices_;
  std::set<std::pair<double, int>> waking_;
};

/// Refuses times whose sum is infinite, because an infinite time counts as never.
void check_times(int ranks, int microbatches, const Costs& costs) {
  double all = 0;
  for (int r = 0; r < ranks; ++r) {
    const Durations& d = costs.stages.of_stage(StageId(r));
    all += d.forward + d.backward_input + d.backward_weight;
    if (r > 0) {
      all +=
          costs.links.transfer({r - 1, r}, r - 1, r) + costs.links.transfer({r - 1, r}, r, r - 1);
    }
  }
  if (!std::isfinite(all * microbatches * ranks)) {
    throw Error(Errc::ScheduleParameter,
                "the durations add up to more than a number can hold; give them in a larger unit");
  }
}

/// Scores a schedule: the longest time from a device's first task to its last, then the end.
std::pair<double, double> score(const Schedule& schedule, const Costs& costs) {
  const Timeline timeline = simulate(schedule, schedule.stage_graph(), costs);
  double longest = 0;
  for (const RowTimeline& row : timeline.rows) {
    longest = std::max(longest, row.busy + row.span_idle);
  }
  return {longest, timeline.makespan};
}

bool fits(const Schedule& schedule, const std::vector<int>& cap) {
  const StageGraph graph = schedule.stage_graph();
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    if (peak_in_flight(schedule.rows()[r], graph) > (cap.size() == 1 ? cap[0] : cap[r])) {
      return false;
    }
  }
  return true;
}

void check_cap(const std::vector<int>& cap, int ranks) {
  if (cap.size() != 1 && std::ssize(cap) != ranks) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("zb-auto needs one cap, or one for each of {} devices, got {}; "
                            "nearest: cap={}",
                            ranks,
                            cap.size(),
                            ranks));
  }
  for (const int most : cap) {
    if (most < 1) {
      throw Error(
          Errc::ScheduleParameter,
          fmt::format("zb-auto needs cap >= 1, got {}; nearest: 1 ({} gives a plan like zb-h1, {} "
                      "one like zb-h2)",
                      most,
                      ranks,
                      2 * ranks - 1));
    }
  }
}

}  // namespace

Schedule zb_auto(int ranks, int microbatches, const ZbAutoOptions& given) {
  require_positive("zb-auto", "devices", ranks);
  require_positive("zb-auto", "microbatches", microbatches);
  ZbAutoOptions options = given;
  if (options.cap.empty()) {
    options.cap = {ranks};
  }
  check_cap(options.cap, ranks);
  check_times(ranks, microbatches, options.costs);
  std::optional<Schedule> best;
  std::pair<double, double> least;
  const auto consider = [&](Schedule candidate) {
    const std::pair<double, double> its = score(candidate, options.costs);
    if (!best || its < least) {
      best = std::move(candidate);
      least = its;
    }
  };
  for (const bool overrun : {false, true}) {
    for (const bool spare_next : {false, true}) {
      for (const bool fill : {false, true}) {
        Run run(ranks, microbatches, options, {overrun, spare_next, fill});
        consider({Schedule::Form::List, run.rows()});
      }
    }
  }
  for (const Schedule& known : {zb_h1(ranks, microbatches), zb_h2(ranks, microbatches)}) {
    if (fits(known, options.cap)) {
      consider(known.to_list());
    }
  }
  return finish(best->rows(), StageGraph::chain(ranks), microbatches);
}

}  // namespace stagecraft
