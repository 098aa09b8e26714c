/// Strategies of both forms: an accepted text can be printed and reads back the same, in Piper's
/// form too if that has words for it. One that applies to a short chain makes a graph without a
/// cycle, in which every node has a place, and every rank issues each of its nodes once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/scheduler/strategy/piper_strategy.h"
#include "stagecraft/scheduler/strategy/strategy_file.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"

namespace sc = stagecraft;

namespace {

constexpr int kStages = 3;
constexpr int kMostParts = 16;

/// Returns whether the step has few microbatches.
bool is_small(const sc::Strategy& strategy) {
  return std::ranges::all_of(strategy.directives(), [](const sc::Directive& directive) {
    const auto* const split = std::get_if<sc::SplitDirective>(&directive);
    return split == nullptr || split->parts <= kMostParts;
  });
}

void require_piper(const sc::Strategy& strategy) {
  std::string piper;
  try {
    piper = to_piper(strategy);
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleParameter,
                      "missing words are told as such");
    return;
  }
  sc::fuzz::require(sc::parse_piper_strategy(piper) == strategy,
                    "a strategy for Piper reads back the same");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::optional<sc::Strategy> read;
  try {
    read = sc::parse_strategy_file({reinterpret_cast<const char*>(data), size});
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleParse, "strategies are refused as such");
    return 0;
  }
  sc::fuzz::require(sc::parse_strategy(to_string(*read)) == *read,
                    "a printed strategy reads back the same");
  require_piper(*read);
  if (!is_small(*read)) {
    return 0;
  }
  try {
    sc::TrainingDag dag = apply(*read, sc::bare_source(sc::StageGraph::chain(kStages)));
    sc::fuzz::require(find_cycle(dag).empty(), "an applied strategy has no cycle");
    sc::fuzz::require(
        std::ranges::none_of(dag.nodes, [](const sc::DagNode& n) { return n.place == sc::kNone; }),
        "every node has a place");
    const sc::IssuedDag issued = issue(std::move(dag));
    std::size_t count = 0;
    for (const std::vector<int>& list : issued.lists) {
      count += list.size();
    }
    sc::fuzz::require(count == issued.dag.nodes.size(), "every node is issued once");
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleInvalid, "faults are told as such");
  }
  return 0;
}
