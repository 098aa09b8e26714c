/// Tests the passes on a training DAG against counts and orders that were worked out by hand.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/dag/issue/communication_order.h"
#include "stagecraft/scheduler/dag/issue/dispatch.h"
#include "stagecraft/scheduler/dag/issue/elide.h"
#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/scheduler/dag/issue/rendezvous.h"
#include "stagecraft/scheduler/dag/issue/stream_order.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Returns the graph of a schedule with sharded parameters, `buckets` to a stage, and two ranks in
/// each place.
TrainingDag sharded(const std::string& name, int ranks, int microbatches, int buckets) {
  const Schedule schedule = build_schedule(name, {.devices = ranks, .microbatches = microbatches});
  DagSource source = bare_source(schedule.stage_graph());
  for (auto& chunks : source.chunks) {
    chunks.clear();
    for (int k = 0; k < buckets; ++k) {
      chunks.push_back(
          {.reads = k > 0 ? std::vector{k - 1} : std::vector<int>(), .parameter_bytes = 1});
    }
  }
  for (DagTensor& tensor : source.tensors) {
    tensor.from_chunk = buckets - 1;
  }
  Strategy strategy;
  const Strategy plain = strategy_of(schedule, Layout::of(schedule));
  for (const Directive& directive : plain.directives()) {
    if (const auto* const place = std::get_if<PlaceDirective>(&directive)) {
      const std::vector<Rank> pair{Rank(2 * place->ranks.front().value),
                                   Rank(2 * place->ranks.front().value + 1)};
      strategy.place(place->filter, pair)
          .replicate(place->filter, pair, {.bucket_bytes = 1, .shard_parameters = true});
    } else if (const auto* const order = std::get_if<OrderDirective>(&directive)) {
      strategy.order(order->groups);
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
  const std::vector<StreamOrder> orders = order_streams(dag);
  elide(dag, orders);
  CHECK(count_on(dag, c.rank, DagKind::AllGather) == c.gathers);
  CHECK(count_on(dag, c.rank, DagKind::ReduceScatter) == c.scatters);
  CHECK(find_cycle(dag).empty());
}

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
  CHECK(issued.dag.count(DagKind::AllGather) == (options.shard_parameters ? 8 : 2));
}

/// A graph on one rank, written by hand, whose nodes have names.
class Drawn {
 public:
  Drawn() {
    dag.source = bare_source(StageGraph::chain(1));
    dag.places = {{Rank(0)}};
    dag.streams = {"compute", "ep"};
  }

  /// Adds a chain of nodes; the names that end in a, b, ... are exchanges on the second stream.
  void chain(const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool exchanges = std::islower(names[i].back()) != 0;
      if (!number_.contains(names[i])) {
        number_[names[i]] = dag.add({.kind = exchanges ? DagKind::AllToAll : DagKind::Forward,
                                     .stage = StageId(0),
                                     .place = 0,
                                     .stream = exchanges ? 1 : 0});
      }
      if (i > 0) {
        dag.connect(number_[names[i - 1]], number_[names[i]]);
      }
    }
  }

  std::vector<std::string> named(const std::vector<int>& nodes) const {
    std::vector<std::string> names;
    for (const int n : nodes) {
      for (const auto& [name, number] : number_) {
        if (number == n) {
          names.push_back(name);
        }
      }
    }
    return names;
  }

  TrainingDag dag;

 private:
  std::map<std::string, int> number_;
};

using Names = std::vector<std::string>;

TEST_CASE("chains that may overlap are interleaved chunk by chunk", "[scheduler][dag]") {
  SECTION("a forward and a backward") {
    Drawn drawn;
    drawn.chain({"F1", "Fa", "F2", "Fc", "F3"});
    drawn.chain({"B1", "Ba", "B2", "Bc", "B3"});
    const StreamOrder order = order_streams(drawn.dag).front();
    CHECK(drawn.named(order.streams[0]) == Names{"F1", "B1", "F2", "B2", "F3", "B3"});
    CHECK(drawn.named(order.streams[1]) == Names{"Fa", "Ba", "Fc", "Bc"});
  }
  SECTION("a forward and a backward in halves") {
    Drawn drawn;
    drawn.chain({"F1", "Fa", "F2"});
    drawn.chain({"I1", "Ia", "I2"});
    drawn.chain({"I1", "W1"});
    drawn.chain({"I2", "W2"});
    const StreamOrder order = order_streams(drawn.dag).front();
    CHECK(drawn.named(order.streams[0]) == Names{"I1", "F1", "I2", "F2", "W1", "W2"});
    CHECK(drawn.named(order.streams[1]) == Names{"Ia", "Fa"});
  }
}

