/// Tests the copies of committed states that a rank keeps, in every order of events, and the state
/// that a lost rank gets back.
#include "stagecraft/actors/executor/mirror/mirror.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "stagecraft/actors/executor/mirror/packed_state.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/faulty_transport.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

// ---- MI-1, in every order of events -------------------------------------------------------------

constexpr int kRanks = 3;
constexpr int kAttempts = 4;
constexpr int kRefused = 1;  // this attempt's verdict is that it does not count
constexpr std::int64_t kNoBallot = -3;

at::Tensor copy_of(int rank, std::int64_t updates) {
  return at::full({1}, 10 * updates + rank, at::kLong);
}

/// Models three ranks that train and mirror. Every event that changes something is a separate move.
/// A rank that dies stops, and messages on their way to or from it stay there. So the states that
/// the others can see after a death are those reached here, viewed without the dead rank.
struct Mirrored {
  enum class Phase : std::uint8_t { Computing, Voted, Decided };
  struct InFlight {
    Submission round;
    at::Tensor copy;
  };
  struct RankModel {
    Phase phase = Phase::Computing;
    int attempt = 0;
    std::int64_t updates = 0;
    MirrorKeeper keeper;
    Submission round{0};           ///< the one begun last
    std::vector<InFlight> coming;  ///< from the previous rank
    std::array<std::int64_t, kAttempts> ballots{kNoBallot, kNoBallot, kNoBallot, kNoBallot};
    bool has_failed = false;  ///< once is enough
    /// It knows the facts of the state after `updates`, too, by the order of an attempt. Of earlier
    /// ones it does.
    bool is_told = false;
  };
  std::array<RankModel, kRanks> ranks;
  bool hasty = false;  ///< breaks the protocol: a round settles without a vote

  /// Starts with the first copies on all ranks; training begins.
  explicit Mirrored(bool h) : hasty(h) {
    for (int r = 0; r < kRanks; ++r) {
      begin(r, Submission(0));
    }
    for (RankModel& rank : ranks) {
      deliver(rank);
    }
  }

  /// `fails`: it cannot make its copy.
  void begin(int r, Submission round, bool fails = false) {
    RankModel& rank = ranks[static_cast<std::size_t>(r)];
    const at::Tensor copy = fails ? at::Tensor() : copy_of(r, rank.updates);
    rank.keeper.begin(round, rank.updates, copy);
    rank.round = round;
    if (fails) {
      rank.keeper.failed();
      rank.has_failed = true;
    } else {
      ranks[static_cast<std::size_t>((r + 1) % kRanks)].coming.push_back({round, copy});
    }
  }

  /// Delivers the copy of its round. Those of rounds that were given up are in nobody's way.
  void deliver(RankModel& rank) const {
    const auto copy = std::ranges::find(rank.coming, rank.round, &InFlight::round);
    rank.keeper.arrived(copy->copy);
    rank.coming.erase(rank.coming.begin(), copy + 1);
    if (hasty) {
      rank.keeper.agreed(rank.round);
    }
  }

  [[nodiscard]] std::optional<std::int64_t> verdict(int attempt) const {
    std::int64_t lowest = kAttempts;
    for (const RankModel& rank : ranks) {
      lowest = std::min(lowest, rank.ballots[static_cast<std::size_t>(attempt)]);
    }
    return lowest == kNoBallot ? std::nullopt : std::optional(lowest);
  }

