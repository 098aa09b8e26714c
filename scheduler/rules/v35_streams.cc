#include "stagecraft/scheduler/rules/v35_streams.h"

#include <algorithm>
#include <compare>
#include <utility>

#include "stagecraft/scheduler/rules/shortest_cycle.h"
#include "stagecraft/scheduler/rules/wait_cycle.h"

namespace stagecraft::rules {
namespace {

using Edges = std::vector<Edge>;

/// One end of a transfer in the queue of a row's stream.
struct Queued {
  int row, stream, place, vertex;
  auto operator<=>(const Queued&) const = default;
};

void add_rows(const Input& in, Edges& edges) {
  for (int e = 1; e < static_cast<int>(in.tasks.entries().size()); ++e) {
    if (in.tasks.entry(e).row == in.tasks.entry(e - 1).row) {
      edges.push_back({e - 1, e});
    }
  }
}

void add_queues(std::vector<Queued> queues, Edges& edges) {
  std::ranges::sort(queues);
  for (std::size_t i = 1; i < queues.size(); ++i) {
    if (queues[i].row == queues[i - 1].row && queues[i].stream == queues[i - 1].stream) {
      edges.push_back({queues[i - 1].vertex, queues[i].vertex});
    }
  }
}

/// Vertices: the entries, then one per transfer. Who waits is behind whom it waits for.
Digraph rendezvous_graph(const Input& in,
                         const std::vector<Rendezvous>& transfers,
                         TransferStreams streams) {
  const int entries = static_cast<int>(in.tasks.entries().size());
  const bool shared = streams == TransferStreams::OnePerRank;
  Edges edges;
  std::vector<Queued> queues;
  add_rows(in, edges);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Rendezvous& r = transfers[i];
    const int vertex = entries + static_cast<int>(i);
    for (const int before : {r.sent_after, r.received_after}) {
      if (before != TaskGraph::kMissing) {
        edges.push_back({before, vertex});
      }
    }
    edges.push_back({vertex, r.transfer.to});
    const int from_row = in.tasks.entry(r.transfer.from).row;
    const int to_row = in.tasks.entry(r.transfer.to).row;
    queues.push_back({from_row, shared ? 0 : 2 * to_row, r.send_place, vertex});
    queues.push_back({to_row, shared ? 0 : 2 * from_row + 1, r.receive_place, vertex});
  }
  add_queues(std::move(queues), edges);
  return digraph(entries + static_cast<int>(transfers.size()), edges);
}

}  // namespace

std::optional<Violation> find_blocked_streams(const Input& in,
                                              const std::vector<Rendezvous>& transfers,
                                              TransferStreams streams,
                                              const std::function<std::string(std::size_t)>& name) {
  constexpr std::size_t kSearches = 256;
  const std::vector<int> cycle =
      shortest_cycle(rendezvous_graph(in, transfers, streams), {}, kSearches);
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
