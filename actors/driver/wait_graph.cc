#include "stagecraft/actors/driver/wait_graph.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {
namespace {

std::string names_of(const std::vector<Rank>& ranks) {
  std::vector<std::string> names;
  for (const Rank rank : ranks) {
    names.push_back(peer_name(rank));
  }
  return fmt::to_string(fmt::join(names, ", "));
}

/// Returns the way by which `end` was reached, from `begin` on.
std::vector<Rank> way_to(Rank end, Rank begin, const std::map<Rank, Rank>& from) {
  std::vector<Rank> chain;
  for (Rank r = end; r != begin; r = from.at(r)) {
    chain.push_back(r);
  }
  chain.push_back(begin);
  std::ranges::reverse(chain);
  return chain;
}

bool same_group(const Instruction& a, const Instruction& b) {
  return a.overlap >= 0 && a.overlap == b.overlap;
}

/// Tasks of an overlap group may have been issued in any order, so skip the others of the group.
std::optional<Task> last_begun_at(const std::vector<Instruction>& list, std::size_t position) {
  const Instruction& at = list[position];
  for (std::size_t i = position + 1; i-- > 0;) {
    const bool tells = list[i].op == Op::Run || list[i].op == Op::Send;
    if (tells && (i == position || !same_group(list[i], at))) {
      return list[i].task;
    }
  }
  return std::nullopt;
}

}  // namespace

WaitGraph::WaitGraph(const std::vector<UnfinishedRank>& unfinished, const Plan& plan, bool in_order)
    : plan_(&plan) {
  for (const UnfinishedRank& u : unfinished) {
    unfinished_.emplace(u.rank, &u);
  }
  for (const UnfinishedRank& u : unfinished) {
    if (in_order && was_sent(u.rank)) {
      waits_for_sent_.insert(u.rank);
    }
  }
}

const UnfinishedRank* WaitGraph::find(Rank rank) const {
  const auto found = unfinished_.find(rank);
  return found == unfinished_.end() ? nullptr : found->second;
}

bool WaitGraph::is_silent(Rank rank) const {
  const UnfinishedRank* u = find(rank);
  return u != nullptr && u->silent_for;
}

std::vector<Rank> WaitGraph::waiting_for(Rank rank) const {
  const UnfinishedRank* u = find(rank);
  return u != nullptr && u->status && !u->silent_for ? u->status->waiting_for : std::vector<Rank>{};
}

bool WaitGraph::holds_up(Rank rank) const {
  return find(rank) != nullptr && waiting_for(rank).empty();
}

double WaitGraph::seconds_in_instruction(Rank rank) const {
  const UnfinishedRank* u = find(rank);
  return u != nullptr && u->status ? u->status->seconds : 0.0;
}

std::vector<Rank> WaitGraph::reach(Rank rank, Ways& from) const {
  std::vector<Rank> reached{rank};
  from.emplace(rank, rank);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (waits_for_sent(reached[i])) {
      continue;
    }
    for (const Rank next : waiting_for(reached[i])) {
      if (from.emplace(next, reached[i]).second) {
        reached.push_back(next);
      }
    }
  }
  return reached;
}

std::vector<Rank> WaitGraph::chain_from(Rank rank) const {
  Ways from;
  const std::vector<Rank> reached = reach(rank, from);
  auto end = std::ranges::find_if(reached, [this](Rank r) { return holds_up(r); });
  if (end == reached.end()) {
    end = std::ranges::find_if(reached, [this](Rank r) { return waiting_for(r).empty(); });
  }
  if (end != reached.end()) {
    return way_to(*end, rank, from);
  }
  end = std::ranges::find_if(reached, [this](Rank r) { return waits_for_sent(r); });
  if (end != reached.end()) {
    std::vector<Rank> chain = way_to(*end, rank, from);
    chain.push_back(waiting_for(*end).front());
    return chain;
  }
  std::vector<Rank> chain;
  Rank next = rank;
  while (std::ranges::find(chain, next) == chain.end()) {
    chain.push_back(next);
    next = waiting_for(next).front();
  }
  chain.push_back(next);
  return chain;
}

