/// V29: all lists can run to their end, so no entries wait for each other in a cycle.
///
///     row 0:  0F0 0B0 0F1     0B0 needs 1B0, which comes after 1F1 in its row, which needs 0F1,
///     row 1:  1F0 1F1 1B0     which comes after 0B0 in its row: a cycle of four
///
/// A cycle is described by its turns. A row's own order needs no explanation. So of entries that
/// follow each other in a row, the report names and counts only the first, which waits for another
/// row, and the last, for which another row waits.
///
/// 1. Run the rows (TaskGraph::walk), each until it must wait. That is linear, because each entry
///    runs once and is examined once for each result that it needs. If all entries run, the check
///    ends here.
/// 2. Otherwise the entries that never ran are stuck. Their graph has an edge from each entry to
///    those that wait for it: the next entry of its row, and the entries that need its result. Each
///    has an incoming edge, so there is a cycle. Prerequisites of updates are left out, because V24
///    judges them.
/// 3. Search for the shortest cycle, because it is the easiest to understand. A search through
///    every entry would be quadratic; out_of_turn() names few entries that lie on all cycles. Each
///    entry is two vertices of the searched graph: reached for its result, or by the order of its
///    row. Moving along a row costs nothing.
/// 4. find_deadlock_exchange() looks for two cells of a row whose exchange lets every row run.
///
/// There is one report, however many cycles exist: `cycle` and `cells` have the tasks and cells of
/// the shortest, `missing` has it as text, the message says which result each of its rows waits
/// for, and `repair` is the exchange, if one was found.
#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/causes/deadlock_exchange.h"
#include "stagecraft/scheduler/rules/causes/order_exchange.h"
#include "stagecraft/scheduler/rules/causes/shortest_cycle.h"
#include "stagecraft/scheduler/rules/causes/wait_cycle.h"
#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {
namespace {

constexpr std::size_t kExactUpTo = 100'000;  // cells; beyond, the cycle may not be the shortest
constexpr std::size_t kSearchesBeyond = 64;
constexpr std::size_t kReasonsTold = 8;

constexpr int kNone = -1;

/// The stuck entries as a graph whose vertices are numbered from 0.
struct Stuck {
  std::vector<int> entries;  ///< by vertex: its number in the TaskGraph
  /// By vertex: the one before it in its row, if it waits for that one's turn but for none of its
  /// results; else kNone.
  std::vector<int> neighbor;
  Digraph graph;  ///< edges from the awaited vertex to the waiting one
  Digraph turns;  ///< vertices by_result() and by_order() of each; lengths count the named ones
};

int by_result(int vertex) {
  return 2 * vertex;
}

int by_order(int vertex) {
  return 2 * vertex + 1;
}

/// Calls visit(holder, prerequisite, waiting) for each result that a member of `entry` needs and
/// another entry, `holder`, makes.
template <class Visit>
void for_each_awaited(const RuleInput& in, int entry, Visit&& visit) {
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

Stuck stuck_entries(const RuleInput& in, const std::vector<bool>& done) {
  Stuck stuck;
  std::vector<int> vertex(done.size(), kNone);
  for (std::size_t e = 0; e < done.size(); ++e) {
    if (!done[e]) {
      vertex[e] = static_cast<int>(stuck.entries.size());
      stuck.entries.push_back(static_cast<int>(e));
    }
  }
  stuck.neighbor.assign(stuck.entries.size(), kNone);
  std::vector<Edge> edges;
  std::vector<Edge> turns;
  for (const int e : stuck.entries) {
    const int vertex_of_e = vertex[static_cast<std::size_t>(e)];
    const auto to = static_cast<std::size_t>(vertex_of_e);
    if (e > in.tasks.row_begin(in.tasks.entry(e).row) && !done[static_cast<std::size_t>(e - 1)]) {
      stuck.neighbor[to] = vertex[static_cast<std::size_t>(e - 1)];
      const int before = stuck.neighbor[to];
      edges.push_back({before, vertex_of_e});
      turns.push_back({by_result(before), by_order(vertex_of_e), 1});
      turns.push_back({by_order(before), by_order(vertex_of_e), 0});
    }
    for_each_awaited(in, e, [&](int holder, const Task&, const Task&) {
      if (!done[static_cast<std::size_t>(holder)]) {
        const int from = vertex[static_cast<std::size_t>(holder)];
        edges.push_back({from, vertex_of_e});
        if (in.tasks.entry(holder).row != in.tasks.entry(e).row || holder > e) {
          turns.push_back({by_result(from), by_result(vertex_of_e), 1});
          turns.push_back({by_order(from), by_result(vertex_of_e), 1});
        }
      }
      if (holder == e - 1) {
        stuck.neighbor[to] = kNone;  // data links them too
      }
    });
  }
  const int vertices = static_cast<int>(stuck.entries.size());
  stuck.graph = digraph(vertices, edges);
  stuck.turns = digraph(2 * vertices, turns);
  return stuck;
}

/// Returns vertices such that every cycle passes through one of them. They are few if the deadlock
/// has few causes.
///
/// Runs the stuck entries once more. Whenever none can run, it picks one whose results are all
/// there and that waits only for its turn, runs it before its turn, and returns it. Proof: on any
/// cycle, take the vertex that ran first. The one before it on the cycle had not run, so this one
/// ran before its turn. Linear, because each vertex runs once and each edge is followed once.
std::vector<int> out_of_turn(const Stuck& stuck) {
  const auto size = stuck.entries.size();
  std::vector<int> missing(size, 0);  // by vertex: the number it still waits for
  for (const int to : stuck.graph.targets) {
    ++missing[static_cast<std::size_t>(to)];
  }
  std::vector<bool> ran(size, false);
  std::vector<int> ready;
  std::vector<int> next_in_turn;  // wait only for their neighbor; some have run since
  const auto update = [&](int v) {
    const auto i = static_cast<std::size_t>(v);
    if (missing[i] == 0) {
      ready.push_back(v);
    } else if (missing[i] == 1 && stuck.neighbor[i] != kNone &&
               !ran[static_cast<std::size_t>(stuck.neighbor[i])]) {
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

/// Returns the entries of the shortest cycle that the report names, or nothing.
std::vector<int> cycle_by_turns(const Stuck& stuck, std::size_t searches) {
  std::vector<int> roots = out_of_turn(stuck);
  std::ranges::transform(roots, roots.begin(), by_order);  // each waits for its turn
  const std::vector<int> cycle = shortest_cycle(stuck.turns, roots, searches);
  std::vector<int> told;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const int next = cycle[(i + 1) % cycle.size()];
    const bool inside_row = cycle[i] % 2 == 1 && next % 2 == 1;
    if (!inside_row) {
      told.push_back(stuck.entries[static_cast<std::size_t>(cycle[i] / 2)]);
    }
  }
  return told;
}

/// Returns the member of entry `from` whose result entry `to` needs, and the member of `to` that
/// needs it. Returns nothing if `to` comes after `from` in its row, which already explains the
/// wait.
std::optional<std::pair<Task, Task>> data_link(const RuleInput& in, int from, int to) {
  std::optional<std::pair<Task, Task>> link;
  if (in.tasks.entry(from).row == in.tasks.entry(to).row && from < to) {
    return link;
  }
  for_each_awaited(in, to, [&](int holder, const Task& prerequisite, const Task& waiting) {
    if (holder == from && !link) {
      link = {prerequisite, waiting};
    }
  });
  return link;
}

/// Returns the report of a cycle of entries. It starts at the first entry in the order of rows, and
/// names the member of a group that is awaited, or else waits.
Violation describe(const RuleInput& in, std::vector<int> cycle) {
  std::rotate(cycle.begin(), std::ranges::min_element(cycle), cycle.end());
  std::vector<WaitStep> steps;
  std::string reasons;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const int here = cycle[i];
    const int next = cycle[(i + 1) % cycle.size()];
    const int before = cycle[(i + cycle.size() - 1) % cycle.size()];
    const auto link = data_link(in, here, next);
    const auto incoming = data_link(in, before, here);
    const Entry& entry = in.tasks.entry(here);
    const Task task = link       ? link->first
                      : incoming ? incoming->second
                                 : entry.cell->tasks().front();
    steps.push_back({here, task, to_string(task)});
    if (link && i < kReasonsTold) {
      reasons += fmt::format("; {} (row {}) needs {} (row {})",
                             to_string(link->second),
                             in.tasks.entry(next).row,
                             to_string(link->first),
                             entry.row);
    }
  }
  Violation v = wait_cycle(in, "V29", steps);
  v.message =
      fmt::format("the rows wait for each other forever: {}, where each must end before the next{}",
                  v.missing,
                  reasons);
  return v;
}

}  // namespace

void check_deadlock(const RuleInput& in, Violations& out) {
  if (in.schedule.form() != Schedule::Form::List) {
    return;
  }
  const std::size_t cells = in.tasks.entries().size();
  std::vector<bool> done(cells, false);
  if (in.tasks.walk([&](int e) { done[static_cast<std::size_t>(e)] = true; }) == cells) {
    return;
  }
  const Stuck stuck = stuck_entries(in, done);
  std::vector<int> cycle = cycle_by_turns(stuck, cells <= kExactUpTo ? 2 * cells : kSearchesBeyond);
  if (cycle.empty()) {
    return;  // only updates are stuck: V24 reports it
  }
  Violation v = describe(in, cycle);
  v.repair = find_deadlock_exchange(in, cycle, done);
  if (v.repair) {
    v.message += "; exchange " + to_string(*v.repair, in.schedule);
  } else {
    v.message +=
        "; no single exchange within a row was found to help, so reorder one of these rows";
  }
  out.push_back(std::move(v));
}

}  // namespace stagecraft::rules
