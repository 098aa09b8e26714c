/// Measures what a strategy costs. This program trains one model on four ranks by several
/// strategies, in turns in one run: a pipeline of four, two copies of a pipeline of two (also
/// interleaved, and sharing what they hold), and four copies of the whole. Then it does the same
/// with a mixture of experts, as copies and with divided experts. Before that it measures how long
/// a large strategy takes to be applied, lowered and proved, and the memory that this takes.
///
/// "sent" is by the formula of bytes_sent(), which a test compares with what transports count.
/// "hidden" is the part of the time from the start of a sum or exchange to its end in which its
/// rank computed or did other work: the rest is the wait at its end.
///
///   strategies
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/cluster/idle_stages.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/plans/sent_bytes.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/bench/step/measured_model.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench::strategies {
namespace {

constexpr std::int64_t kDim = 256;
constexpr int kRanks = 4, kWarmUp = 2, kSteps = 15;
constexpr double kMiB = 1024.0 * 1024.0;
constexpr std::int64_t kBucket = 2 << 20;

struct Way {
  const char* name;
  int stages;
  Schedule schedule;
  ReplicateOptions copies = {};
  const char* divided = "";
};

/// Returns the schedule without overlap groups: their tasks run one after the other.
Schedule in_turns(const Schedule& schedule) {
  std::vector<Schedule::Row> rows;
  for (const Schedule::Row& row : schedule.rows()) {
    Schedule::Row& turns = rows.emplace_back();
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        turns.push_back(Cell(task));
      }
    }
  }
  return {Schedule::Form::List, rows};
}

std::vector<Way> ways_with_experts() {
  const Schedule plain = one_f_one_b(2, kMicrobatches / 2);
  const Schedule groups = dualpipev(2, kMicrobatches / 2);
  return {{"PP2 x DP2", 2, in_copies(plain, 2)},
          {"PP2 x EP2", 2, in_copies(plain, 2), {}, "EP"},
          {"PP2 x EP2, zero 1", 2, in_copies(plain, 2), {.shard_optimizer = true}, "EP"},
          {"dualpipev x EP2 in turns", 4, in_copies(in_turns(groups), 2), {}, "EP"},
          {"dualpipev x EP2", 4, in_copies(groups, 2), {}, "EP"}};
}

std::vector<Way> ways() {
  return {{"PP4", 4, one_f_one_b(4, kMicrobatches)},
          {"PP2 x DP2", 2, in_copies(one_f_one_b(2, kMicrobatches / 2), 2)},
          {"PP2 x DP2, zero 1",
           2,
           in_copies(one_f_one_b(2, kMicrobatches / 2), 2),
           {.shard_optimizer = true}},
          {"PP2 x DP2, zero 2",
           2,
           in_copies(one_f_one_b(2, kMicrobatches / 2), 2),
           {.bucket_bytes = kBucket, .shard_gradients = true}},
          {"PP2 x DP2, zero 3",
           2,
           in_copies(one_f_one_b(2, kMicrobatches / 2), 2),
           {.bucket_bytes = kBucket, .shard_parameters = true}},
          {"PP2 x DP2, interleaved", 4, in_copies(interleaved(2, kMicrobatches / 2, 2), 2)},
          {"DP4", 1, in_copies(one_f_one_b(1, kMicrobatches / 4), 4)}};
}

/// The sums and exchanges of a step: bytes that the rank with the most sends, and time over all
/// ranks.
struct Sums {
  double sent = 0;
  double lasted = 0, waited = 0;
};

void add_times(const Plan& plan, const StepResult& result, Sums& sums) {
  for (std::size_t rank = 0; rank < result.timelines.size(); ++rank) {
    const auto& list = plan.list_of(Rank(rank)).instructions;
    using Begun = std::tuple<std::int32_t, CollectiveKind, std::int32_t>;  // group, round
    std::map<Begun, std::int64_t> starts;
    for (std::size_t i = 0; i < result.timelines[rank].size(); ++i) {
      const InstructionTime& time = result.timelines[rank][i];
      const Begun key{list[i].group, list[i].collective, list[i].round};
      if (list[i].op == Op::Start) {
        starts[key] = time.start;
      } else if (list[i].op == Op::Finish) {
        sums.lasted += static_cast<double>(time.end - starts[key]);
        sums.waited += static_cast<double>(time.end - time.start);
      }
    }
  }
}

