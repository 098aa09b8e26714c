#include "stagecraft/scheduler/dag/issue/elide.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
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
/// each place. `lent`: of an evaluation, its buckets.
TrainingDag sharded(const std::string& name,
                    int ranks,
                    int microbatches,
                    int buckets,
                    std::int64_t chunks_of_bucket = 1,
                    bool ordered = true,
                    const std::vector<DagBucket>& lent = {}) {
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
  source.buckets = lent;
  return apply(strategy, std::move(source), /*training=*/lent.empty());
}

/// Returns the forwards of such a step.
TrainingDag evaluated(const std::string& name, int ranks, int microbatches, int buckets) {
  return sharded(name,
                 ranks,
                 microbatches,
                 buckets,
                 1,
                 true,
                 sharded(name, ranks, microbatches, buckets).buckets);
}

/// Returns the most buckets that tasks have gathered at a time, if each list runs as it is issued,
/// and gives weights back behind the last task before their next gather.
std::size_t most_gathered(const IssuedDag& issued) {
  const DagAdjacency edges(issued.dag);
  std::size_t most = 0;
  for (const std::vector<int>& list : issued.lists) {
    std::map<int, std::size_t> last_use, gathered;  // by gather: positions
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (issued.dag.node(list[i]).kind == DagKind::AllGather) {
        gathered[list[i]] = i;
      }
    }
    std::map<int, int> gather_of;  // by bucket
    for (std::size_t i = 0; i < list.size(); ++i) {
      const DagNode& node = issued.dag.node(list[i]);
      if (node.kind == DagKind::AllGather) {
        gather_of[node.bucket] = list[i];
      }
      for (std::size_t b = 0; computes(node.kind) && b < issued.dag.buckets.size(); ++b) {
        const DagBucket& bucket = issued.dag.buckets[b];
        if (bucket.lends && bucket.has(node.chunk) &&
            std::ranges::find(bucket.stages, node.stage) != bucket.stages.end()) {
          last_use[gather_of.at(static_cast<int>(b))] = i;
        }
      }
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      most = std::max(most, static_cast<std::size_t>(std::ranges::count_if(gathered, [&](auto& g) {
                        return g.second <= i && i <= last_use.at(g.first);
                      })));
    }
  }
  return most;
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

TEST_CASE("an evaluation gathers for its forwards as a step does, two buckets at a time",
          "[scheduler][dag][sharding][evaluation]") {
  const std::string name = GENERATE("1f1b", "gpipe", "zb-v", "dualpipev");
  const int buckets = GENERATE(1, 2, 4);
  CAPTURE(name, buckets);
  TrainingDag dag = evaluated(name, 2, 4, buckets);
  const std::size_t all = dag.count(DagKind::Forward);
  CHECK(dag.count(DagKind::AllGather) == all);
  CHECK(dag.count(DagKind::ReduceScatter) == 0);
  CHECK(std::ranges::all_of(dag.nodes, [&](const DagNode& node) {
    return node.kind != DagKind::AllGather || dag.streams[node.stream] == "gather";
  }));
  elide(dag);
  CHECK(find_cycle(dag).empty());
  if (buckets > 1) {
    CHECK(dag.count(DagKind::AllGather) == all);
  } else if (name == "1f1b" || name == "gpipe") {
    CHECK(dag.count(DagKind::AllGather) == 2);  // one stage on each of two rows
  } else {
    CHECK(dag.count(DagKind::AllGather) < all);
  }
  CHECK(most_gathered(issue(evaluated(name, 2, 4, buckets))) <= 2);
}

TEST_CASE("the chunks of an evaluation may use several buckets, and share them",
          "[scheduler][dag][sharding][evaluation]") {
  std::vector<DagBucket> buckets = sharded("gpipe", 2, 4, 3).buckets;
  REQUIRE(buckets.size() == 6);
  buckets[0].chunks = 2;  // of chunks 0 and 1 of stage 0
  buckets[2].first_chunk = 1;
  buckets[2].chunks = 2;
  buckets[4].chunks = 0;  // of no chunk of stage 1
  buckets[5].gather_stream = "weights";
  const auto lent = [&] { return sharded("gpipe", 2, 4, 3, 1, true, buckets); };
  TrainingDag dag = lent();
  CHECK(count_on(dag, 0, DagKind::AllGather) == 3 * 4);
  CHECK(count_on(dag, 1, DagKind::AllGather) == 2 * 4);
  CHECK(std::ranges::find(dag.streams, "weights") != dag.streams.end());
  elide(dag);
  CHECK(find_cycle(dag).empty());
  const IssuedDag issued = issue(lent());
  CHECK(issued.dag.count(DagKind::Forward) == 2 * 3 * 4);
  CHECK(most_gathered(issued) <= 3);
}

}  // namespace
}  // namespace stagecraft
