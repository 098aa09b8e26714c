#include "stagecraft/scheduler/dag/issue/issue.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

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

/// Returns the graph of a schedule whose stages have one to three chunks, each a bucket of its own.
TrainingDag of_buckets(const Schedule& schedule, ReplicateOptions options) {
  const Layout layout = Layout::of(schedule);
  DagSource source = bare_source(schedule.stage_graph());
  const auto last_chunk = [&](StageId stage) { return layout.model_stage(stage).value % 3; };
  for (int s = 0; s < source.graph.size(); ++s) {
    std::vector<DagChunk>& chunks = source.chunks[static_cast<std::size_t>(s)];
    chunks = {{.parameter_bytes = 1}};
    for (int c = 1; c <= last_chunk(StageId(s)); ++c) {
      chunks.push_back({.reads = {c - 1}, .parameter_bytes = 1});
    }
  }
  for (DagTensor& tensor : source.tensors) {
    tensor.from_chunk = tensor.gradient_chunk = last_chunk(tensor.from);
  }
  options.bucket_bytes = 1;
  return apply(strategy_of(schedule, layout, options), std::move(source));
}

TEST_CASE("copies in a schedule come to the same rounds in the same order",
          "[scheduler][dag][sharding]") {
  const auto [builder, devices, microbatches, copies] =
      GENERATE(table<std::string, int, int, int>({{"chimera", 2, 4, 1},
                                                  {"chimera", 4, 8, 1},
                                                  {"chimera", 4, 8, 2},
                                                  {"chimera", 6, 6, 1},
                                                  {"dualpipe", 2, 4, 1},
                                                  {"dualpipe", 4, 8, 1},
                                                  {"dualpipe", 4, 16, 2},
                                                  {"dualpipe", 8, 16, 1}}));
  const ReplicateOptions options = GENERATE(ReplicateOptions{.shard_gradients = true},
                                            ReplicateOptions{.shard_parameters = true});
  CAPTURE(builder, devices, microbatches, copies, options.shard_parameters);
  const Schedule schedule = in_copies(
      build_schedule(builder, {.devices = devices, .microbatches = microbatches}), copies);
  const bool one_bucket = GENERATE(true, false);
  const IssuedDag issued =
      issue(one_bucket ? apply(strategy_of(schedule, Layout::of(schedule), options),
                               bare_source(schedule.stage_graph()))
                       : of_buckets(schedule, options));
  std::size_t count = 0;
  std::map<int, std::set<std::vector<Meeting>>> rounds;  // of a bucket, by row
  for (const std::vector<int>& list : issued.lists) {
    count += list.size();
    std::map<int, std::vector<Meeting>> of_list;
    for (const int n : list) {
      if (is_collective(issued.dag.node(n).kind)) {
        of_list[issued.dag.node(n).bucket].push_back(meeting_of(issued.dag, n));
      }
    }
    for (const auto& [bucket, meetings] : of_list) {
      rounds[bucket].insert(meetings);
    }
  }
  CHECK(count == issued.dag.nodes.size());
  CHECK(rounds.size() == issued.dag.buckets.size());
  for (const auto& [bucket, of_rows] : rounds) {
    CAPTURE(bucket);
    CHECK(of_rows.size() == 1);
    CHECK(of_rows.begin()->size() > 1);
  }
  if (options.shard_parameters && !one_bucket) {
    CHECK(issued.dag.count(DagKind::AllGather) > issued.dag.count(DagKind::ReduceScatter));
  }
}

TEST_CASE("copies in a schedule whose rows come to other rounds cannot share gradients",
          "[scheduler][dag][sharding][bad-input]") {
  // Rank 0 ends its microbatches one by one, and rank 1 both at once.
  const Schedule schedule = Schedule::parse(
      "@microbatches 4\n@edges 0-1,2-3\n@replicas 0=2,1=3\n"
      "0F0 .   .   0B0 0F1 .   .   0B1 .   3F0 3F1 3B0 3B1 .   .\n"
      ".   1F0 1B0 .   .   1F1 1B1 .   2F0 2F1 .   .   .   2B0 2B1\n");
  REQUIRE(validate(schedule, schedule.stage_graph()).empty());
  const auto issued_with = [&](const ReplicateOptions& options) {
    return issue(apply(strategy_of(schedule, Layout::of(schedule), options),
                       bare_source(schedule.stage_graph())));
  };
  CHECK_NOTHROW(issued_with({.shard_optimizer = true}));
  CHECK_THAT(refusal([&] { (void)issued_with({.shard_gradients = true}); }, Errc::ScheduleInvalid),
             Catch::Matchers::ContainsSubstring("stages 0 and 2 are copies of one stage") &&
                 Catch::Matchers::ContainsSubstring("shard_optimizer"));
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
