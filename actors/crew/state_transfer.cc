#include "stagecraft/actors/crew/state_transfer.h"

#include <utility>

#include "stagecraft/actors/messages/data_tags.h"
#include "stagecraft/actors/messages/state_request.h"

namespace stagecraft {

StateTransfer::StateTransfer(PlanId plan,
                             const CrewWorkers& workers,
                             std::shared_ptr<Transport> here,
                             std::shared_ptr<StepLedger> ledger,
                             std::shared_ptr<std::atomic<std::int64_t>> epoch)
    : plan_(plan),
      workers_(workers),
      here_(std::move(here)),
      ledger_(std::move(ledger)),
      epoch_(std::move(epoch)) {}

std::vector<StatePick> all_of(const std::vector<Rank>& ranks) {
  std::vector<StatePick> picks;
  for (const Rank rank : ranks) {
    picks.push_back({.rank = rank});
  }
  return picks;
}

std::vector<StateListing> StateTransfer::list() const {
  return ask(all_of(workers_.all_ranks()), {.request = ledger_->next_request(), .tensors = false});
}

std::vector<std::vector<StateTensor>> StateTransfer::read(
    const std::vector<StatePick>& picks) const {
  return read(picks, {.request = ledger_->next_request()});
}

std::vector<std::vector<StateTensor>> StateTransfer::read_gradients() const {
  return read(all_of(workers_.all_ranks()),
              {.request = ledger_->next_request(), .gradients = true});
}

std::vector<StateListing> StateTransfer::ask(const std::vector<StatePick>& picks,
                                             SendState what) const {
  std::vector<Asked<StateListing>> asked;
  for (const StatePick& pick : picks) {
    what.only = pick.positions;
    asked.push_back(workers_.ask_rank<StateListing>(pick.rank, what));
  }
  return workers_.gather(asked);
}

/// Returns the tensors that each rank was asked to send.
std::vector<std::vector<StateTensor>> StateTransfer::read(const std::vector<StatePick>& picks,
                                                          const SendState& what) const {
  const StateRequest request(*here_, plan_, what.request);
  const std::vector<StateListing> listings = ask(picks, what);
  const Deadline deadline = workers_.deadline();
  std::vector<std::vector<Future<at::Tensor>>> arrivals(listings.size());
  for (std::size_t r = 0; r < listings.size(); ++r) {
    for (std::size_t i = 0; i < listings[r].names.size(); ++i) {
      arrivals[r].push_back(request.receive(picks[r].rank, i));
    }
  }
  std::vector<std::vector<StateTensor>> state(listings.size());
  for (std::size_t r = 0; r < listings.size(); ++r) {
    for (std::size_t i = 0; i < listings[r].names.size(); ++i) {
      if (!workers_.wait(picks[r].rank, arrivals[r][i], deadline)) {
        throw Error(Errc::ClusterTimeout,
                    peer_name(picks[r].rank) + " has announced a tensor that has not arrived")
            .with({.rank = picks[r].rank});
      }
      state[r].push_back({listings[r].names[i], arrivals[r][i].get()});
    }
  }
  return state;
}

/// Tells all ranks that their state will be another one.
void StateTransfer::announce(Submission request) const {
  std::vector<Asked<StateTaken>> announced;
  for (const Rank rank : workers_.all_ranks()) {
    announced.push_back(workers_.ask_rank<StateTaken>(
        rank, TakeState{.request = request, .announced = true, .names = {}, .facts = {}}));
  }
  workers_.gather(announced);
}

void StateTransfer::write(const StateOfRank& state_of,
                          std::int64_t updates,
                          const std::function<std::string()>& facts,
                          const std::function<void()>& forgotten) const {
  const Submission request = ledger_->next_request();
  for (const Rank rank : workers_.all_ranks()) {
    std::vector<StateTensor> of_rank = state_of(rank);
    if (rank == Rank(0) && forgotten) {
      announce(request);
      forgotten();
    }
    TakeState order{.request = request, .names = {}, .updates = updates, .facts = facts()};
    std::size_t sent = 0;
    for (StateTensor& state : of_rank) {
      here_->send(rank, state_tag(plan_, request, sent++), std::move(state.tensor));
      order.names.push_back(std::move(state.name));
    }
    workers_.gather(std::vector{workers_.ask_rank<StateTaken>(rank, std::move(order))});
  }
}

/// Returns the rank that keeps this rank's copies.
Rank StateTransfer::keeper_of(Rank rank) const {
  return Rank((rank.value + 1) % workers_.ranks());
}

void StateTransfer::take_mirrors(const RecoveryPoint& point, const std::string& facts) const {
  const Submission request = ledger_->next_request();
  const Epoch current(*epoch_);
  std::vector<Asked<StateListing>> sent;
  std::vector<Asked<StateTaken>> taken;
  std::vector<Rank> sources;
  for (const Rank rank : workers_.all_ranks()) {
    sources.push_back(point.lost[rank.index()] ? keeper_of(rank) : rank);
    if (sources.back() != rank) {
      sent.push_back(workers_.ask_rank<StateListing>(
          sources.back(),
          SendState{.request = request, .copy_of = point.updates, .to = rank, .epoch = current}));
    }
  }
  workers_.gather(sent);  // first: no rank waits for a copy that does not exist
  for (const Rank rank : workers_.all_ranks()) {
    taken.push_back(workers_.ask_rank<StateTaken>(rank,
                                                  TakeState{.request = request,
                                                            .names = {},
                                                            .updates = point.updates,
                                                            .from = sources[rank.index()],
                                                            .epoch = current,
                                                            .kept = point.kept,
                                                            .facts = facts}));
  }
  for (const Rank rank : workers_.all_ranks()) {
    const Rank source = sources[rank.index()];
    if (workers_.ends_before(source, taken[rank.index()].answer)) {
      end_exchange(workers_.loss_of(source), taken);
    }
  }
  workers_.gather(taken);
}

/// Ends the ranks' wait for a copy that will not come (keeps CR-3), and throws `why`.
void StateTransfer::end_exchange(const Error& why,
                                 const std::vector<Asked<StateTaken>>& taken) const {
  const Abort order{.plan = plan_, .epoch = Epoch(++*epoch_), .reason = to_chain(why)};
  for (const Worker& worker : workers_.all()) {
    caf::anon_send(worker.agent, order);
  }
  try {
    workers_.gather(taken);
  } catch (const Error&) {  // all failed for the same reason
  }
  throw Error(why);
}

}  // namespace stagecraft
