#include "stagecraft/tests/sim/transfer_machine.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace stagecraft::tests {
namespace {

class TransferMachine {
 public:
  /// Views the plan.
  TransferMachine(const Plan& plan, TransferRules rules) : plan_(plan), rules_(rules) {
    for (const RankPlan& rank : plan_.ranks) {
      ranks_.push_back({.plan = &rank, .list = &plan_.list_of(rank.rank).instructions});
      ranks_.back().state.resize(ranks_.back().list->size());
    }
  }

  std::string run() {
    while (moves()) {
    }
    return wrong_.empty() ? standing() : wrong_;
  }

 private:
  enum class State : char { NotIssued, Issued, Runs, Done };
  using Pair = std::pair<Rank, Rank>;
  using Transfer = std::tuple<EdgeId, Microbatch>;

  struct OnRank {
    const RankPlan* plan;
    const std::vector<Instruction>* list;
    std::vector<State> state = {};
    std::size_t issued = 0;  ///< by the host, so far
    int resident = 0;
  };
  struct End {
    std::size_t rank, position;
    Transfer transfer;
  };

  [[nodiscard]] static bool is_far(const Instruction& i) {
    return is_transfer(i.op) && i.peer != kDriverPeer;
  }
  [[nodiscard]] std::vector<Rank> members_of(const OnRank& r, const Instruction& i) const {
    return plan_.tables.groups[static_cast<std::size_t>(i.group)].members(r.plan->rank);
  }
  [[nodiscard]] bool is_sum(const OnRank& r, const Instruction& i) const {
    return i.op == Op::Start && members_of(r, i).size() > 1;
  }
  /// Returns the state of the member's start of the sum; null if its list has none.
  [[nodiscard]] State* start_of(Rank member, int group) {
    OnRank& r = *std::ranges::find_if(
        ranks_, [&](const OnRank& other) { return other.plan->rank == member; });
    const auto start = std::ranges::find_if(*r.list, [&](const Instruction& other) {
      return other.op == Op::Start && other.group == group;
    });
    return start == r.list->end() ? nullptr
                                  : &r.state[static_cast<std::size_t>(start - r.list->begin())];
  }
  [[nodiscard]] Pair pair_of(const OnRank& r, const Instruction& i) const {
    const Rank peer = r.plan->peers[i.peer.index()];
    return i.op == Op::Send ? Pair{r.plan->rank, peer} : Pair{peer, r.plan->rank};
  }
  [[nodiscard]] Transfer transfer_of(const OnRank& r, const Instruction& i) const {
    return {i.edge, tagged_microbatch(plan_.tables, *r.plan, i)};
  }

  bool moves() {
    bool any = false;
    for (std::size_t r = 0; r < ranks_.size() && wrong_.empty(); ++r) {
      while (issue(r)) {
        any = true;
      }
      for (std::size_t i = 0; i < ranks_[r].issued; ++i) {
        any = advance(r, i) || any;
      }
    }
    return any;
  }

  /// Keeps TM-1.
  bool issue(std::size_t rank) {
    OnRank& r = ranks_[rank];
    if (r.issued == r.list->size()) {
      return false;
    }
    const Instruction& i = (*r.list)[r.issued];
    if (i.op == Op::Finish) {
      for (const Rank member : members_of(r, i)) {
        const State* const start = start_of(member, i.group);
        if (start == nullptr || *start == State::NotIssued) {
          return false;
        }
      }
    }
    if (i.op == Op::Vote) {
      for (std::size_t before = 0; before < r.issued; ++before) {
        if ((*r.list)[before].stream == i.stream && r.state[before] != State::Done) {
          return false;
        }
      }
    }
    if (is_far(i)) {
      const Pair pair = pair_of(r, i);
      const Transfer transfer = transfer_of(r, i);
      if (i.op == Op::Recv && !tickets_[pair].contains(transfer)) {
        return false;
      }
      if (i.op == Op::Send) {
        tickets_[pair].insert(transfer);
      }
      auto& ends = (i.op == Op::Send ? sends_ : receives_)[pair];
      ends.push_back({rank, r.issued, transfer});
      number_[{rank, r.issued}] = ends.size() - 1;
    }
    r.state[r.issued++] = State::Issued;
    return true;
  }

