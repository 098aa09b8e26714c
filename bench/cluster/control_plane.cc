/// What does the control plane between processes cost? This program measures steps whose stages do
/// nothing and one small question, on worker processes, and bare messages between such processes.
///
/// The bare round has the same number of the same messages over the same kind of sockets: an actor
/// sends a StepOrder to each process over mutual TLS, the processes answer at once, and the actor
/// continues when all StepReports have arrived. The bare call is a question and an answer. Both run
/// in turns with ours.
///
/// A step's share of the control plane is its time from the driver's begin, minus the time that
/// ranks spend inside their plans. Dividing the batch, tensors between ranks and LibTorch's work in
/// the stages grow with the microbatches; the control plane must not. Ranks begin and end at
/// different times, so the share lies between two figures: without the longest of these times, and
/// without the shortest. The whole step is compared with a ping-pong of as many messages as it
/// sends, tensors included.
///
///   control_plane [--quick]
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/cluster/echo_peers.h"
#include "stagecraft/bench/cluster/idle_stages.h"
#include "stagecraft/bench/cluster/pinning.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench::control_plane {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kGoal = 2.5;        // multiple of the bare figure
constexpr double kCallGoal = 100.0;  // us, with processes pinned
constexpr int kMicrobatches[] = {1, 4, 64, 512};

struct Effort {
  int rounds = 9;
  int bare = 2'000;   ///< rounds of orders, or calls, per measurement
  int cells = 8'000;  ///< of all steps of one measurement, approximately
};

double microseconds_since(Clock::time_point begun) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begun).count();
}

/// Pins puts this process on the first processor and the others in turn on the next ones, or lets
/// all use all.
class Pins {
 public:
  explicit Pins(std::vector<std::vector<pid_t>> groups) : groups_(std::move(groups)) {}
  ~Pins() { restrict_to(getpid(), usable_); }
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  void pin() const {
    restrict_to(getpid(), {usable_.front()});
    for (const auto& group : groups_) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        restrict_to(group[i], {usable_[(i + 1) % usable_.size()]});
      }
    }
  }
  void release() const {
    restrict_to(getpid(), usable_);
    for (const auto& group : groups_) {
      for (const pid_t process : group) {
        restrict_to(process, usable_);
      }
    }
  }

 private:
  const std::vector<int> usable_ = usable_processors();
  const std::vector<std::vector<pid_t>> groups_;
};

std::vector<pid_t> processes_of(const Cluster& cluster) {
  std::vector<pid_t> processes;
  for (const WorkerPlace& worker : cluster.workers()) {
    processes.push_back(static_cast<pid_t>(worker.process));
  }
  return processes;
}

/// StepCost holds the microseconds of a step that runs alone.
struct StepCost {
  double whole = 0.0;
  double before = 0.0;             ///< for dividing the batch and the order to the driver
  double least = 0.0, most = 0.0;  ///< bounds of the control plane
};

/// Returns the messages of one step: orders and reports, inputs and labels, borders both ways,
/// losses, ballots.
double messages_of(int ranks, int microbatches) {
  return 2.0 * ranks + 3.0 * microbatches + 2.0 * (ranks - 1) * microbatches +
         1.0 * ranks * (ranks - 1);
}

class IdleTrainer {
 public:
  IdleTrainer(const Cluster& cluster, int ranks, int microbatches)
      : microbatches_(microbatches),
        batch_(torch::ones({microbatches, 1})),
        program_(compile_idle_stages(ranks, microbatches)),
        trainer_(
            cluster, program_, one_f_one_b(program_.stage_graph(), microbatches), Sgd{.lr = 0.0}) {}

  [[nodiscard]] int microbatches() const { return microbatches_; }

  StepCost steps(int count) {
    StepCost sum;
    for (int i = 0; i < count; ++i) {
      const auto begun = Clock::now();
      const StepResult result = trainer_.step({batch_}, {batch_}).get();
      const double whole = microseconds_since(begun);
      const auto [shortest, longest] =
          std::ranges::minmax_element(result.ranks, {}, &RankTimes::wall);
      sum.whole += whole;
      sum.before += whole - result.seconds * 1e6;
      sum.least += (result.seconds - longest->wall) * 1e6;
      sum.most += (result.seconds - shortest->wall) * 1e6;
    }
    return {sum.whole / count, sum.before / count, sum.least / count, sum.most / count};
  }

  /// Returns the microseconds of a question to every rank.
  double calls(int count) {
    const auto begun = Clock::now();
    for (int i = 0; i < count; ++i) {
      (void)trainer_.status();
    }
    return microseconds_since(begun) / count;
  }

 private:
  const int microbatches_;
  const torch::Tensor batch_;
  const Program program_;
  Trainer trainer_;
};

