#include "stagecraft/scheduler/dag/issue/elide.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/scheduler/dag/issue/stream_order.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Returns the graph of a schedule with sharded parameters, `buckets` to a stage, and two ranks in
/// each place.
TrainingDag sharded(const std::string& name,
                    int ranks,
                    int microbatches,
                    int buckets,
                    std::int64_t chunks_of_bucket = 1,
                    bool ordered = true) {
  const Schedule schedule = build_schedule(name, {.devices = ranks, .microbatches = microbatches});
  DagSource source = bare_source(schedule.stage_graph());
  for (auto& chunks : source.chunks) {
    chunks.clear();
    for (int k = 0; k < buckets * chunks_of_bucket; ++k) {
      chunks.push_back(
          {.reads = k > 0 ? std::vector{k - 1} : std::vector<int>(), .parameter_bytes = 1});
    }
  }
  for (DagTensor& tensor : source.tensors) {
    tensor.from_chunk = static_cast<int>(buckets * chunks_of_bucket) - 1;
  }
  Strategy strategy;
  const Strategy plain = strategy_of(schedule, Layout::of(schedule));
  for (const Directive& directive : plain.directives()) {
    if (const auto* const place = std::get_if<PlaceDirective>(&directive)) {
      const std::vector<Rank> pair{Rank(2 * place->ranks.front().value),
                                   Rank(2 * place->ranks.front().value + 1)};
      strategy.place(place->filter, pair)
          .replicate(
              place->filter, pair, {.bucket_bytes = chunks_of_bucket, .shard_parameters = true});
    } else if (const auto* const order = std::get_if<OrderDirective>(&directive)) {
      if (ordered) {
        strategy.order(order->groups);
      }
    } else if (const auto* const split = std::get_if<SplitDirective>(&directive)) {
      strategy.split({}, split->parts);
    }
  }
  return apply(strategy, std::move(source));
}

std::size_t count_on(const TrainingDag& dag, int rank, DagKind kind) {
  std::size_t count = 0;
  for (const DagNode& node : dag.nodes) {
    count += node.kind == kind && node.place != kNone &&
                     dag.places[static_cast<std::size_t>(node.place)].front() == Rank(2 * rank)
                 ? 1
                 : 0;
  }
  return count;
}

TEST_CASE("gathers and scatters that a neighbor makes needless are left out",
          "[scheduler][dag][sharding]") {
  struct Case {
    std::string schedule;
    int ranks, microbatches, rank, buckets;
    std::size_t gathers, scatters;
  };
  const Case c = GENERATE(Case{"1f1b", 4, 8, 0, 1, 1, 5},
                          Case{"1f1b", 4, 8, 0, 2, 23, 16},
                          Case{"1f1b", 4, 8, 0, 4, 55, 32},
                          Case{"1f1b", 4, 8, 3, 1, 1, 8},
                          Case{"1f1b", 4, 8, 3, 2, 17, 16},
                          Case{"1f1b", 4, 8, 3, 4, 49, 32},
                          Case{"gpipe", 4, 8, 1, 1, 1, 1},
                          Case{"gpipe", 4, 8, 2, 2, 31, 16},
                          Case{"gpipe", 4, 8, 0, 4, 63, 32},
                          Case{"1f1b", 2, 4, 0, 2, 11, 8},
                          Case{"1f1b", 2, 4, 1, 2, 9, 8});
  CAPTURE(c.schedule, c.ranks, c.microbatches, c.rank, c.buckets);
  TrainingDag dag = sharded(c.schedule, c.ranks, c.microbatches, c.buckets);
  const auto all = static_cast<std::size_t>(c.microbatches * c.buckets);
  CHECK(count_on(dag, c.rank, DagKind::AllGather) == 2 * all);
  CHECK(count_on(dag, c.rank, DagKind::ReduceScatter) == all);
  elide(dag);
  CHECK(count_on(dag, c.rank, DagKind::AllGather) == c.gathers);
  CHECK(count_on(dag, c.rank, DagKind::ReduceScatter) == c.scatters);
  CHECK(find_cycle(dag).empty());
}

TEST_CASE("buckets of several chunks are gathered and scattered in any order of their chunks",
          "[scheduler][dag][sharding]") {
  const auto [name, ordered] = GENERATE(table<std::string, bool>(
      {{"1f1b", true}, {"1f1b", false}, {"gpipe", false}, {"dualpipev", true}, {"zb-v", true}}));
  const int buckets = GENERATE(1, 2);
  CAPTURE(name, ordered, buckets);
  TrainingDag dag = sharded(name, 2, 4, buckets, 3, ordered);
  elide(dag);
  CHECK(find_cycle(dag).empty());
  std::set<int> gathered, scattered;
  for (const DagNode& node : dag.nodes) {
    if (node.kind == DagKind::AllGather) {
      gathered.insert(node.bucket);
    } else if (node.kind == DagKind::ReduceScatter) {
      scattered.insert(node.bucket);
    }
  }
  CHECK(gathered.size() == dag.buckets.size());
  CHECK(scattered.size() == dag.buckets.size());
  const IssuedDag issued = issue(sharded(name, 2, 4, buckets, 3, ordered));
  std::size_t nodes = 0;
  for (const std::vector<int>& list : issued.lists) {
    nodes += list.size();
  }
  CHECK(nodes == issued.dag.nodes.size());
  CHECK(nodes == dag.nodes.size());
}

}  // namespace
}  // namespace stagecraft
