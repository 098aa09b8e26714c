/// V31: between two rows, values are awaited in the order in which they are made.
/// V35: with the order of every communication stream added, the lists still run to their end.
///
/// A send and its receive are one rendezvous that both rows must reach. A row queues its sends as
/// it makes the values and its receives as it needs them; a stream works its queue in order.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/rules.h"
#include "stagecraft/scheduler/rules/shortest_cycle.h"

namespace stagecraft::rules {
namespace {

/// One value that crosses from a row to another.
struct Transfer {
  Task made;
  Task needed_by;
  int from = 0;  // entries
  int to = 0;
};

std::vector<Transfer> transfers_of(const Input& in) {
  std::vector<Transfer> list;
  for (std::size_t e = 0; e < in.tasks.entries().size(); ++e) {
    const int to = static_cast<int>(e);
    for (const Task& task : in.tasks.entry(to).cell->tasks()) {
      if (!in.tasks.in_range(task) || task.kind == CellKind::Update) {
        continue;
      }
      in.tasks.for_each_prerequisite(task, [&](const Task& made) {
        const int from = in.tasks.find(made);
        if (from != TaskGraph::kMissing && in.tasks.entry(from).row != in.tasks.entry(to).row) {
          list.push_back({made, task, from, to});
        }
      });
    }
  }
  return list;  // by the entry that needs it
}

std::string name(const Transfer& t) {
  return fmt::format("{} (for {})", to_string(t.made), to_string(t.needed_by));
}

void check_crossing(const Input& in, const std::vector<Transfer>& transfers, Violations& out) {
  // The latest made so far for each pair of rows; false once the pair has been reported.
  std::map<std::pair<int, int>, std::pair<const Transfer*, bool>> latest;
  for (const Transfer& t : transfers) {
    const Entry& from = in.tasks.entry(t.from);
    const Entry& to = in.tasks.entry(t.to);
    auto& [previous, silent] = latest.try_emplace({from.row, to.row}, nullptr, false).first->second;
    if (previous != nullptr && t.from < previous->from && !silent) {
      silent = true;
      Violation v = at("V31", to, t.needed_by);
      v.missing = to_string(t.made);
      v.cells.emplace_back(from.row, from.column);
      for (const int e : {previous->from, previous->to}) {
        v.cells.emplace_back(in.tasks.entry(e).row, in.tasks.entry(e).column);
      }
      v.message = fmt::format(
          "row {} makes {} before {}, but row {} needs them the other way round; one ordered "
          "channel from row {} to row {} cannot serve both, exchange them on one of the rows",
          from.row,
          name(t),
          name(*previous),
          to.row,
          from.row,
          to.row);
      out.push_back(std::move(v));
    }
    if (previous == nullptr || t.from > previous->from) {
      previous = &t;
    }
  }
}

/// Vertices: the entries, then one per transfer.
Digraph rendezvous_graph(const Input& in,
                         const std::vector<Transfer>& transfers,
                         TransferStreams streams) {
  const int entries = static_cast<int>(in.tasks.entries().size());
  std::vector<std::pair<int, int>> edges;
  for (int e = 1; e < entries; ++e) {
    if (in.tasks.entry(e).row == in.tasks.entry(e - 1).row) {
      edges.emplace_back(e - 1, e);
    }
  }
  // A stream's queue: a send stands after its entry, a receive before the entry that needs it.
  struct Queued {
    int row, stream, place, vertex;
    auto operator<=>(const Queued&) const = default;
  };
  std::vector<Queued> queues;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& t = transfers[i];
    const int vertex = entries + static_cast<int>(i);
    edges.emplace_back(t.from, vertex);
    edges.emplace_back(vertex, t.to);
    const int from_row = in.tasks.entry(t.from).row;
    const int to_row = in.tasks.entry(t.to).row;
    const bool shared = streams == TransferStreams::OnePerRank;
    queues.push_back({from_row, shared ? 0 : 2 * to_row, 2 * t.from + 1, vertex});
    queues.push_back({to_row, shared ? 0 : 2 * from_row + 1, 2 * t.to, vertex});
  }
  std::ranges::sort(queues);
  for (std::size_t i = 1; i < queues.size(); ++i) {
    if (queues[i].row == queues[i - 1].row && queues[i].stream == queues[i - 1].stream) {
      edges.emplace_back(queues[i - 1].vertex, queues[i].vertex);
    }
  }
  return digraph(entries + static_cast<int>(transfers.size()), edges);
}

void check_streams(const Input& in,
                   const std::vector<Transfer>& transfers,
                   TransferStreams streams,
                   Violations& out) {
  constexpr std::size_t kSearches = 256;
  const std::vector<int> cycle =
      shortest_cycle(rendezvous_graph(in, transfers, streams), {}, kSearches);
  if (cycle.empty()) {
    return;
  }
  const auto entries = in.tasks.entries().size();
  Violation v;
  v.rule = "V35";
  std::vector<std::string> steps;
  for (const int vertex : cycle) {
    const auto i = static_cast<std::size_t>(vertex);
    const bool is_entry = i < entries;
    const Entry& entry = in.tasks.entry(is_entry ? vertex : transfers[i - entries].from);
    v.cells.emplace_back(entry.row, entry.column);
    v.cycle.push_back(is_entry ? entry.cell->tasks().front() : transfers[i - entries].made);
    steps.push_back(is_entry ? to_string(*entry.cell)
                             : fmt::format("transfer of {}", name(transfers[i - entries])));
  }
  v.missing = circle(steps);
  v.row = v.cells.front().first;
  v.column = v.cells.front().second;
  v.task = v.cycle.front();
  v.message = fmt::format(
      "transfers wait for each other for ever on their streams: {}; give every peer and direction "
      "a stream of its own, or reorder one of these rows",
      v.missing);
  out.push_back(std::move(v));
}

}  // namespace

void check_transfers(const Input& in, TransferStreams streams, Violations& out) {
  const std::vector<Transfer> transfers = transfers_of(in);
  check_crossing(in, transfers, out);
  if (std::ranges::find(out, "V29", &Violation::rule) == out.end()) {
    check_streams(in, transfers, streams, out);  // rows that wait already would do so here again
  }
}

}  // namespace stagecraft::rules