std::vector<Rank> WaitGraph::chain_to(Rank rank) const {
  std::vector<Rank> longest{rank};
  for (const auto& [begin, unfinished] : unfinished_) {
    Ways from;
    (void)reach(begin, from);
    if (from.contains(rank)) {
      std::vector<Rank> chain = way_to(rank, begin, from);
      if (chain.size() > longest.size()) {
        longest = std::move(chain);
      }
    }
  }
  return longest;
}

const Instruction* WaitGraph::instruction(Rank rank) const {
  const UnfinishedRank* u = find(rank);
  if (u == nullptr || !u->status || u->status->instruction < 0 ||
      rank.index() >= plan_->ranks.size()) {
    return nullptr;
  }
  const auto& list = plan_->list_of(rank).instructions;
  const auto position = static_cast<std::size_t>(u->status->instruction);
  return position < list.size() ? &list[position] : nullptr;
}

std::string WaitGraph::collective_text(const Instruction& collective) const {
  const auto& groups = plan_->tables.groups;
  const auto group = static_cast<std::size_t>(collective.group);
  if (group >= groups.size()) {
    return "a sum of gradients";
  }
  const std::string_view what = is_exchange(collective)                      ? "exchange of samples"
                                : gathers_weights(plan_->tables, collective) ? "gather of weights"
                                                                             : "sum";
  return fmt::format(
      "the {} of group {} ({})", what, group, to_string(plan_->tables, groups[group]));
}

std::string WaitGraph::work(Rank rank) const {
  const Instruction& in = *instruction(rank);
  const std::string task = to_string(in.task);
  switch (in.op) {
    case Op::Run:
      return task;
    case Op::Send:
      return fmt::format("the send of {} to {}", task, peer_name(peer_of(rank, in)));
    case Op::Recv:
      return fmt::format("the receive of what {} reads", task);
    case Op::Start:
    case Op::Finish:
      return collective_text(in);
    case Op::Free:
      return "the release of a tensor";
    case Op::Accumulate:
      return fmt::format("the addition of the gradients of {}", task);
    case Op::Vote:
      return "the vote";
    case Op::Update:
      return fmt::format("the update of stage {}", in.task.stage.value);
    case Op::Regroup:
      return fmt::format("the regrouping of rows for {}", task);
    case Op::Release:
      return "the release of gathered weights";
  }
  return task;
}

Rank WaitGraph::peer_of(Rank rank, const Instruction& transfer) const {
  return plan_->ranks[rank.index()].peers[transfer.peer.index()];
}

/// A sound plan has a sender (keeps P-3).
const Instruction* WaitGraph::sender_of(Rank receiver, const Instruction& receive) const {
  const Rank sender = peer_of(receiver, receive);
  if (sender == kDriver) {
    return nullptr;
  }
  const RankPlan& of_receiver = plan_->ranks[receiver.index()];
  const Microbatch wanted = tagged_microbatch(plan_->tables, of_receiver, receive);
  const auto& list = plan_->list_of(sender).instructions;
  const auto found = std::ranges::find_if(list, [&](const Instruction& i) {
    return i.op == Op::Send && i.edge == receive.edge && peer_of(sender, i) == receiver &&
           tagged_microbatch(plan_->tables, plan_->ranks[sender.index()], i) == wanted;
  });
  return found == list.end() ? nullptr : &*found;
}

/// An overlap group may issue its tasks in any order, so a rank in it is not known to have sent.
bool WaitGraph::was_sent(Rank receiver) const {
  const Instruction* in = instruction(receiver);
  if (in == nullptr || in->op != Op::Recv ||
      waiting_for(receiver) != std::vector{peer_of(receiver, *in)}) {
    return false;
  }
  const Rank sender = peer_of(receiver, *in);
  const Instruction* send = sender_of(receiver, *in);
  const Instruction* at = instruction(sender);
  return send != nullptr && at != nullptr && !is_silent(sender) && at > send &&
         !same_group(*at, *send);
}