  /// Returns all possible next states.
  [[nodiscard]] std::vector<Mirrored> successors() const {
    std::vector<Mirrored> all;
    bool undecided = true;
    for (const RankModel& rank : ranks) {
      undecided = undecided && rank.attempt == ranks[0].attempt && rank.attempt < kAttempts &&
                  rank.phase != Phase::Decided;
    }
    if (undecided) {
      Mirrored& aborted = all.emplace_back(*this);
      for (RankModel& rank : aborted.ranks) {
        ++rank.attempt;
        rank.phase = Phase::Computing;
      }
    }
    for (int r = 0; r < kRanks; ++r) {
      const RankModel& now = ranks[static_cast<std::size_t>(r)];
      const auto next = [&]() -> RankModel& {
        return all.emplace_back(*this).ranks[static_cast<std::size_t>(r)];
      };
      if (now.keeper.round_under_way() &&
          std::ranges::find(now.coming, now.round, &InFlight::round) != now.coming.end()) {
        deliver(next());
        if (r == 0 && !now.has_failed) {
          RankModel& failed = next();
          failed.keeper.failed();
          failed.has_failed = true;
        }
      }
      if (now.attempt == kAttempts) {
        continue;
      }
      const auto attempt = static_cast<std::size_t>(now.attempt);
      if (now.phase == Phase::Computing) {
        RankModel& voted = next();
        voted.ballots[attempt] = now.keeper.newest_kept().value;
        voted.phase = Phase::Voted;
        voted.is_told = true;  // at the latest
      } else if (now.phase == Phase::Voted && verdict(now.attempt)) {
        RankModel& decided = next();
        decided.keeper.agreed(Submission(*verdict(now.attempt)));
        decided.phase = Phase::Decided;
        if (now.attempt == kRefused) {  // its vote may also have been cut short
          RankModel& never_knew = next();
          never_knew.phase = Phase::Computing;
          ++never_knew.attempt;
        }
      } else if (now.phase == Phase::Decided) {
        RankModel& done = next();
        done.phase = Phase::Computing;
        ++done.attempt;
        if (now.attempt != kRefused) {
          ++done.updates;
          done.is_told = false;
          if (!done.keeper.round_under_way()) {
            const Submission round(done.attempt);
            if (r == 0 && !done.has_failed) {
              all.push_back(all.back());
              all[all.size() - 2].begin(r, round, /*fails=*/true);
            }
            all.back().begin(r, round);
          }
        }
      }
    }
    return all;
  }

  [[nodiscard]] std::string key() const {
    std::string text;
    const auto add = [&text](std::int64_t value) { text += std::to_string(value) + ' '; };
    const int oldest = std::ranges::min(ranks, {}, &RankModel::attempt).attempt;
    for (const RankModel& rank : ranks) {
      add(static_cast<int>(rank.phase));
      add(rank.attempt);
      add(rank.updates);
      add(rank.round.value);
      add(rank.keeper.round_under_way() ? 1 : 0);
      add(rank.keeper.newest_kept().value);
      add(rank.has_failed ? 1 : 0);
      add(rank.is_told ? 1 : 0);
      for (const std::int64_t s : rank.keeper.own_states()) {
        add(s);
      }
      text += '/';
      for (const std::int64_t s : rank.keeper.kept_states()) {
        add(s);
      }
      text += '/';
      for (const InFlight& f : rank.coming) {
        add(f.round.value);
      }
      for (int b = oldest; b < kAttempts; ++b) {  // no rank looks at earlier ones any more
        add(rank.ballots[static_cast<std::size_t>(b)]);
      }
      text += '|';
    }
    return text;
  }

  [[nodiscard]] std::vector<MirrorStock> stocks() const {
    std::vector<MirrorStock> all;
    for (const RankModel& rank : ranks) {
      all.push_back({rank.keeper.own_states(), rank.keeper.kept_states()});
    }
    return all;
  }
};

constexpr int kNobody = -1;

/// Returns the point to which all go back when `victim` is lost. Throws std::string if a copy there
/// is another one.
RecoveryPoint chosen_without(int victim, const Mirrored& model) {
  std::vector<MirrorStock> stocks = model.stocks();
  if (victim != kNobody) {
    stocks[static_cast<std::size_t>(victim)] = {};
  }
  RecoveryPoint point = choose_recovery(stocks);
  for (int r = 0; r < kRanks; ++r) {
    const bool lost = point.lost[static_cast<std::size_t>(r)];
    const MirrorKeeper& of =
        model.ranks[static_cast<std::size_t>(lost ? (r + 1) % kRanks : r)].keeper;
    const at::Tensor copy = lost ? of.kept(point.updates) : of.own(point.updates);
    if ((r == victim && !lost) || copy.item<std::int64_t>() != 10 * point.updates + r) {
      throw std::string("another copy");
    }
  }
  return point;
}

