/// What does the runtime itself cost? Stages that do nothing, against the same hand-offs between plain threads.
///
/// The comparison runs the very plan of the trainer on one thread per rank: every Send sets a flag under a mutex and
/// notifies, every Recv waits for it on a condition variable, the vote is such a hand-off to every other rank, and
/// the start and end of a step are one each per rank. What is left in the ratio is everything else the runtime does.
#include <fmt/format.h>
#include <torch/torch.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "stagecraft/bench/hardware.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/stagecraft.h"

namespace sc = stagecraft;

namespace {

constexpr int kMicrobatches = 8;
constexpr int kSteps = 300;
constexpr int kRounds = 5;

/// Every stage hands its input on; the first owns one number, so that gradients flow all the way back.
struct Nothing : torch::nn::Module {
  int stages;
  torch::Tensor one;
  explicit Nothing(int s) : stages(s) { one = register_parameter("one", torch::ones({1})); }
  torch::Tensor forward(torch::Tensor x) {
    for (int s = 0; s < stages; ++s) {
      x = sc::stage(fmt::format("s{}", s), [&] { return s == 0 ? x * one : x.view_as(x); });
    }
    return x;
  }
};

/// Named flags; setting one wakes its rank.
class Mailbox {
 public:
  using Key = std::tuple<int, int, int>;  // step, edge (or a negative number for control), microbatch or sender
  void set(const Key& key) {
    {
      const std::scoped_lock lock(mutex_);
      flags_.insert(key);
    }
    ready_.notify_one();
  }
  void wait(const Key& key) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return flags_.contains(key); });
    flags_.erase(key);
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::set<Key> flags_;
};

constexpr int kGo = -1, kDone = -2, kVote = -3;

void run_rank(const sc::RankPlan& rank, std::vector<Mailbox>& ranks, Mailbox& driver, int steps) {
  const int self = rank.rank.value;
  Mailbox& mine = ranks[rank.rank.index()];
  for (int step = 0; step < steps; ++step) {
    mine.wait({step, kGo, 0});
    for (const sc::Instruction& i : rank.instructions) {
      const Mailbox::Key key{step, i.edge.value, i.task.microbatch.value};
      if (i.op == sc::Op::Recv) {
        mine.wait(key);
      } else if (i.op == sc::Op::Send) {
        ranks[i.peer.index()].set(key);
      } else if (i.op == sc::Op::Vote) {
        for (std::size_t other = 0; other < ranks.size(); ++other) {
          if (static_cast<int>(other) != self) {
            ranks[other].set({step, kVote, self});
          }
        }
        for (std::size_t other = 0; other < ranks.size(); ++other) {
          if (static_cast<int>(other) != self) {
            mine.wait({step, kVote, static_cast<int>(other)});
          }
        }
      }
    }
    driver.set({step, kDone, self});
  }
}

/// Microseconds per step of the plain threads.
double plain_threads(const sc::Plan& plan, int steps) {
  std::vector<Mailbox> ranks(plan.ranks.size());
  Mailbox driver;
  std::vector<std::thread> threads;
  for (const sc::RankPlan& rank : plan.ranks) {
    threads.emplace_back([&, steps] { run_rank(rank, ranks, driver, steps); });
  }
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step) {
    for (const sc::Feed& feed : plan.feeds) {
      ranks[feed.to.index()].set({step, feed.edge.value, feed.microbatch.value});
    }
    for (Mailbox& rank : ranks) {
      rank.set({step, kGo, 0});
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      driver.wait({step, kDone, static_cast<int>(r)});
    }
  }
  const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
  for (std::thread& t : threads) {
    t.join();
  }
  return elapsed.count() / steps;
}

double trainer_steps(sc::Trainer& trainer, const torch::Tensor& x, int steps) {
  const auto start = std::chrono::steady_clock::now();
  sc::StepFuture last;
  for (int step = 0; step < steps; ++step) {
    last = trainer.step({x}, {x});
  }
  (void)last.get();
  const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / steps;
}

void measure(int ranks) {
  Nothing module(ranks);
  const auto x = torch::ones({kMicrobatches, 1});
  const auto loss = [](torch::Tensor output, torch::Tensor label) { return (output - label).sum(); };
  const auto program = sc::compile(module, {.inputs = {x}, .labels = {x}, .loss = loss, .microbatches = kMicrobatches});
  auto cluster = sc::Cluster::local(ranks);
  sc::Trainer trainer(cluster, program, sc::one_f_one_b(program.stage_graph(), kMicrobatches), sc::Sgd{.lr = 0.0});
  std::vector<double> ours, plain, ratios;
  (void)trainer_steps(trainer, x, kSteps / 3);
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(trainer_steps(trainer, x, kSteps));
    plain.push_back(plain_threads(trainer.plan(), kSteps));
    ratios.push_back(ours.back() / plain.back());
  }
  const double cells = 2.0 * ranks * kMicrobatches;
  fmt::print("{} ranks: step {:.0f} us, {:.1f} us per cell; plain hand-offs {:.0f} us, {:.1f} us per cell; ratio {:.2f}\n",
             ranks, sc::bench::median(ours), sc::bench::median(ours) / cells, sc::bench::median(plain),
             sc::bench::median(plain) / cells, sc::bench::median(ratios));
}

}  // namespace

int main() {
  fmt::print("{}\n{} microbatches, 1F1B, stages that do nothing; medians of {} rounds of {} steps\n", sc::bench::hardware(),
             kMicrobatches, kRounds, kSteps);
  measure(2);
  measure(4);
}
