/// V29: the lists can all run to their end: row order and data dependencies together have no cycle.
///
/// Finding out costs one walk. Only when rows get stuck is a graph built, of the stuck entries
/// alone: edges to the next entry of the row and to the entries that need a result. Updates wait
/// for all of their stage, which V24 judges, so their edges are left out here.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/exchange.h"
#include "stagecraft/scheduler/rules/repair.h"
#include "stagecraft/scheduler/rules/rules.h"
#include "stagecraft/scheduler/rules/shortest_cycle.h"

namespace stagecraft::rules {
namespace {

constexpr std::size_t kExactUpTo = 100'000;  // cells; beyond, a bounded number of searches
constexpr std::size_t kSearchesBeyond = 64;

constexpr int kNone = -1;

/// The stuck entries, numbered from 0.
struct Stuck {
  std::vector<int> entries;  // entry of a vertex
  std::vector<int>
      neighbour;  // vertex before it in its row when only the order of the row links them
  Digraph graph;
};

template <class Visit>
void for_each_awaited(const Input& in, int entry, Visit&& visit) {
  for (const Task& task : in.tasks.entry(entry).cell->tasks()) {
    if (!in.tasks.in_range(task) || task.kind == CellKind::Update) {
      continue;
    }
    in.tasks.for_each_prerequisite(task, [&](const Task& prerequisite) {
      const int holder = in.tasks.find(prerequisite);
      if (holder != TaskGraph::kMissing && holder != entry) {
        visit(holder, prerequisite, task);
      }
    });
  }
}

Stuck stuck_entries(const Input& in, const std::vector<bool>& done) {
  Stuck stuck;
  std::vector<int> vertex(done.size(), kNone);
  for (std::size_t e = 0; e < done.size(); ++e) {
    if (!done[e]) {
      vertex[e] = static_cast<int>(stuck.entries.size());
      stuck.entries.push_back(static_cast<int>(e));
    }
  }
  stuck.neighbour.assign(stuck.entries.size(), kNone);
  std::vector<std::pair<int, int>> edges;
  for (const int e : stuck.entries) {
    const auto to = static_cast<std::size_t>(vertex[static_cast<std::size_t>(e)]);
    if (e > in.tasks.row_begin(in.tasks.entry(e).row) && !done[static_cast<std::size_t>(e - 1)]) {
      stuck.neighbour[to] = vertex[static_cast<std::size_t>(e - 1)];
      edges.emplace_back(stuck.neighbour[to], to);
    }
    for_each_awaited(in, e, [&](int holder, const Task&, const Task&) {
      if (!done[static_cast<std::size_t>(holder)]) {
        edges.emplace_back(vertex[static_cast<std::size_t>(holder)], to);
      }
      if (holder == e - 1) {
        stuck.neighbour[to] = kNone;  // data links them too
      }
    });
  }
  stuck.graph = digraph(static_cast<int>(stuck.entries.size()), edges);
  return stuck;
}

/// Vertices that together lie on every cycle, few when the deadlock has few causes: whenever
/// nothing can run, one entry whose data is there runs out of turn. Each cycle passes through one
/// that had to.
std::vector<int> out_of_turn(const Stuck& stuck) {
  const auto size = stuck.entries.size();
  std::vector<int> missing(size, 0);
  for (const int to : stuck.graph.targets) {
    ++missing[static_cast<std::size_t>(to)];
  }
  std::vector<bool> ran(size, false);
  std::vector<int> ready;
  std::vector<int> next_in_turn;  // all but their turn has come
  const auto update = [&](int v) {
    const auto i = static_cast<std::size_t>(v);
    if (missing[i] == 0) {
      ready.push_back(v);
    } else if (missing[i] == 1 && stuck.neighbour[i] != kNone &&
               !ran[static_cast<std::size_t>(stuck.neighbour[i])]) {
      next_in_turn.push_back(v);
    }
  };
  for (std::size_t v = 0; v < size; ++v) {
    update(static_cast<int>(v));
  }
  std::vector<int> forced;
  std::size_t next_forced = 0;
  while (!ready.empty() || next_forced < next_in_turn.size()) {
    const bool in_turn = !ready.empty();
    const int v = in_turn ? ready.back() : next_in_turn[next_forced++];
    if (in_turn) {
      ready.pop_back();
    }
    const auto i = static_cast<std::size_t>(v);
    if (ran[i]) {
      continue;
    }
    ran[i] = true;
    if (!in_turn) {
      forced.push_back(v);
    }
    for (int e = stuck.graph.begin[i]; e < stuck.graph.begin[i + 1]; ++e) {
      const int to = stuck.graph.targets[static_cast<std::size_t>(e)];
      --missing[static_cast<std::size_t>(to)];
      update(to);
    }
  }
  return forced;
}

/// The member of `from` that `to` waits for, and the waiting member; nothing when they are only row
/// neighbours.
std::optional<std::pair<Task, Task>> data_link(const Input& in, int from, int to) {
  std::optional<std::pair<Task, Task>> link;
  for_each_awaited(in, to, [&](int holder, const Task& prerequisite, const Task& waiting) {
    if (holder == from && !link) {
      link = {prerequisite, waiting};
    }
  });
  return link;
}

Violation describe(const Input& in, std::vector<int> cycle) {
  std::rotate(cycle.begin(), std::ranges::min_element(cycle), cycle.end());
  Violation v =
      at("V29", in.tasks.entry(cycle.front()), in.tasks.entry(cycle.front()).cell->tasks().front());
  v.cells.clear();
  std::string reasons;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const int here = cycle[i];
    const int next = cycle[(i + 1) % cycle.size()];
    const Entry& entry = in.tasks.entry(here);
    const auto link = data_link(in, here, next);
    const auto incoming = data_link(in, cycle[(i + cycle.size() - 1) % cycle.size()], here);
    v.cycle.push_back(link       ? link->first
                      : incoming ? incoming->second
                                 : entry.cell->tasks().front());
    v.cells.emplace_back(entry.row, entry.column);
    if (link && i < 8) {
      reasons += fmt::format("; {} (row {}) needs {} (row {})",
                             to_string(link->second),
                             in.tasks.entry(next).row,
                             to_string(link->first),
                             entry.row);
    }
  }
  v.task = v.cycle.front();
  std::vector<std::string> steps;
  std::ranges::transform(
      v.cycle, std::back_inserter(steps), [](const Task& task) { return to_string(task); });
  v.missing = circle(steps);
  v.message = fmt::format(
      "the rows wait for each other for ever: {}, where each must end before the next{}",
      v.missing,
      reasons);
  return v;
}

}  // namespace

void check_deadlock(const Input& in, Violations& out) {
  const std::size_t cells = in.tasks.entries().size();
  std::vector<bool> done(cells, false);
  if (in.tasks.walk([&](int e) { done[static_cast<std::size_t>(e)] = true; }) == cells) {
    return;
  }
  const Stuck stuck = stuck_entries(in, done);
  std::vector<int> cycle = shortest_cycle(
      stuck.graph, out_of_turn(stuck), cells <= kExactUpTo ? cells : kSearchesBeyond);
  if (cycle.empty()) {
    return;  // only updates are stuck: V24 has said so
  }
  for (int& vertex : cycle) {
    vertex = stuck.entries[static_cast<std::size_t>(vertex)];
  }
  Violation v = describe(in, cycle);
  v.repair = find_exchange(in, cycle, done);
  if (v.repair) {
    v.message += "; exchange " + to_string(*v.repair, in.schedule);
  } else {
    v.message += "; no single exchange within a row was found to help, reorder one of these rows";
  }
  out.push_back(std::move(v));
}

}  // namespace stagecraft::rules