/// Returns the fault, or an empty text. The victim, if there is one, is lost and replaced. All
/// ranks go back one after the other, and at any time meanwhile a rank is lost: the same one again,
/// or any if none was lost before. New copies are on their way.
std::string fault_after_loss_of(int victim, Mirrored model) {
  const auto v = static_cast<std::size_t>(victim);
  if (victim != kNobody) {
    model.ranks[v].keeper = {};
  }
  try {
    const RecoveryPoint point = chosen_without(victim, model);
    for (int r = 0; r < kRanks; ++r) {
      Mirrored::RankModel& rank = model.ranks[static_cast<std::size_t>(r)];
      rank.keeper.restart(point.kept);
      rank.updates = point.updates;
      rank.coming.clear();
      if (r != victim) {  // it is lost again before it has begun anew
        rank.keeper.begin(Submission(kAttempts + 1), point.updates, copy_of(r, point.updates));
      }
      for (int next = 0; next < kRanks; ++next) {
        if (victim != kNobody && next != victim) {
          continue;
        }
        const std::int64_t again = chosen_without(next, model).updates;
        if (again != point.updates && again != point.kept) {
          return "another state when lost again";
        }
      }
    }
  } catch (const Error& error) {
    return error.message();
  } catch (const std::string& fault) {
    return fault;
  }
  return "";
}

/// Returns the fault, or an empty text. The driver is gone, and perhaps a rank with it. The others
/// leave those of their states whose facts they know (MR-4).
std::string fault_after_end_of_driver(int victim, const Mirrored& model) {
  std::vector<MirrorStock> stocks = model.stocks();
  for (std::size_t r = 0; r < kRanks; ++r) {
    const Mirrored::RankModel& rank = model.ranks[r];
    if (rank.updates == 0 && !rank.is_told) {
      return "";  // before the first step there is nothing to go on from
    }
    std::erase_if(stocks[r].own,
                  [&](std::int64_t updates) { return updates == rank.updates && !rank.is_told; });
  }
  if (victim != kNobody) {
    stocks[static_cast<std::size_t>(victim)] = {};
  }
  try {
    (void)choose_recovery(stocks);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

/// Returns the first fault found, and the number of states.
std::pair<std::string, std::size_t> explore(bool hasty) {
  std::vector<Mirrored> todo{Mirrored(hasty)};
  std::set<std::string> seen{todo.back().key()};
  while (!todo.empty()) {
    const Mirrored model = std::move(todo.back());
    todo.pop_back();
    for (const int victim : {0, 1, 2, kNobody}) {
      for (const std::string& fault :
           {fault_after_loss_of(victim, model), fault_after_end_of_driver(victim, model)}) {
        if (!fault.empty()) {
          return {fault, seen.size()};
        }
      }
    }
    for (const Mirrored::RankModel& rank : model.ranks) {  // keeps MI-3
      if (rank.keeper.own_states().size() > 2 || rank.keeper.kept_states().size() > 2) {
        return {"more than two rounds", seen.size()};
      }
    }
    for (Mirrored& next : model.successors()) {
      if (seen.insert(next.key()).second) {
        todo.push_back(std::move(next));
      }
    }
  }
  return {"", seen.size()};
}

TEST_CASE("MI-1, MR-4: whenever whichever rank or the driver is lost, all have a copy of one state",
          "[executor][mirror]") {
  const auto [fault, states] = explore(/*hasty=*/false);
  CAPTURE(states, fault);
  CHECK(fault.empty());
  CHECK(states > 2000);
}

TEST_CASE("a round that settled without the vote would lose the state, and be found out",
          "[executor][mirror]") {
  CHECK_THAT(explore(/*hasty=*/true).first, ContainsSubstring("load a checkpoint"));
}

TEST_CASE("the loss of a rank and its keeper is told with what is missing", "[executor][mirror]") {
  const std::vector<MirrorStock> stocks{{{4, 5}, {4, 5}}, {}, {}, {{4}, {}}};
  try {
    (void)choose_recovery(stocks);
    FAIL("there is nothing to go back to");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::WorkerLost);
    CHECK_THAT(error.message(), ContainsSubstring("load a checkpoint"));
    CHECK_THAT(error.message(),
               ContainsSubstring("rank 0: 4 and 5 updates itself, nothing in its keeper"));
    CHECK_THAT(error.message(), ContainsSubstring("rank 1: nothing itself, nothing in its keeper"));
  }
  const RecoveryPoint one = choose_recovery({{{4, 5}, {4, 5}}, {}, {{4, 5}, {4}}});
  CHECK(one.updates == 4);
  CHECK(one.kept == 4);
  CHECK((one.lost == std::vector<bool>{false, true, false}));
}

// ---- packed states ------------------------------------------------------------------------------

TEST_CASE("a packed state comes back bit by bit, whatever its types and strides",
          "[executor][mirror]") {
  const auto state = [](bool filled) {
    const auto make = [filled](at::Tensor t) { return filled ? t : t.zero_(); };
    return std::vector<NamedTensor>{{"a", make(at::randn({3, 5}))},
                                    {"transposed", make(at::randn({4, 6}).t())},
                                    {"empty", at::empty({0, 2})},
                                    {"scalar", make(at::full({}, 7, at::kLong))},
                                    {"bool", make(at::ones({3}, at::kBool))},
                                    {"half", make(at::randn({5}).to(at::kBFloat16))},
                                    {"part", make(at::randn({4, 8}).slice(1, 2, 5))}};
  };
  const auto sent = state(true);
  const auto taken = state(false);
  const at::Tensor packed = at::empty({packed_bytes(sent)}, at::kByte);
  pack(sent, packed);
  CHECK(thrown_by([&] { unpack(packed.slice(0, 1), taken); }) == Errc::Internal);
  CHECK(thrown_by([&] { unpack(packed.to(at::kInt), taken); }) == Errc::Internal);
  CHECK(thrown_by([&] { unpack(at::Tensor(), taken); }) == Errc::Internal);
  CHECK(taken[0].tensor.abs().sum().item<double>() == 0.0);
  unpack(packed, taken);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    CAPTURE(sent[i].name);
    CHECK(torch::equal(sent[i].tensor, taken[i].tensor));
    CHECK(sent[i].tensor.strides() == taken[i].tensor.strides());
  }
}

