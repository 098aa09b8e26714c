#include "stagecraft/actors/launch/fleet/process_binding.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/actors/executor/setup/setup_wire.h"
#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/actors/launch/ways/rank_processes.h"
#include "stagecraft/actors/launch/ways/started_worker.h"
#include "stagecraft/actors/messages/data_tags.h"
#include "stagecraft/actors/remote/host/rank_actors.h"
#include "stagecraft/futures/routing/routed.h"
#include "stagecraft/futures/transport/byte_tensor.h"

namespace stagecraft {
namespace {

/// Longest wait for a worker host: it never computes.
constexpr std::chrono::seconds kHostLimit{30};

/// Members by rank; none for threads of this process.
using Members = std::vector<std::optional<FleetMember>>;

std::vector<FleetMember> distinct(const Members& members) {
  std::vector<FleetMember> distinct;
  for (const auto& member : members) {
    if (member && (distinct.empty() || distinct.back().place != member->place)) {
      distinct.push_back(*member);
    }
  }
  return distinct;
}

class ProcessBinding final : public Binding {
 public:
  ProcessBinding(std::shared_ptr<Fleet> fleet,
                 const SpawnOptions& options,
                 int ranks,
                 LastRank last)
      : fleet_(std::move(fleet)),
        options_(options),
        elsewhere_(last == LastRank::Here ? ranks - 1 : ranks),
        id_(fleet_->next_network()),
        network_(fleet_->port(), id_, ranks),
        launched_(static_cast<std::size_t>(ranks)) {
    fleet_->require(places());
    connect();
  }

  ~ProcessBinding() override {
    for (const FleetMember& member : distinct(members_)) {
      caf::anon_send(member.host, CloseNetwork{id_});
    }
  }

  [[nodiscard]] std::shared_ptr<Transport> driver_end() const override {
    return network_.endpoint(kDriver);
  }

  [[nodiscard]] Worker launch(RankSetup setup) override {
    const Rank rank = setup.rank();
    if (!is_remote(rank)) {
      Worker worker = launch_thread(
          fleet_->host(), network_.endpoint(rank), fleet_->step_values(), std::move(setup), shelf_);
      ends_[rank] = end_of_thread(worker);
      return worker;
    }
    const EncodedSetup encoded = encode(setup);
    const auto started = start<RankStarted>(rank, StartRank{id_, rank});
    require_own(started.worker, rank);
    send(rank, encoded, [&](std::size_t i) { return setup_tag(setup.plan_id, i); });
    note_in_log(options_,
                place_of(rank),
                members_[rank.index()]->incarnation,
                stages_text(rank, setup.train.list->stages));
    return started.worker;
  }

  void launch_actors(Rank rank,
                     Epoch generation,
                     std::shared_ptr<const ActorTypes> types) override {
    if (!is_remote(rank)) {
      actors_[rank] = std::make_unique<RankActors>(
          network_.endpoint(rank), generation, std::move(types), fleet_->step_values());
      ends_[rank] = never_.future();
      return;
    }
    (void)start<ActorsStarted>(rank, StartActors{id_, rank, generation});
  }

  void hand_over(RankShape shape, PlanId plan, Submission request) override {
    const Rank rank = shape.rank;
    if (!is_remote(rank)) {
      shelf_->put(std::move(shape), request);
      return;
    }
    send(rank, encode(shape), [&](std::size_t i) { return shape_tag(plan, request, i); });
  }

  [[nodiscard]] bool was_replaced(Rank rank) const override {
    return is_remote(rank) &&
           fleet_->places().incarnation(place_of(rank)) != launched_[rank.index()];
  }

  [[nodiscard]] Future<std::string> cause_of_end(Rank rank) const override {
    return ends_.at(rank);
  }

 private:
  [[nodiscard]] bool is_remote(Rank rank) const {
    return rank.value < elsewhere_ && lives_elsewhere(options_, rank);
  }
  [[nodiscard]] int place_of(Rank rank) const { return place_in(options_, rank); }
  [[nodiscard]] int ranks() const { return static_cast<int>(launched_.size()); }
  /// Returns the longest wait for the answer of a worker process.
  [[nodiscard]] std::chrono::milliseconds host_limit() const {
    return std::min<std::chrono::milliseconds>(kHostLimit, options_.join_deadline);
  }
  /// Returns "runs stage 2" for a place of one rank, "run stages 1, 3 (rank 2)" for one of several.
  [[nodiscard]] std::string stages_text(Rank rank, const std::vector<StageId>& stages) const {
    std::vector<int> numbers;
    for (const StageId stage : stages) {
      numbers.push_back(stage.value);
    }
    const bool is_alone = options_.ranks_per_process == 1;
    return fmt::format("{} stage{} {}{}",
                       is_alone ? "runs" : "run",
                       numbers.size() == 1 ? "" : "s",
                       fmt::join(numbers, ", "),
                       is_alone ? "" : fmt::format(" (rank {})", rank.value));
  }

  template <class TagOf>
  void send(Rank rank, const EncodedSetup& encoded, const TagOf& tag_of) const {
    const std::shared_ptr<Transport> here = driver_end();
    here->send(rank, tag_of(0), byte_tensor(encoded.bytes));
    for (std::size_t i = 0; i < encoded.tensors.size(); ++i) {
      here->send(rank, tag_of(i + 1), encoded.tensors[i]);
    }
  }

  /// Errors: ClusterMember with the cause if the worker process has ended; ClusterTimeout that
  ///         blames a rank of the process, which can be replaced.
  template <class Reply>
  [[nodiscard]] Reply answer_of(const FleetMember& member, const Future<Reply>& asked) const {
    try {
      return asked.get();
    } catch (Error& error) {
      if (error.code() == Errc::ClusterMember) {
        fleet_->throw_lost({member.place, member.incarnation});
      }
      throw error.with({.rank = first_rank_in(options_, member.place)});
    }
  }