std::string WaitGraph::wait_text(Rank rank) const {
  const std::vector<Rank> peers = waiting_for(rank);
  const std::string names = names_of(peers);
  const Instruction* in = instruction(rank);
  if (in != nullptr && in->op == Op::Recv && peers == std::vector{peer_of(rank, *in)}) {
    if (const Instruction* sender = sender_of(rank, *in)) {
      return fmt::format("waits for {} from {}", to_string(sender->task), names);
    }
    return fmt::format("waits for what {} reads from {}", to_string(in->task), names);
  }
  if (in != nullptr && in->op == Op::Vote) {
    return fmt::format("waits for the vote of {}", names);
  }
  if (in != nullptr && is_collective(in->op)) {
    const auto& groups = plan_->tables.groups;
    const auto group = static_cast<std::size_t>(in->group);
    if (group < groups.size() && is_exchange(*in)) {
      return fmt::format("waits for samples that {} exchange{} in group {} ({})",
                         names,
                         peers.size() == 1 ? "s" : "",
                         group,
                         to_string(plan_->tables, groups[group]));
    }
    if (group < groups.size() && gathers_weights(plan_->tables, *in)) {
      const bool lent = gathers_for_tasks(plan_->tables, groups[group]);
      return fmt::format("waits for the weights of group {} ({}) that {} {}{}",
                         group,
                         to_string(plan_->tables, groups[group]),
                         names,
                         lent ? "keep" : "update",
                         peers.size() == 1 ? "s" : "");
    }
    return group >= groups.size()
               ? fmt::format("waits for the gradients of {}", names)
               : fmt::format("waits in the sum of group {} ({}) for the gradients of {}",
                             group,
                             to_string(plan_->tables, groups[group]),
                             names);
  }
  return fmt::format("waits for {}", names);
}

std::string WaitGraph::text(const std::vector<Rank>& chain) const {
  std::string text;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    if (i == 0) {
      text = peer_name(chain[i]) + " ";
    } else if (waiting_for(chain[i - 1]).size() == 1) {
      text += ", which ";
    } else {
      text += fmt::format("; {} ", peer_name(chain[i]));
    }
    text += wait_text(chain[i]);
  }
  return text;
}

/// Returns the position in its list of the last Send or vote that an unfinished peer has received;
/// -1 for none.
std::int64_t WaitGraph::last_sent(Rank rank) const {
  const auto& list = plan_->list_of(rank).instructions;
  std::int64_t last = -1;
  for (const auto& [peer, unfinished] : unfinished_) {
    const Instruction* in = instruction(peer);
    if (peer == rank || in == nullptr) {
      continue;
    }
    const Instruction* first = plan_->list_of(peer).instructions.data();
    for (const Instruction* i = first; i != in; ++i) {
      const Instruction* taken = nullptr;
      if (i->op == Op::Recv && peer_of(peer, *i) == rank && !same_group(*i, *in)) {
        taken = sender_of(peer, *i);
      } else if (i->op == Op::Vote) {
        const auto vote = std::ranges::find(list, Op::Vote, &Instruction::op);
        taken = vote == list.end() ? nullptr : &*vote;
      }
      last = taken == nullptr ? last : std::max<std::int64_t>(last, taken - list.data());
    }
  }
  return last;
}

std::optional<Task> WaitGraph::last_begun(Rank rank) const {
  if (rank.index() >= plan_->ranks.size()) {
    return std::nullopt;
  }
  const auto& list = plan_->list_of(rank).instructions;
  const Instruction* seen = instruction(rank);
  const std::int64_t position =
      std::max(last_sent(rank), seen == nullptr ? std::int64_t{-1} : seen - list.data());
  return position < 0 ? std::nullopt : last_begun_at(list, static_cast<std::size_t>(position));
}

}  // namespace stagecraft
