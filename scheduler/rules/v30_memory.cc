/// V30: no row holds more bytes than its budget, on any of its ranks, whatever its copies share.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/scheduler/costs/memory_model.h"
#include "stagecraft/scheduler/costs/shared_bytes.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {
namespace {

/// The peak bytes of one row and their place.
struct RowPeak {
  RowMemory memory;
  double bytes = 0;
  const Entry* entry = nullptr;
  const Entry* last = nullptr;
  std::vector<double> shared = {};  // gradients of the stages whose copies share something
  double parts = 0;                 // the parts of their sums that this rank updates
  int stages = 0;

  void run(const Entry& at, std::span<const Task> tasks) {
    const double now = memory.run(tasks);
    if (entry == nullptr || now > bytes) {
      bytes = now;
      entry = &at;
    }
    last = &at;
  }

  /// Adds the bytes that sharing takes in a step. The sum of a row's only stage comes after its
  /// tasks, those of several stages beside them.
  void borrow(Sharing sharing) {
    if (entry == nullptr) {
      return;
    }
    bytes += borrowed_bytes(shared, sharing);
    if (sharing != Sharing::States) {
      return;
    }
    if (stages > 1) {
      bytes += parts;
    } else if (memory.held() + parts > bytes) {
      bytes = memory.held() + parts;
      entry = last;
    }
  }
};

/// Returns, by stage, on how many ranks there is a copy of it that can share.
std::vector<int> copies_that_share(const RuleInput& in, std::span<const RowShare> shares) {
  const auto stages = static_cast<std::size_t>(in.graph.size());
  std::vector<int> first(stages);  // of the stage's copies in the schedule
  std::iota(first.begin(), first.end(), 0);
  for (const auto& [one, other] : in.graph.replica_pairs()) {
    const int joined = first[static_cast<std::size_t>(other)];
    const int to = first[static_cast<std::size_t>(one)];
    std::ranges::replace(first, joined, to);
  }
  std::vector<int> ranks(stages, 0);  // by first
  for (StageId s; s.value < in.graph.size(); ++s.value) {
    if (const auto row = in.placement.row(s)) {
      ranks[static_cast<std::size_t>(first[s.index()])] +=
          shares[static_cast<std::size_t>(*row)].ranks;
    }
  }
  std::vector<int> copies;
  for (const int of : first) {
    copies.push_back(std::max(1, ranks[static_cast<std::size_t>(of)]));
  }
  return copies;
}

/// Returns the graph without backwards: an evaluation keeps nothing for them.
StageGraph without_backward(StageGraph graph) {
  for (StageId s; s.value < graph.size(); ++s.value) {
    graph.set_needs_input_grad(s, false);
    graph.set_needs_weight_grad(s, false);
  }
  return graph;
}

}  // namespace

void check_memory(const RuleInput& in, Violations& out) {
  if (!in.options.memory) {
    return;
  }
  const MemoryModel& model = *in.options.memory;
  const StageGraph graph = in.options.forward_only ? without_backward(in.graph) : in.graph;
  const Sharing sharing = in.options.sharing;
  const std::vector<RowShare> shares = row_shares(in.schedule);
  const std::vector<int> copies = copies_that_share(in, shares);
  std::vector<RowPeak> rows;
  for (const RowShare& share : shares) {
    rows.push_back(RowPeak{RowMemory(model, graph, share.units)});
  }
  for (StageId s; s.value < in.graph.size(); ++s.value) {
    if (const auto row = in.placement.row(s)) {
      RowPeak& here = rows[static_cast<std::size_t>(*row)];
      here.memory.hold_fixed(s, sharing, copies[s.index()]);
      ++here.stages;
      if (copies[s.index()] > 1 && s.index() < model.trained.size()) {
        here.shared.push_back(model.trained[s.index()]);
        here.parts += model.trained[s.index()] / copies[s.index()];
      }
    }
  }
  std::vector<Task> tasks;
  for (const Entry& entry : in.tasks.entries()) {
    tasks.clear();
    std::ranges::copy_if(entry.cell->tasks(), std::back_inserter(tasks), [&](const Task& task) {
      return in.tasks.in_range(task);
    });
    rows[static_cast<std::size_t>(entry.row)].run(entry, tasks);
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].borrow(sharing);
    if (rows[r].entry != nullptr && rows[r].bytes > model.budget_of(r)) {
      const Entry& entry = *rows[r].entry;
      Violation v = at("V30", entry, entry.cell->tasks().front());
      const double lacks = rows[r].bytes - model.budget_of(r);
      v.missing = fmt::format("{:.0f} bytes", lacks);
      v.message = fmt::format(
          "row {} holds {} at {} ({}), {} more than its budget of {}; keep fewer microbatches in "
          "flight, move a stage elsewhere or raise the budget",
          r,
          bytes_text(rows[r].bytes),
          to_string(*entry.cell),
          where(in, entry),
          enough_bytes_text(lacks),
          bytes_text(model.budget_of(r)));
      out.push_back(std::move(v));
    }
  }
}

}  // namespace stagecraft::rules
