/// Does planning pay? Step times of cuts and schedules that are chosen, beside an even cut by
/// 1F1B, a cut of equally many operators, and one of equal times; and what was predicted for each.
///
/// All ways of a model run in turns, a few steps each, so that a noisy machine is noisy for all.
/// The last part moves one split through a model and holds what is predicted for it against what it
/// takes.
///
///   plans [--workers 2,4] [--processes] [--rounds N] [--sweep] [MODEL...]
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/randint.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/bench/hardware.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tools/train/job.h"
#include "stagecraft/tools/train/models.h"
#include "stagecraft/tools/train/work.h"

namespace sc = stagecraft;

namespace {

constexpr int kMicrobatches = 8;
constexpr int kSamples = 8;
constexpr int kStepsOfATurn = 3;

/// A model that can be cut anew, and a batch for it.
struct Subject {
  std::string name;
  std::function<sc::Program(const std::optional<sc::Cut>&, int stages)> compile;
  sc::Batch inputs, labels;
};

/// A model of `stagecraft train`.
Subject subject_of(const std::string& model) {
  const auto options = std::get<sc::tools::TrainOptions>(
      sc::tools::parse_train_options({"--model",
                                      model,
                                      "--microbatches",
                                      std::to_string(kMicrobatches),
                                      "--microbatch-size",
                                      std::to_string(kSamples)}));
  const std::shared_ptr<sc::tools::Work> work = sc::tools::open_work(options, 1e18);
  const auto choice_of = [](const std::optional<sc::Cut>& cut, int stages) {
    const sc::Schedule schedule = sc::one_f_one_b(stages, kMicrobatches);
    return sc::tools::ScheduleChoice{.schedule = schedule,
                                     .layout = sc::Layout::of(schedule),
                                     .stages = stages,
                                     .microbatches = kMicrobatches,
                                     .given = {},
                                     .cut = cut};
  };
  const sc::tools::WorkBatch batch = work->batch(0, choice_of({}, 1));
  return {model,
          [=](const std::optional<sc::Cut>& cut, int stages) {
            return work->compile(choice_of(cut, stages));
          },
          batch.inputs,
          batch.labels};
}

/// A Llama most of whose work is the head over a large vocabulary.
Subject large_vocabulary() {
  constexpr std::int64_t kVocabulary = 8192, kSequence = 64;
  const sc::examples::LlamaOptions sizes{.vocabulary = kVocabulary,
                                         .layers = 4,
                                         .dim = 128,
                                         .heads = 4,
                                         .ffn = 344,
                                         .sequence = kSequence,
                                         .stages = 1,
                                         .seed = 0};
  const at::Tensor tokens =
      at::randint(kVocabulary, {kMicrobatches * kSamples, kSequence + 1}, at::kLong);
  const at::Tensor inputs = tokens.narrow(1, 0, kSequence).contiguous();
  const at::Tensor labels = tokens.narrow(1, 1, kSequence).contiguous();
  return {"llama, 8192 words",
          [=](const std::optional<sc::Cut>& cut, int stages) {
            sc::examples::LlamaOptions of = sizes;
            of.stages = cut ? 1 : stages;
            sc::examples::Llama model(of);
            return sc::compile(model,
                               {.inputs = {inputs},
                                .labels = {labels},
                                .loss = sc::examples::next_token_loss,
                                .microbatches = kMicrobatches,
                                .cut = cut.value_or(sc::AtMarkers{})});
          },
          {inputs},
          {labels}};
}

/// One way to train it, and how long its steps took.
struct Way {
  std::string name;
  double predicted = 0;
  std::unique_ptr<sc::Trainer> trainer;
  std::vector<double> seconds;
};

double quantile(std::vector<double> samples, double share) {
  std::ranges::sort(samples);
  return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1))];
}

class Comparison {
 public:
  Comparison(Subject subject, int workers, bool processes, int rounds)
      : subject_(std::move(subject)),
        workers_(workers),
        rounds_(rounds),
        cluster_(processes ? sc::Cluster::spawn(workers) : sc::Cluster::local(workers)),
        homes_(processes ? sc::RankHomes::Processes : sc::RankHomes::Threads),
        whole_(subject_.compile(sc::At{}, 1)),
        costs_(sc::profile(whole_, subject_.inputs, subject_.labels, {.ranks = homes_}).costs) {}

  /// A line for each way.
  void ways() {
    add("even cut, 1f1b", std::nullopt);
    add("equal operators, 1f1b", equal_operators());
    const sc::PlanProposal times = best_of("balance", "1f1b");
    add("equal times, 1f1b", sc::Cut(sc::planned_cut(costs_, times)));
    const sc::PlanProposal best = best_of("auto", {});
    add(fmt::format("auto: {}", best.candidate.schedule_name),
        sc::planned_cut(costs_, best),
        best.candidate.schedule);
    run();
    for (const Way& way : all_) {
      fmt::print(
          "{:18} {} workers  {:40} {:8.1f} ms  ({:.1f} to {:.1f})  predicted {:8.1f}  {:+.1f} %\n",
          subject_.name,
          workers_,
          way.name,
          quantile(way.seconds, 0.5) * 1e3,
          quantile(way.seconds, 0.25) * 1e3,
          quantile(way.seconds, 0.75) * 1e3,
          way.predicted * 1e3,
          100 * (quantile(way.seconds, 0.5) / way.predicted - 1));
    }
  }

