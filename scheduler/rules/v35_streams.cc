#include "stagecraft/scheduler/rules/v35_streams.h"

#include <algorithm>
#include <compare>
#include <utility>

#include "stagecraft/scheduler/rules/causes/shortest_cycle.h"
#include "stagecraft/scheduler/rules/causes/wait_cycle.h"

namespace stagecraft::rules {
namespace {

/// One end of a transfer in the queue of a row's stream.
struct Queued {
  int row, stream, place, vertex;
  auto operator<=>(const Queued&) const = default;
};

/// The graph of waits; an edge goes from the awaited vertex to the waiting one.
///
/// The vertices are the entries, then one per transfer, then the places in orders: of its row for
/// an entry, of its queues for a transfer. A vertex that follows another in an order is reached
/// through its place there. Moving from place to place costs nothing, so a cycle is as long as its
/// named entries and transfers.
class WaitGraph {
 public:
  WaitGraph(const RuleInput& in, const std::vector<Rendezvous>& transfers, TransferStreams streams);
  /// Returns the entries and transfers of a cycle that the report names, or nothing.
  [[nodiscard]] std::vector<int> cycle() const;

 private:
  void add_rows(const RuleInput& in);
  void add_queues(std::vector<Queued> queues);
  void follow(int vertex, bool first);

  int named_;  ///< number of entries and transfers; places have numbers from here on
  int size_;
  int before_ = 0;  ///< the vertex of the previous follow() call
  std::vector<Edge> edges_;
};

/// Adds the vertex as the next of an order, or as its first.
void WaitGraph::follow(int vertex, bool first) {
  const int place = size_++;
  edges_.push_back({place, vertex, 1});
  if (!first) {
    edges_.push_back({before_, place, 0});
    edges_.push_back({place - 1, place, 0});
  }
  before_ = vertex;
}

void WaitGraph::add_rows(const RuleInput& in) {
  for (int e = 0; e < static_cast<int>(in.tasks.entries().size()); ++e) {
    follow(e, e == 0 || in.tasks.entry(e).row != in.tasks.entry(e - 1).row);
  }
}

void WaitGraph::add_queues(std::vector<Queued> queues) {
  std::ranges::sort(queues);
  for (std::size_t i = 0; i < queues.size(); ++i) {
    follow(
        queues[i].vertex,
        i == 0 || queues[i].row != queues[i - 1].row || queues[i].stream != queues[i - 1].stream);
  }
}

WaitGraph::WaitGraph(const RuleInput& in,
                     const std::vector<Rendezvous>& transfers,
                     TransferStreams streams)
    : named_(static_cast<int>(in.tasks.entries().size() + transfers.size())), size_(named_) {
  const int entries = static_cast<int>(in.tasks.entries().size());
  const bool shared = streams == TransferStreams::OnePerRank;
  std::vector<Queued> queues;
  add_rows(in);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Rendezvous& r = transfers[i];
    const int vertex = entries + static_cast<int>(i);
    for (const int before : {r.sent_after, r.received_after}) {
      if (before != TaskGraph::kMissing) {
        edges_.push_back({before, vertex});
      }
    }
    edges_.push_back({vertex, r.transfer.to});
    const int from_row = in.tasks.entry(r.transfer.from).row;
    const int to_row = in.tasks.entry(r.transfer.to).row;
    queues.push_back({from_row, shared ? 0 : 2 * to_row, r.send_place, vertex});
    queues.push_back({to_row, shared ? 0 : 2 * from_row + 1, r.receive_place, vertex});
  }
  add_queues(std::move(queues));
}

std::vector<int> WaitGraph::cycle() const {
  constexpr std::size_t kSearches = 256;
  std::vector<int> cycle = shortest_cycle(digraph(size_, edges_), {}, kSearches);
  std::erase_if(cycle, [&](int vertex) { return vertex >= named_; });
  return cycle;
}

}  // namespace

std::optional<Violation> find_blocked_streams(const RuleInput& in,
                                              const std::vector<Rendezvous>& transfers,
                                              TransferStreams streams,
                                              const std::function<std::string(std::size_t)>& name) {
  const std::vector<int> cycle = WaitGraph(in, transfers, streams).cycle();
  if (cycle.empty()) {
    return std::nullopt;
  }
  const auto entries = in.tasks.entries().size();
  std::vector<WaitStep> steps;
  for (const int vertex : cycle) {
    const auto v = static_cast<std::size_t>(vertex);
    if (v < entries) {
      const Cell& cell = *in.tasks.entry(vertex).cell;
      steps.push_back({vertex, cell.tasks().front(), to_string(cell)});
    } else {
      const Transfer& transfer = transfers[v - entries].transfer;
      steps.push_back({transfer.from, transfer.made, name(v - entries)});
    }
  }
  return wait_cycle(in, "V35", steps);
}

}  // namespace stagecraft::rules