struct Samples {
  std::vector<double> whole, to_messages, before;
  std::vector<double> least, most, least_to_bare, most_to_bare;
};

void measure_steps(const Cluster& cluster, int ranks, const Effort& effort) {
  std::vector<std::unique_ptr<IdleTrainer>> trainers;
  for (const int microbatches : kMicrobatches) {
    trainers.push_back(std::make_unique<IdleTrainer>(cluster, ranks, microbatches));
  }
  EchoPeers peers(ranks);
  const Pins pins({processes_of(cluster), peers.processes()});
  const auto run = [&](IdleTrainer& trainer) {
    return trainer.steps(std::max(4, effort.cells / (2 * ranks * (trainer.microbatches() + 8))));
  };
  for (const bool pinned : {false, true}) {
    pinned ? pins.pin() : pins.release();
    std::vector<Samples> samples(trainers.size());
    std::vector<double> bare;
    for (int round = -1; round < effort.rounds; ++round) {  // the first round warms up
      const double orders = peers.round_of_orders(effort.bare / ranks);
      const double message = peers.call(effort.bare) / 2;
      for (std::size_t t = 0; t < trainers.size(); ++t) {
        const StepCost cost = run(*trainers[t]);
        if (round >= 0) {
          samples[t].whole.push_back(cost.whole);
          samples[t].to_messages.push_back(
              cost.whole / (message * messages_of(ranks, trainers[t]->microbatches())));
          samples[t].before.push_back(cost.before);
          samples[t].least.push_back(cost.least);
          samples[t].most.push_back(cost.most);
          samples[t].least_to_bare.push_back(cost.least / orders);
          samples[t].most_to_bare.push_back(cost.most / orders);
        }
      }
      if (round >= 0) {
        bare.push_back(orders);
      }
    }
    const double bare_us = median(bare);
    fmt::print("{} worker processes, {}: bare round of {} orders and {} reports {:.0f} us\n",
               ranks,
               pinned ? "each pinned to a processor" : "not pinned",
               ranks,
               ranks,
               bare_us);
    for (std::size_t t = 0; t < trainers.size(); ++t) {
      const double cells = 2.0 * ranks * trainers[t]->microbatches();
      const double whole = median(samples[t].whole);
      fmt::print(
          "  {:>4} cells: step {:>7.0f} us ({:.1f} us a cell), {:.2f} x a ping-pong of its {:.0f} "
          "messages; before it {:.0f} us; control plane {:.0f} to {:.0f} us, {:.2f} to {:.2f} x "
          "bare\n",
          cells,
          whole,
          whole / cells,
          median(samples[t].to_messages),
          messages_of(ranks, trainers[t]->microbatches()),
          median(samples[t].before),
          median(samples[t].least),
          median(samples[t].most),
          median(samples[t].least_to_bare),
          median(samples[t].most_to_bare));
    }
  }
}

/// Measures Trainer::status() of one rank.
void measure_call(const Effort& effort) {
  const auto cluster = Cluster::spawn(1);
  IdleTrainer trainer(cluster, 1, 1);
  EchoPeers peers(1);
  const Pins pins({processes_of(cluster), peers.processes()});
  for (const bool pinned : {false, true}) {
    pinned ? pins.pin() : pins.release();
    std::vector<double> ours, bare, ratios;
    for (int round = -1; round < effort.rounds; ++round) {
      const double plain = peers.call(effort.bare);
      const double own = trainer.calls(effort.bare);
      if (round >= 0) {
        ours.push_back(own);
        bare.push_back(plain);
        ratios.push_back(own / plain);
      }
    }
    fmt::print("one small call, {}: {:.0f} us; bare {:.0f} us; ratio {:.2f}\n",
               pinned ? "each process pinned to a processor" : "not pinned",
               median(ours),
               median(bare),
               median(ratios));
  }
}

}  // namespace

int run(int argc, char** argv) {
  serve_if_echo_peer(argc, argv);
  const bool quick = argc == 2 && std::string_view(argv[1]) == "--quick";
  if (argc > 2 || (argc == 2 && !quick)) {
    fmt::print(stderr, "usage: control_plane [--quick]\n");
    return 2;
  }
  const Effort effort = quick ? Effort{.rounds = 3, .bare = 200, .cells = 800} : Effort{};
  fmt::print(
      "{}\nmutual TLS, 1F1B, stages that do nothing; medians of {} rounds; goals: control plane "
      "and call at most {} x bare, a call at most {:.0f} us pinned\n",
      hardware(),
      effort.rounds,
      kGoal,
      kCallGoal);
  measure_call(effort);
  for (const int ranks : {2, 4}) {
    measure_steps(Cluster::spawn(ranks), ranks, effort);
  }
  return 0;
}

}  // namespace stagecraft::bench::control_plane