// ---- over a transport ---------------------------------------------------------------------------

std::vector<NamedTensor> one_number(double value) {
  return {{"weight:w", at::full({1000}, value)}};
}

/// Holds two ranks that mirror each other; rank 0's sends may be held back.
struct MirrorPair {
  InprocNetwork network{2};
  std::shared_ptr<FaultyTransport> ends[2] = {
      std::make_shared<FaultyTransport>(network.endpoint(Rank(0))),
      std::make_shared<FaultyTransport>(network.endpoint(Rank(1)))};
  std::int64_t submitted = 0;
  Mirror mirrors[2] = {Mirror(setup(0), ends[0]), Mirror(setup(1), ends[1])};

  static RankSetup setup(int rank) {
    RankSetup setup{.plan_id = PlanId(9), .ranks = {Rank(0), Rank(1)}};
    setup.train.rank.rank = Rank(rank);
    return setup;
  }

  /// Runs a whole step.
  void step(std::int64_t updates) {
    const Submission oldest = std::min(mirrors[0].newest_kept(), mirrors[1].newest_kept());
    for (Mirror& mirror : mirrors) {
      mirror.agreed(oldest);
    }
    ++submitted;
    for (Mirror& mirror : mirrors) {
      mirror.committed(Submission(submitted), updates, one_number(static_cast<double>(updates)));
    }
  }

  void restart(std::int64_t updates, std::optional<std::int64_t> kept = std::nullopt) {
    ++submitted;
    for (Mirror& mirror : mirrors) {
      mirror.restart(
          Submission(submitted), updates, kept, one_number(static_cast<double>(updates)), "");
    }
  }