  /// Keeps TM-2.
  [[nodiscard]] bool may_begin(const OnRank& r, std::size_t position) const {
    const Instruction& i = (*r.list)[position];
    const auto queue_of = [this](const Instruction& of) { return of.stream.value % rules_.queues; };
    for (std::size_t b = 0; b < position; ++b) {
      const Instruction& before = (*r.list)[b];
      const bool waits = std::ranges::find(i.waits, before.id) != i.waits.end() &&
                         before.op != Op::Free && i.op != Op::Free;
      if (r.state[b] != State::Done && (before.stream == i.stream || waits)) {
        return false;
      }
      if (r.state[b] == State::Issued && queue_of(before) == queue_of(i)) {
        return false;
      }
    }
    return true;
  }

  bool advance(std::size_t rank, std::size_t position) {
    OnRank& r = ranks_[rank];
    State& state = r.state[position];
    const Instruction& i = (*r.list)[position];
    bool moved = false;
    if (state == State::Issued && may_begin(r, position)) {
      if (!is_far(i) && !is_sum(r, i)) {
        state = State::Done;
        return true;
      }
      if (r.resident < rules_.resident) {
        ++r.resident;
        state = State::Runs;
        moved = true;
      }
    }
    if (state != State::Runs) {
      return moved;
    }
    return (is_far(i) ? meet(rank, position) : meet_all(r, i)) || moved;
  }

  /// Keeps TM-3 for a sum.
  bool meet_all(const OnRank& rank, const Instruction& start) {
    const std::vector<Rank> members = members_of(rank, start);
    for (const Rank member : members) {
      const State* const other = start_of(member, start.group);
      if (other == nullptr || *other != State::Runs) {
        return false;
      }
    }
    for (OnRank& r : ranks_) {
      if (std::ranges::find(members, r.plan->rank) != members.end()) {
        *start_of(r.plan->rank, start.group) = State::Done;
        --r.resident;
      }
    }
    return true;
  }

  /// Keeps TM-3.
  bool meet(std::size_t rank, std::size_t position) {
    OnRank& r = ranks_[rank];
    const Instruction& i = (*r.list)[position];
    const auto& others = (i.op == Op::Send ? receives_ : sends_)[pair_of(r, i)];
    const std::size_t number = number_.at({rank, position});
    if (number >= others.size()) {
      return false;
    }
    const End& other = others[number];
    if (other.transfer != transfer_of(r, i)) {
      wrong_ = fmt::format(
          "{} meets {}", to_string(i), to_string((*ranks_[other.rank].list)[other.position]));
      return false;
    }
    State& state = ranks_[other.rank].state[other.position];
    if (state != State::Runs) {
      return false;
    }
    state = r.state[position] = State::Done;
    --r.resident;
    --ranks_[other.rank].resident;
    return true;
  }

  [[nodiscard]] std::string standing() const {
    std::string text;
    for (const OnRank& r : ranks_) {
      for (std::size_t i = 0; i < r.list->size(); ++i) {
        if (r.state[i] != State::Done) {
          text += fmt::format("rank {}: {} {}\n",
                              r.plan->rank.value,
                              r.state[i] == State::Runs ? "runs" : "waits for",
                              to_string((*r.list)[i]));
          break;
        }
      }
    }
    return text;
  }

  const Plan& plan_;
  const TransferRules rules_;
  std::vector<OnRank> ranks_;
  std::map<Pair, std::set<Transfer>> tickets_;
  std::map<Pair, std::vector<End>> sends_, receives_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> number_;  ///< by rank and position
  std::string wrong_;
};

}  // namespace

std::string run_transfers(const Plan& plan, const TransferRules& rules) {
  return TransferMachine(plan, rules).run();
}

}  // namespace stagecraft::tests