  /// Returns the process in the rank's place. All know its address.
  [[nodiscard]] FleetMember current_member(Rank rank) {
    if (fleet_->places().incarnation(place_of(rank)) != members_[rank.index()]->incarnation) {
      connect();
    }
    return *members_[rank.index()];
  }

  /// Asks the process in the rank's place to start something for the rank, and watches for the end
  /// of that process. Errors: those of the process; ClusterMember, ClusterTimeout if it does not
  /// answer.
  template <class Started, class Message>
  [[nodiscard]] Started start(Rank rank, const Message& message) {
    const FleetMember member = current_member(rank);
    auto started = answer_of(
        member,
        ask<Started>(
            fleet_->host(), member.host, fleet_->name_of(member.place), host_limit(), message));
    if (!started.error.empty()) {
      throw to_error(started.error).with({.rank = rank});
    }
    launched_[rank.index()] = member.incarnation;
    ends_[rank] = fleet_->places().cause_of_end({member.place, member.incarnation});
    return started;
  }

  /// Errors: ClusterMember if the rank's actors are not in the process of its place.
  void require_own(const Worker& worker, Rank rank) const {
    const FleetMember& member = *members_[rank.index()];
    const caf::node_id node = member.host.node();
    if (worker.plan_thread.node() != node || worker.agent.node() != node) {
      throw Error(Errc::ClusterMember,
                  fmt::format("{} named actors of another process as those of {}: end it, and "
                              "start it from the program of this cluster",
                              fleet_->name_of(member.place),
                              peer_name(rank)));
    }
  }

  /// Returns the number of places that the crew needs.
  [[nodiscard]] int places() const { return places_for(options_, elsewhere_); }

  /// Tells every process in a place the addresses of all others. No rank sends before all know
  /// them. Errors: ClusterMember if one of them is lost.
  void connect() {
    Members now(launched_.size());
    for (int r = 0; r < ranks(); ++r) {
      if (is_remote(Rank(r))) {
        now[Rank(r).index()] = fleet_->member(place_of(Rank(r)));
        require_capability(*now[Rank(r).index()]);
      }
    }
    for (int r = 0; r < ranks(); ++r) {
      if (const auto& member = now[Rank(r).index()]) {
        network_.place(Rank(r), member->port);
      }
    }
    const std::vector<FleetMember> all = distinct(now);
    std::vector<Future<NetworkOpened>> asked;
    for (const FleetMember& member : all) {
      asked.push_back(ask<NetworkOpened>(fleet_->host(),
                                         member.host,
                                         fleet_->name_of(member.place),
                                         host_limit(),
                                         network_of(member, now)));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (const auto opened = answer_of(all[i], asked[i]); !opened.error.empty()) {
        throw to_error(opened.error);
      }
    }
    members_ = std::move(now);
    tell_processors();
  }

  void tell_processors() const {
    std::vector<NamedProcessor> all;
    for (int r = 0; r < ranks(); ++r) {
      if (is_remote(Rank(r))) {
        const WorkerPlace place = fleet_->who(place_of(Rank(r)));
        all.emplace_back(peer_name(Rank(r)) + (place.host.empty() ? "" : " (" + place.host + ")"),
                         place.processor);
      } else {
        all.emplace_back(peer_name(Rank(r)), processor_of_this_process());
      }
    }
    fleet_->processors().tell(all);
  }

  /// Errors: ClusterMember for a later worker whose capability is below that of all others.
  void require_capability(const FleetMember& member) const {
    const std::string held = fleet_->processors().capability();
    if (!held.empty() && !can_be_held(member.processor.capability, held)) {
      throw Error(Errc::ClusterMember,
                  fmt::format("{} computes with {}, and all of this cluster are held to {}, the "
                              "widest that its first processes had: start it on a host that has "
                              "that, or begin the run again",
                              fleet_->name_of(member.place),
                              member.processor.capability,
                              held));
    }
  }

  /// Returns the order that opens the crew's network in one process.
  [[nodiscard]] OpenNetwork network_of(const FleetMember& member, const Members& members) const {
    const PortAddress here = fleet_->port()->address();
    OpenNetwork order{.network = id_,
                      .ranks = ranks(),
                      .elsewhere = {},
                      .capability = fleet_->processors().capability()};
    order.elsewhere.push_back({kDriver, here});
    for (int r = 0; r < ranks(); ++r) {
      if (!is_remote(Rank(r))) {
        order.elsewhere.push_back({Rank(r), here});
      } else if (place_of(Rank(r)) != member.place) {
        order.elsewhere.push_back({Rank(r), members[Rank(r).index()]->port});
      }
    }
    return order;
  }

  const std::shared_ptr<Fleet> fleet_;
  const SpawnOptions options_;
  const int elsewhere_;  ///< ranks from this number on are threads of this process
  const NetworkId id_;
  RoutedNetwork network_;
  const std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();  ///< for ranks that are threads
  Members members_;                                                 ///< that all processes know
  std::vector<std::int64_t> launched_;  ///< by rank, the incarnation of its worker
  const Promise<std::string> never_;    ///< the end of actors in this process
  std::map<Rank, Future<std::string>> ends_;
  std::map<Rank, std::unique_ptr<RankActors>> actors_;
};

}  // namespace

std::unique_ptr<Binding> bind_to_processes(std::shared_ptr<Fleet> fleet,
                                           const SpawnOptions& options,
                                           int ranks,
                                           LastRank last) {
  return std::make_unique<ProcessBinding>(std::move(fleet), options, ranks, last);
}

}  // namespace stagecraft