  std::int64_t recovery_without(std::size_t lost) {
    std::vector<MirrorStock> stocks{mirrors[0].stock(), mirrors[1].stock()};
    stocks[lost] = {};
    return choose_recovery(stocks).updates;
  }
};

TEST_CASE("prompt copies keep the recovery point at the last update, in memory for two",
          "[executor][mirror]") {
  MirrorPair pair;
  pair.restart(0);
  std::set<const void*> memory;
  for (std::int64_t updates = 1; updates < 9; ++updates) {
    pair.step(updates);
    CHECK(pair.recovery_without(0) == updates);
    CHECK(pair.recovery_without(1) == updates);
    CHECK(pair.mirrors[0].own(updates).equal(pair.mirrors[1].kept(updates)));
    memory.insert(pair.mirrors[0].own(updates).const_data_ptr());
  }
  CHECK(memory.size() <= 3);
  CHECK(thrown_by([&] { (void)pair.mirrors[0].kept(3); }) == Errc::WorkerLost);
}

TEST_CASE("slow copies hold nobody up: the recovery point stays behind, and catches up",
          "[executor][mirror]") {
  MirrorPair pair;
  pair.restart(0);
  pair.step(1);
  pair.ends[0]->hold_sends();
  for (std::int64_t updates = 2; updates < 7; ++updates) {
    pair.step(updates);
    CHECK(pair.recovery_without(0) == 1);
    CHECK(pair.ends[0]->sends_held() == 1);  // keeps MI-2: no further round starts meanwhile
  }
  pair.ends[0]->release_sends();
  CHECK(pair.recovery_without(0) == 2);
  pair.step(7);
  CHECK(pair.recovery_without(0) == 7);
  CHECK(pair.recovery_without(1) == 7);
}

TEST_CASE("a copy that cannot be sent fails no step and costs one recovery point (MR-2)",
          "[executor][mirror]") {
  MirrorPair pair;
  pair.restart(0);
  pair.ends[0]->fail_send(2, Error(Errc::TransportRefused, "injected"));
  pair.step(1);
  CHECK(pair.recovery_without(0) == 0);
  pair.step(2);
  CHECK(pair.recovery_without(0) == 2);
  CHECK(pair.recovery_without(1) == 2);
  CHECK(pair.ends[0]->bytes_waiting() == 0);
  CHECK(pair.ends[1]->bytes_waiting() == 0);
}

TEST_CASE("a copy of a round that was given up may come late, also if no other round has begun",
          "[executor][mirror]") {
  MirrorPair pair;
  pair.restart(0);
  pair.ends[0]->fail_send(2, Error(Errc::TransportRefused, "injected"));
  pair.ends[1]->hold_sends();
  pair.step(1);
  const Submission oldest = std::min(pair.mirrors[0].newest_kept(), pair.mirrors[1].newest_kept());
  for (Mirror& mirror : pair.mirrors) {  // a vote after which the step fails
    mirror.agreed(oldest);
  }
  pair.ends[1]->release_sends();
  CHECK(pair.recovery_without(0) == 0);
  pair.step(2);
  CHECK(pair.recovery_without(0) == 2);
  CHECK(pair.recovery_without(1) == 2);
}

TEST_CASE("after a recovery older copies stay until those of its state are whole",
          "[executor][mirror]") {
  MirrorPair pair;
  pair.restart(0);
  pair.step(1);
  pair.ends[0]->hold_sends();
  pair.step(2);
  const RecoveryPoint point = choose_recovery({pair.mirrors[0].stock(), pair.mirrors[1].stock()});
  CHECK(point.updates == 2);
  CHECK(point.kept == 1);
  pair.restart(point.updates, point.kept);
  CHECK(pair.recovery_without(0) == 1);
  pair.ends[0]->release_sends();
  CHECK(pair.recovery_without(0) == 2);
}

