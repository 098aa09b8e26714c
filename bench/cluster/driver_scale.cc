/// What does the driver cost per worker? This program runs steps of hundreds of simulated workers,
/// actors that answer at once; there is no plan, no tensor and no other process. In the same run it
/// measures the bare round: one actor asks the same workers the same question and counts their
/// answers.
///
///   driver_scale [--json]
#include <algorithm>
#include <chrono>
#include <ctime>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/driver/driver.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/bench/cluster/played_rank.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/futures/transport/inproc.h"

namespace stagecraft::bench::driver_scale {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 15;
constexpr int kOrdersPerRound = 20'000;
constexpr double kGoal = 2.0;  // us per worker and step

/// Cost of one round, us per worker and step.
struct Cost {
  double wall = 0.0;
  double processor = 0.0;  ///< of all threads
};

/// The best round counts, since other load of the machine only adds time.
struct Figures {
  int workers = 0;
  Cost driver, bare;
};

struct Stopwatch {
  Clock::time_point wall = Clock::now();
  std::clock_t processor = std::clock();
};

class Scene {
 public:
  explicit Scene(int workers) : network_(workers) {
    auto plan = std::make_shared<Plan>();
    DriverSetup setup;
    for (int r = 0; r < workers; ++r) {
      plan->ranks.push_back({.rank = Rank(r)});
      workers_.push_back({host_.system().spawn(played_plan_thread, Rank(r)),
                          host_.system().spawn(played_agent, Rank(r))});
      all_.push_back(caf::actor_cast<caf::actor>(workers_.back().plan_thread));
      all_.push_back(caf::actor_cast<caf::actor>(workers_.back().agent));
    }
    setup.members = workers_;
    setup.clock_offsets.resize(workers_.size());
    setup.transport = network_.endpoint(kDriver);
    setup.ledger = ledger_;
    plan_ = plan;
    driver_ = spawn_driver(host_, std::move(setup));
    all_.insert(all_.begin(), caf::actor_cast<caf::actor>(driver_));  // as in a crew
  }
  ~Scene() { host_.end(all_, std::chrono::seconds(20)); }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  /// Runs steps as a trainer does, with two steps in progress.
  Cost driver_round(int steps) {
    const Stopwatch begun;
    Future<StepResult> last;
    for (int i = 0; i < steps; ++i) {
      EnteredStep entered = ledger_->enter({.plan = plan_}, 2);
      caf::anon_send(driver_, Submit{entered.submission});
      last = entered.result;
    }
    (void)last.get();
    return per_order(begun, steps);
  }

  /// Runs rounds in which one actor asks all workers and begins again when all have answered.
  Cost bare_round(int steps) {
    std::promise<void> done;
    const Stopwatch begun;
    host_.system().spawn([&, steps](caf::event_based_actor* self) { ask_all(self, done, steps); });
    done.get_future().wait();
    return per_order(begun, steps);
  }

 private:
  void ask_all(caf::event_based_actor* self, std::promise<void>& done, int steps) {
    if (steps == 0) {
      done.set_value();
      return;
    }
    const auto missing = std::make_shared<std::size_t>(workers_.size());
    for (const Worker& worker : workers_) {
      self->request(worker.plan_thread, caf::infinite, StepOrder{})
          .then([this, self, &done, steps, missing](const StepReport&) {
            if (--*missing == 0) {
              ask_all(self, done, steps - 1);
            }
          });
    }
  }

  [[nodiscard]] Cost per_order(const Stopwatch& begun, int steps) const {
    const double orders = static_cast<double>(steps) * static_cast<double>(workers_.size());
    const auto ticks = static_cast<double>(std::clock() - begun.processor);
    return {std::chrono::duration<double, std::micro>(Clock::now() - begun.wall).count() / orders,
            1e6 * ticks / CLOCKS_PER_SEC / orders};
  }

  ActorHost& host_ = ActorHost::of_this_process();
  const InprocNetwork network_;
  std::shared_ptr<const Plan> plan_;
  const std::shared_ptr<StepLedger> ledger_ = std::make_shared<StepLedger>();
  std::vector<Worker> workers_;
  DriverActor driver_;
  std::vector<caf::actor> all_;
};

Figures measure(int workers) {
  Scene scene(workers);
  const int steps = std::max(1, kOrdersPerRound / workers);
  (void)scene.driver_round(steps);
  (void)scene.bare_round(steps);
  const auto better = [](const Cost& a, const Cost& b) {
    return Cost{std::min(a.wall, b.wall), std::min(a.processor, b.processor)};
  };
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Figures best{.workers = workers, .driver = {kNever, kNever}, .bare = {kNever, kNever}};
  for (int round = 0; round < kRounds; ++round) {
    best.driver = better(best.driver, scene.driver_round(steps));
    best.bare = better(best.bare, scene.bare_round(steps));
  }
  return best;
}

}  // namespace

int run(int argc, char** argv) {
  const bool json = argc == 2 && std::string_view(argv[1]) == "--json";
  if (argc > 2 || (argc == 2 && !json)) {
    fmt::print(stderr, "usage: driver_scale [--json]\n");
    return 2;
  }
  std::vector<Figures> all;
  for (const int workers : {64, 256, 1024}) {
    all.push_back(measure(workers));
  }
  if (json) {
    std::vector<std::string> rows;
    for (const Figures& f : all) {
      rows.push_back(
          fmt::format(R"({{"workers": {}, "driver_us": {:.3f}, "driver_cpu_us": {:.3f}, )"
                      R"("bare_us": {:.3f}, "bare_cpu_us": {:.3f}}})",
                      f.workers,
                      f.driver.wall,
                      f.driver.processor,
                      f.bare.wall,
                      f.bare.processor));
    }
    fmt::print(R"({{"hardware": "{}", "goal_us": {}, "figures": [{}]}})",
               hardware(),
               kGoal,
               fmt::join(rows, ", "));
    fmt::print("\n");
    return 0;
  }
  fmt::print(
      "{}\nper worker and step, the best of {} rounds; goal {} us\n", hardware(), kRounds, kGoal);
  for (const Figures& f : all) {
    fmt::print(
        "{:>5} workers: driver {:.2f} us ({:.2f} us of processors), step {:.0f} us; "
        "bare round {:.2f} us ({:.2f}); ratio {:.2f}\n",
        f.workers,
        f.driver.wall,
        f.driver.processor,
        f.driver.wall * f.workers,
        f.bare.wall,
        f.bare.processor,
        f.driver.wall / f.bare.wall);
  }
  return 0;
}

}  // namespace stagecraft::bench::driver_scale