TEST_CASE("nodes of one level are issued by what they hold up", "[scheduler][dag]") {
  TrainingDag dag;
  dag.source = bare_source(StageGraph::chain(2));
  dag.places = {{Rank(0)}, {Rank(1)}};
  const int compute = dag.add({.kind = DagKind::Forward, .stage = StageId(0), .place = 0});
  const int sum = dag.add({.kind = DagKind::AllReduce, .stage = StageId(0), .place = 0});
  const int gather = dag.add({.kind = DagKind::AllGather, .stage = StageId(0), .place = 0});
  const int send = dag.add({.kind = DagKind::Send, .stage = StageId(0), .place = 0});
  const int far_receive =
      dag.add({.kind = DagKind::Receive, .stage = StageId(1), .place = 1, .peer = send});
  dag.node(send).peer = far_receive;
  const int far_send = dag.add({.kind = DagKind::Send, .stage = StageId(1), .place = 1});
  const int receive =
      dag.add({.kind = DagKind::Receive, .stage = StageId(0), .place = 0, .peer = far_send});
  dag.node(far_send).peer = receive;
  CHECK(dispatch_order(dag).front() == std::vector{send, gather, sum, compute, receive});
}

TEST_CASE("a rank issues sends at once and receives just before they are needed",
          "[scheduler][dag]") {
  const Schedule schedule = build_schedule("1f1b", {.devices = 3, .microbatches = 4});
  TrainingDag dag =
      apply(strategy_of(schedule, Layout::of(schedule)), bare_source(schedule.stage_graph()));
  const std::vector<StreamOrder> orders = order_streams(dag);
  delay_receives(dag, orders);
  for (const std::vector<int>& list : dispatch_order(dag)) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const DagNode& node = dag.node(list[i]);
      if (node.kind == DagKind::Send) {
        REQUIRE(i > 0);
        const DagNode& before = dag.node(list[i - 1]);
        CHECK((before.kind == DagKind::Send || before.microbatch == node.microbatch));
      }
      if (node.kind == DagKind::Receive) {
        REQUIRE(i + 1 < list.size());
        const DagNode& next = dag.node(list[i + 1]);
        CHECK((computes(next.kind) && next.microbatch == node.microbatch));
      }
    }
  }
}

TEST_CASE("transfers between two ranks have one order at both ends", "[scheduler][dag]") {
  const Schedule schedule = build_schedule("zb-v", {.devices = 4, .microbatches = 8});
  const IssuedDag issued = issue(
      apply(strategy_of(schedule, Layout::of(schedule)), bare_source(schedule.stage_graph())));
  const TrainingDag& dag = issued.dag;
  std::map<std::pair<int, int>, std::vector<int>> sends, receives;
  for (const std::vector<int>& list : issued.lists) {
    for (const int n : list) {
      const DagNode& node = dag.node(n);
      if (node.kind == DagKind::Send) {
        sends[{node.place, dag.node(node.peer).place}].push_back(n);
      } else if (node.kind == DagKind::Receive) {
        receives[{dag.node(node.peer).place, node.place}].push_back(node.peer);
      }
    }
  }
  CHECK(sends.size() == 6);
  CHECK(sends == receives);
}

TEST_CASE("a sender takes the order that its receiver needs", "[scheduler][dag]") {
  // The sender makes 0F0 first. The receiver's 1F0 waits for its 1F1, which waits for the other.
  const IssuedDag issued =
      issue(apply(Strategy{}
                      .split({}, 2)
                      .place(filters::stage(0), {Rank(0)})
                      .place(filters::stage(1), {Rank(1)})
                      .order({{filters::forward(0, 0)}, {filters::forward(0, 1)}})
                      .order({{filters::forward(1, 1)}, {filters::forward(1, 0)}}),
                  bare_source(StageGraph::chain(2))));
  std::vector<int> sent;
  for (const int n : issued.lists.front()) {
    const DagNode& node = issued.dag.node(n);
    if (node.kind == DagKind::Send) {
      sent.push_back(node.microbatch.value);
    }
  }
  CHECK(sent == std::vector{1, 0});
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
    const Rendezvous together(issued.dag);
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