TEST_CASE("copies of before another state was taken are dropped, also those on their way (MR-3)",
          "[executor][mirror]") {
  MirrorPair pair;
  pair.restart(0);
  pair.step(1);
  pair.ends[0]->hold_sends();
  pair.step(2);
  for (const auto& end : pair.ends) {  // the abort of a step does not end a copy
    end->advance(PlanId(9), Epoch(5), Error(Errc::WorkerAborted, "a step failed"));
  }
  pair.restart(50);
  CHECK(thrown_by([&] { (void)pair.recovery_without(0); }) == Errc::WorkerLost);
  pair.ends[0]->release_sends();
  CHECK(pair.ends[1]->refused() == 1);
  CHECK(pair.ends[1]->bytes_waiting() == 0);
  CHECK(pair.recovery_without(0) == 50);
  pair.step(51);
  CHECK(pair.recovery_without(1) == 51);
}

TEST_CASE("copies are left for the same run and state only, where their driver is gone (MR-4)",
          "[executor][mirror]") {
  const auto left = std::make_shared<LeftCopies>();
  const std::vector<NamedTensor> state = one_number(1.0);
  const auto train =
      [&](const std::string& run, const std::vector<NamedTensor>& of, const auto& look) {
        MirrorPair pair;
        RankSetup setup = MirrorPair::setup(0);
        setup.options.run = run;
        Mirror mirror(setup, pair.ends[0], left);
        mirror.restart(Submission(0), 0, std::nullopt, of, "");
        look(mirror);
        mirror.note(0, "facts of 0");
      };
  const auto takes = [](Mirror& mirror) {
    return mirror.left_facts() == std::vector<std::string>{"facts of 0"};
  };
  const auto nothing = [&](Mirror& mirror) { CHECK_FALSE(takes(mirror)); };
  train("one", state, nothing);  // its driver ends it
  train("one", state, nothing);
  left->expect();
  train("", state, nothing);  // of no run
  CHECK(left->is_empty());
  train("one", state, nothing);
  left->hand_on();
  train("other", state, nothing);
  train("one", {{"weight:w", at::full({1000}, 1.0, at::kDouble)}}, nothing);
  CHECK(left->is_empty());  // of another state

  left->expect();
  train("one", state, nothing);
  train("one", state, [&](Mirror& mirror) { CHECK(takes(mirror)); });
  left->hand_on();
  train("one", state, [&](Mirror& mirror) { CHECK(takes(mirror)); });  // of a trainer that failed
  train("one", state, [&](Mirror& mirror) {
    CHECK(takes(mirror));
    CHECK(mirror.stock().own == std::vector<std::int64_t>{0});
    mirror.committed(Submission(1), 1, state);  // the run goes on from another state
    CHECK(mirror.left_facts().empty());
  });
  CHECK(left->is_empty());

  left->expect();
  train("one", state, [&](Mirror& mirror) { CHECK_FALSE(takes(mirror)); });
  {
    MirrorPair pair;
    RankSetup setup = MirrorPair::setup(0);
    setup.options.run = "one";
    Mirror mirror(setup, pair.ends[0], left);
    mirror.restart(Submission(0), 0, std::nullopt, state, "");
    // A recovery, and then its driver is gone too.
    mirror.restart(Submission(1), 0, 0, state, "facts of 0");
  }
  train("one", state, [&](Mirror& mirror) {
    CHECK(takes(mirror));
    mirror.committed(Submission(1), 1, state);
  });
  left->keep_only("");

  train("one", state, [&](Mirror& mirror) {
    mirror.note(1, "facts of 1");
    mirror.forget();  // a load begins: facts of as many updates are others
    mirror.restart(Submission(1), 1, std::nullopt, state, "");
  });
  left->hand_on();
  train("one", state, [&](Mirror& mirror) { CHECK(mirror.stock().own.empty()); });

  left->expect();
  train("one", state, [&](Mirror& mirror) {  // ends right after a state was taken over
    mirror.forget();
    mirror.restart(Submission(2), 7, std::nullopt, state, "facts of 7");
  });
  train("one", state, [&](Mirror& mirror) {
    CHECK(mirror.left_facts() == std::vector<std::string>{"facts of 7"});
    CHECK(mirror.stock().own == std::vector<std::int64_t>{7});
  });
}

