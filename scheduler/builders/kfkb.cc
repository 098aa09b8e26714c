#include "stagecraft/scheduler/builders/kfkb.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"
#include "stagecraft/scheduler/costs/in_flight.h"

namespace stagecraft {
namespace {

/// The order in which one stage runs its microbatches.
struct Pattern {
  int microbatches = 0;
  int warm_up = 0;  ///< forwards before the first backward
  int k = 1;
};

Schedule::Row row_of(int stage, const Pattern& pattern) {
  RowList list;
  int forwards = 0;
  int backwards = 0;
  const auto forwards_up_to = [&](int end) {
    for (; forwards < std::min(end, pattern.microbatches); ++forwards) {
      list.forward(stage, forwards);
    }
  };
  forwards_up_to(pattern.warm_up);
  while (backwards < pattern.microbatches) {
    for (int i = 0; i < pattern.k; ++i) {
      list.backward(stage, backwards++);
    }
    forwards_up_to(forwards + pattern.k);
  }
  return list.take();
}

Schedule::Row forwards_of(int stage, int microbatches) {
  RowList list;
  for (int m = 0; m < microbatches; ++m) {
    list.forward(stage, m);
  }
  return list.take();
}

std::vector<StagePace> paces_of(const StageGraph& stages, const std::vector<int>& k) {
  if (k.size() != 1 && std::ssize(k) != stages.size()) {
    throw Error(
        Errc::ScheduleParameter,
        fmt::format(
            "dag-kfkb needs one k, or one for each of {} stages, got {}", stages.size(), k.size()));
  }
  std::vector<StagePace> paces;
  for (int s = 0; s < stages.size(); ++s) {
    const int group = k.size() == 1 ? k.front() : k[static_cast<std::size_t>(s)];
    require_positive("dag-kfkb", "k", group);
    paces.push_back({.group = group, .size = stages.microbatch_size(StageId(s))});
  }
  return paces;
}

}  // namespace

Schedule kfkb(int ranks, int microbatches, int k) {
  require_positive("kfkb", "devices", ranks);
  require_positive("kfkb", "microbatches", microbatches);
  require_positive("kfkb", "k", k);
  require_legal("kfkb", "microbatches divisible by k", "k", k, [&](int value) {
    return value <= microbatches && microbatches % value == 0;
  });
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    rows.push_back(row_of(r, {.microbatches = microbatches, .warm_up = k * (ranks - r), .k = k}));
  }
  return finish(std::move(rows), StageGraph::chain(ranks), microbatches);
}

Schedule kfkb(const StageGraph& stages, int microbatches, const std::vector<int>& k) {
  require_positive("dag-kfkb", "stages", stages.size());
  require_positive("dag-kfkb", "microbatches", microbatches);
  require_acyclic("dag-kfkb", stages);
  const std::vector<StagePace> paces = paces_of(stages, k);
  const std::vector<int> in_flight = samples_in_flight(stages, paces);
  std::vector<Schedule::Row> rows;
  for (int s = 0; s < stages.size(); ++s) {
    const auto [group, size] = paces[static_cast<std::size_t>(s)];
    require_legal(
        "dag-kfkb",
        fmt::format("microbatches divisible by size {} times k {} of stage {}", size, group, s),
        "microbatches",
        microbatches,
        [&, span = group * size](int value) { return value % span == 0; });
    const int own = stages.microbatches_of(StageId(s), microbatches);
    rows.push_back(stages.has_backward(StageId(s))
                       ? row_of(s,
                                {.microbatches = own,
                                 .warm_up = in_flight[static_cast<std::size_t>(s)] / size,
                                 .k = group})
                       : forwards_of(s, own));
  }
  return finish(std::move(rows), stages, microbatches);
}

}  // namespace stagecraft
