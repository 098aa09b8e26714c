/// verify(Plan) checks each list by itself, and then all lists together: P-3, P-5, P-7, and
/// P-10 to P-13.
///
/// Ranks that transfer nothing to each other, directly or over others, are parts of their own. The
/// replicas of a pipeline are such parts, all alike; only the first of them is checked.
#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/compiler/plan/check_groups.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/scheduler/rules/causes/shortest_cycle.h"

namespace stagecraft {
namespace {

constexpr std::size_t kLandmarks = 1000;
constexpr std::size_t kShown = 12;  ///< instructions of a cycle in a message

std::string name_of(const Plan& plan, std::size_t list) {
  std::vector<int> ranks;
  for (const RankPlan& rank : plan.ranks) {
    if (rank.list == static_cast<std::int32_t>(list)) {
      ranks.push_back(rank.rank.value);
    }
  }
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

/// Checks that ranks, lists, edges and peers refer to existing entries (P-9).
void check_names(const Plan& plan, std::vector<std::string>& faults) {
  const auto has = [](std::int32_t number, std::size_t count) {
    return number >= 0 && static_cast<std::size_t>(number) < count;
  };
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const RankPlan& rank = plan.ranks[r];
    if (rank.rank != Rank(r) || !has(rank.list, plan.lists.size()) || rank.first_microbatch < 0) {
      faults.push_back(fmt::format("P-9: rank {}: it has no list, or not its number", r));
      continue;
    }
    const RankList& list = plan.lists[static_cast<std::size_t>(rank.list)];
    const auto is_rank = [&](Rank peer) { return has(peer.value, plan.ranks.size()); };
    if (rank.peers.size() != static_cast<std::size_t>(list.peers) || rank.peers.empty() ||
        rank.peers.front() != kDriver ||
        !std::all_of(rank.peers.begin() + 1, rank.peers.end(), is_rank)) {
      faults.push_back(fmt::format("P-9: rank {}: its peers are not those of its list", r));
    }
  }
  for (std::size_t l = 0; l < plan.lists.size(); ++l) {
    for (const Instruction& i : plan.lists[l].instructions) {
      if (is_transfer(i.op) && !has(i.edge.value, plan.edges.size())) {
        faults.push_back(
            fmt::format("P-9: {}, {}: the plan has no such edge", name_of(plan, l), to_string(i)));
      }
    }
  }
  for (std::size_t g = 0; g < plan.tables.groups.size(); ++g) {
    for (const std::vector<Rank>& set : plan.tables.groups[g].sets) {
      if (!std::ranges::all_of(set, [&](Rank r) { return has(r.value, plan.ranks.size()); })) {
        faults.push_back(fmt::format("P-9: group {} has ranks that the plan has not", g));
      }
    }
  }
}

/// Returns the ranks of one part of each kind, ascending.
std::vector<Rank> ranks_to_check(const Plan& plan) {
  std::vector<std::size_t> root(plan.ranks.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](std::size_t r) {
    while (root[r] != r) {
      r = root[r] = root[root[r]];
    }
    return r;
  };
  for (const RankPlan& rank : plan.ranks) {
    for (std::size_t p = 1; p < rank.peers.size(); ++p) {
      root[find(rank.rank.index())] = find(rank.peers[p].index());
    }
  }
  std::map<std::size_t, std::vector<Rank>> parts;  // by root
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    parts[find(r)].emplace_back(r);
  }
  using Likeness = std::vector<std::int64_t>;  // equal for parts that are alike
  std::map<Likeness, std::vector<Rank>> kinds;
  for (auto& [of, part] : parts) {
    std::ranges::stable_sort(part, {}, [&](Rank r) { return plan.ranks[r.index()].list; });
    std::map<Rank, std::int64_t> position;
    for (const Rank rank : part) {
      position.emplace(rank, std::ssize(position));
    }
    Likeness likeness;
    for (const Rank r : part) {
      const RankPlan& rank = plan.ranks[r.index()];
      likeness.push_back(rank.list);
      likeness.push_back(rank.first_microbatch - plan.ranks[part.front().index()].first_microbatch);
      for (std::size_t p = 1; p < rank.peers.size(); ++p) {
        likeness.push_back(position.at(rank.peers[p]));
      }
    }
    kinds.emplace(std::move(likeness), part);
  }
  std::vector<Rank> ranks;
  for (const auto& [likeness, part] : kinds) {
    ranks.insert(ranks.end(), part.begin(), part.end());
  }
  std::ranges::sort(ranks);
  return ranks;
}

/// Returns whether the graph has a cycle, in linear time.
bool has_cycle(int size, const std::vector<rules::Edge>& edges) {
  std::vector<int> begin(static_cast<std::size_t>(size) + 1), missing(begin.size());
  for (const rules::Edge& edge : edges) {
    ++begin[static_cast<std::size_t>(edge.from) + 1];
    ++missing[static_cast<std::size_t>(edge.to)];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<int> targets(edges.size());
  std::vector<int> next(begin.begin(), begin.end() - 1);
  for (const rules::Edge& edge : edges) {
    targets[static_cast<std::size_t>(next[static_cast<std::size_t>(edge.from)]++)] = edge.to;
  }
  std::vector<int> done;
  done.reserve(static_cast<std::size_t>(size));
  for (int v = 0; v < size; ++v) {
    if (missing[static_cast<std::size_t>(v)] == 0) {
      done.push_back(v);
    }
  }
  for (std::size_t i = 0; i < done.size(); ++i) {
    const auto v = static_cast<std::size_t>(done[i]);
    for (int t = begin[v]; t < begin[v + 1]; ++t) {
      const int to = targets[static_cast<std::size_t>(t)];
      if (--missing[static_cast<std::size_t>(to)] == 0) {
        done.push_back(to);
      }
    }
  }
  return done.size() < static_cast<std::size_t>(size);
}

/// A stream of one rank, whose instructions run one after the other. The blocks of an overlap group
/// run in any order (P-2), but for those of one stage and direction (OG-1).
class Queue {
 public:
  /// Appends an instruction. Returns the vertices of those right before it.
  std::vector<int> add(const Instruction& i, int vertex) {
    if (i.overlap != group_) {
      leave_group();
      group_ = i.overlap;
    }
    if (group_ < 0) {
      return std::exchange(before_, {vertex});
    }
    const Line line{i.task.stage, i.task.kind == CellKind::Forward};
    const auto [entry, first] = last_.try_emplace(line, vertex);
    return first ? before_ : std::vector{std::exchange(entry->second, vertex)};
  }

 private:
  using Line = std::pair<StageId, bool>;

  void leave_group() {
    if (!last_.empty()) {
      before_.clear();
      for (const auto& [line, vertex] : last_) {
        before_.push_back(vertex);
      }
      last_.clear();
    }
  }

  int group_ = -1;
  std::vector<int> before_;   // the last of what came before the group
  std::map<Line, int> last_;  // in the group
};

/// Checks the lists of some ranks together.
class Together {
 public:
  Together(const Plan& plan, std::vector<Rank> ranks, std::vector<std::string>& faults)
      : plan_(plan), ranks_(std::move(ranks)), faults_(faults), first_(plan.ranks.size(), -1) {
    for (const Rank rank : ranks_) {
      first_[rank.index()] = size_;
      size_ += static_cast<int>(list(rank).instructions.size());
    }
    add_meetings();
  }

  void run() {
    pair_transfers();
    if (faults_.empty()) {
      check_order();
      check_streams();
    }
  }

 private:
  /// One end of a transfer.
  struct End {
    Rank from, to;
    EdgeId edge;
    Microbatch microbatch;
    bool receives = false;
    int vertex = -1;  ///< -1: the driver's

    [[nodiscard]] auto transfer() const { return std::tuple(from, to, edge, microbatch); }
    friend bool operator<(const End& a, const End& b) {
      return std::tuple(a.transfer(), a.receives) < std::tuple(b.transfer(), b.receives);
    }
  };

  [[nodiscard]] const RankList& list(Rank rank) const { return plan_.list_of(rank); }

  template <class Use>
  void for_each(Use&& use) const {
    for (const Rank rank : ranks_) {
      const auto& instructions = list(rank).instructions;
      for (std::size_t i = 0; i < instructions.size(); ++i) {
        use(plan_.ranks[rank.index()], instructions[i], first_[rank.index()] + static_cast<int>(i));
      }
    }
  }

  void pair_transfers() {
    std::vector<End> ends;
    for (const Feed& feed : plan_.feeds) {
      if (first_[feed.to.index()] >= 0) {
        ends.push_back({kDriver, feed.to, feed.edge, feed.microbatch});
      }
    }
    for (const PlanResult& result : plan_.results) {
      if (first_[result.from.index()] >= 0) {
        ends.push_back({result.from, kDriver, result.edge, result.microbatch, true});
      }
    }
    for_each([&](const RankPlan& rank, const Instruction& i, int vertex) {
      if (is_transfer(i.op)) {
        const Rank peer = rank.peers[i.peer.index()];
        const bool receives = i.op == Op::Recv;
        ends.push_back({receives ? peer : rank.rank,
                        receives ? rank.rank : peer,
                        i.edge,
                        tagged_microbatch(plan_.tables, rank, i),
                        receives,
                        vertex});
      }
    });
    std::sort(ends.begin(), ends.end());
    for (std::size_t begin = 0; begin < ends.size();) {
      std::size_t end = begin;
      while (end < ends.size() && ends[end].transfer() == ends[begin].transfer()) {
        ++end;
      }
      const bool pair = end - begin == 2 && !ends[begin].receives && ends[begin + 1].receives;
      if (!pair) {
        const auto receives = std::count_if(ends.begin() + static_cast<std::ptrdiff_t>(begin),
                                            ends.begin() + static_cast<std::ptrdiff_t>(end),
                                            [](const End& e) { return e.receives; });
        const End& one = ends[begin];
        faults_.push_back(fmt::format(
            "P-3: edge {} microbatch {} from {} to {} has {} sends and {} receives, expected one "
            "of each",
            one.edge.value,
            one.microbatch.value,
            peer_name(one.from),
            peer_name(one.to),
            static_cast<std::ptrdiff_t>(end - begin) - receives,
            receives));
      } else if (ends[begin].vertex >= 0 && ends[begin + 1].vertex >= 0) {
        pairs_.emplace_back(ends[begin].vertex, ends[begin + 1].vertex);
      }
      begin = end;
    }
  }

  /// Gives each sum and each gather of a group a vertex, at which its members meet.
  void add_meetings() {
    std::vector<std::int32_t> rounds(2 * plan_.tables.groups.size(), 1);
    for (const RankList& list : plan_.lists) {
      for (const Instruction& i : list.instructions) {
        if (is_collective(i.op)) {
          std::int32_t& most = rounds[kind_of_meeting(i)];
          most = std::max(most, i.round + 1);
        }
      }
    }
    meetings_.push_back(size_);
    for (const std::int32_t of_kind : rounds) {
      meetings_.push_back(meetings_.back() + of_kind);
    }
  }

  /// Returns 2 g for a sum of group g, and 2 g + 1 for a gather.
  [[nodiscard]] std::size_t kind_of_meeting(const Instruction& i) const {
    return 2 * static_cast<std::size_t>(i.group) + (gathers_weights(plan_.tables, i) ? 1 : 0);
  }

  /// Returns the vertex where the members of a collective meet, or all ranks for the vote.
  [[nodiscard]] int meeting_of(const Instruction& i) const {
    return i.op == Op::Vote ? meetings_.back() : meetings_[kind_of_meeting(i)] + i.round;
  }
  [[nodiscard]] int vertices() const { return meetings_.back() + 1; }

  /// Keeps P-5: each rank does one instruction after the other; sends and starts do not wait.
  void check_order() {
    std::vector<rules::Edge> edges;
    edges.reserve(static_cast<std::size_t>(size_) + pairs_.size());
    for_each([&](const RankPlan& rank, const Instruction& i, int vertex) {
      if (vertex > first_[rank.rank.index()]) {
        edges.push_back({.from = vertex - 1, .to = vertex});
      }
      if (i.op == Op::Start) {
        edges.push_back({.from = vertex, .to = meeting_of(i)});
      } else if (i.op == Op::Finish) {
        edges.push_back({.from = meeting_of(i), .to = vertex});
      }
    });
    for (const auto& [send, receive] : pairs_) {
      edges.push_back({.from = send, .to = receive});
    }
    refuse_cycle("P-5", edges, {}, {});
  }

  /// Keeps P-10: each stream goes ahead by itself; both ends of a transfer, and all members of a
  /// collective, are one vertex. A Free is none.
  void check_streams() {
    std::vector<int> meets(static_cast<std::size_t>(vertices()));
    std::iota(meets.begin(), meets.end(), 0);
    for (const auto& [send, receive] : pairs_) {
      meets[static_cast<std::size_t>(receive)] = send;
    }
    for_each([&](const RankPlan&, const Instruction& i, int vertex) {
      if (i.op == Op::Start || i.op == Op::Vote) {
        meets[static_cast<std::size_t>(vertex)] = meeting_of(i);
      }
    });
    std::vector<rules::Edge> edges;
    std::vector<Rank> waiting;  // by edge: the rank on which one comes behind the other
    edges.reserve(2 * static_cast<std::size_t>(size_));
    waiting.reserve(edges.capacity());
    for (const Rank rank : ranks_) {
      const auto connect = [&](int from, int to) {
        edges.push_back({.from = meets[static_cast<std::size_t>(from)],
                         .to = meets[static_cast<std::size_t>(to)]});
        waiting.push_back(rank);
      };
      const RankList& of = list(rank);
      std::vector<Queue> queues(of.streams.size());
      std::vector<int> vertex_of(of.instructions.size(), -1);
      for (std::size_t n = 0; n < of.instructions.size(); ++n) {
        const Instruction& i = of.instructions[n];
        if (i.op == Op::Free) {
          continue;
        }
        const int vertex = first_[rank.index()] + static_cast<int>(n);
        vertex_of[i.id.index()] = vertex;
        for (const int before : queues[i.stream.index()].add(i, vertex)) {
          connect(before, vertex);
        }
        for (const InstructionId wait : i.waits) {
          if (vertex_of[wait.index()] >= 0) {
            connect(vertex_of[wait.index()], vertex);
          }
        }
      }
    }
    refuse_cycle("P-10", edges, meets, waiting);
  }

  /// `meets`: by vertex, the vertex that stands for it; empty: each for itself. `waiting`: by edge,
  /// the rank to name if an edge of the cycle does not show it; empty if every edge does.
  void refuse_cycle(std::string_view rule,
                    const std::vector<rules::Edge>& edges,
                    const std::vector<int>& meets,
                    const std::vector<Rank>& waiting) {
    if (!has_cycle(vertices(), edges)) {
      return;
    }
    const std::vector<int> cycle =
        rules::shortest_cycle(rules::digraph(vertices(), edges), {}, kLandmarks);
    // Ends where it begins, so that the wait which closes the cycle has its rank too.
    std::vector<std::string> names{name_of_vertex(cycle.front(), meets)};
    for (std::size_t i = 0; i < std::min(cycle.size(), kShown); ++i) {
      const rules::Edge wait{.from = cycle[i], .to = cycle[(i + 1) % cycle.size()]};
      const auto edge = std::ranges::find_if(
          edges, [&](const rules::Edge& e) { return e.from == wait.from && e.to == wait.to; });
      const std::string where =
          waiting.empty() || edge == edges.end()
              ? ""
              : fmt::format("on rank {}: ",
                            waiting[static_cast<std::size_t>(edge - edges.begin())].value);
      names.push_back(
          i + 1 == kShown && i + 1 < cycle.size() ? "..." : where + name_of_vertex(wait.to, meets));
    }
    faults_.push_back(fmt::format("{}: {} wait for each other: {}",
                                  rule,
                                  rule == "P-5" ? "ranks" : "streams",
                                  fmt::join(names, " -> ")));
  }

  /// Returns "all-reduce of group 1 (stage 1) of ranks 0, 1".
  [[nodiscard]] std::string name_of_collective(std::int32_t number,
                                               bool gather,
                                               std::int32_t round) const {
    const PlanGroup& group = plan_.tables.groups[static_cast<std::size_t>(number)];
    std::set<int> members;
    for (const std::vector<Rank>& set : group.sets) {
      for (const Rank rank : set) {
        members.insert(rank.value);
      }
    }
    const RankPlan& one = plan_.ranks[static_cast<std::size_t>(*members.begin())];
    const auto& instructions = plan_.list_of(one.rank).instructions;
    const auto start = std::ranges::find_if(instructions, [&](const Instruction& i) {
      return i.op == Op::Start && i.group == number && gathers_weights(plan_.tables, i) == gather &&
             i.round == round;
    });
    const std::string name = start == instructions.end()
                                 ? fmt::format("start sum of group {}", number)
                                 : short_name(one, *start);
    return fmt::format("{} ({}) of ranks {}",
                       name.substr(name.find("start ") + std::string_view("start ").size()),
                       to_string(plan_.tables, group),
                       fmt::join(members, ", "));
  }

  [[nodiscard]] std::string name_of_vertex(int vertex, const std::vector<int>& meets) const {
    if (vertex == meetings_.back()) {
      return "the vote";
    }
    if (vertex >= size_) {
      const auto next = std::ranges::upper_bound(meetings_, vertex);
      const auto kind = static_cast<std::int32_t>(next - meetings_.begin()) - 1;
      return name_of_collective(kind / 2, kind % 2 == 1, vertex - *(next - 1));
    }
    const auto one = [&](int v) {
      const auto rank = std::ranges::find_if(ranks_, [&](Rank r) {
        const int first = first_[r.index()];
        return v >= first && v < first + static_cast<int>(list(r).instructions.size());
      });
      const auto position = static_cast<std::size_t>(v - first_[rank->index()]);
      const Instruction& i = list(*rank).instructions[position];
      return fmt::format("rank {} {}", rank->value, short_name(plan_.ranks[rank->index()], i));
    };
    std::string text = one(vertex);
    for (const auto& [send, receive] : pairs_) {
      if (!meets.empty() && send == vertex) {
        text += " with " + one(receive);
      }
    }
    return text;
  }

  const Plan& plan_;
  const std::vector<Rank> ranks_;
  std::vector<std::string>& faults_;
  std::vector<int> first_;     // by rank: the vertex of its first instruction; -1: not looked at
  int size_ = 0;               // vertices of instructions
  std::vector<int> meetings_;  // by kind: the vertex of its first round; then the vote's
  std::vector<std::pair<int, int>> pairs_;  // send, receive
};

}  // namespace

std::vector<std::string> verify(const Plan& plan) {
  std::vector<std::string> faults;
  check_names(plan, faults);
  if (!faults.empty()) {
    return faults;  // the checks below rely on it
  }
  for (std::size_t l = 0; l < plan.lists.size(); ++l) {
    const std::vector<std::string> of_list = verify(plan.lists[l], plan.tables, name_of(plan, l));
    faults.insert(faults.end(), of_list.begin(), of_list.end());
  }
  if (std::ranges::any_of(faults, [](const std::string& f) {
        return f.starts_with("P-9") || f.starts_with("P-6") || f.starts_with("P-1:") ||
               f.starts_with("P-11") || f.starts_with("P-13");
      })) {
    return faults;  // likewise
  }
  check_groups(plan, faults);
  std::vector<std::string> together;
  Together(plan, ranks_to_check(plan), together).run();
  faults.insert(faults.end(), together.begin(), together.end());
  return faults;
}

}  // namespace stagecraft
