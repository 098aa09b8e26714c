#include "stagecraft/scheduler/dag/issue/issue.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("copies that divide what they hold have an order in which ranks issue everything",
          "[scheduler][dag][sharding]") {
  const ReplicateOptions options = GENERATE(ReplicateOptions{.shard_optimizer = true},
                                            ReplicateOptions{.shard_gradients = true},
                                            ReplicateOptions{.shard_parameters = true});
  Strategy strategy;
  strategy.split({}, 2);
  for (int s = 0; s < 2; ++s) {
    const std::vector<Rank> ranks{Rank(s), Rank(s + 2)};
    strategy.place(filters::stage(s), ranks).replicate(filters::stage(s), ranks, options);
  }
  const IssuedDag issued = issue(apply(strategy, bare_source(StageGraph::chain(2))));
  std::size_t count = 0;
  for (const std::vector<int>& list : issued.lists) {
    count += list.size();
  }
  CHECK(count == issued.dag.nodes.size());
  CHECK(issued.dag.count(DagKind::AllGather) == 2);  // a stage's only bucket stays gathered
}

TEST_CASE("the sum of a stage begins when its gradients are complete, under later tasks",
          "[scheduler][dag]") {
  const Schedule schedule = in_copies(interleaved(2, 8, 2), 2);
  const IssuedDag issued =
      issue(apply(strategy_of(schedule, Layout::of(schedule)), bare_source(StageGraph::chain(4))));
  REQUIRE(issued.lists.size() == 2);
  for (const std::vector<int>& list : issued.lists) {
    std::vector<std::string> ends;  // of the list, without transfers
    for (const int n : list) {
      if (!is_transfer(issued.dag.node(n).kind)) {
        ends.push_back(to_string(issued.dag, n));
      }
    }
    const bool first = issued.dag.node(list.front()).stage == StageId(0);
    const std::vector<std::string> sums{first ? "all_reduce of stage 2" : "all_reduce of stage 3",
                                        first ? "all_reduce of stage 0" : "all_reduce of stage 1"};
    const auto begun = std::ranges::find(ends, sums[0]);
    REQUIRE(begun != ends.end());
    CHECK(*(begun - 1) == (first ? "2B7" : "3B7"));
    CHECK(std::vector(begun + 1, begun + 4) ==
          (first ? std::vector<std::string>{"0B6", "0B7", sums[1]}
                 : std::vector<std::string>{"1B6", "1B7", sums[1]}));
  }
}

/// Returns the strategy with the transfers of both directions on one stream.
Strategy with_one_stream(const Strategy& strategy) {
  std::vector<Directive> directives = strategy.directives();
  for (Directive& directive : directives) {
    if (auto* const place = std::get_if<PlaceDirective>(&directive)) {
      place->stream = "pp";
    }
  }
  return Strategy(std::move(directives));
}

TEST_CASE("lists that ranks do one node after the other hold no rank up for good",
          "[scheduler][dag]") {
  const bool one_stream = GENERATE(false, true);
  CAPTURE(one_stream);
  for (const BuilderInfo& builder : builders()) {
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      // A skip from every stage to the last.
      request.graph = StageGraph::from_edges(4, {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {1, 3}});
    }
    const Schedule schedule = build_schedule(builder.name, request);
    INFO(builder.name);
    const Strategy strategy = strategy_of(schedule, Layout::of(schedule));
    const IssuedDag issued = issue(apply(one_stream ? with_one_stream(strategy) : strategy,
                                         bare_source(schedule.stage_graph())));
    std::vector<std::size_t> place_in_list(issued.dag.nodes.size());
    for (const std::vector<int>& list : issued.lists) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        place_in_list[static_cast<std::size_t>(list[i])] = i;
      }
    }
    const auto breaks_order = [&](const DagEdge& edge) {
      return issued.dag.node(edge.from).place == issued.dag.node(edge.to).place &&
             place_in_list[static_cast<std::size_t>(edge.from)] >
                 place_in_list[static_cast<std::size_t>(edge.to)];
    };
    CHECK(std::ranges::count_if(issued.dag.edges, breaks_order) == 0);
    std::vector<std::size_t> next(issued.lists.size());
    std::vector<bool> done(issued.dag.nodes.size());
    std::size_t left = issued.dag.nodes.size();
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t l = 0; l < next.size(); ++l) {
        while (next[l] < issued.lists[l].size()) {
          const int n = issued.lists[l][next[l]];
          const DagNode& node = issued.dag.node(n);
          if (node.kind == DagKind::Receive && !done[static_cast<std::size_t>(node.peer)]) {
            break;
          }
          done[static_cast<std::size_t>(n)] = true;
          ++next[l];
          --left;
          moved = true;
        }
      }
    }
    CHECK(left == 0);
  }
}

}  // namespace
}  // namespace stagecraft