TEST_CASE("one rank alone has no neighbor to keep its copies", "[executor][mirror]") {
  const InprocNetwork network(1);
  RankSetup alone{.ranks = {Rank(0)}};
  alone.train.rank.rank = Rank(0);
  CHECK(thrown_by([&] { (void)Mirror(alone, network.endpoint(Rank(0))); }) == Errc::UsageArgument);
}

// ---- a whole pipeline ---------------------------------------------------------------------------

/// Returns the same weights every time, some of them in several stages.
Program four_stages() {
  torch::manual_seed(1);
  testing::TiedChain module(4);
  return compile(module,
                 {.inputs = {torch::randn({8, 8})},
                  .labels = {torch::zeros({8, 8})},
                  .loss = testing::mean_square,
                  .microbatches = 4});
}

/// Trains four stages on four ranks; rank `victim` throws at `op` in the fourth step.
struct Training {
  std::vector<at::Tensor> batches;
  std::optional<testing::Pipeline> pipeline;

  Training(const Program& program, Rank victim, std::optional<Op> op) {
    torch::manual_seed(3);
    for (int i = 0; i < 6; ++i) {
      batches.push_back(torch::randn({8, 8}));
    }
    testing::PipelineOptions options{.optimizer = AdamW{.lr = 1e-2}, .clip = 0.1, .mirror = true};
    if (op) {
      options.faults[victim] = [op, seen = std::make_shared<int>(0)](const Instruction& i) {
        if (i.op == *op && (*op != Op::Run || i.task.kind == CellKind::Forward) && ++*seen == 4) {
          throw std::runtime_error("injected failure");
        }
      };
    }
    pipeline.emplace(program, one_f_one_b(program.stage_graph(), 4), options);
  }

  bool step(std::int64_t i) {
    const at::Tensor& batch = batches[static_cast<std::size_t>(i)];
    const auto outcome = pipeline->step({batch}, {batch});
    return std::ranges::none_of(outcome.errors, [](const auto& e) { return e.has_value(); });
  }
};

TEST_CASE(
    "a rank lost in the middle of a step gets its state back, and training continues bit-equal",
    "[executor][mirror][fidelity]") {
  const Program program = four_stages();
  Training unbroken(program, Rank(0), std::nullopt);
  for (int i = 0; i < 6; ++i) {
    REQUIRE(unbroken.step(i));
  }
  const auto expected = unbroken.pipeline->state();
  for (const Rank victim : {Rank(0), Rank(2), Rank(3)}) {
    for (const Op op : {Op::Run, Op::Vote, Op::Update}) {
      CAPTURE(victim, static_cast<int>(op));
      Training broken(program, victim, op);
      std::int64_t next = 0;
      while (broken.step(next)) {
        ++next;
      }
      broken.pipeline->replace(victim);
      CHECK(broken.pipeline->recover() == next);
      // Loses the same rank again, and then its keeper: copies were made anew.
      broken.pipeline->replace(victim);
      CHECK(broken.pipeline->recover() == next);
      broken.pipeline->replace(Rank((victim.value + 1) % 4));
      CHECK(broken.pipeline->recover() == next);
      for (; next < 6; ++next) {
        REQUIRE(broken.step(next));
      }
      for (int r = 0; r < 4; ++r) {
        CHECK(testing::differing(expected, broken.pipeline->executor(r).state()).empty());
      }
    }
  }
}

TEST_CASE("the loss of two neighbors is not survived, of two others is", "[executor][mirror]") {
  const Program program = four_stages();
  Training training(program, Rank(0), std::nullopt);
  REQUIRE(training.step(0));
  training.pipeline->replace(Rank(0));
  training.pipeline->replace(Rank(2));
  CHECK(training.pipeline->recover() == 1);
  training.pipeline->replace(Rank(1));
  training.pipeline->replace(Rank(2));
  CHECK(thrown_by([&] { (void)training.pipeline->recover(); }) == Errc::WorkerLost);
}

}  // namespace
}  // namespace stagecraft