/// Way with its trainer, and what its steps took.
struct Measured {
  Way way;
  MeasuredModel model;
  Execution execution;
  Cluster cluster;
  Trainer trainer;
  std::vector<double> seconds = {};
  std::int64_t peak = 0;
  Sums sums = {};

  Measured(Way w, MeasuredModel m)
      : way(std::move(w)),
        model(std::move(m)),
        execution(make_execution(model.compile(), way.schedule, way.copies, way.divided)),
        cluster(Cluster::local(kRanks)),
        trainer(cluster, execution, AdamW{}, {.record_timeline = true}) {
    for (Rank rank; rank.value < kRanks; ++rank.value) {
      sums.sent = std::max(sums.sent, bytes_sent(execution, rank).sum());
    }
  }

  void step(bool counts) {
    const StepResult result = trainer.step(model.inputs, model.labels).get();
    if (!counts) {
      return;
    }
    seconds.push_back(result.seconds);
    for (const RankTimes& rank : result.ranks) {
      peak = std::max(peak, rank.memory.peak);
    }
    add_times(*execution.plan, result, sums);
  }
};

void compare_steps(std::vector<Way> ways, MeasuredModel (*model)(std::int64_t dim, int stages)) {
  std::deque<Measured> all;
  for (Way& way : ways) {
    MeasuredModel measured = model(kDim, way.stages);
    all.emplace_back(std::move(way), std::move(measured));
  }
  for (int step = -kWarmUp; step < kSteps; ++step) {
    for (Measured& one : all) {
      one.step(step >= 0);
    }
  }
  fmt::print("{}, {} ranks that are threads, {} steps each in turns\n",
             all.front().model.name,
             kRanks,
             kSteps);
  for (const Measured& one : all) {
    const Quartiles times = quartiles_of(one.seconds);
    fmt::print(
        "{:<24} {:>6.0f} ms ({:.0f} to {:.0f}), fullest rank {:>6.1f} MiB, sent {:>6.1f} MiB, "
        "hidden {}\n",
        one.way.name,
        times.median * 1e3,
        times.first * 1e3,
        times.third * 1e3,
        static_cast<double>(one.peak) / kMiB,
        one.sums.sent / kMiB,
        one.sums.lasted > 0 ? fmt::format("{:.0f} %", 100 * (1 - one.sums.waited / one.sums.lasted))
                            : "-");
  }
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // kilobytes on Linux
}

void measure_lowering() {
  constexpr int kRows = 64, kChunks = 4, kCopies = 8, kMany = 512;
  const Schedule schedule = in_copies(interleaved(kRows, kMany, kChunks), kCopies);
  const Program program = compile_idle_stages(kRows * kChunks, kCopies * kMany);
  const double before = peak_megabytes();
  std::optional<Execution> execution;
  const double seconds = seconds_of([&] { execution.emplace(make_execution(program, schedule)); });
  fmt::print(
      "{} rows of {} chunks x {} copies, {} microbatches each: {} instructions applied, lowered "
      "and proved in {:.2f} s; memory grew from {:.0f} to {:.0f} MiB\n",
      kRows,
      kChunks,
      kCopies,
      kMany,
      execution->plan->instruction_count(),
      seconds,
      before,
      peak_megabytes());
}

}  // namespace

int run(int /*argc*/, char** /*argv*/) {
  at::set_num_threads(1);
  fmt::print("{}\n", hardware());
  measure_lowering();
  compare_steps(ways(), &llama);
  compare_steps(ways_with_experts(), &moe);
  return 0;
}

}  // namespace stagecraft::bench::strategies
