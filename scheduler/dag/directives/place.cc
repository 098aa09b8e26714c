#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/scheduler/dag/directives/directives.h"
#include "stagecraft/scheduler/model/number_range.h"

namespace stagecraft {
namespace {

/// Returns why these ranks cannot be a list; empty for a good one.
std::string list_fault(const std::vector<Rank>& ranks) {
  if (ranks.empty()) {
    return "it names no rank";
  }
  std::set<Rank> seen;
  for (const Rank rank : ranks) {
    if (rank.value < 0) {
      return fmt::format("{} is no rank; ranks count from 0", rank.value);
    }
    if (!seen.insert(rank).second) {
      return fmt::format("rank {} is named twice", rank.value);
    }
  }
  return {};
}

class Places {
 public:
  Places(TrainingDag& dag, StrategyFaults& faults) : dag_(dag), faults_(faults) {}

  /// Returns the position of the rank list; nothing if the list overlaps with another (DG-2).
  int find_or_add(std::size_t number, const std::vector<Rank>& ranks) {
    const auto found = std::ranges::find(dag_.places, ranks);
    if (found != dag_.places.end()) {
      return static_cast<int>(found - dag_.places.begin());
    }
    for (const Rank rank : ranks) {
      if (const auto other = list_of_.find(rank); other != list_of_.end()) {
        faults_.note(
            number,
            fmt::format("rank {} is in {} too: all stages of a rank have one list of ranks",
                        rank.value,
                        place_text(dag_, static_cast<int>(other->second))));
        return kNone;
      }
    }
    for (const Rank rank : ranks) {
      list_of_.emplace(rank, dag_.places.size());
    }
    dag_.places.push_back(ranks);
    return static_cast<int>(dag_.places.size()) - 1;
  }

  void check_gaps() {
    Rank next(0);
    for (const auto& [rank, list] : list_of_) {
      if (rank != next) {
        faults_.note(
            fmt::format("{} is placed and rank {} has no stage: number ranks from 0 "
                        "without a gap",
                        place_text(dag_, static_cast<int>(list)),
                        next.value));
        return;
      }
      next = Rank(rank.value + 1);
    }
  }

 private:
  TrainingDag& dag_;
  StrategyFaults& faults_;
  std::map<Rank, std::size_t> list_of_;
};

/// Notes stages that are placed nowhere, or in parts.
void check_stages(const TrainingDag& dag, StrategyFaults& faults) {
  std::vector<std::set<int>> places(static_cast<std::size_t>(dag.source.graph.size()));
  for (const DagNode& node : dag.nodes) {
    if (computes(node.kind)) {
      places[node.stage.index()].insert(node.place);
    }
  }
  std::vector<int> nowhere;
  for (std::size_t s = 0; s < places.size(); ++s) {
    if (places[s].size() == 1 && !places[s].contains(kNone)) {
      continue;
    }
    std::vector<std::string> lists;
    for (const int place : places[s]) {
      if (place != kNone) {
        lists.push_back(place_text(dag, place));
      }
    }
    if (lists.empty()) {
      nowhere.push_back(static_cast<int>(s));
    } else if (places[s].contains(kNone)) {
      faults.note(fmt::format(
          "a part of stage {} is placed on {} and the rest nowhere", s, fmt::join(lists, ", ")));
    } else {
      faults.note(fmt::format("stage {} is placed on {}: a stage runs on one list of ranks",
                              s,
                              fmt::join(lists, " and on ")));
    }
  }
  if (!nowhere.empty()) {
    const bool one = nowhere.size() == 1;
    faults.note(fmt::format("{} {} placed nowhere: add place {{{}:{}}} on [...]{}",
                            counted("stage", ranges_of(nowhere)),
                            one ? "is" : "are",
                            kStageTag,
                            nowhere.front(),
                            one ? "" : ", and so on"));
  }
}

}  // namespace

void place(TrainingDag& dag,
           const DagMatcher& matcher,
           const std::vector<Numbered<PlaceDirective>>& places,
           StrategyFaults& faults) {
  Places lists(dag, faults);
  const std::string* stream = nullptr;
  for (const auto& [number, directive] : places) {
    if (const std::string fault = list_fault(directive->ranks); !fault.empty()) {
      faults.note(number, fault);
      continue;
    }
    if (!directive->stream.empty()) {
      if (stream != nullptr && *stream != directive->stream) {
        faults.note(number,
                    fmt::format("transfers are on stream {} already: name one stream in all places",
                                *stream));
      }
      stream = stream == nullptr ? &directive->stream : stream;
    }
    const std::vector<int> matched = matcher.match(number, directive->filter, faults);
    if (matched.empty()) {
      continue;
    }
    const int list = lists.find_or_add(number, directive->ranks);
    if (list == kNone) {
      continue;
    }
    const auto elsewhere = std::ranges::find_if(
        matched, [&](int n) { return dag.node(n).place != kNone && dag.node(n).place != list; });
    if (elsewhere != matched.end()) {
      faults.note(number,
                  fmt::format("{} is placed on {} already",
                              to_string(dag, *elsewhere),
                              place_text(dag, dag.node(*elsewhere).place)));
      continue;
    }
    for (const int n : matched) {
      dag.node(n).place = list;
    }
  }
  check_stages(dag, faults);
  lists.check_gaps();
  std::vector<int> place_of(static_cast<std::size_t>(dag.source.graph.size()), kNone);
  for (const DagNode& node : dag.nodes) {
    if (computes(node.kind)) {
      place_of[node.stage.index()] = node.place;
    }
  }
  for (DagNode& node : dag.nodes) {
    if (node.kind == DagKind::Update) {
      node.place = place_of[node.stage.index()];
    }
  }
}

void add_transfers(TrainingDag& dag, const std::vector<Numbered<PlaceDirective>>& places) {
  std::string named;
  for (const auto& [number, directive] : places) {
    named = named.empty() ? directive->stream : named;
  }
  const int send_stream = dag.stream_named(named.empty() ? "send" : named);
  const int receive_stream = dag.stream_named(named.empty() ? "receive" : named);
  std::vector<DagEdge> edges;
  edges.reserve(2 * dag.edges.size());
  for (const DagEdge& edge : dag.edges) {
    const DagNode from = dag.node(edge.from);
    const DagNode to = dag.node(edge.to);
    if (!edge.data || from.place == to.place) {
      edges.push_back(edge);
      continue;
    }
    DagNode transfer{.kind = DagKind::Send,
                     .stage = from.stage,
                     .chunk = from.chunk,
                     .microbatch = from.microbatch,
                     .place = from.place,
                     .stream = send_stream,
                     .tensor = edge.tensor,
                     .peer = dag.size() + 1,
                     .gradient = from.kind != DagKind::Forward,
                     .part = edge.part};
    const int send = dag.add(transfer);
    transfer.kind = DagKind::Receive;
    transfer.stage = to.stage;
    transfer.chunk = to.chunk;
    transfer.microbatch = to.microbatch;
    transfer.place = to.place;
    transfer.stream = receive_stream;
    transfer.peer = send;
    const int receive = dag.add(transfer);
    edges.push_back({.from = edge.from, .to = send, .tensor = edge.tensor, .part = edge.part});
    edges.push_back({.from = receive, .to = edge.to, .tensor = edge.tensor, .part = edge.part});
  }
  dag.edges = std::move(edges);
}

}  // namespace stagecraft