  /// Two stages by 1F1B, split at one operator after the other.
  void sweep() {
    constexpr std::size_t kSplits = 8;
    const std::size_t operators = whole_.compiled().graph.nodes.size();
    for (std::size_t i = 1; i <= kSplits; ++i) {
      const std::size_t at = operators * i / (kSplits + 1);
      add(fmt::format("split before operator {}", at), sc::At{fmt::format("op:{}", at)});
    }
    run();
    for (const Way& way : all_) {
      fmt::print("{:28} predicted {:8.1f} ms  measured {:8.1f} ({:.1f} to {:.1f})\n",
                 way.name,
                 way.predicted * 1e3,
                 quantile(way.seconds, 0.5) * 1e3,
                 quantile(way.seconds, 0.25) * 1e3,
                 quantile(way.seconds, 0.75) * 1e3);
    }
  }

 private:
  [[nodiscard]] sc::PlanRequest request() const {
    sc::PlanRequest made{
        .costs = costs_, .devices = workers_, .batch = kMicrobatches * costs_.samples};
    made.costs.device.processors = static_cast<int>(std::thread::hardware_concurrency());
    return made;
  }

  [[nodiscard]] sc::PlanProposal best_of(const std::string& planner,
                                         const std::optional<std::string>& builder) const {
    sc::PlanRequest made = request();
    made.builder = builder;
    for (sc::PlanProposal& one : sc::propose(made, planner)) {
      if (one.candidate.replicas.empty() && one.candidate.stage_sizes.empty()) {
        return std::move(one);
      }
    }
    throw sc::Error(sc::Errc::PlanInfeasible, "no plan that a trainer runs");
  }

  [[nodiscard]] sc::Cut equal_operators() const {
    std::vector<std::string> places;
    const std::size_t operators = whole_.compiled().graph.nodes.size();
    for (int stage = 1; stage < workers_; ++stage) {
      places.push_back(fmt::format(
          "op:{}",
          operators * static_cast<std::size_t>(stage) / static_cast<std::size_t>(workers_)));
    }
    return sc::At(places);
  }

  /// What the simulator says of the cut that was made.
  [[nodiscard]] double predict(const sc::Program& program, const sc::Schedule& schedule) const {
    const sc::PlanRequest made = request();
    const sc::WorkGraph graph = sc::WorkGraph::of(costs_, costs_.samples);
    sc::Candidate candidate{
        .planner = "given",
        .stages = sc::StageOperators(static_cast<std::size_t>(program.stage_graph().size())),
        .microbatch_size = costs_.samples,
        .schedule = schedule,
        .schedule_name = "given"};
    for (int op = 0; op < graph.size(); ++op) {
      const int node = graph.ids(op).front();
      const int stage = program.compiled().assignment.stage_of[static_cast<std::size_t>(node)];
      candidate.stages[static_cast<std::size_t>(stage)].push_back(op);
    }
    return sc::judge(made, candidate).step;
  }

  void add(const std::string& name,
           const std::optional<sc::Cut>& cut,
           const std::optional<sc::Schedule>& schedule = std::nullopt) {
    const sc::Program program = subject_.compile(cut, workers_);
    const sc::Schedule by =
        schedule.value_or(sc::one_f_one_b(program.stage_graph(), kMicrobatches));
    all_.push_back({name,
                    predict(program, by),
                    std::make_unique<sc::Trainer>(cluster_, program, by, sc::AdamW{}),
                    {}});
  }

  void run() {
    for (int round = 0; round <= rounds_; ++round) {
      for (Way& way : all_) {
        for (int step = 0; step < kStepsOfATurn; ++step) {
          const auto start = std::chrono::steady_clock::now();
          (void)way.trainer->step(subject_.inputs, subject_.labels).get();
          const double took =
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
          if (round > 0 && step > 0) {  // caches are another's before
            way.seconds.push_back(took);
          }
        }
      }
    }
  }

  Subject subject_;
  int workers_;
  int rounds_;
  sc::Cluster cluster_;
  sc::RankHomes homes_;
  sc::Program whole_;
  sc::Costs costs_;
  std::vector<Way> all_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> workers{2, 4};
  std::vector<std::string> models;
  bool processes = false, sweep = false;
  int rounds = 10;
  CLI::App app("Does planning pay?", "plans");
  app.add_option("--workers", workers)->delimiter(',');
  app.add_flag("--processes", processes, "workers are processes");
  app.add_flag("--sweep", sweep, "only moves a split through the first model");
  app.add_option("--rounds", rounds, "of 3 steps each");
  app.add_option("MODEL", models, "models of stagecraft train, or 'words'");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  fmt::print("{}\n", sc::bench::hardware());
  if (models.empty()) {
    for (const sc::tools::ModelEntry& model : sc::tools::models()) {
      models.emplace_back(model.name);
    }
    models.emplace_back("words");
  }
  const auto subject = [](const std::string& model) {
    return model == "words" ? large_vocabulary() : subject_of(model);
  };
  if (sweep) {
    Comparison(subject(models.front()), 2, processes, rounds).sweep();
    return 0;
  }
  for (const std::string& model : models) {
    for (const int count : workers) {
      Comparison(subject(model), count, processes, rounds).ways();
    }
  }
}
